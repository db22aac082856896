// Vector clocks that many threads share: the currency of the order checker.
//
// A component of a clock is a thread, an mbarrier that copies signal, the groups of a warpgroup's
// wgmmas or the bulk groups of a thread. Clocks are trees of reference-counted leaves, copied when
// they are written to while shared, so that the 128 threads that leave a barrier together hold one
// object. A clock belongs to one machine and so to one OS thread: counts are not atomic.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace warpwright::model {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock& other) : node_(other.node_) {
    // The analyzer does not follow the count and thinks the last holder is gone.
    if (node_ != nullptr) ++node_->references;  // NOLINT(clang-analyzer-cplusplus.NewDelete)
  }
  Clock(Clock&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Clock& operator=(Clock other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Clock() { drop(node_); }  // NOLINT(clang-analyzer-cplusplus.NewDelete)

  /// The newest event of `component` that this clock knows of; 0 is none.
  std::uint32_t operator[](std::uint32_t component) const {
    if (node_ == nullptr) return 0;
    const std::size_t at = component / leaf_size;
    if (at >= node_->leaves.size() || node_->leaves[at] == nullptr) return 0;
    return node_->leaves[at]->time[component % leaf_size];
  }

  [[nodiscard]] bool empty() const { return node_ == nullptr; }
  /// The identity of the shared object: equal identities are equal clocks.
  [[nodiscard]] const void* identity() const { return node_; }

  void raise(std::uint32_t component, std::uint32_t time) {
    if ((*this)[component] >= time) return;
    own();
    const std::size_t at = component / leaf_size;
    if (at >= node_->leaves.size()) node_->leaves.resize(at + 1, nullptr);
    own(node_->leaves[at]).time[component % leaf_size] = time;
  }

  void join(const Clock& other) {
    if (node_ == other.node_ || other.node_ == nullptr) return;
    if (node_ == nullptr) {
      *this = other;
      return;
    }
    const auto& theirs = other.node_->leaves;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const Leaf* mine = i < node_->leaves.size() ? node_->leaves[i] : nullptr;
      if (theirs[i] == nullptr || theirs[i] == mine) continue;
      if (mine != nullptr && covers(*mine, *theirs[i])) continue;
      own();
      if (i >= node_->leaves.size()) node_->leaves.resize(theirs.size(), nullptr);
      if (mine == nullptr || covers(*theirs[i], *mine)) {
        drop(node_->leaves[i]);
        node_->leaves[i] = theirs[i];
        ++theirs[i]->references;
        continue;
      }
      Leaf& to = own(node_->leaves[i]);
      for (std::size_t c = 0; c < leaf_size; ++c) {
        to.time[c] = std::max(to.time[c], theirs[i]->time[c]);
      }
    }
    if (node_->leaves == theirs) *this = other;  // it knew nothing more: share one object
  }

  static constexpr std::uint32_t leaf_size = 32;  // the lanes of a warp

  /// Calls visit(identity, component, time): the times of the components from there on, as many as
  /// a leaf holds, with the identity of the shared object they are in.
  template <class Visit>
  void for_each_leaf(const Visit& visit) const {
    if (node_ == nullptr) return;
    for (std::size_t i = 0; i < node_->leaves.size(); ++i) {
      const Leaf* leaf = node_->leaves[i];
      if (leaf != nullptr) visit(leaf, static_cast<std::uint32_t>(i * leaf_size), leaf->time);
    }
  }

 private:
  struct Leaf {
    std::uint32_t references = 1;
    std::array<std::uint32_t, leaf_size> time{};
  };
  struct Node {
    std::uint32_t references = 1;
    std::vector<Leaf*> leaves;
  };

  static bool covers(const Leaf& a, const Leaf& b) {
    bool all = true;
    for (std::size_t c = 0; c < leaf_size; ++c) all &= a.time[c] >= b.time[c];
    return all;
  }
  static void drop(Leaf* leaf) {
    if (leaf != nullptr && --leaf->references == 0) delete leaf;
  }
  static void drop(Node* node) {
    if (node == nullptr || --node->references > 0) return;
    for (Leaf* leaf : node->leaves) drop(leaf);
    delete node;
  }
  // Makes the node, or a leaf of it, only this clock's.
  void own() {
    if (node_ == nullptr) {
      node_ = new Node;
    } else if (node_->references > 1) {
      auto* copy = new Node;
      copy->leaves = node_->leaves;
      for (Leaf* leaf : copy->leaves) {
        if (leaf != nullptr) ++leaf->references;
      }
      --node_->references;
      node_ = copy;
    }
  }
  static Leaf& own(Leaf*& leaf) {
    if (leaf == nullptr) {
      leaf = new Leaf;
    } else if (leaf->references > 1) {
      auto* copy = new Leaf;
      copy->time = leaf->time;
      --leaf->references;
      leaf = copy;
    }
    return *leaf;
  }

  Node* node_ = nullptr;
};

/// Joins that 128 threads make one after the other with the same two clocks are made once.
class JoinCache {
 public:
  /// a becomes the join of a and b.
  void join(Clock& a, const Clock& b) {
    if (b.empty() || a.identity() == b.identity()) return;
    if (a.empty()) {
      a = b;
      return;
    }
    const auto key = reinterpret_cast<std::uintptr_t>(a.identity()) / 16 * 31 +
                     reinterpret_cast<std::uintptr_t>(b.identity()) / 16;
    Slot& slot = slots_[(key ^ key >> 8) % slots_.size()];
    if (slot.a.identity() != a.identity() || slot.b.identity() != b.identity()) {
      // The slot holds its operands, so their identities cannot be given to other clocks.
      slot.result = a;
      slot.result.join(b);
      slot.a = a;
      slot.b = b;
    }
    a = slot.result;
  }

 private:
  struct Slot {
    Clock a, b, result;
  };
  std::array<Slot, 256> slots_;
};

}  // namespace warpwright::model
