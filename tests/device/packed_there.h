// Packing by the kernels, on the model or on a CUDA device: the host's bytes, and what the host
// refuses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/weights/some_weights.h"
#include "warpwright/device/pack.h"

namespace warpwright::tests {

/// What came of weights: the bytes, or a sentence; and whether the host packed them.
struct PackedBytes {
  std::vector<std::byte> bytes = {};
  std::string refused = {};
  bool on_host = false;
};

/// All that a source points to.
using PackedMemory = std::vector<std::span<std::byte>>;

/// Packs there what lies in host memory.
using PackThere =
    std::function<PackedBytes(const weights::Source& source, const PackedMemory& memory,
                              const weights::PackOptions& options)>;

/// Where the memory of a source lies in `to`.
template <class Addresses>
weights::Source moved(weights::Source source, const PackedMemory& memory, const Addresses& to) {
  const auto move = [&](const std::byte*& data) {
    for (std::size_t i = 0; data != nullptr && i < memory.size(); ++i) {
      const std::byte* const first = memory[i].data();
      if (data < first || data >= first + memory[i].size()) continue;
      data = to[i] + (data - first);
      return;
    }
  };
  for (auto& m : source.experts) {
    move(m.codes);
    move(m.scales);
    move(m.zeros);
  }
  return source;
}

inline PackedBytes expect_as_on_the_host(const Result<weights::Source>& source,
                                         const Result<weights::Source>& there,
                                         const PackedMemory& memory,
                                         const weights::PackOptions& options,
                                         const PackThere& pack_there) {
  const auto host = source ? weights::pack(*source, options) : source.refusal();
  PackedBytes made =
      there ? pack_there(*there, memory, options) : PackedBytes{.refused = there.reason()};
  EXPECT_EQ(made.refused, host ? "" : host.reason());
  EXPECT_TRUE(!host || made.bytes == *host);
  return made;
}

inline PackedBytes expect_as_on_the_host(weights::PlainWeights& w,
                                         const weights::PackOptions& options,
                                         const PackThere& pack_there) {
  const weights::Source source = weights::source_of(w);
  return expect_as_on_the_host(source, source, {w.codes, w.scales, w.zeros}, options, pack_there);
}

/// A layer of any layout as loaders leave it: random codes, scales of which some are 0, and a scale
/// of any bytes where `strange` says so.
struct SomeCheckpoint {
  weights::CheckpointTensors tensors = {};
  std::vector<std::vector<std::byte>> memory = {};

  SomeCheckpoint(const weights::LayoutNames& names, std::mt19937& random, bool strange) {
    const auto below = [&](unsigned count) { return static_cast<int>(random() % count); };
    const bool is_nvf4 = names.format != nullptr && names.format->scale == DType::ue4m3;
    const std::string_view layout = names.layout;
    const bool down = layout.starts_with("gptq");
    const bool across = down || layout == "awq";
    const bool is_word =
        across || (layout.starts_with("compressed-tensors") && names.format == nullptr);
    const std::int64_t experts = 1 + below(2);
    const std::int64_t group = names.format != nullptr ? (is_nvf4 ? 16 : 32) : 32 << below(4);
    const std::int64_t n = across ? 8 * (1 + below(10)) : 1 + below(80);
    const std::int64_t k = group * (group < 128 ? 1 + below(5) : 1 + below(2));
    const std::int64_t groups = k / group;
    constexpr DType types[] = {DType::bf16, DType::f16, DType::f32};
    const DType scale = is_nvf4                   ? DType::e4m3
                        : names.format != nullptr ? DType::u8
                                                  : types[below(3)];
    const auto put = [&](DType type, std::int64_t rows, std::int64_t columns) {
      const std::int64_t bits = experts * rows * columns * numeric::bits(type);
      auto& to = memory.emplace_back(static_cast<std::size_t>(bits / 8));
      for (std::byte& byte : to) byte = static_cast<std::byte>(random());
      return MatrixView{to.data(), type, rows, columns, columns, 1, experts, rows * columns};
    };
    tensors.codes = !is_word ? put(DType::u8, n, k / 2)
                    : down   ? put(DType::s32, k / 8, n)
                    : across ? put(DType::s32, k, n / 8)
                             : put(DType::s32, n, k / 8);
    const bool interleaved = layout == "w4afp8" && groups % 4 == 0;
    tensors.scales = across        ? put(scale, groups, n)
                     : interleaved ? put(scale, groups / 4, 4 * n)
                                   : put(scale, n, groups);
    put_scales(random);
    if (names.format != nullptr) put_zeros(random, static_cast<std::size_t>(group));
    if (strange) memory.back()[random() % memory.back().size()] = std::byte{0xff};
    if (across || (is_word && below(2) == 0)) {
      tensors.zeros =
          across ? put(DType::s32, groups, n / 8) : put(DType::s32, (n + 7) / 8, groups);
      for (std::byte& two : memory.back()) two &= std::byte{0x77};  // gptq refuses 15
      const std::byte eight = down && layout == "gptq" ? std::byte{0x77} : std::byte{0x88};
      if (below(3) == 0) std::ranges::fill(memory.back(), eight);
    }
    if (is_nvf4) {
      tensors.tensor_scale = put(DType::f32, 1, 1);
      const bool divides = layout.starts_with("compressed-tensors");
      for (std::size_t at = 0; at < memory.back().size(); at += 4) {
        const float factor = std::ldexp(1.0F, -4 * below(2));
        const float stored = divides ? 1 / factor : factor;
        std::memcpy(memory.back().data() + at, &stored, 4);
      }
    }
  }

