// mma.sync: the lanes of a warp meet, and their registers are multiplied (PTX ISA 9.7.14.5).
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "warpwright/atom/mma.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/timing.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {
namespace {

// A place in a vector.
constexpr std::size_t place_of(int i) {
  return static_cast<std::size_t>(i);
}

// Where an operand's elements are: `at[thread * values + value]` is row + rows * column.
struct Map {
  int values = 0;
  std::vector<int> at;
  explicit Map(const layout::Layout& tv) : values(static_cast<int>(layout::size(tv, 1))) {
    const auto threads = static_cast<int>(layout::size(tv, 0));
    for (int t = 0; t < threads; ++t) {
      for (int v = 0; v < values; ++v) at.push_back(static_cast<int>(tv(t, v)));
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
        a(atom::mma_layout_a(m)),
        b(atom::mma_layout_b(m)),
        c(atom::mma_layout_c(m)),
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

// Value `v` of a type in registers, the first lowest.
std::uint32_t code_of(const std::uint32_t* registers, int v, int bits) {
  const int each = 32 / bits;
  const std::uint32_t word = registers[v / each];
  return bits == 32 ? word : word >> (v % each * bits) & ((1U << bits) - 1);
}

// Exact: no product of these types has more bits than a double. A tf32 is the upper 19 of 32.
double value_of(DType type, std::uint32_t code) {
  if (type == DType::s8) return static_cast<std::int8_t>(code);
  if (type == DType::u8) return code;
  if (type == DType::s4)
    return static_cast<double>(code >= 8 ? static_cast<int>(code) - 16 : static_cast<int>(code));
  if (type == DType::tf32) return std::bit_cast<float>(code & 0xffffe000U);
  return numeric::to_double(type, code);
}

// The lane of thread t of product `q` of the warp.
std::size_t lane_of(const Maps& maps, int q, int t) {
  return static_cast<std::size_t>(maps.threads == 32 ? t : t % 4 + 16 * (t / 4) + 4 * q);
}

// Multiplies a row (a column of B) by its scales, those of a word from a byte on: exact too.
void scale(const atom::Mma& mma, std::uint32_t word, int first, std::vector<double>& operand,
           int row, int rows) {
  for (int k = 0; k < mma.k; k += mma.scale_block) {
    const int byte = first + k / mma.scale_block;
    const double factor = numeric::to_double(mma.scale, word >> 8 * byte & 0xff);
    for (int i = k; i < k + mma.scale_block; ++i) operand[place_of(row + rows * i)] *= factor;
  }
}

// Sums as the tensor core leaves open how: four products, exactly, then one rounding. Integers
// wrap.
void multiply(const Maps& maps, int q, std::span<void*> lanes) {
  const atom::Mma& mma = maps.mma;
  const auto request = [&](int t) -> const MmaRequest& {
    return *static_cast<const MmaRequest*>(lanes[lane_of(maps, q, t)]);
  };
  static thread_local std::vector<double> a;
  static thread_local std::vector<double> b;
  a.resize(place_of(mma.m * mma.k));
  b.resize(place_of(mma.n * mma.k));
  const auto gather = [&](const Map& map, DType type, std::vector<double>& out, bool is_a) {
    const int bits = atom::register_bits(mma, type);
    for (int t = 0; t < maps.threads; ++t) {
      const std::uint32_t* registers = is_a ? request(t).a : request(t).b;
      for (int v = 0; v < map.values; ++v) {
        out[place_of(map.at[place_of(t * map.values + v)])] =
            value_of(type, code_of(registers, v, bits));
      }
    }
  };
  gather(maps.a, mma.a, a, true);
  gather(maps.b, mma.b, b, false);
  for (int t = 0; mma.scale_block > 0 && t < maps.threads; ++t) {
    const MmaRequest& r = request(t);
    if (atom::gives_scales_a(t, *r.from)) {
      scale(mma, r.scales_a, r.from->byte_a, a, maps.scaled_a[place_of(t)], mma.m);
    }
    if (atom::gives_scales_b(t, *r.from)) {
      scale(mma, r.scales_b, r.from->byte_b, b, maps.scaled_b[place_of(t)], mma.n);
    }
  }
  const bool integer = mma.sums == DType::s32;
  for (int t = 0; t < maps.threads; ++t) {
    auto* const sums = static_cast<std::byte*>(request(t).sums);
    const int bytes = numeric::bits(mma.sums) / 8;
    for (int v = 0; v < maps.c.values; ++v) {
      const int at = maps.c.at[place_of(t * maps.c.values + v)];
      const int row = at % mma.m;
      const int column = at / mma.m;
      const auto product = [&](int k) {
        return a[place_of(row + mma.m * k)] * b[place_of(column + mma.n * k)];
      };
      std::byte* const place = sums + static_cast<std::ptrdiff_t>(v) * bytes;
      std::uint32_t code = 0;
      std::memcpy(&code, place, static_cast<std::size_t>(bytes));
      if (integer) {
        std::int64_t sum = 0;
        for (int k = 0; k < mma.k; ++k) sum += static_cast<std::int64_t>(product(k));
        code += static_cast<std::uint32_t>(sum);
      } else {
        auto sum = mma.sums == DType::f32
                       ? std::bit_cast<float>(code)
                       : static_cast<float>(numeric::to_double(DType::f16, code));
        for (int k = 0; k < mma.k; k += 4) {
          sum = static_cast<float>(sum +
                                   (product(k) + product(k + 1) + product(k + 2) + product(k + 3)));
        }
        code = mma.sums == DType::f32
                   ? std::bit_cast<std::uint32_t>(sum)
                   : static_cast<std::uint32_t>(numeric::from_double(DType::f16, sum));
      }
      std::memcpy(place, &code, static_cast<std::size_t>(bytes));
    }
  }
}

}  // namespace

void mma_sync(const MmaRequest& request, Site site) {
  MmaRequest self = request;
  whole_warp("mma.sync", site);
  machine().spend(nominal::warp_collective);
  meet_warp("mma.sync", site, &self, [](std::span<void*> lanes) {
    const MmaRequest& first = *static_cast<const MmaRequest*>(lanes[0]);
    const atom::Mma& mma = *first.mma;
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
