#include "warpwright/model/order/relation.h"

#include <algorithm>

#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15U + b;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint64_t component_key(const Cluster& cluster, std::uint32_t component) {
  return std::uint64_t{cluster.order.first_thread} << 32 | component;
}

}  // namespace

void Relation::name_component(const Cluster& cluster, std::uint32_t component, Owner owner,
                              std::uint32_t cta_or_thread, std::uint32_t which) {
  names_[component_key(cluster, component)] =
      mix(mix(static_cast<std::uint64_t>(owner) + 1, cta_or_thread), which);
}

void Relation::count(const Thread& by) {
  const ThreadOrder& t = by.order;
  if (counts_.size() <= t.number) counts_.resize(t.number + 1);
  std::vector<Count>& counts = counts_[t.number];
  if (counts.empty() || counts.back().time != t.time) {
    counts.push_back({t.time, counts.empty() ? 0 : counts.back().accesses});
  }
  ++counts.back().accesses;
}

std::uint32_t Relation::accesses(std::uint32_t thread, std::uint32_t time) const {
  if (thread >= counts_.size()) return 0;
  const std::vector<Count>& counts = counts_[thread];
  const auto after = std::upper_bound(counts.begin(), counts.end(), time,
                                      [](std::uint32_t t, const Count& c) { return t < c.time; });
  return after == counts.begin() ? 0 : std::prev(after)->accesses;
}

std::uint64_t Relation::hash_of(const Clock& clock, const Cluster& cluster) {
  if (clock.empty()) return 0;
  const auto found = known_.find(clock.identity());
  if (found != known_.end()) return found->second.second;
  if (known_.size() > 4096) {
    known_.clear();
    leaves_.clear();
  }
  const ClusterOrder& o = cluster.order;
  std::uint64_t sum = 0;
  clock.for_each_leaf([&](const void* leaf, std::uint32_t first, const auto& times) {
    const auto [it, is_new] = leaves_.try_emplace(leaf, 0);
    if (is_new) {
      for (std::uint32_t c = first; c < first + times.size(); ++c) {
        const std::uint32_t time = times[c - first];
        if (time == 0) continue;
        if (c < o.threads) {
          // What is known of a thread is what that one has done, however its clock ran.
          const std::uint32_t number = accesses(o.first_thread + c, time);
          if (number > 0) it->second += mix(o.first_thread + c, number);
        } else {
          it->second += mix(names_[component_key(cluster, c)], time);
        }
      }
    }
    sum += it->second;
  });
  known_.emplace(clock.identity(), std::pair(clock, sum));
  return sum;
}

std::uint64_t Relation::hash_far(const Clock& grid) {
  std::uint64_t sum = 0;
  grid.for_each_leaf([&](const void*, std::uint32_t first, const auto& times) {
    for (std::uint32_t c = first; c < first + times.size(); ++c) {
      const std::uint32_t time = times[c - first];
      const bool ends = c < warp_lanes || c >= counts_.size();
      const std::uint32_t known = time == 0 || ends ? time : accesses(c, time);
      if (known > 0) sum += mix(c, known);
    }
  });
  return sum;
}

void Relation::append(std::uint32_t stream, std::uint64_t value) {
  if (streams_.size() <= stream) streams_.resize(stream + 1);
  streams_[stream] = mix(streams_[stream], value);
}

void Relation::generic(const Thread& by, std::uint64_t where, bool write, Site site) {
  const ThreadOrder& t = by.order;
  const Cluster& cluster = *by.cta->cluster;
  count(by);
  const std::uint64_t before =
      hash_of(t.order, cluster) + 3 * hash_of(t.executed, cluster) + 5 * hash_far(t.grid);
  append(t.number, mix(mix(where, write ? 1 : 2), static_cast<unsigned>(site.line)) + before);
}

void Relation::asynchronous(std::span<Thread* const> issuers, std::uint64_t where, bool write,
                            bool shared, std::uint32_t line) {
  std::uint64_t before = 0;
  for (const Thread* issuer : issuers) {
    const ThreadOrder& t = issuer->order;
    const Cluster& cluster = *issuer->cta->cluster;
    before += hash_of(shared ? t.shared : t.global, cluster) + 3 * hash_of(t.executed, cluster) +
              mix(t.number, accesses(t.number, shared ? t.fenced_shared : t.fenced_global)) +
              (shared ? 0 : 5 * hash_far(t.grid) + 7 * hash_far(t.far));
  }
  append(issuers.front()->order.number, mix(mix(where, write ? 3 : 4), line) + before);
}

void Relation::tensor(std::span<Thread* const> issuers, std::uint64_t where, bool write,
                      std::uint32_t line) {
  std::uint64_t before = 0;
  for (const Thread* issuer : issuers) {
    before += hash_of(issuer->order.tensor, *issuer->cta->cluster);
  }
  append(issuers.front()->order.number, mix(mix(where, write ? 5 : 6), line) + before);
}

void Relation::exits(const Thread& thread) {
  Clock& known = exited_[static_cast<std::uint32_t>(thread.cta->index)];
  known.join(thread.order.executed);
  known.raise(thread.order.component, thread.order.time);
}

void Relation::cta_exits(const Cta& cta) {
  const auto index = static_cast<std::uint32_t>(cta.index);
  ends_ += mix(index, hash_of(exited_[index], *cta.cluster));
  exited_.erase(index);
}

std::uint64_t Relation::hash() const {
  std::uint64_t sum = ends_;
  for (std::size_t i = 0; i < streams_.size(); ++i) sum += mix(i, streams_[i]);
  return sum;
}

}  // namespace warpwright::model
