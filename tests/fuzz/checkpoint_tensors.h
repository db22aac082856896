// The tensors of a checkpoint as a fuzzer's bytes say them: for the readers of weights/, without a
// file and its header in between. Most shapes fit each other, and one tensor may be at fault.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "warpwright/facts/micro_format.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/weights/fp8.h"
#include "warpwright/weights/header.h"
#include "warpwright/weights/pack.h"
#include "warpwright/weights/source.h"

namespace warpwright::fuzz {

// A fuzzer's bytes, one after the other; zeros behind the last.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  std::uint8_t next() {
    if (left_.empty()) return 0;
    const std::uint8_t byte = left_.front();
    left_ = left_.subspan(1);
    return byte;
  }
  int below(int count) { return next() % count; }
  bool flag() { return next() % 2 != 0; }
  // Fills from here on, again and again from the first of these bytes.
  void fill(std::span<std::byte> out) const {
    for (std::size_t i = 0; i < out.size() && !left_.empty(); ++i) {
      out[i] = static_cast<std::byte>(left_[i % left_.size()]);
    }
  }

 private:
  std::span<const std::uint8_t> left_;
};

struct TensorShape {
  DType type;
  std::int64_t rows, columns;
};

// What a layout has for N x K: codes, scales, zero points, the groups' index, the tensor's scale.
// For rows 0: none.
using Shapes = std::array<TensorShape, 5>;

inline Shapes micro_shapes(const weights::LayoutNames& names, std::int64_t n, std::int64_t k,
                           Bytes& bytes) {
  const MicroFormat& format = *names.format;
  const bool nvf4 = format.scale == DType::ue4m3;
  const TensorShape tensor{DType::f32, names.tensor_scale.empty() ? 0 : 1, 1};
  if (format.element == DType::e4m3) {
    return {{{DType::e4m3, n, k},
             {bytes.flag() ? DType::f32 : DType::ue8m0, (n + 127) / 128, (k + 127) / 128},
             {},
             {},
             tensor}};
  }
  constexpr DType codes[] = {DType::u8, DType::s8, DType::e2m1};
  const DType code = codes[bytes.below(3)];
  const DType scale = nvf4 ? DType::e4m3 : bytes.flag() ? DType::u8 : DType::ue8m0;
  const int block = micro_block(format.scale);
  return {{{code, n, code == DType::e2m1 ? k : k / 2}, {scale, n, k / block}, {}, {}, tensor}};
}

inline Shapes int4_shapes(std::string_view layout, std::int64_t n, std::int64_t k, Bytes& bytes) {
  constexpr DType types[] = {DType::bf16, DType::f16, DType::f32};
  const DType scale = types[bytes.below(3)];
  const std::int64_t groups = k / (32 << bytes.below(3));
  const std::int64_t zeros = bytes.flag() ? 1 : 0;
  const std::int64_t index = bytes.flag() ? 1 : 0;
  if (layout == "compressed-tensors") {
    return {{{DType::s32, n, k / 8},
             {scale, n, groups},
             {DType::s32, zeros * (n + 7) / 8, groups},
             {DType::s32, index, k},
             {}}};
  }
  if (layout == "awq") {
    return {{{DType::s32, k, n / 8}, {scale, groups, n}, {DType::s32, groups, n / 8}, {}, {}}};
  }
  if (layout.starts_with("gptq")) {
    return {{{DType::s32, k / 8, n},
             {scale, groups, n},
             {DType::s32, groups, n / 8},
             {DType::s32, index, k},
             {}}};
  }
  const bool interleaved = layout == "w4afp8" && bytes.flag();
  return {{{bytes.flag() ? DType::s8 : DType::u8, n, k / 2},
           {scale, interleaved ? groups / 4 : n, interleaved ? 4 * n : groups},
           {DType::s32, zeros * groups, n / 8},
           {},
           {}}};
}

// Changes one tensor, mostly into none that the layout has.
inline void put_fault(MatrixView& v, Bytes& bytes) {
  constexpr DType types[] = {DType::u8,   DType::s8,    DType::e2m1,  DType::e4m3, DType::f32,
                             DType::bf16, DType::ue8m0, DType::ue4m3, DType::s32,  DType::f64};
  switch (bytes.below(8)) {
    case 0:
      return void(v.rows -= 1);
    case 1:
      return void(v.columns -= 1);
    case 2:
      return void(v.batch += 1);
    case 3:
      return void(v.dtype = types[bytes.below(std::size(types))]);
    case 4:
      return void(v.rows = 0);
    case 5:
      return void(v.column_stride = 2);
    case 6:
      return void(v.batch_stride += 1);
    default:
      return void(v.rows = -v.rows);
  }
}

