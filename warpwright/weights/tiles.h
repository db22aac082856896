// The tiles of a packed tensor made and taken apart: what is alike for all formats. Internal.
#pragma once

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/facts/packed_values.h"
#include "warpwright/facts/share.h"
#include "warpwright/weights/pack.h"

namespace warpwright::weights {

// Bytes of a float and its code.
inline std::uint64_t load(const void* at, int bits) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, static_cast<std::size_t>(bits) / 8);
  return word;
}

inline void store(std::byte* at, std::uint64_t code, int bits) {
  const auto word = static_cast<std::uint32_t>(code);
  std::memcpy(at, &word, static_cast<std::size_t>(bits) / 8);
}

inline int nibble(const std::byte* bytes, std::int64_t at) {
  return static_cast<int>(bytes[at / 2] >> at % 2 * 4) & 15;
}

inline std::string place(std::int64_t expert, std::int64_t row) {
  return "row " + std::to_string(row) + " of expert " + std::to_string(expert);
}

// Tells the share of `count` pieces that are done.
class Teller {
 public:
  Teller(const Work& work, std::int64_t count) : work_(work), count_(count) {}
  void tell() {
    if (!work_.progress) return;
    const std::lock_guard lock(mutex_);
    work_.progress(static_cast<double>(++done_) / static_cast<double>(count_));
  }

 private:
  const Work& work_;
  std::int64_t count_;
  std::int64_t done_ = 0;
  std::mutex mutex_;
};

// The first refusal in the order of pieces, whichever thread finds it.
class FirstFault {
 public:
  void add(std::int64_t piece, Refusal refusal) {
    const std::lock_guard lock(mutex_);
    if (refusal_ && piece_ <= piece) return;
    piece_ = piece;
    refusal_ = std::move(refusal);
  }
  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  std::mutex mutex_;
  std::int64_t piece_ = 0;
  std::optional<Refusal> refusal_;
};

/// A packed tensor with this header, whose `sum` is set. `pack_rows(row_tile, out)` makes the tiles
/// of 64 rows, or says why not.
template <class PackRows>
Result<std::vector<std::byte>> pack_tiles(Header header, const Work& work,
                                          const PackRows& pack_rows) {
  const packed::Extents& e = header.extents;
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(packed::kHeaderBytes + packed::data_bytes(header.format, e)));
  const auto data = std::span(bytes).subspan(packed::kHeaderBytes);
  const std::int64_t piece_bytes = packed::k_tiles(e) * packed::tile_bytes(header.format);
  const std::int64_t pieces = e.experts * packed::row_tiles(e);
  Teller teller(work, pieces);
  FirstFault first;
  share(pieces, work.threads, [&](int /*worker*/) {
    return [&](std::int64_t piece) {
      auto fault = pack_rows(piece, data.data() + piece * piece_bytes);
      if (fault) first.add(piece, std::move(*fault));
      teller.tell();
    };
  });
  if (first.refusal()) return *first.refusal();
  header.sum = sum_of(data, work.threads);
  const HeaderBytes written = header_bytes(header);
  std::copy(written.begin(), written.end(), bytes.begin());
  return bytes;
}

/// Puts the codes into the plain layout, two a byte, each as `plain(bits)` has it, and calls
/// scale(tile, row, slice, at) for each scale, `at` being its number among all of them. `tell` is
/// called behind each 64 rows.
template <class Plain, class Scale, class Tell>
void unpack_tiles(const Header& header, std::span<const std::byte> bytes, int threads,
                  std::vector<std::byte>& codes, const Plain& plain, const Scale& scale,
                  const Tell& tell) {
  using packed::kTileK, packed::kTileRows;
  const PackedFormat& f = header.format;
  const packed::Extents& e = header.extents;
  share(e.experts * packed::row_tiles(e), threads, [&](int /*worker*/) {
    return [&](std::int64_t piece) {
      const std::int64_t n0 = piece % packed::row_tiles(e) * kTileRows;
      const std::int64_t first = piece / packed::row_tiles(e) * e.n + n0;
      const std::byte* tile =
          bytes.data() + packed::kHeaderBytes + piece * packed::k_tiles(e) * packed::tile_bytes(f);
      for (std::int64_t k0 = 0; k0 < e.k; k0 += kTileK, tile += packed::tile_bytes(f)) {
        packed::TileCodes bits;
        packed::take_codes(tile, f, bits);
        const std::int64_t columns = std::min<std::int64_t>(kTileK, e.k - k0);
        for (int row = 0; row < std::min<std::int64_t>(kTileRows, e.n - n0); ++row) {
          const std::int64_t at = (first + row) * e.k + k0;
          for (int k = 0; k < columns; k += 2) {
            codes[static_cast<std::size_t>((at + k) / 2)] =
                static_cast<std::byte>(plain(bits[row][k]) | plain(bits[row][k + 1]) << 4);
          }
          for (int slice = 0; slice < columns / f.group; ++slice) {
            scale(tile, row, slice, at / f.group + slice);
          }
        }
      }
      tell();
    };
  });
}

}  // namespace warpwright::weights
