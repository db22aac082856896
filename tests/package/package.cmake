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
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/examples)
file(GLOB_RECURSE programs ${work}/examples/example_gemm)
if(NOT programs)
  message(FATAL_ERROR "examples/CMakeLists.txt built no example_gemm")
endif()
list(GET programs 0 program)
run(${program})
message(STATUS "example_gemm said:\n${output}")
# The installed command line answers from its new place, too.
if(EXISTS ${work}/prefix/bin/warpwright)
  run(${work}/prefix/bin/warpwright --help)
endif()
