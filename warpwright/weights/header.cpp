#include "warpwright/weights/header.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "warpwright/facts/share.h"
#include "warpwright/facts/weight_forms.h"

namespace warpwright::weights {
namespace {

// Where the fields lie; numbers are little-endian.
constexpr int kVersionAt = 8;
constexpr int kSizeAt = 12;
constexpr int kEncodingAt = 16;  // a byte each, then the group
constexpr int kScaleAt = 17;
constexpr int kZeroPointsAt = 18;
constexpr int kCodeAt = 19;
constexpr int kGroupAt = 20;
constexpr int kExpertsAt = 24;
constexpr int kNAt = 32;
constexpr int kKAt = 40;
constexpr int kPaddedNAt = 48;
constexpr int kPaddedKAt = 56;
constexpr int kTileBytesAt = 64;
constexpr int kDataBytesAt = 72;
constexpr int kSumAt = 80;
constexpr int kSourceAt = 88;
constexpr int kFactorAt = 116;
constexpr int kHeaderSumAt = 120;
constexpr std::size_t kSourceBytes = kFactorAt - kSourceAt;

// A newline in its two forms tells a copy that was taken for text.
constexpr std::string_view kMagic = "WWINT4\r\n";
constexpr std::uint32_t kVersion = 1;
constexpr DType kScales[] = {DType::bf16, DType::f16, DType::f32, DType::ue8m0, DType::ue4m3};
// More than any machine holds, and far from what 64 bits cannot count.
constexpr std::int64_t kMostWeights = std::int64_t{1} << 48;

void put(std::byte* at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

std::uint64_t get(const std::byte* at, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<std::uint64_t>(at[i]);
  return value;
}

std::uint64_t sum_of_words(const std::byte* bytes, std::uint64_t first, std::uint64_t last) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = first; i < last; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + 8 * i, 8);
    sum += packed::mixed(word, i);
  }
  return sum;
}

Refusal refuse_file(const std::string& name, const std::string& what) {
  return refuse(RefusalCode::file_error, name, what);
}

bool are_legal(const packed::Extents& e) {
  std::int64_t weights = 1;
  for (const std::int64_t extent : {e.experts, e.n, e.k}) {
    if (extent < 1 || extent > kMostWeights / weights) return false;
    weights *= extent;
  }
  return true;
}

}  // namespace

HeaderBytes header_bytes(const Header& header) {
  const PackedFormat& f = header.format;
  const packed::Extents& e = header.extents;
  HeaderBytes bytes{};
  std::byte* const at = bytes.data();
  std::memcpy(at, kMagic.data(), kMagic.size());
  put(at + kVersionAt, kVersion, 4);
  put(at + kSizeAt, packed::kHeaderBytes, 4);
  put(at + kEncodingAt, static_cast<std::uint64_t>(f.encoding), 1);
  const auto* const scale = std::find(std::begin(kScales), std::end(kScales), f.scale);
  put(at + kScaleAt, static_cast<std::uint64_t>(scale - kScales), 1);
  put(at + kZeroPointsAt, static_cast<std::uint64_t>(f.zero_points), 1);
  const packed::WeightForm* const form = packed::weight_form(f);
  put(at + kCodeAt, static_cast<std::uint64_t>(form != nullptr ? form->stored : 0xff), 1);
  put(at + kGroupAt, static_cast<std::uint64_t>(f.group), 4);
  const auto put_number = [at](int where, std::int64_t number) {
    put(at + where, static_cast<std::uint64_t>(number), 8);
  };
  put_number(kExpertsAt, e.experts);
  put_number(kNAt, e.n);
  put_number(kKAt, e.k);
  put_number(kPaddedNAt, packed::row_tiles(e) * packed::kTileRows);
  put_number(kPaddedKAt, packed::k_tiles(e) * packed::kTileK);
  put_number(kTileBytesAt, packed::tile_bytes(f));
  put_number(kDataBytesAt, packed::data_bytes(f, e));
  put(at + kSumAt, header.sum, 8);
  std::memcpy(at + kSourceAt, header.source.data(),
              std::min(header.source.size(), kSourceBytes - 1));
  const float factor = std::isnan(header.factor) ? kFactorEach : header.factor;
  put(at + kFactorAt, std::bit_cast<std::uint32_t>(factor), 4);
  put(at + kHeaderSumAt, sum_of_words(at, 0, kHeaderSumAt / 8), 8);
  return bytes;
}