 private:
  // Codes of a scale that are all 0, of either sign: whatever it is, it does not count.
  void put_zeros(std::mt19937& random, std::size_t group) {
    for (std::size_t i = 0; i < memory[1].size(); ++i) {
      if (random() % 6 != 0) continue;
      constexpr std::byte zeros[] = {std::byte{0}, std::byte{0x08}, std::byte{0x80}};
      const auto block = std::span(memory[0]).subspan(i * group / 2, group / 2);
      for (std::byte& two : block) two = zeros[random() % 3];
      if (group == 32) memory[1][i] = static_cast<std::byte>(random() % 255);
    }
  }
  void put_scales(std::mt19937& random) {
    const DType type = tensors.scales.dtype;
    const auto size = static_cast<std::size_t>(numeric::bits(type)) / 8;
    for (std::size_t i = 0; i < memory.back().size(); i += size) {
      std::uint64_t code = type == DType::e4m3 ? random() % 0x7f : 120 + random() % 24;
      if (size > 1) {
        const double x = std::ldexp(1 + static_cast<double>(random() % 64) / 64,
                                    -static_cast<int>(random() % 6));
        code = numeric::from_double(type, random() % 9 == 0 ? 0 : x);
      }
      std::memcpy(memory.back().data() + i, &code, size);
    }
  }
};

/// Checkpoints of all layouts, `count` each, for tokens of all types. Those without a strange scale
/// are packed by the kernels.
inline void expect_checkpoints_as_on_the_host(int count, const PackThere& pack_there) {
  std::mt19937 random(20261129);
  int packed = 0;
  int refused = 0;
  for (int i = 0; i < count * static_cast<int>(weights::layouts().size()); ++i) {
    const weights::LayoutNames& names =
        weights::layouts()[static_cast<std::size_t>(i) % weights::layouts().size()];
    if (names.format != nullptr && names.format->element != DType::e2m1) continue;
    SCOPED_TRACE(std::string(names.layout) + ", " + std::to_string(i));
    const bool is_nvf4 = names.format != nullptr && names.format->scale == DType::ue4m3;
    const bool is_strange = random() % 4 == 0;
    const SomeCheckpoint some(names, random, is_strange);
    weights::PackOptions options;
    constexpr DType tokens[] = {DType::bf16, DType::f16, DType::e4m3};
    options.tokens = tokens[random() % (is_nvf4 ? 2 : 3)];
    if (random() % 3 == 0 && names.format == nullptr) options.encoding = Int4Encoding::ex;
    if (random() % 3 == 0 && names.format == nullptr) options.scale = DType::f32;
    if (options.tokens == DType::e4m3 && random() % 3 == 0) options.exponents = Exponents::own;
    if (names.format == nullptr) options.exponents.reset();
    PackedMemory memory;
    for (const auto& of : some.memory) {
      memory.emplace_back(const_cast<std::byte*>(of.data()), of.size());
    }
    const std::span tensors(&some.tensors, 1);
    const PackedBytes there = expect_as_on_the_host(weights::read_checkpoint(names.layout, tensors),
                                                    weights::read_places(names.layout, tensors),
                                                    memory, options, pack_there);
    const bool by_kernels = there.refused.empty() && !there.on_host;
    EXPECT_TRUE(by_kernels || is_strange) << there.refused;
    packed += by_kernels ? 1 : 0;
    refused += there.refused.empty() ? 0 : 1;
  }
  EXPECT_GT(packed, count * 6);
  EXPECT_GT(refused, 0);
}

/// Plain int4 weights with zero points of a byte, for `experts` matrices; every `step`-th of all
/// formats.
inline void expect_packed_as_on_the_host(std::int64_t experts, int step,
                                         const PackThere& pack_there) {
  int number = 0;
  for (const Int4Encoding encoding : {Int4Encoding::sm, Int4Encoding::ex}) {
    for (const int group : {32, 64, 128}) {
      for (const DType from : {DType::bf16, DType::f16, DType::f32}) {
        for (const DType to : {DType::bf16, DType::f32}) {
          if (number++ % step != 0) continue;
          SCOPED_TRACE(std::to_string(group) + " " + std::string(numeric::name(from)) + " " +
                       std::string(numeric::name(to)));
          const bool has_zeros = encoding == Int4Encoding::ex && from == DType::f16;
          const packed::Extents e{experts, 70, group == 128 ? 384 : 256 + group};
          weights::PlainWeights w =
              weights::some_weights(e, group, from, has_zeros, packed::least_code(encoding), 5);
          std::memset(w.scales.data() + 8, 0, 4);  // a scale of 0, or two
          const PackedBytes there = expect_as_on_the_host(w, {encoding, to}, pack_there);
          EXPECT_EQ(there.refused, "");
          EXPECT_FALSE(there.on_host);
        }
      }
    }
  }
}

inline void expect_refused_as_on_the_host(const PackThere& pack_there) {
  const packed::Extents e{2, 70, 256};
  const auto refused = [&](weights::PlainWeights w, const weights::PackOptions& options) {
    EXPECT_NE(expect_as_on_the_host(w, options, pack_there).refused, "");
  };
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    weights::PlainWeights w = weights::some_weights(e, 64, DType::f32);
    std::memcpy(w.scales.data() + 4 * (100 * 4 + 2), &bad, 4);
    refused(w, {Int4Encoding::ex, DType::f32});
  }
  weights::PlainWeights w = weights::some_weights(e, 64, DType::f32);
  const float large = 200;
  std::memcpy(w.scales.data() + 4 * 17, &large, 4);
  refused(w, {Int4Encoding::ex, DType::f16});
  w = weights::some_weights(e, 64, DType::f16, false, -7);
  w.codes[9000] = std::byte{0x80};  // 0 and -8
  refused(w, {Int4Encoding::sm, DType::f16});
  // NaN, of scales that are kept as they are.
  w = weights::some_e2m1({1, 70, 256}, "mxf4", 110, 120, 3);
  w.scales[77] = std::byte{0xff};
  const weights::CheckpointTensors nan{.codes = {w.codes.data(), DType::u8, 70, 128, 128, 1, 1, 0},
                                       .scales = {w.scales.data(), DType::u8, 70, 8, 8, 1, 1, 0}};
  const auto there =
      expect_as_on_the_host(weights::read_checkpoint("gpt-oss", std::span(&nan, 1)),
                            weights::read_places("gpt-oss", std::span(&nan, 1)),
                            {w.codes, w.scales}, {.exponents = Exponents::own}, pack_there);
  EXPECT_NE(there.refused, "");
  // A row whose scales span too far: refused for bf16, kept as they are for e4m3.
  w = weights::some_e2m1({2, 70, 256}, "mxf4", 110, 120, 3);
  w.scales[77] = std::byte{220};
  refused(w, {.tokens = DType::bf16});
  EXPECT_EQ(expect_as_on_the_host(w, {}, pack_there).refused, "");
}

}  // namespace warpwright::tests
