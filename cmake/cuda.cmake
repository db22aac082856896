# The GPU side. Without WARPWRIGHT_CUDA its functions are there and do nothing, so that few files ask
# which build this is.

# ww_cuda_room(TARGET): the .cu files of a room are compiled for all architectures of the build.
function(ww_cuda_room target)
  if(NOT WARPWRIGHT_CUDA)
    return()
  endif()
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  ww_cuda_family(${target} any)
  ww_kernel_options(${target})
endfunction()

# What WARPWRIGHT_CUDA_ARCHS takes: architectures as nvcc names them, in the form that has what the
# kernels need (wgmma is of 90a, tcgen05 of 100a, setmaxnreg of 120a and 120f), and PTX of the old
# ones, which the driver compiles for any later device.
set(ww_archs 75 80 86 89 90a 100a 100f 103a 103f 120a 120f 121a 121f
    75-virtual 80-virtual 86-virtual 89-virtual)

# ww_nearest_arch(VARIABLE WORD): the word of ww_archs nearest to what is meant: another form of its
# architecture; else the newest older one that its devices run, code of the same major number or PTX.
function(ww_nearest_arch variable word)
  set(nearest 90a)
  if(word MATCHES "[0-9]+")
    set(number ${CMAKE_MATCH_0})
    math(EXPR major "${number} / 10")
    set(nearest 75)
    if(number GREATER 80)
      set(nearest 80-virtual)
    endif()
    set(archs ${ww_archs})
    set(which EXCLUDE)
    if(word MATCHES "virtual|compute")
      set(which INCLUDE)
    endif()
    list(FILTER archs ${which} REGEX virtual)
    foreach(arch IN LISTS archs)
      string(REGEX MATCH "^[0-9]+" known ${arch})
      if(known EQUAL number)
        set(nearest ${arch})
        break()
      endif()
      math(EXPR known_major "${known} / 10")
      if(known_major EQUAL major AND known LESS number AND NOT arch MATCHES "a$")
        set(nearest ${arch})
      endif()
    endforeach()
  endif()
  set(${variable} ${nearest} PARENT_SCOPE)
endfunction()

# Stops at a word that WARPWRIGHT_CUDA_ARCHS does not take.
function(ww_check_archs)
  if(NOT WARPWRIGHT_CUDA_ARCHS)
    message(FATAL_ERROR "WARPWRIGHT_CUDA_ARCHS is empty: the nearest is 90a (H100 and H200).")
  endif()
  foreach(word IN LISTS WARPWRIGHT_CUDA_ARCHS)
    if(word IN_LIST ww_archs)
      continue()
    endif()
    if(word MATCHES "^(sm_|compute_)?70")
      message(FATAL_ERROR "WARPWRIGHT_CUDA_ARCHS has \"${word}\", and nvcc 13 has no sm_70: "
        "kernels for V100 run on the model (--as v100), and the nearest to compile is 75.")
    endif()
    ww_nearest_arch(nearest "${word}")
    list(JOIN ww_archs ", " all)
    message(FATAL_ERROR "WARPWRIGHT_CUDA_ARCHS has \"${word}\", and takes ${all}: "
      "the nearest is ${nearest}.")
  endforeach()
endfunction()

# ww_arch_flags(VARIABLE FAMILY): the -gencode options of those of WARPWRIGHT_CUDA_ARCHS that are of
# the compute capability FAMILY (9: Hopper, 10: Blackwell; or a regular expression, "(8|9)"), or all
# of them ("any").
function(ww_arch_flags variable family)
  set(flags)
  foreach(word IN LISTS WARPWRIGHT_CUDA_ARCHS)
    string(REPLACE "-virtual" "" arch ${word})
    set(code sm_${arch})
    if(NOT word STREQUAL arch)
      set(code compute_${arch})
    endif()
    if(family STREQUAL "any" OR arch MATCHES "^${family}[0-9][a-z]?$")
      list(APPEND flags "SHELL:-gencode arch=compute_${arch},code=${code}")
    endif()
  endforeach()
  set(${variable} "${flags}" PARENT_SCOPE)
endfunction()

# ww_one_by_one(TARGET): its .cu files are compiled one by one. From 3.31 on CMake would compile several
# together in a unity build (and those of kernels share names).
function(ww_one_by_one target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# ww_cuda_family(TARGET FAMILY): the .cu files of TARGET are compiled only for that family, or for
# all architectures of the build ("any"): wgmma is only of sm_90a, tcgen05 of sm_100a and sm_103a.
function(ww_cuda_family target family)
  if(NOT WARPWRIGHT_CUDA)
    return()
  endif()
  ww_one_by_one(${target})
  ww_arch_flags(flags ${family})
  foreach(flag IN LISTS flags)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flag}>")
  endforeach()
endfunction()

# The probes of a Hopper device, where the build is for one.
function(ww_calibrate)
  if(NOT WARPWRIGHT_CUDA_HOPPER)
    target_sources(warpwright_device PRIVATE device/calibrate_absent.cpp)
    return()
  endif()
  ww_family_objects(warpwright_calibrate 9 device/calibrate.cu)
