// A place in the source, carried by every instruction so that reports can name it; and the list of
// the places that synchronise, as the compiler has put them into kernels.
#pragma once

#include <type_traits>

// Whether this compiler can list the statements that it compiles. Unoptimised it does not know in
// time that a place is a constant.
#if defined(__has_builtin)
#if __has_builtin(__builtin_source_location) && defined(__OPTIMIZE__) && defined(__ELF__) && \
    defined(__x86_64__)
#define WW_LISTS_SITES 1
#endif
#endif
#if !defined(WW_LISTS_SITES)
#define WW_LISTS_SITES 0
#endif

#if WW_LISTS_SITES
#include <source_location>  // declares what the builtin gives

#define WW_SOURCE_LOCATION __builtin_source_location()
#else
#define WW_SOURCE_LOCATION nullptr
#endif

namespace warpwright::model {

/// Whether the source that includes this lists its statements. A program's sources may differ from
/// those of the library that it links.
constexpr bool lists_sites = WW_LISTS_SITES != 0;

/// The folder that this header's own name begins from, in the source that includes it: the
/// project's, or the one where it is installed. A program may have both in it, the library's and
/// that of its own sources; so each source hands its own on, as an argument.
struct Root {
  static constexpr int tail = sizeof "warpwright/model/report/site.h";
  const char* header = __FILE__;
  int length = static_cast<int>(sizeof __FILE__) - tail;
};

/// `file` relative to that folder. What lies elsewhere keeps its name, so that no report depends on
/// where the project was built.
constexpr const char* in_project(const char* file, Root root = {}) {
  for (int i = 0; i < root.length; ++i) {
    if (file[i] != root.header[i]) return file;
  }
  return file + root.length;
}

/// File and line of the kernel statement that issued an instruction. Used as a default argument,
/// `Site site = Site::here()`, it names the caller.
struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                             Root root = {}) {
    return {in_project(file, root), line};
  }

  /// The same for an instruction that synchronises. Wherever the compiler keeps such a statement,
  /// it also adds its place to a section of the program, executed or not: see compiled_sites.h.
#if WW_LISTS_SITES
  [[gnu::always_inline]]
#endif
  static constexpr Site
  sync(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
       [[maybe_unused]] const void* where = WW_SOURCE_LOCATION, Root root = {}) {
#if WW_LISTS_SITES
    if (!std::is_constant_evaluated()) {
      asm inline(
          ".pushsection ww_sites,\"aw\",@progbits\n\t.quad %c0, %c1\n\t.popsection" ::"i"(where),
          "i"(root.header));
    }
#endif
    return {in_project(file, root), line};
  }
};

}  // namespace warpwright::model
