#include "cli/compute/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "warpwright/facts/share.h"
#include "warpwright/numeric/bulk.h"

namespace warpwright::cli {
namespace {

// Elements that one generator makes. A block's generator is seeded by the block's number, so blocks
// can be made in any order.
constexpr std::int64_t kBlock = 1 << 16;

// A bijection that spreads neighbouring numbers (the finaliser of splitmix64).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// The natural logarithm of a positive normal number, from additions, multiplications and divisions
// only: a C library's log differs in the last bit between versions and machines.
double portable_log(double x) {
  const auto code = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<int>(code >> 52) - 1023;
  double m = std::bit_cast<double>((code & 0x000fffffffffffffU) | 0x3ff0000000000000U);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh t = 2 (t + t^3/3 + t^5/5 + ...), |t| <= 0.172.
  const double t = (m - 1) / (m + 1);
  const double square = t * t;
  double sum = 0;
  for (int odd = 23; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  return 2 * t * sum + exponent * 0.6931471805599453;
}

// Marsaglia's polar method: two normal values of a point in the unit disc. Its square root is
// exact in IEEE arithmetic; this file is compiled without contraction to FMA.
void fill_normal(std::uint64_t seed, float* out, std::int64_t count) {
  std::mt19937_64 bits(seed);
  const auto uniform = [&bits] {  // in (-1, 1), never 0
    return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-52 - 1.0;
  };
  for (std::int64_t i = 0; i < count; i += 2) {
    double u = 0;
    double v = 0;
    double s = 0;
    do {
      u = uniform();
      v = uniform();
      s = u * u + v * v;
    } while (s >= 1);
    const double factor = std::sqrt(-2 * portable_log(s) / s);
    out[i] = static_cast<float>(u * factor);
    if (i + 1 < count) out[i + 1] = static_cast<float>(v * factor);
  }
}

}  // namespace

HostTensor random_normal(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed,
                         std::uint64_t stream, int threads) {
  HostTensor result{dtype, shape, {}};
  const std::int64_t count = result.elements();
  const std::int64_t size = numeric::bits(dtype) / 8;
  result.bytes.resize(static_cast<std::size_t>(count * size));
  const std::uint64_t base = mix(mix(seed) + stream);
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  share(blocks, threads, [&](int /*worker*/) {
    return [&, values = std::vector<float>(kBlock)](std::int64_t block) mutable {
      const std::int64_t first = block * kBlock;
      const std::int64_t n = std::min(kBlock, count - first);
      fill_normal(mix(base + static_cast<std::uint64_t>(block)), values.data(), n);
      std::byte* to = result.bytes.data() + first * size;
      if (dtype == DType::s8) {
        for (float& value : values) value *= 32;
      }
      if (size == 4) {
        std::memcpy(to, values.data(), static_cast<std::size_t>(n) * sizeof(float));
      } else if (size == 1) {
        numeric::narrow(values.data(), reinterpret_cast<std::uint8_t*>(to),
                        static_cast<std::size_t>(n), dtype, numeric::Overflow::saturate);
      } else {
        numeric::narrow(values.data(), reinterpret_cast<std::uint16_t*>(to),
                        static_cast<std::size_t>(n), dtype);
      }
    };
  });
  return result;
}

HostTensor random_scales(const std::vector<std::int64_t>& shape, std::uint64_t seed,
                         std::uint64_t stream) {
  HostTensor scales = random_normal(DType::f32, shape, seed, stream);
  for (std::int64_t i = 0; i < scales.elements(); ++i) {
    float x = 0;
    std::memcpy(&x, scales.bytes.data() + i * 4, 4);
    x = std::abs(x) + 0.25F;
    std::memcpy(scales.bytes.data() + i * 4, &x, 4);
  }
  return scales;
}

}  // namespace warpwright::cli
