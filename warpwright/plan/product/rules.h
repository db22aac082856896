// The rules that a product keeps whatever device it runs on. Internal to plan/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warpwright/atom/descriptor.h"
#include "warpwright/plan/product/micro.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// The largest extent: coordinates have 32 bits, and tiles reach beyond the last element.
inline constexpr std::int64_t max_extent = std::numeric_limits<std::int32_t>::max() - 4096;

/// What a tensor map's pitch must stay below.
inline constexpr std::int64_t max_pitch_bytes = std::int64_t{1} << 40;

/// Bytes that no tensor reaches over: more than addresses have.
inline constexpr std::int64_t max_reach_bytes = std::int64_t{1} << 56;

/// Why `problem` is none, or nothing: extents that do not agree. Scales and a bias that are left
/// out are what they must be.
[[nodiscard]] std::optional<Refusal> product_fault(const GemmProblem& problem);

/// The problem with all that no plan depends on made the same: how scales and the bias lie, alpha
/// and beta but for 0, where a C that is not read lies, addresses of offsets.
GemmProblem normalised(GemmProblem problem);

/// Where the product's columns (rows of B) are that make column j of D: j * step, and where the
/// epilogue is gated also j * step + apart, the one that the gate is for.
struct GatePlaces {
  std::int64_t step = 1;
  std::int64_t apart = 0;
};
template <class Matrix>
constexpr GatePlaces gate_places(const Product<Matrix>& p) {
  if (!p.is_gated()) return {};
  return p.epilogue.interleaved ? GatePlaces{2, 1} : GatePlaces{1, p.n() / 2};
}

/// The scales of A or B that `scaling` says, packed: their type, extents and number.
MatrixShape scale_shape(const GemmProblem& problem, bool of_a);

/// Why D cannot be quantised as `problem` says, or nothing.
[[nodiscard]] std::optional<Refusal> quantise_fault(const GemmProblem& problem);

/// The scales of a D that is quantised, packed: their type, extents and number.
MatrixShape d_scales_shape(const GemmProblem& problem);

/// Bytes of an offset of a group.
constexpr int offset_bytes(OffsetType type) {
  return type == OffsetType::int64 ? 8 : 4;
}

/// What weights of 4 bits are called: "packed mxf4 weights".
std::string packed_name(const PackedFormat& format);

/// Why an extent is none that coordinates have, or nothing.
[[nodiscard]] std::optional<Refusal> extent_fault(const GemmProblem& problem);

/// Why the groups are none, of a product in groups: their number, what is expected of them, and
/// rows by index.
[[nodiscard]] std::optional<Refusal> groups_fault(const GemmProblem& problem);

/// Why matrices overlap that lie neither one behind the other nor side by side within their rows,
/// or nothing.
[[nodiscard]] std::optional<Refusal> batch_overlap_fault(const char* name, const MatrixShape& v);

/// Why A and B, or C and D, lie as no kernel takes them, or nothing.
[[nodiscard]] std::optional<Refusal> operands_fault(const GemmProblem& problem, bool tma);
[[nodiscard]] std::optional<Refusal> outputs_fault(const GemmProblem& problem);

/// Why no kernel could ever serve `problem`, or nothing: none that reads A and B by TMA,
/// or none that does without.
[[nodiscard]] std::optional<Refusal> problem_fault(const GemmProblem& problem, bool tma = true);

/// What TMA could read in place of A, and of B: nothing where it reads the operand
/// itself, or no copy of its lines would help. For both `at` is 0.
struct OperandCopies {
  std::optional<OperandCopy> a;
  std::optional<OperandCopy> b;
};
OperandCopies copies_for(const GemmProblem& problem);
/// The problem with the copies in their place.
GemmProblem with_copies(GemmProblem problem, const OperandCopies& copies);

/// Why its operands are none whose scales the tensor core multiplies (Scaling::block_scaled), or
/// nothing; and of the scales that are given only for A or only for B.
[[nodiscard]] std::optional<Refusal> micro_fault(const GemmProblem& problem, bool tma);
[[nodiscard]] std::optional<Refusal> micro_scale_fault(const GemmProblem& problem, bool of_a);

/// Why a product cannot have this epilogue, or nothing.
[[nodiscard]] std::optional<Refusal> epilogue_fault(const GemmProblem& problem);
/// The same of the numbers of a gate, which has this activation.
[[nodiscard]] std::optional<Refusal> gate_numbers_fault(const std::optional<GateNumbers>& gate,
                                                        bool is_gated, Activation activation);