// Fills with numbers of 4 bytes each.
template <class Number>
void put_numbers(std::span<std::byte> out, const Number& number) {
  for (std::size_t at = 0; 4 * at + 4 <= out.size(); ++at) {
    const auto value = number(at);
    static_assert(sizeof value == 4);
    std::memcpy(out.data() + 4 * at, &value, sizeof value);
  }
}

// The tensors of one or more experts, in memory of their own that is exactly as long as they are.
struct Checkpoint {
  std::string_view layout;
  bool is_micro = false;
  std::vector<std::vector<std::byte>> memory;
  std::vector<weights::CheckpointTensors> tensors;
};

inline Checkpoint checkpoint_of(Bytes& bytes) {
  Checkpoint made;
  const auto all = weights::layouts();
  const weights::LayoutNames& names = all[static_cast<std::size_t>(bytes.next()) % all.size()];
  made.is_micro = names.format != nullptr;
  made.layout = names.layout;
  const std::int64_t n = 1 + bytes.below(72);
  const std::int64_t k = (1 + bytes.below(6)) * (bytes.below(8) == 0 ? 8 : 32);
  const Shapes shapes =
      made.is_micro ? micro_shapes(names, n, k, bytes) : int4_shapes(names.layout, n, k, bytes);
  const int count = 1 + bytes.below(2);
  const std::int64_t batch = 1 + bytes.below(2);
  const int faulty = bytes.below(5 * count * 4);  // none, mostly
  const int tensor_scale = bytes.below(3);
  for (int expert = 0; expert < count; ++expert) {
    std::array<MatrixView, 5> views;
    for (std::size_t i = 0; i < views.size(); ++i) {
      const TensorShape& is = shapes[i];
      if (is.rows * is.columns < 1) continue;
      MatrixView& view = views[i];
      view = {nullptr, is.type, is.rows, is.columns, is.columns, 1, batch, is.rows * is.columns};
      if (faulty == expert * 5 + static_cast<int>(i)) put_fault(view, bytes);
      const std::int64_t elements =
          view.batch * std::max<std::int64_t>(0, view.rows * view.columns);
      auto& to = made.memory.emplace_back(
          static_cast<std::size_t>((elements * numeric::bits(view.dtype) + 7) / 8));
      bytes.fill(to);
      view.data = to.data();
      if (i == 4 && tensor_scale != 0) {  // else whatever the bytes are
        const float stored = tensor_scale == 1 ? 0.001F : 100.0F;
        put_numbers(to, [&](std::size_t /*at*/) { return stored; });
      }
      if (i == 3) {  // groups in order
        const bool down = names.layout.starts_with("gptq");
        const std::int64_t groups = down ? shapes[1].rows : shapes[1].columns;
        put_numbers(to, [&](std::size_t at) {
          return static_cast<std::int32_t>(static_cast<std::int64_t>(at) % is.columns * groups /
                                           is.columns);
        });
      }
    }
    made.tensors.push_back({views[0], views[1], views[2], views[3], views[4]});
  }
  return made;
}

// What lies packed must be read again, and be packed to the same bytes.
inline void expect_again(const weights::Source& source, DType tokens) {
  const auto packed = weights::pack(source, {.tokens = tokens}, {.threads = 1});
  if (!packed) return;
  const auto read = weights::unpack(*packed, {.threads = 1});
  if (!read) std::abort();
  const auto again = weights::pack(weights::source_of(*read), {.tokens = tokens}, {.threads = 1});
  if (!again) std::abort();
  const auto tiles = [](const std::vector<std::byte>& of) {
    return std::span(of).subspan(packed::kHeaderBytes);
  };
  if (!std::ranges::equal(tiles(*packed), tiles(*again))) std::abort();
}

inline void read_tensors(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  constexpr DType all[] = {DType::e4m3, DType::bf16, DType::f16};
  const int last = bytes.next();
  const DType tokens = all[last % 3];
  const Checkpoint made = checkpoint_of(bytes);
  const auto source = weights::read_checkpoint(made.layout, made.tensors);
  if (!source) return;
  if (!made.is_micro) {
    static_cast<void>(weights::pack(*source, {.tokens = tokens}, {.threads = 1}));
    return;
  }
  if (source->format->element == DType::e2m1) expect_again(*source, tokens);
  if (last >= 128) static_cast<void>(weights::as_fp8(*source, {.threads = 1}));
}

}  // namespace warpwright::fuzz
