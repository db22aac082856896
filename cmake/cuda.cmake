# The GPU side. Without WARPWRIGHT_CUDA ww_cuda_sources is there and does nothing, so that no other
# file asks which build this is.

# ww_cuda_sources(TARGET [ROOM]): the .cu files of warpwright/ROOM (by default the room that TARGET
# is named after) become sources of TARGET.
function(ww_cuda_sources target)
  if(NOT WARPWRIGHT_CUDA)
    return()
  endif()
  set(room ${ARGV1})
  if(NOT room)
    string(REGEX REPLACE "^warpwright_" "" room ${target})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/warpwright/${room}/*.cu)
  if(NOT sources)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    message(FATAL_ERROR "warpwright/${room}/ has .cu files and no .cpp: a room needs one to be a library")
  endif()
  target_sources(${target} PRIVATE ${sources})
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
endfunction()

# ww_hopper_instances(TARGET TABLE...): source files of each line of the tables of kernels, one for
# the model and one for CUDA, so that a kernel is a translation unit of its own and the build
# compiles them side by side.
function(ww_hopper_instances target)
  set(lines)
  foreach(name IN LISTS ARGN)
    set(table ${PROJECT_SOURCE_DIR}/warpwright/kernel/${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
    file(READ ${table} text)
    if(NOT WARPWRIGHT_ALL_KERNELS)
      string(REGEX REPLACE "#define WW_HOPPER_[A-Z_]*MORE_INSTANCES.*clang-format on" "" text
             "${text}")
    endif()
    string(REGEX MATCHALL "X\\([a-z]+_[a-z0-9_]+," found "${text}")
    list(APPEND lines ${found})
  endforeach()
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "X\\(([a-z0-9_]+)," "\\1" name "${line}")
    set(stem ${PROJECT_BINARY_DIR}/instances/${name})
    file(CONFIGURE OUTPUT ${stem}.cpp CONTENT
      "#include \"warpwright/device/model_instance.h\"\nWW_DEFINE_MODEL_INSTANCE(@name@)\n" @ONLY)
    target_sources(${target} PRIVATE ${stem}.cpp)
    if(WARPWRIGHT_CUDA)
      file(CONFIGURE OUTPUT ${stem}.cu CONTENT
        "#include \"warpwright/device/hopper_instance.cuh\"\nWW_DEFINE_HOPPER_INSTANCE(@name@)\n" @ONLY)
      target_sources(${target} PRIVATE ${stem}.cu)
    endif()
  endforeach()
  if(NOT WARPWRIGHT_CUDA)
    return()
  endif()
  if(WARPWRIGHT_DEBUG_WAITS)
    target_compile_definitions(${target} PRIVATE WARPWRIGHT_DEBUG_WAITS=1)
  endif()
  if(WARPWRIGHT_TRACE)
    target_compile_definitions(${target} PRIVATE WARPWRIGHT_TRACE=1)
  endif()
  target_compile_definitions(${target} PUBLIC WARPWRIGHT_HAS_CUDA=1)
endfunction()

if(NOT WARPWRIGHT_CUDA)
  return()
endif()

set(WARPWRIGHT_CUDA_ARCHS "90a" CACHE STRING
    "Architectures to compile for, as nvcc names them, separated by semicolons: 90a;100a")

# The architecture flags are written out: the "a" forms, which wgmma and tcgen05 need, have no
# portable PTX to fall back on, and CMake 3.25 does not know all of them.
set(CMAKE_CUDA_ARCHITECTURES OFF)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc PATHS /usr/local/cuda/bin)
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# CMake 3.25 does not know that nvcc has C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_FLAGS_RELEASE "-O2")

foreach(arch IN LISTS WARPWRIGHT_CUDA_ARCHS)
  string(APPEND CMAKE_CUDA_FLAGS " -gencode arch=compute_${arch},code=sm_${arch}")
endforeach()
# --expt-relaxed-constexpr: device code calls the plain constexpr functions of the lower rooms.
string(APPEND CMAKE_CUDA_FLAGS
  " --expt-relaxed-constexpr -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Werror -Xptxas=-v")
# The warnings of rooms.cmake are spelt for g++; nvcc takes "-Werror -x" to be one option.
list(TRANSFORM WARPWRIGHT_WARNINGS REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")

# ptxas says what it thinks of a kernel only in remarks; the launcher makes the bad ones errors and
# keeps a table of every kernel's registers.
set(CMAKE_CUDA_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/script/nvcc-launcher
    --table=${PROJECT_BINARY_DIR}/registers.tsv)
