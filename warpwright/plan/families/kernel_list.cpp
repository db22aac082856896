#include "warpwright/plan/families/kernel_list.h"

#include <cstddef>
#include <string>

#include "warpwright/numeric/edit_distance.h"
#include "warpwright/plan/families/family.h"

// Behind what calls functions of the name of its namespace.

namespace warpwright {

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
    const std::size_t letters = numeric::edit_distance(start, facts->name);
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
