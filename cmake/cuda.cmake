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

# ww_arch_flags(VARIABLE FAMILY): the -gencode options of those of WARPWRIGHT_CUDA_ARCHS that are of
# the compute capability FAMILY (9: Hopper, 10: Blackwell), or of all of them ("any").
function(ww_arch_flags variable family)
  set(flags)
  foreach(arch IN LISTS WARPWRIGHT_CUDA_ARCHS)
    if(family STREQUAL "any" OR arch MATCHES "^${family}[0-9][a-z]?$")
      list(APPEND flags "SHELL:-gencode arch=compute_${arch},code=sm_${arch}")
    endif()
  endforeach()
  set(${variable} "${flags}" PARENT_SCOPE)
endfunction()

# ww_cuda_family(TARGET FAMILY): the .cu files of TARGET are compiled for that family alone, or for
# all architectures of the build ("any"): wgmma is of sm_90a alone, tcgen05 of sm_100a and sm_103a.
function(ww_cuda_family target family)
  if(NOT WARPWRIGHT_CUDA)
    return()
  endif()
  ww_arch_flags(flags ${family})
  foreach(flag IN LISTS flags)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flag}>")
  endforeach()
endfunction()

# ww_instances(TARGET NAME TABLE FAMILY [KERNEL]): source files of each line of warpwright/kernel/TABLE, one
# for the model and one for CUDA, so that a kernel is a translation unit of its own and the build
# compiles them side by side; those for CUDA for their family of architectures, and none when the
# build names none of it. KERNEL names the template, where it is not NAME.
function(ww_instances target name table family)
  set(table warpwright/kernel/${table})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${table})
  file(READ ${PROJECT_SOURCE_DIR}/${table} text)
  if(NOT WARPWRIGHT_ALL_KERNELS)
    string(REGEX REPLACE "#define WW_[A-Z0-9_]+_MORE_INSTANCES.*clang-format on" "" text "${text}")
  endif()
  string(REGEX MATCHALL "X\\(${name}_[a-z0-9_]+," lines "${text}")
  set(template ${ARGV4})
  if(NOT template)
    set(template ${name})
  endif()
  string(TOUPPER ${name} upper)
  string(TOUPPER ${template} template_upper)
  string(SUBSTRING ${template} 1 -1 rest)
  string(SUBSTRING ${template_upper} 0 1 kernel)
  string(APPEND kernel ${rest} Gemm)
  set(cuda_sources)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "X\\(([a-z0-9_]+)," "\\1" instance "${line}")
    set(stem ${PROJECT_BINARY_DIR}/instances/${instance})
    file(CONFIGURE OUTPUT ${stem}.cpp CONTENT
"#include \"warpwright/device/model_instance.h\"
#include \"warpwright/kernel/@template@_gemm.h\"
#include \"@table@\"
WW_DEFINE_MODEL_INSTANCE(@kernel@, @instance@)
" @ONLY)
    target_sources(${target} PRIVATE ${stem}.cpp)
    file(CONFIGURE OUTPUT ${stem}.cu CONTENT
"#include \"warpwright/device/@template@_instance.cuh\"
#include \"@table@\"
WW_DEFINE_@template_upper@_INSTANCE(@instance@)
" @ONLY)
    list(APPEND cuda_sources ${stem}.cu)
  endforeach()
  if(NOT WARPWRIGHT_CUDA)
    return()
  endif()
  ww_arch_flags(flags ${family})
  if(NOT flags)
    target_compile_definitions(${target} PRIVATE WARPWRIGHT_HAS_${upper}=0)
    return()
  endif()
  target_compile_definitions(${target} PRIVATE WARPWRIGHT_HAS_${upper}=1)
  add_library(${target}_${name} OBJECT ${cuda_sources})
  target_link_libraries(${target}_${name} PRIVATE warpwright_plan CUDA::cudart_static)
  ww_cuda_family(${target}_${name} ${family})
  ww_kernel_options(${target}_${name})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${name}>)
endfunction()

# ww_kernel_options(TARGET): the options of the build that kernels and what reads them share.
function(ww_kernel_options target)
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
    "Architectures to compile for, as nvcc names them, separated by semicolons: 90a;100a;103a")

# Is there an H100 or H200 among them? The tests and examples that launch are written for those.
ww_arch_flags(hopper 9)
set(WARPWRIGHT_CUDA_HOPPER ${WARPWRIGHT_CUDA})
if(NOT hopper)
  set(WARPWRIGHT_CUDA_HOPPER OFF)
endif()

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

# --expt-relaxed-constexpr: device code calls the plain constexpr functions of the lower rooms.
string(APPEND CMAKE_CUDA_FLAGS
  " --expt-relaxed-constexpr -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Werror -Xptxas=-v")
# The warnings of rooms.cmake are spelt for g++; nvcc takes "-Werror -x" to be one option.
list(TRANSFORM WARPWRIGHT_WARNINGS REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")

# ptxas says what it thinks of a kernel only in remarks; the launcher makes the bad ones errors and
# keeps a table of every kernel's registers.
set(CMAKE_CUDA_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/script/nvcc-launcher
    --table=${PROJECT_BINARY_DIR}/registers.tsv)
