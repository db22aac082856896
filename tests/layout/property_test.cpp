// The laws of the algebra on random layouts, each checked element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/layout/error.h"
#include "warpwright/layout/layout.h"
#include "warpwright/layout/text.h"

namespace warpwright::layout {
namespace {

constexpr std::uint32_t kSeed = 20240611;
constexpr int kRounds = 4000;

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}

  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint32_t>(n)); }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }

  /// A tree with up to `most` elements.
  Tuple shape(int most) {
    while (true) {
      const Tuple t = tree(2);
      if (t.count <= 6 && product(t) <= most) return t;
    }
  }

  /// Compact, padded, repeating or arbitrary strides.
  Layout layout(int most) {
    const Tuple s = shape(most);
    Tuple d = s;
    std::vector<int> order(static_cast<std::size_t>(s.count));
    for (int i = 0; i < s.count; ++i) order[static_cast<std::size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), engine_);
    const int kind = below(5);
    std::int64_t step = kind == 1 ? pick({1, 2, 3}) : 1;
    for (const int i : order) {
      d.leaf[i] = {kind == 2 && below(3) == 0 ? 0 : step, -1};
      if (kind == 3) d.leaf[i].value = pick({0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24});
      step *= s.leaf[i].value;
      if (kind == 1 && below(2) == 0) step *= pick({2, 3});
    }
    return make_layout(s, d);
  }

 private:
  Tuple tree(int depth) {
    if (depth == 0 || below(10) < 5) return {pick<std::int64_t>({1, 2, 2, 3, 4, 4, 5, 6, 8, 12})};
    detail::Builder<Tuple> builder;
    const int n = pick({1, 2, 2, 3});
    for (int i = 0; i < n; ++i) builder.add(tree(depth - 1));
    return builder.tuple();
  }

  std::mt19937 engine_;
};

std::optional<Layout> attempt(const std::function<Layout()>& operation) {
  try {
    return operation();
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    return std::nullopt;
  }
}

std::vector<std::int64_t> offsets(const Layout& l) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < size(l); ++i) all.push_back(l(i));
  return all;
}

bool injective(const Layout& l) {
  const auto all = offsets(l);
  return std::set<std::int64_t>(all.begin(), all.end()).size() == all.size();
}

/// Whether each stride is a multiple of what the smaller ones fill.
bool gapless(const Layout& l) {
  std::vector<std::pair<std::int64_t, std::int64_t>> leaves;
  leaves.reserve(static_cast<std::size_t>(l.count));
  for (int i = 0; i < l.count; ++i) leaves.emplace_back(l.stride[i].value, l.shape[i]);
  std::sort(leaves.begin(), leaves.end());
  std::int64_t filled = 1;
  for (const auto& [stride, extent] : leaves) {
    if (stride % filled != 0) return false;
    if (stride != 0) filled = stride * extent;
  }
  return true;
}

/// Whether f on [0, n) is some layout, by trying every way to split n. Independent of the library.
bool is_some_layout(const std::vector<std::int64_t>& f) {
  const std::size_t n = f.size();
  if (n == 1) return f[0] == 0;
  for (std::size_t s = 2; s <= n; ++s) {
    if (n % s != 0) continue;
    bool fits = true;
    std::vector<std::int64_t> rest;
    for (std::size_t j = 0; fits && j < n; j += s) {
      rest.push_back(f[j]);
      for (std::size_t i = 0; fits && i < s; ++i)
        fits = f[j + i] == f[j] + static_cast<std::int64_t>(i) * f[1];
    }
    if (fits && is_some_layout(rest)) return true;
  }
  return false;
}

/// Whether a layout with the profile of b equals a(b(c)) everywhere.
bool composition_exists(const Layout& a, const Layout& b) {
  for (int i = 0; i < b.count; ++i) {
    std::vector<std::int64_t> f;
    for (std::int64_t k = 0; k < b.shape[i]; ++k) f.push_back(a(k * b.stride[i].value));
    if (!is_some_layout(f)) return false;
  }
  for (std::int64_t x = 0; x < size(b); ++x) {
    const Tuple c = to_coordinate(x, flatten(b) == b ? shape(b) : shape(flatten(b)));
    std::int64_t sum = 0;
    for (int i = 0; i < b.count; ++i) sum += a(c.leaf[i].value * b.stride[i].value);
    if (sum != a(b(x))) return false;
  }
  return true;
}

