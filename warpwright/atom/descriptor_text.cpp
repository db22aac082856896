#include "warpwright/atom/descriptor_text.h"

#include <array>
#include <cstdio>

#include "warpwright/atom/mma_text.h"
#include "warpwright/atom/text_columns.h"
#include "warpwright/atom/umma.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

using Lines = std::vector<std::vector<std::string>>;

std::string hex(std::uint64_t word, int digits) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%0*llx", digits,
                static_cast<unsigned long long>(word));
  return text.data();
}

std::string bytes(std::uint32_t n) {
  return std::to_string(n) + " bytes";
}

// What a step of the leading and of the stride offset is, as descriptor.h says.
std::string leading_step(const OperandTile& tile) {
  if (tile.major == Major::k)
    return tile.swizzle == SmemSwizzle::none ? ", to the next 16 bytes of K" : ", not read";
  return tile.swizzle == SmemSwizzle::none ? ", to the next 8 of K" : ", to the next span of rows";
}
std::string stride_step(const OperandTile& tile) {
  if (tile.major == Major::k) return ", to the next 8 rows";
  return tile.swizzle == SmemSwizzle::none ? ", to the next 16 bytes of rows"
                                           : ", to the next 8 of K";
}

Lines fields_of(const OperandDescriptor& o) {
  Lines lines = {{"field", "bits", "value", ""}};
  for (const DescriptorField& f : descriptor_fields(o.tile, o.fields, o.umma)) {
    lines.push_back({f.name,
                     f.first == f.last ? std::to_string(f.first)
                                       : std::to_string(f.last) + "-" + std::to_string(f.first),
                     std::to_string(f.value), f.meaning});
  }
  return lines;
}

// Where chunk c of row r lies in its row: by the swizzle of addresses.
std::string chunks_of(const OperandTile& tile) {
  const int span = span_bytes(tile.swizzle);
  Lines lines = {{"row"}};
  for (int c = 0; c < span / 16; ++c) lines[0].push_back(std::to_string(c));
  for (int row = 0; row < 8; ++row) {
    lines.push_back({std::to_string(row)});
    for (int c = 0; c < span / 16; ++c) {
      const auto at = static_cast<std::uint32_t>(row * span);
      const std::uint32_t moved =
          apply_swizzle(tile.swizzle, at + static_cast<std::uint32_t>(16 * c));
      lines.back().push_back(std::to_string((moved - at) / 16));
    }
  }
  const std::string rows = tile.major == Major::k ? "rows" : "k";
  return aligned(("Chunks of 16 bytes: where each of a span's lies, of 8 " + rows).c_str(), lines);
}

}  // namespace

std::vector<DescriptorField> descriptor_fields(const OperandTile& tile, const Descriptor& d,
                                               bool umma) {
  std::vector<DescriptorField> fields = {
      {"start address", 0, 13, 0, "address / 16"},
      {"leading byte offset", 16, 29, 0,
       d.leading_is_address ? "address / 16 of the next span of K"
                            : bytes(d.leading) + leading_step(tile)},
      {"stride byte offset", 32, 45, 0, bytes(d.stride) + stride_step(tile)},
  };
  if (umma) fields.push_back({"version", 46, 48, 0, ""});
  fields.push_back({"base offset", 49, 51, 0, "the tile begins where its swizzle repeats"});
  if (umma) fields.push_back({"leading is an address", 52, 52, 0, ""});
  fields.push_back({"swizzle", umma ? 61 : 62, 63, 0, name(tile.swizzle)});
  const std::uint64_t word = umma ? encode_umma(d) : encode(d);
  for (DescriptorField& f : fields) {
    f.value = word >> f.first & ((std::uint64_t{1} << (f.last - f.first + 1)) - 1);
  }
  return fields;
}

