# Installs this build, moves the install tree elsewhere, and builds and runs examples/ against it
# as a user's project would: with find_package alone.
#   cmake -DSOURCE=... -DBUILD=... -DGENERATOR=... -DCXX=... -P package.cmake
set(work ${BUILD}/package)
file(REMOVE_RECURSE ${work})
if(NOT EXISTS ${SOURCE}/examples/CMakeLists.txt)
  message(FATAL_ERROR "examples/CMakeLists.txt is missing")
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "this failed with ${status}: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/first)
# Nothing in the tree may point back to where it was installed.
file(RENAME ${work}/first ${work}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${work}/examples -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${work}/prefix
  -DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
run(${CMAKE_COMMAND} --build ${work}/examples)
foreach(example example_c example_gemm example_plan)
  file(GLOB_RECURSE programs ${work}/examples/${example})
  if(NOT programs)
    message(FATAL_ERROR "examples/CMakeLists.txt built no ${example}")
  endif()
  list(GET programs 0 program)
  run(${program})
  message(STATUS "${example} said:\n${output}")
endforeach()
# Who only plans and launches on GPUs needs no Boost, includes no kernel, and sees no internals.
run(ldd ${program})
if(output MATCHES "boost")
  message(FATAL_ERROR "example_plan links Boost:\n${output}")
endif()
file(WRITE ${work}/api.cpp "#include <warpwright/warpwright.h>\n")
run(${CXX} -std=c++20 -I${work}/prefix/include -MM ${work}/api.cpp)
if(output MATCHES "warpwright/(kernel|isa|pipeline|tile|model|layout)/")
  message(FATAL_ERROR "warpwright.h includes more than values:\n${output}")
endif()
foreach(header plan/rules.h plan/family.h plan/hopper.h device/launch_parts.h device/model_kernels.h)
  if(EXISTS ${work}/prefix/include/warpwright/${header})
    message(FATAL_ERROR "${header} is internal, and installed")
  endif()
endforeach()
# The installed command line answers from its new place, too.
if(EXISTS ${work}/prefix/bin/warpwright)
  run(${work}/prefix/bin/warpwright --help)
endif()
