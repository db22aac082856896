#include "warpwright/model/report/compiled_sites.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "warpwright/model/report/site.h"

#if WW_LISTS_SITES
namespace {
// What __builtin_source_location() points to: std::source_location's own data.
struct Place {
  const char* file;
  const char* function;
  unsigned line;
  unsigned column;
};
}  // namespace

// The linker gives the section's ends these names; weak, for a program without such a statement.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const Place* const __start_ww_sites[];
[[gnu::weak, gnu::visibility("hidden")]] extern const Place* const __stop_ww_sites[];
}
#endif

namespace warpwright::model {
namespace {

bool is_word_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_part(text[at - 1])) &&
        (end == text.size() || !is_word_part(text[end])))
      return true;
  }
  return false;
}

}  // namespace

bool lists_compiled_sites() {
  return WW_LISTS_SITES != 0;
}

std::vector<CompiledSite> compiled_sites() {
  std::vector<CompiledSite> all;
#if WW_LISTS_SITES
  for (const Place* const* at = __start_ww_sites; at != __stop_ww_sites; ++at) {
    all.push_back({in_project((*at)->file), static_cast<int>((*at)->line), (*at)->function});
  }
#endif
  const auto key = [](const CompiledSite& s) { return std::tie(s.file, s.line, s.function); };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<CompiledSite> compiled_sites(std::string_view word) {
  std::vector<CompiledSite> all = compiled_sites();
  std::erase_if(all, [word](const CompiledSite& s) { return !has_word(s.function, word); });
  return all;
}

}  // namespace warpwright::model
