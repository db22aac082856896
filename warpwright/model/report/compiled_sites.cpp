#include "warpwright/model/report/compiled_sites.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

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
// What a source says of a statement: its place, and the name that site.h had there.
struct Note {
  const Place* place;
  const char* header;
};
}  // namespace

// The linker gives the section's ends these names; weak, for a program without such a statement.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const Note __start_ww_sites[];
[[gnu::weak, gnu::visibility("hidden")]] extern const Note __stop_ww_sites[];
}
#endif

namespace warpwright::model {
static bool is_word_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::vector<CompiledSite> compiled_sites() {
  std::vector<CompiledSite> all;
#if WW_LISTS_SITES
  for (const Note* at = __start_ww_sites; at != __stop_ww_sites; ++at) {
    const Root root{at->header, static_cast<int>(std::strlen(at->header) + 1) - Root::tail};
    all.push_back({in_project(at->place->file, root), static_cast<int>(at->place->line),
                   at->place->function});
  }
#endif
  const auto key = [](const CompiledSite& s) { return std::tie(s.file, s.line, s.function); };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<CompiledSite> compiled_sites(std::string_view word) {
  std::vector<CompiledSite> all = compiled_sites();
  std::erase_if(all, [word](const CompiledSite& s) { return !has_word(s, word); });
  return all;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t end = at;
    while (end < text.size() && is_word_part(text[end])) ++end;
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

bool has_word(const CompiledSite& site, std::string_view word) {
  if (site.function.find(word) == std::string::npos) return false;
  const std::vector<std::string_view> words = words_of(site.function);
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<CompiledSite> not_among(const std::vector<CompiledSite>& compiled,
                                    const std::vector<SyncSite>& ran) {
  std::set<std::pair<std::string_view, int>> places;
  for (const SyncSite& site : ran) places.insert({site.file, site.line});
  std::vector<CompiledSite> left;
  for (const CompiledSite& site : compiled) {
    if (places.insert({site.file, site.line}).second) left.push_back(site);
  }
  return left;
}

std::string function_name(const CompiledSite& site) {
  // For "void warpwright::kernel::Epilogue<Tag>::load_c(int) const [with ...]" the last two names.
  std::string plain;
  int depth = 0;
  for (const char c : site.function) {
    depth += c == '<' ? 1 : 0;
    if (depth == 0) plain += c;
    depth -= c == '>' ? 1 : 0;
  }
  plain.resize(std::min(plain.size(), plain.find('(')));
  plain.erase(0, plain.rfind(' ') + 1);
  const std::size_t last = plain.rfind("::");
  if (last == std::string::npos || last == 0) return plain;
  const std::size_t before = plain.rfind("::", last - 1);
  return before == std::string::npos ? plain : plain.substr(before + 2);
}

std::string text(const CompiledSite& site) {
  return site.file.substr(site.file.rfind('/') + 1) + ":" + std::to_string(site.line) + " (" +
         function_name(site) + ")";
}

}  // namespace warpwright::model