class Law : public testing::Test {
 protected:
  void SetUp() override { RecordProperty("seed", static_cast<int>(kSeed)); }
  Random random{kSeed};
};

#define WW_WITH(...) SCOPED_TRACE(testing::Message() << "seed " << kSeed << ": " << __VA_ARGS__)

TEST_F(Law, TextRoundTrip) {
  for (int n = 0; n < kRounds; ++n) {
    const Layout l = random.layout(512);
    WW_WITH(l);
    ASSERT_EQ(parse_layout(to_text(l)), l);
  }
}

TEST_F(Law, CoalesceKeepsTheFunction) {
  for (int n = 0; n < kRounds; ++n) {
    const Layout l = random.layout(512);
    WW_WITH(l);
    const Layout r = coalesce(l);
    ASSERT_EQ(size(r), size(l));
    ASSERT_LE(depth(r), 1);
    ASSERT_EQ(offsets(r), offsets(l));
    ASSERT_EQ(coalesce(r), r);
    ASSERT_EQ(offsets(flatten(l)), offsets(l));
  }
}

TEST_F(Law, CompositionIsCompositionOrHasNone) {
  int accepted = 0;
  int refused = 0;
  for (int n = 0; n < 2 * kRounds; ++n) {
    const Layout a = random.layout(256);
    const Layout b = random.below(2) == 0
                         ? make_layout(Tuple(random.pick<std::int64_t>({2, 3, 4, 6, 8, 12})),
                                       Tuple(random.pick<std::int64_t>({0, 1, 2, 3, 4, 5, 6, 8})))
                         : random.layout(64);
    WW_WITH(a << " o " << b);
    const auto r = attempt([&] { return composition(a, b); });
    if (!r) {
      ++refused;
      ASSERT_FALSE(composition_exists(a, b));
      continue;
    }
    ++accepted;
    ASSERT_EQ(size(*r), size(b));
    for (int m = 0; !detail::is_leaf(b) && m < rank(b); ++m) ASSERT_EQ(size(*r, m), size(b, m));
    // Past the domain of a, a trailing extent of 1 may go on either way.
    const Layout inside = coalesce(a);
    bool as_is = true;
    bool as_inside = true;
    for (std::int64_t i = 0; i < size(b); ++i) {
      as_is = as_is && (*r)(i) == a(b(i));
      as_inside = as_inside && (*r)(i) == inside(b(i));
    }
    ASSERT_TRUE(as_is || as_inside) << *r;
  }
  EXPECT_GT(accepted, kRounds / 2);
  EXPECT_GT(refused, kRounds / 50);
}

TEST_F(Law, ComplementIsOrderedDisjointAndFills) {
  int accepted = 0;
  for (int n = 0; n < kRounds; ++n) {
    const Layout l = random.layout(64);
    const std::int64_t target = 1 + random.below(400);
    WW_WITH(l << " in " << target);
    const auto r = attempt([&] { return complement(l, target); });
    if (!r) continue;
    ++accepted;
    std::set<std::int64_t> seen;
    const auto mine = offsets(filter(l));
    if (!injective(filter(l))) continue;
    const auto theirs = offsets(*r);
    ASSERT_TRUE(std::is_sorted(theirs.begin(), theirs.end()));
    for (const auto x : mine)
      for (const auto y : theirs) ASSERT_TRUE(seen.insert(x + y).second) << *r;
    if (gapless(filter(l))) {
      ASSERT_EQ(*seen.rbegin() + 1, static_cast<std::int64_t>(seen.size())) << *r;
      ASSERT_GE(*seen.rbegin() + 1, target) << *r;
    }
  }
  EXPECT_GT(accepted, kRounds / 2);
}

TEST_F(Law, InversesInvert) {
  int accepted = 0;
  for (int n = 0; n < kRounds; ++n) {
    const Layout l = random.layout(256);
    WW_WITH(l);
    const Layout r = right_inverse(l);
    for (std::int64_t i = 0; i < size(r); ++i) ASSERT_EQ(l(r(i)), i) << r;
    const auto left = attempt([&] { return left_inverse(l); });
    if (!left) continue;
    ++accepted;
    const bool exact = injective(l);
    for (std::int64_t i = 0; i < size(l); ++i) {
      ASSERT_EQ(l((*left)(l(i))), l(i)) << *left;
      if (exact) {
        ASSERT_EQ((*left)(l(i)), i) << *left;
      }
    }
  }
  EXPECT_GT(accepted, kRounds / 2);
}