endfunction()

# ww_family_objects(TARGET FAMILY SOURCES...): .cu files of warpwright_device only for that family.
function(ww_family_objects target family)
  add_library(${target} OBJECT ${ARGN})
  target_link_libraries(${target} PRIVATE warpwright_plan CUDA::cudart_static)
  ww_cuda_family(${target} ${family})
  ww_kernel_options(${target})
  target_sources(warpwright_device PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()

# The program that tells ww_kernels' source files their rows. It uses no library.
function(ww_kernel_rows)
  add_executable(warpwright_kernel_rows ${PROJECT_SOURCE_DIR}/cmake/kernel_rows.cpp)
  target_include_directories(warpwright_kernel_rows PRIVATE ${PROJECT_SOURCE_DIR})
  # clang++ gives up on a constant expression after a million steps; whole tables take more.
  target_compile_options(warpwright_kernel_rows PRIVATE ${WARPWRIGHT_WARNINGS}
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-fconstexpr-steps=100000000>)
  set_target_properties(warpwright_kernel_rows PROPERTIES OUTPUT_NAME kernel_rows
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/kernels)
endfunction()

# ww_device_part(VARIABLE INDEX): does the file of this number belong to WARPWRIGHT_DEVICE_PART?
function(ww_device_part variable index)
  set(taken TRUE)
  if(WARPWRIGHT_DEVICE_PART)
    if(NOT WARPWRIGHT_DEVICE_PART MATCHES "^([0-9]+)/([1-9][0-9]*)$")
      message(FATAL_ERROR
        "WARPWRIGHT_DEVICE_PART is \"${WARPWRIGHT_DEVICE_PART}\", and it is R/N, as 0/5")
    endif()
    math(EXPR rest "(${index} - ${CMAKE_MATCH_1}) % ${CMAKE_MATCH_2}")
    if(rest)
      set(taken FALSE)
    endif()
  endif()
  set(${variable} ${taken} PARENT_SCOPE)
endfunction()

# ww_gpu_sources(VARIABLE SOURCES...): those of them that belong to WARPWRIGHT_DEVICE_PART, numbered
# through all calls: sources of programs that only a GPU runs.
function(ww_gpu_sources variable)
  set(chosen)
  foreach(source IN LISTS ARGN)
    get_property(index GLOBAL PROPERTY warpwright_gpu_sources)
    math(EXPR index "0${index} + 1")
    set_property(GLOBAL PROPERTY warpwright_gpu_sources ${index})
    ww_device_part(taken ${index})
    if(taken)
      list(APPEND chosen ${source})
    endif()
  endforeach()
  set(${variable} "${chosen}" PARENT_SCOPE)
endfunction()

# ww_kernels(FAMILY MAJOR CHUNKS PREFIX...): the source files that compile the rows of
# warpwright/kernel/family/table.h, whose names begin with PREFIX_: for the model, and for CUDA where
# the build names an architecture of the compute capability MAJOR (or of several, "(8|9)"). The
# rows that WARPWRIGHT_KERNELS selects are dealt to CHUNKS files: one file a kernel would read the
# same headers a hundred times, and one for all would leave the other processors idle.
function(ww_kernels Family major chunks)
  string(TOLOWER ${Family} family)
  if(NOT WARPWRIGHT_KERNELS MATCHES "(^|,)(common|all)(,|$)")
    # Kernels by name: a file for six of them.
    list(JOIN ARGN "|" prefixes)
    string(REGEX MATCHALL ",(${prefixes})_" chosen ",${WARPWRIGHT_KERNELS}")
    list(LENGTH chosen chosen)
    math(EXPR chosen "(${chosen} + 5) / 6")
    if(chosen LESS chunks)
      set(chunks ${chosen})
    endif()
  endif()
  ww_arch_flags(flags ${major})
  set(architectures ${major})
  if(NOT major MATCHES "^[0-9]+$")
    set(major 0)  # of kernels for several
  endif()
  set(cuda_chunks 0)
  if(WARPWRIGHT_CUDA AND flags)
    set(cuda_chunks ${chunks})
  endif()
  set(folder ${PROJECT_BINARY_DIR}/kernels)
  set(rows)
  set(cuda_sources)
  set(index 0)
  while(index LESS chunks)
    set(stem ${folder}/${family}_${index})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/model_chunk.cpp.in ${stem}.cpp @ONLY)
    target_sources(warpwright_simulation PRIVATE ${stem}.cpp)
    # The model spends its time in switching fibers: -O1 compiles faster and runs as fast.
    set_source_files_properties(${stem}.cpp PROPERTIES COMPILE_OPTIONS "${WARPWRIGHT_SOME_SPEED}")
    ww_device_part(taken ${index})
    if(taken)
      configure_file(${PROJECT_SOURCE_DIR}/cmake/cuda_chunk.cu.in ${stem}.cu @ONLY)
      list(APPEND cuda_sources ${stem}.cu)
    else()
      configure_file(${PROJECT_SOURCE_DIR}/cmake/cuda_left_out.cpp.in ${stem}_left_out.cpp @ONLY)
      list(APPEND cuda_sources ${stem}_left_out.cpp)
    endif()
    list(APPEND rows ${stem}.h)
    math(EXPR index "${index} + 1")
  endwhile()
  if(rows)
    add_custom_command(OUTPUT ${rows}
      COMMAND warpwright_kernel_rows ${family} ${WARPWRIGHT_KERNELS} ${chunks} ${folder}
      DEPENDS warpwright_kernel_rows VERBATIM)
    add_custom_target(warpwright_${family}_rows DEPENDS ${rows})
    add_dependencies(warpwright_simulation warpwright_${family}_rows)
  endif()
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/warpwright/simulation/model_kernels.cpp APPEND PROPERTY
    COMPILE_DEFINITIONS WARPWRIGHT_${Family}_CHUNKS=${chunks})
  if(NOT WARPWRIGHT_CUDA)
    return()
  endif()
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/warpwright/device/cuda_kernels.cu APPEND PROPERTY
    COMPILE_DEFINITIONS WARPWRIGHT_${Family}_CUDA_CHUNKS=${cuda_chunks})
  if(cuda_chunks EQUAL 0)
    return()
  endif()
  if(family STREQUAL "hopper")
    list(APPEND cuda_sources ${PROJECT_SOURCE_DIR}/warpwright/device/layer_kernels.cu)
  endif()
  set(target warpwright_${family}_cuda)
  ww_family_objects(${target} ${architectures} ${cuda_sources})
  add_dependencies(${target} warpwright_${family}_rows)
