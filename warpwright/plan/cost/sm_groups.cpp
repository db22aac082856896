#include "warpwright/plan/cost/sm_groups.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace warpwright {
namespace {

// Sets of SMs that grow together.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count), size_(count, 1) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // The set's least element.
  [[nodiscard]] int find(int element) const {
    while (parent_[index(element)] != element) element = parent_[index(element)];
    return element;
  }
  void join(int a, int b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    if (b < a) std::swap(a, b);
    parent_[index(b)] = a;
    size_[index(a)] += size_[index(b)];
  }
  [[nodiscard]] bool alone(int element) const { return size_[index(find(element))] == 1; }

 private:
  static std::size_t index(int element) { return static_cast<std::size_t>(element); }

  std::vector<int> parent_;
  std::vector<int> size_;
};

// The group of each cluster of the grid: that of its first CTA.
std::vector<int> landed(const SeenGrid& grid, const std::vector<int>& of_sm) {
  std::vector<int> groups;
  const auto size = static_cast<std::size_t>(grid.cluster_size);
  for (std::size_t i = 0; i < grid.sms.size(); i += size) {
    groups.push_back(of_sm[static_cast<std::size_t>(grid.sms[i])]);
  }
  return groups;
}

}  // namespace

SmGroups sm_groups(std::span<const SeenGrid> seen) {
  int most = -1;
  for (const SeenGrid& grid : seen) {
    for (const int sm : grid.sms) most = std::max(most, sm);
  }
  Sets sets(static_cast<std::size_t>(most + 1));
  for (const SeenGrid& grid : seen) {
    const auto size = static_cast<std::size_t>(grid.cluster_size);
    for (std::size_t i = 0; i < grid.sms.size(); ++i)
      sets.join(grid.sms[i], grid.sms[i / size * size]);
  }
  SmGroups groups;
  for (int sm = 0; sm <= most; ++sm) {
    int group = -1;
    if (!sets.alone(sm)) {
      const int first = sets.find(sm);
      group = first == sm ? groups.count++ : groups.of_sm[static_cast<std::size_t>(first)];
    }
    groups.of_sm.push_back(group);
  }
  std::set<int> unsteady;
  for (const SeenGrid& grid : seen) {
    std::vector<int> here = landed(grid, groups.of_sm);
    const auto [at, is_new] = groups.of_clusters.try_emplace(grid.cluster_size, here);
    const bool known = std::find(here.begin(), here.end(), -1) == here.end();
    if (!known || (!is_new && at->second != here)) unsteady.insert(grid.cluster_size);
  }
  for (const int size : unsteady) groups.of_clusters.erase(size);
  return groups;
}

}  // namespace warpwright
