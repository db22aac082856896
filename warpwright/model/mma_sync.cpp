// mma.sync: the lanes of a warp meet, and their registers are multiplied (PTX ISA 9.7.14.5).
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "warpwright/atom/mma.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/vector_clones.h"

namespace warpwright::model {
namespace {

// A place in a vector.
constexpr std::size_t place_of(int i) {
  return static_cast<std::size_t>(i);
}

// Where an operand's elements are: `at[thread * values + value]` is their place in a row-major
// matrix, whose rows are the layout's or, `turned`, its columns.
struct Map {
  std::vector<int> at;
  Map(const layout::Layout& tv, int rows, int columns, bool turned) {
    const auto threads = static_cast<int>(layout::size(tv, 0));
    const auto values = static_cast<int>(layout::size(tv, 1));
    for (int t = 0; t < threads; ++t) {
      for (int v = 0; v < values; ++v) {
        const auto number = static_cast<int>(tv(t, v));
        const int row = number % rows;
        const int column = number / rows;
        at.push_back(turned ? column * rows + row : row * columns + column);
      }
    }
  }
};

// What of an instruction does not change from one to the next.
struct Maps {
  atom::Mma mma;
  Map a, b, c;
  int threads;  // of one product
  // The row of A and the column of B whose scales a lane holds.
  std::vector<int> scaled_a, scaled_b;
  explicit Maps(const atom::Mma& m)
      : mma(m),
        a(atom::mma_layout_a(m), m.m, m.k, false),
        b(atom::mma_layout_b(m), m.n, m.k, true),
        c(atom::mma_layout_c(m), m.m, m.n, false),
        threads(atom::mma_threads(m)) {
    for (int t = 0; m.scale_block > 0 && t < threads; ++t) {
      scaled_a.push_back(static_cast<int>(atom::mma_layout_scales_a(m)(t, 0)));
      scaled_b.push_back(static_cast<int>(atom::mma_layout_scales_b(m)(t, 0)));
    }
  }
};

const Maps& maps_of(const atom::Mma& mma) {
  static thread_local std::vector<std::unique_ptr<Maps>> known;
  for (const auto& maps : known) {
    if (maps->mma == mma) return *maps;
  }
  known.push_back(std::make_unique<Maps>(mma));
  return *known.back();
}

// Widens codes that have `code_bits` bits each, of which theirs begin at bit `begin`, the first of
// a word lowest: exactly. A tf32 is the upper 19 of 32.
void widen(DType type, int code_bits, int begin, const std::uint32_t* words, std::size_t count,
           float* out) {
  if (code_bits == numeric::bits(type) && code_bits >= 8) {
    return numeric::widen_from(words, out, count, type);
  }
  // With 4 bits, or fewer bits than a byte that each has for itself.
  static thread_local std::vector<std::uint8_t> codes;
  codes.resize(count);
  const std::uint32_t mask = (1U << numeric::bits(type)) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t each = 32 / static_cast<std::size_t>(code_bits);
    const auto shift = static_cast<int>(i % each) * code_bits + begin;
    codes[i] = static_cast<std::uint8_t>(words[i / each] >> shift & mask);
  }
  numeric::widen(codes.data(), out, count, type);
}

// The lane of thread t of product `q` of the warp.
std::size_t lane_of(const Maps& maps, int q, int t) {
  return static_cast<std::size_t>(maps.threads == 32 ? t : t % 4 + 16 * (t / 4) + 4 * q);
}

// Multiplies a row of A (a column of B), whose elements begin at `from` and lie `step` apart, by
// its scales, those of a word from a byte on: exact too.
void scale(const atom::Mma& mma, std::uint32_t word, int first, double* from, int step) {
  for (int k = 0; k < mma.k; k += mma.scale_block) {
    const int byte = first + k / mma.scale_block;
    const double factor = numeric::to_double(mma.scale, word >> 8 * byte & 0xff);
    for (int i = k; i < k + mma.scale_block; ++i) from[i * step] *= factor;
  }
}

// c[m x n] += a[m x k] * b[k x n], all row-major. Sums as the tensor core leaves open how: four
// products, exactly (no product of these types has more bits than a double), then one rounding.
WW_VECTOR_CLONES
void add_products(const double* a, const double* b, float* c, int m, int n, int k) {
  for (int r = 0; r < m; ++r, a += k, c += n) {
    for (int i = 0; i < k; i += 4) {
      const double* b0 = b + i * n;
      const double* b1 = b0 + n;
      const double* b2 = b1 + n;
      const double* b3 = b2 + n;
      for (int j = 0; j < n; ++j) {
        c[j] = static_cast<float>(
            c[j] + (a[i] * b0[j] + a[i + 1] * b1[j] + a[i + 2] * b2[j] + a[i + 3] * b3[j]));
      }
    }
  }
}

// The same of integers, which wrap, or become the largest or least that there is.
void add_integers(const double* a, const double* b, std::uint32_t* c, int m, int n, int k,
                  bool saturates) {
  constexpr double least = std::numeric_limits<std::int32_t>::min();
  constexpr double most = std::numeric_limits<std::int32_t>::max();
  for (int r = 0; r < m; ++r, a += k, c += n) {
    for (int j = 0; j < n; ++j) {
      double sum = static_cast<std::int32_t>(c[j]);  // exact
      for (int i = 0; i < k; ++i) sum += a[i] * b[i * n + j];
      if (saturates) sum = std::clamp(sum, least, most);
      c[j] = static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
    }
  }
}

void put_sums(const std::vector<float>& values, DType type, std::vector<std::uint32_t>& words) {
  if (type == DType::f32) {
    std::memcpy(words.data(), values.data(), values.size() * 4);
    return;
  }
  static thread_local std::vector<std::uint16_t> codes;
  codes.resize(values.size());
  numeric::narrow(values.data(), codes.data(), values.size(), type);
  std::memcpy(words.data(), codes.data(), values.size() * 2);
}

void multiply(const Maps& maps, int q, std::span<void*> lanes) {
  const atom::Mma& mma = maps.mma;
  const auto request = [&](int t) -> const MmaRequest& {
    return *static_cast<const MmaRequest*>(lanes[lane_of(maps, q, t)]);
  };
  static thread_local std::vector<std::uint32_t> words;
  static thread_local std::vector<float> values;
  static thread_local std::vector<double> a;
  static thread_local std::vector<double> b;
  // The registers of all threads, `count` each, one behind the other.
  const auto collect = [&](int count, const auto& registers_of) {
    words.resize(place_of(maps.threads * count));
    for (int t = 0; t < maps.threads; ++t) {
      std::memcpy(words.data() + t * count, registers_of(request(t)), place_of(count) * 4);
    }
  };
  const auto gather = [&](const Map& map, DType type, std::vector<double>& out) {
    values.resize(map.at.size());
    widen(type, atom::register_bits(mma, type), atom::register_shift(mma, type), words.data(),
          values.size(), values.data());
    out.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) out[place_of(map.at[i])] = values[i];
  };
  collect(atom::mma_registers_a(mma), [](const MmaRequest& r) { return r.a; });
  gather(maps.a, mma.a, a);
  collect(atom::mma_registers_b(mma), [](const MmaRequest& r) { return r.b; });
  gather(maps.b, mma.b, b);
  for (int t = 0; mma.scale_block > 0 && t < maps.threads; ++t) {
    const MmaRequest& r = request(t);
    if (atom::gives_scales_a(t, *r.from)) {
      scale(mma, r.scales_a, r.from->byte_a, a.data() + maps.scaled_a[place_of(t)] * mma.k, 1);
    }
    if (atom::gives_scales_b(t, *r.from)) {
      scale(mma, r.scales_b, r.from->byte_b, b.data() + maps.scaled_b[place_of(t)], mma.n);
    }
  }
  const int count = atom::mma_registers_c(mma);
  collect(count, [](const MmaRequest& r) { return r.sums; });
  const std::vector<int>& at = maps.c.at;
  if (mma.sums == DType::s32) {
    static thread_local std::vector<std::uint32_t> sums;
    sums.resize(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) sums[place_of(at[i])] = words[i];
    add_integers(a.data(), b.data(), sums.data(), mma.m, mma.n, mma.k, request(0).saturates);
    for (std::size_t i = 0; i < at.size(); ++i) words[i] = sums[place_of(at[i])];
  } else {
    static thread_local std::vector<float> sums;
    sums.resize(at.size());
    values.resize(at.size());
    numeric::widen_from(words.data(), values.data(), at.size(), mma.sums);
    for (std::size_t i = 0; i < at.size(); ++i) sums[place_of(at[i])] = values[i];
    const auto add = mma.scale_block > 0 ? multiply_scaled : add_products;
    add(a.data(), b.data(), sums.data(), mma.m, mma.n, mma.k);
    for (std::size_t i = 0; i < at.size(); ++i) values[i] = sums[place_of(at[i])];
    put_sums(values, mma.sums, words);
  }
  for (int t = 0; t < maps.threads; ++t) {
    std::memcpy(request(t).sums, words.data() + t * count, place_of(count) * 4);
  }
}

}  // namespace

void mma_sync(const MmaRequest& request, Site site) {
  whole_warp("mma.sync", site);
  const Together all{.what = "mma.sync", .queues = true};
  meet_warp(all, site, const_cast<MmaRequest*>(&request), [](std::span<void*> lanes) {
    const MmaRequest& first = *static_cast<const MmaRequest*>(lanes[0]);
    const atom::Mma& mma = *first.mma;
    machine().use_tensor_core(mma, first.sums);
    for (const void* lane : lanes) {
      const MmaRequest& r = *static_cast<const MmaRequest*>(lane);
      if (r.mma == first.mma && r.from == first.from) continue;  // the usual case, and cheap
      if (*r.mma != mma || (r.from != nullptr && *r.from != *first.from)) {
        machine().fatal(Check::divergence, "lanes of a warp meet at different mma.sync", Site());
      }
    }
    const Maps& maps = maps_of(mma);
    for (int q = 0; q < warp_lanes / maps.threads; ++q) multiply(maps, q, lanes);
  });
}

}  // namespace warpwright::model
