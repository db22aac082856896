# The install tree: find_package(warpwright) gives warpwright::c, ::kernels, ::warpwright, ::model and
# ::pictures, each with a file of targets of its own, so that none brings another's needs.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/warpwright)

set(targets_c warpwright_shared)
set(targets_kernels warpwright_public_kernels)
set(targets_warpwright warpwright_public_warpwright)
set(targets_model warpwright_public_model)
set(targets_pictures warpwright_public_pictures)
set(rooms_c)
set(rooms_kernels numeric layout atom facts isa pipeline tile kernel)
set(rooms_warpwright plan weights device)
set(rooms_model model ptx simulation run)
set(rooms_pictures pictures)
foreach(component c kernels warpwright model pictures)
  foreach(room IN LISTS rooms_${component})
    set_target_properties(warpwright_${room} PROPERTIES EXPORT_NAME room_${room})
    list(APPEND targets_${component} warpwright_${room})
  endforeach()
  install(TARGETS ${targets_${component}} EXPORT warpwright_${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT warpwright_${component} NAMESPACE warpwright:: DESTINATION ${config_folder}
    FILE warpwright_${component}.cmake)
endforeach()

# The headers of the API, of the rooms that kernels are written on, and of the model. What planning
# and devices have between themselves stays here.
set(include ${CMAKE_INSTALL_INCLUDEDIR}/warpwright)
foreach(room numeric layout atom facts isa model pipeline tile kernel weights pictures)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/warpwright/${room}/ DESTINATION ${include}/${room}
    FILES_MATCHING PATTERN "*.h")
endforeach()
foreach(header warpwright.h model.h run.h run_moe.h c.h plan/product/refusal.h plan/product/problem.h plan/product/modes.h plan/product/device_facts.h
        plan/families/kernel_list.h plan/families/tensor_memory.h plan/search/alternatives.h plan/product/plan.h plan/moe/mixture.h plan/moe/moe_alternatives.h plan/moe/moe_plan.h plan/tuning/tuning.h device/cuda.h device/pack.h device/quantise.h device/scale_order.h device/sort_slots.h device/launch.h device/moe.h
        simulation/model.h simulation/moe.h simulation/check.h simulation/ptx_subject.h ptx/edits.h ptx/kernel.h ptx/module.h device/trace_cuda.h)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/warpwright/${header} DESTINATION ${include}/${folder})
endforeach()
if(TARGET warpwright_exe)
  install(TARGETS warpwright_exe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # What `calibrate --learn` runs.
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/script/record ${PROJECT_SOURCE_DIR}/script/learn.py
    DESTINATION ${CMAKE_INSTALL_DATADIR}/warpwright)
  set(completion ${PROJECT_BINARY_DIR}/completion)
  install(FILES ${completion}/bash/warpwright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completion}/zsh/_warpwright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completion}/fish/warpwright.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_file(${PROJECT_SOURCE_DIR}/cmake/warpwrightConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warpwrightConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warpwrightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)  # before 1.0 a minor version may break the API
install(FILES ${PROJECT_BINARY_DIR}/warpwrightConfig.cmake
  ${PROJECT_BINARY_DIR}/warpwrightConfigVersion.cmake DESTINATION ${config_folder})

# For builds without CMake: the C library. The file finds its prefix from where it lies itself.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE prefix_from_here)
cmake_path(APPEND pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/warpwright.pc.in ${PROJECT_BINARY_DIR}/warpwright.pc
  @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/warpwright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