Result<Header> parse_header(std::span<const std::byte> bytes, const std::string& name) {
  const std::byte* const at = bytes.data();
  if (bytes.size() < packed::kHeaderBytes || std::memcmp(at, kMagic.data(), kMagic.size()) != 0) {
    return refuse_file(name, " holds no packed weights: it does not begin with their header.");
  }
  if (const std::uint64_t version = get(at + kVersionAt, 4); version != kVersion) {
    return refuse(RefusalCode::file_error, name, " has version ", version,
                  " of the packed form, and version ", kVersion,
                  " is the one that is read: ", as_rule("pack the weights anew"), ".");
  }
  if (get(at + kHeaderSumAt, 8) != sum_of_words(at, 0, kHeaderSumAt / 8)) {
    return refuse_file(name, " is damaged: its header does not add up to its own sum.");
  }
  const std::uint64_t scale = get(at + kScaleAt, 1);
  Header header;
  packed::Extents& e = header.extents;
  e.experts = static_cast<std::int64_t>(get(at + kExpertsAt, 8));
  e.n = static_cast<std::int64_t>(get(at + kNAt, 8));
  e.k = static_cast<std::int64_t>(get(at + kKAt, 8));
  PackedFormat& f = header.format;
  f.encoding = static_cast<Int4Encoding>(get(at + kEncodingAt, 1));
  f.scale = scale < std::size(kScales) ? kScales[scale] : DType::f64;
  f.zero_points = static_cast<ZeroPoints>(get(at + kZeroPointsAt, 1));
  f.group = static_cast<int>(get(at + kGroupAt, 4));
  const std::uint64_t code = get(at + kCodeAt, 1);
  if (const packed::WeightForm* const form = packed::first_row(
          packed::weight_forms,
          [&](const auto& each) { return each.stored == static_cast<int>(code); })) {
    f.code = packed::format_of(*form).code;
    f.tokens = form->tokens;
    f.exponents = form->storage.exponents;
  }
  header.sum = get(at + kSumAt, 8);
  const auto* const text = reinterpret_cast<const char*>(at + kSourceAt);
  header.source.assign(text, strnlen(text, kSourceBytes));
  header.factor = std::bit_cast<float>(static_cast<std::uint32_t>(get(at + kFactorAt, 4)));
  const bool is_factor = header.factor == 0 || (packed::has_factor(f) && !(header.factor < 0) &&
                                                !std::isinf(header.factor));
  const bool is_known = is_factor && f.encoding <= Int4Encoding::ex &&
                        f.zero_points <= ZeroPoints::groups && packed::weight_form(f) != nullptr &&
                        are_legal(e) && e.k % f.group == 0;
  const bool is_plain = header.source.size() < kSourceBytes &&
                        std::all_of(header.source.begin(), header.source.end(),
                                    [](char c) { return c >= ' ' && c <= '~'; });
  // What is derived, unused bytes and the rest of the text included, must be as it is written.
  if (!is_known || !is_plain ||
      std::memcmp(header_bytes(header).data(), at, packed::kHeaderBytes) != 0) {
    return refuse_file(name, " has a header that claims what no packed tensor is.");
  }
  return header;
}

Result<Header> parse_packed(std::span<const std::byte> bytes, const std::string& name) {
  auto header = parse_header(bytes, name);
  if (!header) return header;
  const auto data = bytes.subspan(packed::kHeaderBytes);
  const std::int64_t wanted = packed::data_bytes(header->format, header->extents);
  if (data.size() != static_cast<std::uint64_t>(wanted)) {
    return refuse(
        RefusalCode::file_error, name, " is damaged: ",
        as_rule("it has ", data.size(), " bytes behind its header, which speaks of ", wanted), ".");
  }
  if (sum_of(data) != header->sum) {
    return refuse_file(name, " is damaged: its tiles do not add up to the sum in its header.");
  }
  return header;
}

std::optional<Refusal> mismatch(const Header& header, const packed::Extents& wanted,
                                const std::string& name) {
  const packed::Extents& e = header.extents;
  if (e == wanted) return std::nullopt;
  const auto text = [](const packed::Extents& x) {
    return std::to_string(x.experts) + (x.experts == 1 ? " matrix of N = " : " matrices of N = ") +
           std::to_string(x.n) + " and K = " + std::to_string(x.k);
  };
  return refuse(RefusalCode::bad_shape, name, " holds ", text(e), "; ",
                as_rule("the product needs ", text(wanted)), ".");
}

std::uint64_t sum_of(std::span<const std::byte> bytes, int threads) {
  constexpr std::uint64_t piece = 1 << 17;  // words
  const std::uint64_t words = bytes.size() / 8;
  std::atomic<std::uint64_t> sum = 0;
  share(static_cast<std::int64_t>((words + piece - 1) / piece), threads, [&](int /*worker*/) {
    return [&](std::int64_t i) {
      const std::uint64_t first = static_cast<std::uint64_t>(i) * piece;
      sum += sum_of_words(bytes.data(), first, std::min(first + piece, words));
    };
  });
  return sum;
}

}  // namespace warpwright::weights