TEST_F(Law, DivideReachesEachElementOnce) {
  int accepted = 0;
  for (int n = 0; n < kRounds; ++n) {
    const Layout l = random.layout(256);
    const Layout tile = random.below(2) == 0
                            ? make_layout(Tuple(random.pick<std::int64_t>({2, 3, 4, 8})),
                                          Tuple(random.pick<std::int64_t>({1, 2, 3, 4})))
                            : random.layout(24);
    WW_WITH(l << " by " << tile);
    const auto r = attempt([&] { return logical_divide(l, tile); });
    if (!r) continue;
    ++accepted;
    ASSERT_EQ(rank(*r), 2);
    if (cosize(tile) <= size(l)) {
      ASSERT_EQ(offsets(mode(*r, 0)), offsets(composition(l, tile)));
    }
    if (!injective(tile)) continue;
    ASSERT_GE(size(*r), size(l));
    if (size(*r) == size(l) && cosize(make_layout(tile, complement(tile, size(l)))) == size(l)) {
      auto was = offsets(l);
      auto is = offsets(*r);
      std::sort(was.begin(), was.end());
      std::sort(is.begin(), is.end());
      ASSERT_EQ(is, was) << *r;
    }
    ASSERT_EQ(offsets(tiled_divide(l, tile)), offsets(*r));
  }
  EXPECT_GT(accepted, kRounds / 4);
}

TEST_F(Law, DivideByModeGathersTheTiles) {
  for (int n = 0; n < kRounds; ++n) {
    const Layout l = random.layout(256);
    Tiler tiler;
    for (int m = 0; m < std::min(rank(l), 2); ++m)
      tiler.add(make_layout(random.pick<std::int64_t>({1, 2, 3, 4})));
    if (detail::is_leaf(l)) continue;
    WW_WITH(l);
    const auto r = attempt([&] { return zipped_divide(l, tiler); });
    if (!r) continue;
    ASSERT_EQ(mode(*r, 0), composition(l, tiler));
    ASSERT_EQ(offsets(tiled_divide(l, tiler)), offsets(*r));
    for (int m = 0; m < tiler.count; ++m)
      ASSERT_EQ(mode(logical_divide(l, tiler), m), logical_divide(mode(l, m), tiler.tile[m]));
  }
}

TEST_F(Law, ProductRepeatsTheBlock) {
  int accepted = 0;
  for (int n = 0; n < kRounds; ++n) {
    const Layout block = random.layout(32);
    const Layout tiler = random.layout(16);
    WW_WITH(block << " times " << tiler);
    const auto r = attempt([&] { return logical_product(block, tiler); });
    if (!r) continue;
    ++accepted;
    ASSERT_EQ(mode(*r, 0), block);
    ASSERT_EQ(size(mode(*r, 1)), size(tiler));
    if (injective(block) && injective(tiler)) {
      ASSERT_TRUE(injective(*r)) << *r;
    }
    const auto blocked = attempt([&] { return blocked_product(block, tiler); });
    const auto raked = attempt([&] { return raked_product(block, tiler); });
    ASSERT_EQ(blocked.has_value(), raked.has_value());
    if (!blocked) continue;
    ASSERT_EQ(rank(*blocked), std::max(rank(block), rank(tiler)));
    auto expected = offsets(*r);
    std::sort(expected.begin(), expected.end());
    for (const Layout& product : {*blocked, *raked}) {
      auto is = offsets(product);
      std::sort(is.begin(), is.end());
      ASSERT_EQ(is, expected) << product;
    }
  }
  EXPECT_GT(accepted, kRounds / 4);
}

TEST_F(Law, SwizzlesAreInvolutions) {
  for (int n = 0; n < kRounds; ++n) {
    const int bits = random.below(5);
    const int shift = (bits + random.below(3)) * (random.below(2) == 0 ? 1 : -1);
    const Swizzle s = make_swizzle(bits, random.below(6), shift);
    for (std::int64_t x = 0; x < 64; ++x) {
      const std::int64_t offset = random.below(1 << 20);
      ASSERT_EQ(s(s(offset)), offset) << to_text(s);
    }
  }
}

}  // namespace
}  // namespace warpwright::layout
