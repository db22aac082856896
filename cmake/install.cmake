# The install tree: find_package(warpwright) gives warpwright::warpwright.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/warpwright)

get_property(targets GLOBAL PROPERTY WARPWRIGHT_TARGETS)
foreach(target IN LISTS targets)
  string(REGEX REPLACE "^warpwright_" "" room ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${room})
endforeach()
install(TARGETS warpwright ${targets} EXPORT warpwrightTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT warpwrightTargets NAMESPACE warpwright:: DESTINATION ${config_folder})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/warpwright/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpwright
  FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
if(TARGET warpwright_exe)
  install(TARGETS warpwright_exe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/warpwrightConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warpwrightConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warpwrightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)  # before 1.0 a minor version may break the API
install(FILES ${PROJECT_BINARY_DIR}/warpwrightConfig.cmake
  ${PROJECT_BINARY_DIR}/warpwrightConfigVersion.cmake DESTINATION ${config_folder})