endfunction()

# ww_families(HEADER): ww_kernels for every family of kernel/families.h, whose list this reads.
function(ww_families header)
  file(READ ${header} text)
  string(REGEX MATCHALL "\n  X\\([^\n\\]*\\)" lines "${text}")
  if(NOT lines)
    message(FATAL_ERROR "no families in ${header}")
  endif()
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^\n  X\\((.*)\\)$" "\\1" columns "${line}")
    string(REGEX REPLACE "[ \n]" "" columns "${columns}")  # clang-format's
    string(REPLACE "," ";" columns "${columns}")
    list(POP_FRONT columns Family family config)
    ww_kernels(${Family} ${columns})
  endforeach()
  # Names that no table has stop the build, also where no family has a file to compile.
  set(names ${PROJECT_BINARY_DIR}/kernels/names)
  add_custom_command(OUTPUT ${names}
    COMMAND warpwright_kernel_rows none ${WARPWRIGHT_KERNELS} 0 ${PROJECT_BINARY_DIR}/kernels
    COMMAND ${CMAKE_COMMAND} -E touch ${names}
    DEPENDS warpwright_kernel_rows VERBATIM)
  add_custom_target(warpwright_kernel_names DEPENDS ${names})
  foreach(target device simulation)
    add_dependencies(warpwright_${target} warpwright_kernel_names)
  endforeach()
  # A family more or less is another set of source files.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
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
endfunction()

if(NOT WARPWRIGHT_CUDA)
  return()
endif()

set(WARPWRIGHT_CUDA_ARCHS "90a" CACHE STRING
    "Architectures to compile for, separated by semicolons: 80;90a;100a, or 80-virtual for PTX")
string(REPLACE "," ";" WARPWRIGHT_CUDA_ARCHS "${WARPWRIGHT_CUDA_ARCHS}")
ww_check_archs()

# Is there an H100 or H200 among them? Some probes and examples are only for those.
ww_arch_flags(hopper 9)
set(WARPWRIGHT_CUDA_HOPPER ${WARPWRIGHT_CUDA})
if(NOT hopper)
  set(WARPWRIGHT_CUDA_HOPPER OFF)
endif()

# The architecture flags are written out: the "a" forms, which wgmma and tcgen05 need, have no
# portable PTX to fall back on, and CMake 3.25 does not know all of them.
set(CMAKE_CUDA_ARCHITECTURES OFF)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(WARPWRIGHT_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(WARPWRIGHT_NVCC)
    set(CMAKE_CUDA_COMPILER ${WARPWRIGHT_NVCC})
  endif()
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
string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra -Xptxas=-v")
if(WARPWRIGHT_WERROR)
  string(APPEND CMAKE_CUDA_FLAGS " -Werror all-warnings -Xcompiler=-Werror")
endif()
# The warnings of rooms.cmake are spelt for g++; nvcc takes "-Werror -x" to be one option.
list(TRANSFORM WARPWRIGHT_WARNINGS REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")

# ptxas says what it thinks of a kernel only in remarks; the launcher makes the bad ones errors for
# developers, notes for others, and keeps a table of every kernel's registers. By the path that is the same in every environment of
# this Python: each `pip install .` has another one, and a new command compiles anew.
file(REAL_PATH ${Python3_EXECUTABLE} python)
set(CMAKE_CUDA_COMPILER_LAUNCHER ${python} ${PROJECT_SOURCE_DIR}/script/nvcc-launcher
    --table=${PROJECT_BINARY_DIR}/registers.tsv)
if(WARPWRIGHT_WERROR)
  list(APPEND CMAKE_CUDA_COMPILER_LAUNCHER --errors)
endif()