SmemSwizzle parse_swizzle(const std::string& word) {
  for (const SmemSwizzle one :
       {SmemSwizzle::none, SmemSwizzle::b32, SmemSwizzle::b64, SmemSwizzle::b128})
    if (word == name(one)) return one;
  throw layout::Error("--swizzle \"" + word + "\": it is none, 32B, 64B or 128B.");
}

OperandDescriptor operand_descriptor(const Mma& mma, char operand, SmemSwizzle swizzle, int depth) {
  if (operand != 'A' && operand != 'B')
    throw layout::Error("--descriptor is A or B: the sums lie in registers or in tensor memory.");
  const bool umma = mma.kind >= MmaKind::tcgen05;
  if (is_register_mma(mma.kind) || (operand == 'A' && mma.kind == MmaKind::wgmma_registers))
    throw layout::Error(to_text(mma) + " has " + operand +
                        " in registers: descriptors are of wgmma's and tcgen05's operands in "
                        "shared memory.");
  if (umma && mma.k == kUmmaLongK)
    throw layout::Error(
        "a descriptor of K 96 has an address in the place of its leading offset "
        "(atom::long_descriptor): ask for the same MMA with K 64.");
  OperandDescriptor o;
  o.operand = operand;
  o.umma = umma;
  o.type = operand == 'A' ? mma.a : mma.b;
  o.k = mma.k;
  const int all = operand == 'A' ? mma.m : mma.n;
  const int rows = mma.kind == MmaKind::tcgen05_pair ? all / 2 : all;
  const Major major = operand == 'A' ? mma.a_major : mma.b_major;
  o.tile = umma ? umma_tile(umma_of(mma).kind, o.type, rows, 0, major, swizzle)
                : OperandTile{rows, 0, numeric::bits(o.type), major, swizzle, false};
  const int span = span_elements(o.tile);
  o.tile.depth = depth != 0 ? depth : major == Major::k && span > mma.k ? span : mma.k;
  if (const char* fault = tile_fault(o.tile))
    throw layout::Error("a tile of " + std::to_string(rows) + " x " + std::to_string(o.tile.depth) +
                        " " + std::string(numeric::name(o.type)) + " in swizzle " + name(swizzle) +
                        ": " + fault + ".");
  o.fields = descriptor(o.tile, 0);
  for (int step = 0; step < k_block_count(o.tile); ++step) {
    o.starts.push_back(k_block_offset(o.tile, step));
    const Descriptor d = descriptor(o.tile, o.starts.back());
    o.words.push_back(umma ? encode_umma(d) : encode(d));
  }
  return o;
}

std::string print(const OperandDescriptor& o) {
  const OperandTile& tile = o.tile;
  const std::string swizzle =
      layout::to_text(layout::Swizzle{swizzle_bits(tile.swizzle), kSwizzleBase, kSwizzleShift});
  std::string text = std::string("Descriptor of ") + o.operand + ": " + std::to_string(tile.rows) +
                     " x " + std::to_string(tile.depth) + " " + std::string(numeric::name(o.type)) +
                     (tile.padded ? " padded to bytes" : "") +
                     (tile.major == Major::k ? ", K-major" : ", MN-major") + ", swizzle " +
                     name(tile.swizzle) + " (" + swizzle + " of byte addresses), " +
                     std::to_string(tile_bytes(tile)) + " bytes";
  text = aligned(text.c_str(), fields_of(o));
  Lines blocks = {{"k_block", "K", "start", "descriptor"}};
  for (std::size_t i = 0; i < o.starts.size(); ++i) {
    const int first = static_cast<int>(i) * o.k;
    blocks.push_back({std::to_string(i),
                      std::to_string(first) + "-" + std::to_string(first + o.k - 1),
                      "+" + std::to_string(o.starts[i]), hex(o.words[i], 16)});
  }
  text += aligned("k_blocks: bytes to where each begins, and its word", blocks);
  return tile.swizzle == SmemSwizzle::none ? text : text + chunks_of(tile);
}

}  // namespace warpwright::atom
