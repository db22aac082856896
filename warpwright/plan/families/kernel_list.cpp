#include "warpwright/plan/families/kernel_list.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include "warpwright/plan/families/family.h"

namespace warpwright {
namespace {

// Letters to put in, take out or replace until one word is the other.
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<const KernelFacts*> all_kernels() {
  std::vector<const KernelFacts*> all;
  for (const Family* family : families()) {
    for (const KernelFacts& facts : family->kernels()) all.push_back(&facts);
  }
  return all;
}

const KernelFacts* find_kernel(std::string_view name) {
  for (const KernelFacts* facts : all_kernels()) {
    if (facts->name == name) return facts;
  }
  return nullptr;
}

std::optional<Refusal> unknown_kernel(std::string_view name) {
  constexpr std::size_t longest = 64;  // what is longer is no name, and costs time to compare
  if (find_kernel(name) != nullptr) return std::nullopt;
  if (name.empty()) {
    return refuse(RefusalCode::no_kernel, "the name of the kernel is empty; ",
                  as_rule("`warpwright kernels` lists the names"), ": the nearest is ",
                  as_nearest("none"), ", which leaves the kernel to the plan");
  }
  const std::string_view start = name.substr(0, longest);
  const KernelFacts* nearest = nullptr;
  std::size_t least = name.size() / 2;  // what has less in common is another name
  for (const KernelFacts* facts : all_kernels()) {
    const std::size_t letters = distance(start, facts->name);
    if (letters >= least) continue;
    least = letters;
    nearest = facts;
  }
  return refuse(RefusalCode::no_kernel, "there is no kernel \"", std::string(start),
                name.size() > longest ? "..." : "", "\"; ",
                as_rule("`warpwright kernels` lists them"),
                nearest != nullptr ? ": the nearest is " + as_nearest(nearest->name) : Sentence());
}

}  // namespace warpwright
