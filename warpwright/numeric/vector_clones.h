#pragma once

/// WW_VECTOR_CLONES before a function compiles it once for AVX2 and once for the baseline and picks
/// at program start, so that a portable build still runs its inner loops at the machine's width.
/// The arch is a level and not a processor: arch=haswell would pick by the maker's name and leave
/// every AMD machine on the baseline. The picking is an ifunc, whose resolver runs before a
/// sanitizer's runtime is up: off there. WW_VECTOR_SUMS also lets it add in any order.

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && __GNUC__ >= 12 && \
    !defined(__clang__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) &&    \
    !defined(__SANITIZE_THREAD__)
#define WW_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v3", "default"), optimize("O3"), noinline))
#define WW_VECTOR_SUMS                                                                      \
  __attribute__((target_clones("arch=x86-64-v3", "default"),                                \
                 optimize("O3", "associative-math", "no-signed-zeros", "no-trapping-math"), \
                 noinline))
#else
#define WW_VECTOR_CLONES
#define WW_VECTOR_SUMS
#endif