/// What a tile of a kernel gives of D.
struct ResultTile {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Why D has too many tiles for every one of these kernels, or nothing.
[[nodiscard]] std::optional<Refusal> tiles_fault(const GemmProblem& problem,
                                                 const std::vector<ResultTile>& kernels);

/// How D leaves (`store`) or C enters the kernel: by TMA where it can be.
EpiloguePath result_path(const GemmProblem& problem, bool store);

/// What B of packed weights would be for kernels that take none, as --dtype says it: weights of the
/// same values where these kernels `have_scales` for every few elements, else of A's type.
std::string unpacked_word(const GemmProblem& p, bool have_scales);

/// The refusal of a cluster of `size` CTAs on a device with fewer SMs, where there are kernels for
/// these `clusters`.
Refusal cluster_too_large(int size, const DeviceFacts& device,
                          std::span<const atom::ClusterShape> clusters);

/// The refusal of a device that has none.
Refusal no_sms(const DeviceFacts& device);

/// The refusal of groups on a device without kernels for them.
Refusal no_groups(const DeviceFacts& device);

/// The refusal of a D that is quantised on a device without kernels for it.
Refusal no_codes(const DeviceFacts& device);

/// What runs along the contiguous elements of A, and of B. Where an extent of 1 leaves it open,
/// K, if that is legal. Only for problems without a fault that read A and B.
atom::Major major_a(const GemmProblem& problem);
atom::Major major_b(const GemmProblem& problem);

/// The types of operands, in the order in which people are told them. Results are f32, or of those
/// that are floats of 16 or 8 bits.
inline constexpr DType operand_types[] = {DType::bf16, DType::f16,  DType::tf32,
                                          DType::e4m3, DType::e5m2, DType::s8};

/// A bit for each of them that has so many bits; 0 for all.
constexpr std::uint32_t operand_mask(int bits, bool floats_alone) {
  std::uint32_t mask = 0;
  for (const DType t : operand_types) {
    const bool fits = bits == 0 || numeric::bits(t) == bits;
    if (fits && (!floats_alone || numeric::is_float(t))) mask |= 1U << static_cast<int>(t);
  }
  return mask;
}
constexpr bool is_operand_type(DType t) {
  constexpr std::uint32_t mask = operand_mask(0, false);
  return (mask >> static_cast<int>(t) & 1) != 0;
}
constexpr bool is_8bit_float(DType t) {
  constexpr std::uint32_t mask = operand_mask(8, true);
  return (mask >> static_cast<int>(t) & 1) != 0;
}
constexpr bool is_16bit_float(DType t) {
  constexpr std::uint32_t mask = operand_mask(16, true);
  return (mask >> static_cast<int>(t) & 1) != 0;
}
constexpr bool is_result_type(DType t) {
  return t == DType::f32 || is_16bit_float(t) || is_8bit_float(t);
}
/// Do only the kernels of mma.sync multiply it?
constexpr bool is_of_registers(DType t) {
  return is_operand_type(t) && !is_result_type(t);
}
/// Do all families' kernels multiply it?
constexpr bool is_of_all_kernels(DType t) {
  return is_operand_type(t) && !is_of_registers(t);
}

/// All types, in their order.
inline constexpr auto all_types = [] {
  std::array<DType, kDTypeCount> types{};
  for (int i = 0; i < kDTypeCount; ++i) types[static_cast<std::size_t>(i)] = static_cast<DType>(i);
  return types;
}();

/// The largest power of two up to 16 that divides all distances of an operand's rows and matrices,
/// and its address.
int piece_of(const MatrixShape& operand, int alignment);

/// One dimension of a tensor.
struct Dimension {
  std::int64_t extent = 0;
  std::int64_t stride = 0;
};

/// Elements from the first to behind the last of a tensor, 0 when it has none. Never more than
/// 2^58; negative strides, which no tensor may have, count as 0.
std::int64_t reach(std::initializer_list<Dimension> dimensions);

/// Bytes from the first to behind the last element of a tensor, 0 when it has none.
std::int64_t extent_bytes(const MatrixShape& shape);

/// Do two views share memory?
bool overlap(const MatrixView& x, const MatrixView& y);

/// A problem without a fault as a formula, with its types and all that is not usual of it.
std::string formula(const GemmProblem& problem);
/// For weights: "packed in groups of 128 with bf16 scales, exact sums".
std::string packed_words(const PackedWeights& weights);

/// The words of refusals.
inline std::string number(std::int64_t value) {
  return std::to_string(value);
}
inline std::string type_name(DType t) {
  return std::string(numeric::word(t));
}
inline std::string scaling_words(Scaling scaling) {
  return scaling == Scaling::none ? "no scales" : std::string(name(scaling)) + " scaling";
}
inline std::string shape_of(std::int64_t rows, std::int64_t columns) {
  return number(rows) + " x " + number(columns);
}
inline std::string shape_of(const MatrixShape& v) {
  return shape_of(v.rows, v.columns);
}
/// Behind "blockwise scales": of blocks that are not the usual ones.
inline std::string block_words(std::int64_t block) {
  return block == scale_block ? "" : " of " + shape_of(block, block);
}
/// How many elements so many bytes are.
inline std::int64_t elements_in(std::int64_t bytes, DType t) {
  return bytes * 8 / numeric::bits(t);
}
/// The least elements that are a multiple of so many bytes (a power of two).
constexpr std::int64_t whole_elements(std::int64_t bytes, DType t) {
  const std::int64_t bits = numeric::bits(t);
  return std::lcm(bytes * 8, bits) / bits;
}
/// Bytes of an element, at least one.
inline int element_bytes(DType t) {
  return std::max(1, numeric::bits(t) / 8);
}
/// The largest power of two up to 16 that the address is a multiple of.
inline int alignment_of(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  int bytes = 16;
  while (bytes > 1 && address % static_cast<std::uintptr_t>(bytes) != 0) bytes /= 2;
  return bytes;
}

/// The same of an operand that copies pad, in units of 2 bytes (PlannedMatrix::alignment).
inline int padded_alignment_of(const void* p) {
  static_assert(padded_copy_bytes == 32);
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const int whole = alignment_of(p);
  return whole == 16 && address % padded_copy_bytes == 0 ? 16 : std::max(1, whole / 2);
}

}  // namespace warpwright
