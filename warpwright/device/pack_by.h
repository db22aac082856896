// How weights are packed by `on`, a stream of a CUDA device (on_cuda.cuh) or the model: what
// quantise_by.h asks of it, and on.write(to, from, bytes), on.read(from, to, bytes) of the host.
// Internal to device/ and to tests.
#pragma once

#include <climits>

#include "warpwright/device/pack.h"
#include "warpwright/kernel/pack_int4.h"
#include "warpwright/weights/pack.h"

namespace warpwright::device {

/// Why they cannot be packed there, or nothing.
inline std::optional<Refusal> fault(const PlainInt4& w, const PackedFormat& format,
                                    const void* packed) {
  const packed::Extents& e = w.extents;
  if (const std::string fault = packed::format_fault(format); !fault.empty()) {
    return refuse(RefusalCode::unsupported, "These cannot be packed: ", fault, ".");
  }
  if (packed::has_float_codes(format)) {
    return refuse(RefusalCode::unsupported,
                  "These cannot be packed: ", as_rule("a GPU packs only int4 weights"), ".");
  }
  if (e.experts < 1 || e.n < 1 || e.k < 1 || e.k % format.group != 0 ||
      packed::tiles(e) > INT_MAX) {
    return refuse(RefusalCode::bad_shape, "Weights of ", e.experts, " x ", e.n, " x ", e.k,
                  " are not packed in groups of ", format.group, ".");
  }
  const bool has_zeros = format.zero_points == ZeroPoints::groups;
  if (w.codes == nullptr || w.scales == nullptr || packed == nullptr ||
      (w.zeros != nullptr) != has_zeros || reinterpret_cast<std::uintptr_t>(packed) % 128 != 0) {
    return refuse(
        RefusalCode::bad_pointer,
        "Codes, scales, zero points where the format has them, and the packed tensor have "
        "addresses, the last one a multiple of 128.");
  }
  if (w.scale != DType::bf16 && w.scale != DType::f16 && w.scale != DType::f32) {
    return refuse(RefusalCode::bad_type, "Scales of ", numeric::word(w.scale), " are not packed; ",
                  as_rule("those of bf16, fp16 and f32 are"), ".");
  }
  return std::nullopt;
}

/// What the notes say.
inline std::optional<Refusal> refusal(const kernel::PackingNotes& notes, const PlainInt4& w,
                                      const PackedFormat& format) {
  using kernel::PackingNotes;
  if (notes.fault == PackingNotes::no_fault) return std::nullopt;
  const auto number = static_cast<std::int64_t>(notes.fault / 8);
  const std::int64_t row = number / w.extents.k;
  const std::int64_t k = number % w.extents.k;
  const std::int64_t expert = row / w.extents.n;
  const std::int64_t n = row % w.extents.n;
  const unsigned what = notes.fault % 8;
  if (what == PackingNotes::fault_of_code) return weights::code_refusal(expert, n, k);
  return weights::scale_refusal(static_cast<packed::ScaleKind>(what), format, expert, n,
                                k / format.group);
}

/// pack_on_cuda, but for what `on` itself has to say.
template <class On>
std::optional<Refusal> pack_by(const PlainInt4& w, const PackedFormat& format, void* packed,
                               On& on) {
  if (auto r = fault(w, format, packed)) return r;
  auto* const bytes = static_cast<unsigned char*>(packed);
  // While it works, the header's place holds what is to be told.
  static_assert(sizeof(kernel::PackingNotes) <= packed::kHeaderBytes);
  auto* const notes = reinterpret_cast<kernel::PackingNotes*>(bytes);
  const kernel::PackInt4Params p{.extents = w.extents,
                                 .format = format,
                                 .scale = w.scale,
                                 .codes = static_cast<const unsigned char*>(w.codes),
                                 .scales = static_cast<const unsigned char*>(w.scales),
                                 .zeros = static_cast<const unsigned char*>(w.zeros),
                                 .tiles = bytes + packed::kHeaderBytes,
                                 .notes = notes};
  const kernel::SumWordsParams sum{.words = reinterpret_cast<const std::uint64_t*>(p.tiles),
                                   .count = packed::data_bytes(format, w.extents) / 8,
                                   .notes = notes};
  kernel::PackingNotes found;
  on.write(notes, &found, sizeof found);
  on.template run<kernel::PackInt4>(kernel::PackInt4::ctas(p), p);
  on.template run<kernel::SumWords>(kernel::SumWords::ctas(sum), sum);
  on.read(notes, &found, sizeof found);
  if (auto r = refusal(found, w, format)) return r;
  const weights::HeaderBytes header =
      weights::header_bytes({format, w.extents, w.origin, found.sum});
  on.write(bytes, header.data(), static_cast<std::int64_t>(header.size()));
  return std::nullopt;
}

}  // namespace warpwright::device
