# The install tree: find_package(warpwright) gives warpwright::warpwright, ::kernels and ::model.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/warpwright)

get_property(targets GLOBAL PROPERTY WARPWRIGHT_TARGETS)
get_property(public GLOBAL PROPERTY WARPWRIGHT_PUBLIC)
foreach(target IN LISTS targets)
  string(REGEX REPLACE "^warpwright_" "room_" room ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${room})
endforeach()
install(TARGETS ${public} ${targets} EXPORT warpwrightTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT warpwrightTargets NAMESPACE warpwright:: DESTINATION ${config_folder})

# The headers of the API, of the rooms that kernels are written on, and of the model. What planning
# and devices have between themselves stays here.
set(include ${CMAKE_INSTALL_INCLUDEDIR}/warpwright)
foreach(room numeric layout atom facts isa model pipeline tile kernel weights)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/warpwright/${room}/ DESTINATION ${include}/${room}
    FILES_MATCHING PATTERN "*.h")
endforeach()
foreach(header warpwright.h model.h run.h c.h plan/problem.h plan/device_facts.h plan/sm_groups.h plan/plan.h plan/tuning.h
        device/cuda.h device/pack.h device/quantise.h device/launch.h device/model.h device/check.h device/trace_cuda.h)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/warpwright/${header} DESTINATION ${include}/${folder})
endforeach()
if(TARGET warpwright_exe)
  install(TARGETS warpwright_exe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/warpwrightConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warpwrightConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warpwrightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)  # before 1.0 a minor version may break the API
install(FILES ${PROJECT_BINARY_DIR}/warpwrightConfig.cmake
  ${PROJECT_BINARY_DIR}/warpwrightConfigVersion.cmake DESTINATION ${config_folder})
