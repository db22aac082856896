// The synchronising statements that the compiler has put into this program, executed or not.
//
// Site::sync notes every statement in a section of its own, by what g++ knows of the place: file,
// line, and the function with its template arguments. A branch that the compiler has left out of
// a kernel (`if constexpr`, a constant condition) is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/mutation.h"
#include "warpwright/model/report/site.h"

namespace warpwright::model {

/// A synchronising statement of the program.
struct CompiledSite {
  std::string file;  ///< as in Site
  int line = 0;
  std::string function;  ///< as the compiler writes it, "... run() [with Tag = ...]"

  friend bool operator==(const CompiledSite&, const CompiledSite&) = default;
};

/// All of them, each once, sorted by file, line and function. A source adds its own where
/// `lists_sites` (site.h) is true in it: with g++, or a clang that knows __builtin_source_location,
/// optimised, for x86-64.
std::vector<CompiledSite> compiled_sites();

/// Those of functions that have `word` in their name or in their template arguments, as a word of
/// its own: a kernel's name, where its parts are templates over a type of that name.
std::vector<CompiledSite> compiled_sites(std::string_view word);

/// The identifiers and numbers in a text.
std::vector<std::string_view> words_of(std::string_view text);

/// Does `word` stand in the site's function, in its name or its template arguments, by itself?
bool has_word(const CompiledSite& site, std::string_view word);

/// What never ran: those of `compiled` at whose file and line nothing of `ran` stands, one a place.
std::vector<CompiledSite> not_among(const std::vector<CompiledSite>& compiled,
                                    const std::vector<SyncSite>& ran);

/// "epilogue.h:307 (Epilogue::load_c)".
std::string text(const CompiledSite& site);

/// "Epilogue::load_c": the site's function without its namespaces and arguments.
std::string function_name(const CompiledSite& site);

}  // namespace warpwright::model
