# What ww_check_archs says of -DARCHS=..., without configuring a build.
cmake_minimum_required(VERSION 3.25)
set(WARPWRIGHT_CUDA OFF)
set(WARPWRIGHT_CUDA_ARCHS "${ARCHS}")
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/cuda.cmake)
ww_check_archs()
ww_arch_flags(flags any)
message("${flags}")
