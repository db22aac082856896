// How weights are packed by `on`, a stream of a CUDA device (on_cuda.cuh) or the model: what
// quantise_by.h asks of it, and on.write(to, from, bytes), on.read(from, to, bytes) of the host.
// Internal to device/ and to tests.
#pragma once

#include <climits>

#include "warpwright/device/pack.h"
#include "warpwright/kernel/pack_weights.h"
#include "warpwright/layout/layout.h"

namespace warpwright::device {

/// A mode of a layout, of three leaves at most.
inline kernel::AxisOffsets offsets_along(const layout::Layout& places, int i) {
  const layout::Layout axis = layout::mode(places, i);
  kernel::AxisOffsets offsets;
  for (int leaf = 0; leaf < axis.count; ++leaf) {
    if (leaf + 1 < axis.count) offsets.shape[leaf] = axis.shape[leaf];
    // With a shape of 1 below it, the last leaf's index goes on to the last stride.
    offsets.stride[leaf + 1 < axis.count ? leaf : 2] = axis.stride[leaf].value;
  }
  return offsets;
}
inline kernel::PlaceOffsets offsets_of(const layout::Layout& places) {
  return {offsets_along(places, 0), offsets_along(places, 1)};
}

/// Do words of codes share rows and not K?
inline bool shares_rows(const weights::Source& source) {
  return source.format == nullptr && source.codes(0, 1) != 1;
}

/// The parameters of the kernels; the form may be open yet.
inline kernel::PackWeightsParams params_of(const weights::Source& s, const PackedFormat& format) {
  const packed::Extents& e = s.extents;
  const auto& first = s.experts.front();
  const auto at = [](const std::byte* data) {
    return reinterpret_cast<const unsigned char*>(data);
  };
  kernel::PackWeightsParams p{.extents = e,
                              .format = format,
                              .group = s.group,
                              .groups = e.k / s.group,
                              .scale = s.scale,
                              .is_unsigned = s.is_unsigned,
                              .zero_bias = s.zero_bias,
                              .codes = at(first.codes),
                              .scales = at(first.scales),
                              .zeros = at(first.zeros),
                              .n_step = e.k / 8,
                              .k_step = 1};
  while (1 << p.slice_bits > format.group) --p.slice_bits;
  if (first.zeros != nullptr && e.experts > 1) p.zeros_pitch = s.experts[1].zeros - first.zeros;
  if (s.format != nullptr) {
    const auto is_legal = [&](int code) {
      const double largest = 6.0 * static_cast<double>(micro::value(s.scale, code));
      return std::ranges::all_of(s.experts, [&](const weights::Source::Matrix& m) {
        return largest * static_cast<double>(m.tensor) <= 6.0 * 448;
      });
    };
    if (s.scale == DType::ue4m3) {
      for (p.most_scale = 0x7e; p.most_scale > 0 && !is_legal(p.most_scale);) --p.most_scale;
    }
    return p;
  }
  const bool by_rows = shares_rows(s);
  p.n_step = s.codes(by_rows ? 8 : 1, 0) / 8;
  p.k_step = s.codes(0, by_rows ? 1 : 8) / 8;
  p.scale_places = offsets_of(s.scales);
  p.zero_places = offsets_of(s.zeros);
  return p;
}

/// Do kernels read weights that lie so: experts one behind the other, from aligned addresses?
inline bool is_read(const weights::Source& s) {
  const packed::Extents& e = s.extents;
  const int scale_bytes = numeric::bits(s.scale) / 8;
  const auto& first = s.experts.front();
  const auto lies_on = [&](const std::byte* data, const std::byte* from, std::int64_t i,
                           std::int64_t pitch) { return data == from + i * pitch; };
  const std::int64_t zeros =
      e.experts > 1 && first.zeros != nullptr ? s.experts[1].zeros - first.zeros : 0;
  for (std::int64_t i = 0; i < e.experts; ++i) {
    const auto& m = s.experts[static_cast<std::size_t>(i)];
    const bool lie_on =
        lies_on(m.codes, first.codes, i, e.n * e.k / 2) &&
        lies_on(m.scales, first.scales, i, e.n * (e.k / s.group) * scale_bytes) &&
        (first.zeros == nullptr ? m.zeros == nullptr : lies_on(m.zeros, first.zeros, i, zeros));
    if (!lie_on) return false;
  }
  const auto is_aligned = [](const std::byte* data, int to) {
    return reinterpret_cast<std::uintptr_t>(data) % static_cast<unsigned>(to) == 0;
  };
  return is_aligned(first.codes, s.format != nullptr ? 8 : 4) &&
         is_aligned(first.scales, scale_bytes) && e.n * e.k % 8 == 0 &&
         packed::tiles(e) <= INT_MAX && !s.blocks_of_128;
}

/// The weights in host memory, where they are packed, or refused.
template <class On>
Result<WeightsThere> pack_on_host(weights::Source source, const weights::PackOptions& options,
                                  On& on) {
  const packed::Extents& e = source.extents;
  const std::int64_t groups = e.k / source.group;
  std::vector<std::vector<std::byte>> copies;
  const auto copy = [&](const std::byte*& data, std::int64_t bytes) {
    auto& to = copies.emplace_back(static_cast<std::size_t>(bytes));
    on.read(data, to.data(), bytes);
    data = to.data();
  };
  source.seen.reset();
  for (auto& m : source.experts) {
    copy(m.codes, e.n * e.k / 2);
    copy(m.scales, e.n * groups * numeric::bits(source.scale) / 8);
    if (m.zeros != nullptr) copy(m.zeros, source.zeros(e.n - 1, groups - 1) / 2 + 1);
  }
  if (auto r = weights::look(source)) return *r;
  auto bytes = weights::pack(source, options);
  if (!bytes) return bytes.refusal();
  const auto header = weights::parse_header(*bytes);
  return WeightsThere{std::move(source), header->format, std::move(*bytes)};
}

/// look_on_cuda, but for what `on` itself has to say; `notes` is memory there.
template <class On>
Result<WeightsThere> look_by(weights::Source source, const weights::PackOptions& options,
                             kernel::PackingNotes* notes, On& on) {
  using kernel::Sight;
  source.seen.emplace();
  const auto open = weights::packed_format(source, options);
  if (!open) return open.refusal();
  if (!is_read(source)) return pack_on_host(std::move(source), options, on);
  kernel::PackWeightsParams p = params_of(source, *open);
  p.notes = notes;
  kernel::PackingNotes found;
  on.write(notes, &found, sizeof found);
  on.template run<kernel::LookAtWeights>(kernel::LookAtWeights::ctas(p), p);
  on.read(notes, &found, sizeof found);
  source.has_zero_points = source.has_zero_points || found.has(Sight::zero_point);
  source.seen = weights::Sights{found.has(Sight::least_code), found.has(Sight::wide)};
  const bool lacks = options.encoding == Int4Encoding::sm && found.has(Sight::least_code);
  if (!found.has(Sight::unusual) && !lacks) {
    const auto format = weights::packed_format(source, options);
    if (format) return WeightsThere{std::move(source), *format};
  }
  return pack_on_host(std::move(source), options, on);
}

/// pack_on_cuda, but for what `on` itself has to say.
template <class On>
std::optional<Refusal> pack_by(const WeightsThere& w, void* packed, On& on) {
  if (packed == nullptr || reinterpret_cast<std::uintptr_t>(packed) % 128 != 0) {
    return refuse(RefusalCode::bad_pointer,
                  "The packed tensor has an address that is no multiple "
                  "of 128: ",
                  as_rule("bulk copies read its tiles"), ".");
  }
  auto* const bytes = static_cast<unsigned char*>(packed);
  if (!w.packed.empty()) {
    on.write(bytes, w.packed.data(), w.bytes());
    return std::nullopt;
  }
  // While it works, the header's place holds what is to be told.
  static_assert(sizeof(kernel::PackingNotes) <= packed::kHeaderBytes);
  auto* const notes = reinterpret_cast<kernel::PackingNotes*>(bytes);
  kernel::PackWeightsParams p = params_of(w.source, w.format);
  p.tiles = bytes + packed::kHeaderBytes;
  const kernel::SumWordsParams sum{.words = reinterpret_cast<const std::uint64_t*>(p.tiles),
                                   .count = packed::data_bytes(w.format, w.source.extents) / 8,
                                   .notes = notes};
  const auto run = [&]<class Codes>() {
    using Kernel = kernel::PackWeights<Codes>;
    on.template run<Kernel>(Kernel::ctas(p), p);
  };
  kernel::PackingNotes found;
  on.write(notes, &found, sizeof found);
  shares_rows(w.source) ? run.template operator()<kernel::WordsAlongN>()
                        : run.template operator()<kernel::WordsAlongK>();
  on.template run<kernel::SumWords>(kernel::SumWords::ctas(sum), sum);
  on.read(notes, &found, sizeof found);
  weights::Header header = weights::header_of(w.source, w.format);
  header.sum = found.sum;
  const weights::HeaderBytes header_bytes = weights::header_bytes(header);
  on.write(bytes, header_bytes.data(), static_cast<std::int64_t>(header_bytes.size()));
  return std::nullopt;
}

}  // namespace warpwright::device
