#include "warpwright/atom/mma_text.h"

#include <charconv>
#include <optional>
#include <vector>

#include "warpwright/atom/text_columns.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

constexpr int kKinds = 10;

struct Shape {
  int m = 0, n = 0, k = 0;
};

// "m16n8k16".
std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  int* const parts[] = {&shape.m, &shape.n, &shape.k};
  const char letters[] = {'m', 'n', 'k'};
  for (int i = 0; i < 3; ++i) {
    if (text.empty() || text.front() != letters[i]) return std::nullopt;
    text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *parts[i]);
    if (error != std::errc() || *parts[i] <= 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return text.empty() ? std::optional(shape) : std::nullopt;
}

std::string shape_text(int m, int n, int k) {
  return "m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
}

std::string list_of_types(std::uint32_t set) {
  std::string text;
  for (int i = 0; i < kDTypeCount; ++i) {
    if ((set >> i & 1) == 0) continue;
    text += (text.empty() ? "" : "/") + std::string(numeric::name(static_cast<DType>(i)));
  }
  return text;
}

// "m16n8k32 of s8/u8", behind the word of its kind where that is another than mma.sync's.
std::string row_text(const MmaRow& row) {
  const bool plain = row.kind == MmaKind::warp || row.kind == MmaKind::quad_pair;
  return (plain ? "" : std::string(name(row.kind)) + " ") + shape_text(row.m, row.n, row.k) +
         " of " + list_of_types(row.operands) + " into " + list_of_types(row.sums) +
         (row.scale_block == 0 ? ""
                               : " by " + std::string(numeric::name(row.scale)) + " each " +
                                     std::to_string(row.scale_block));
}

template <class Keep>
std::string list_of_rows(Keep keep) {
  std::string text;
  for (const MmaRow& row : kMmaRows) {
    if (keep(row)) text += (text.empty() ? "" : ", ") + row_text(row);
  }
  return text;
}

// K of the kinds that take 32 bytes of it, by the element's width.
DType first_type(MmaKind kind, int k) {
  if (k == 8 && kind >= MmaKind::tcgen05) return DType::tf32;
  return k == 32 ? DType::e4m3 : DType::f16;
}

// A tcgen05 with the scales that its kind has first.
void set_scaled(std::string_view word, Mma& mma) {
  constexpr UmmaKind kinds[] = {UmmaKind::mxf8f6f4, UmmaKind::mxf4, UmmaKind::mxf4nvf4};
  std::string known;
  for (const UmmaKind kind : kinds) {
    known += (known.empty() ? "" : ", ") + std::string(name(kind));
    if (word != name(kind)) continue;
    mma.umma = kind;
    mma.a = mma.b = is_packed(kind) ? DType::e2m1 : DType::e4m3;
    mma.scale_block = kind == UmmaKind::mxf4nvf4 ? 16 : 32;
    mma.scale = kind == UmmaKind::mxf4nvf4 ? DType::ue4m3 : DType::ue8m0;
    return;
  }
  throw layout::Error("there is no kind \"" + std::string(word) +
                      "\" of tcgen05 with scales; known are " + known +
                      " (those without follow from the types).");
}

// The elements that a register holds, in their order: runs along a row or a column together.
std::string elements_text(const std::vector<std::pair<int, int>>& at) {
  const auto range = [](int first, int last) {
    return std::to_string(first) + (first == last ? "" : "-" + std::to_string(last));
  };
  std::string text;
  for (std::size_t i = 0; i < at.size();) {
    const auto run = [&](int down, int along) {
      std::size_t end = i + 1;
      while (end < at.size() && at[end].first == at[end - 1].first + down &&
             at[end].second == at[end - 1].second + along)
        ++end;
      return end;
    };
    const std::size_t along = run(0, 1);
    const std::size_t down = run(1, 0);
    const std::size_t end = std::max(along, down);
    text += (text.empty() ? "" : " ") + range(at[i].first, at[end - 1].first) + "," +
            range(at[i].second, at[end - 1].second);
    i = end;
  }
  return text;
}

// The table of one operand: `part` gives a thread's share of the tile's numbers.
// For only thread `only`, unless it is -1.
template <class Part>
std::string table_of(const char* title, int threads, int only, int rows, int per_register,
                     Part part) {
  std::vector<std::vector<std::string>> lines(1, {"lane"});
  const int first = only < 0 ? 0 : only;
  const int end = only < 0 ? threads : only + 1;
  for (int thread = first; thread < end; ++thread) {
    const layout::Slice share = part(thread);
    const int values = static_cast<int>(layout::size(share.layout));
    std::vector<std::string> line = {threads > 32 ? std::to_string(thread / 32) + "." +
                                                        std::to_string(thread % 32)
                                                  : std::to_string(thread)};
    for (int v = 0; v < values; v += per_register) {
      std::vector<std::pair<int, int>> at;
      for (int i = v; i < v + per_register && i < values; ++i) {
        const int element = static_cast<int>(share.offset + share.layout(i));
        at.emplace_back(element % rows, element / rows);
      }
      line.push_back(elements_text(at));
      if (thread == first) lines[0].push_back("r" + std::to_string(v / per_register));
    }
    lines.push_back(line);
  }
  return aligned(title, lines);
}

// Whose elements a lane's register of scales is for, and as which lanes it is taken.
std::string scale_table(const Mma& mma) {
  std::vector<std::vector<std::string>> lines(1, {"lane", "A", "B"});
  for (int lane = 0; lane < 32; ++lane) {
    const auto of = [&](const layout::Layout& scales, int lanes) {
      return std::to_string(scales(lane, 0)) + " of " + std::to_string(lanes);
    };
    lines.push_back({std::to_string(lane), of(mma_layout_scales_a(mma), lane / 2 % 2),
                     of(mma_layout_scales_b(mma), lane % 4)});
  }
  return aligned(
      "Scales: row of A and column of B of each lane's register, where lanes 0, 1, ... "
      "of four are taken",
      lines);
}

// Where a tcgen05's scales lie, and which of them each of its k_blocks takes, until the ids repeat.
std::string scale_steps(const UmmaAtom& atom) {
  std::vector<std::vector<std::string>> lines = {{"k_block", "K", "id", "A", "B"}};
  const auto span = [](int first, int count) {
    return std::to_string(first) + "-" + std::to_string(first + count - 1);
  };
  for (int step = 0; step == 0 || scale_step(atom, step).id != 0; ++step) {
    const ScaleStep at = scale_step(atom, step);
    lines.push_back({std::to_string(step), span(step * atom.k, atom.k), std::to_string(at.id),
                     std::to_string(at.column_a), std::to_string(at.column_b)});
  }
  const int words = scale_word_columns(atom, true);
  return aligned(("Scales: in tensor memory, four along K in a word; row r of A in lane r % 32, "
                  "column r / 32, rows of B in " +
                  std::to_string(words) + (words == 1 ? " column" : " columns") +
                  " alike; the ids of each k_block and the columns before its scales")
                     .c_str(),
                 lines);
}

}  // namespace

const char* name(MmaKind kind) {
  switch (kind) {
    case MmaKind::quad_pair:
    case MmaKind::warp:
      return "mma";
    case MmaKind::f8f6f4:
      return "f8f6f4";
    case MmaKind::mxf8f6f4:
      return "mxf8f6f4";
    case MmaKind::mxf4:
      return "mxf4";
    case MmaKind::mxf4nvf4:
      return "mxf4nvf4";
    case MmaKind::wgmma:
      return "wgmma";
    case MmaKind::wgmma_registers:
      return "wgmma_rs";
    case MmaKind::tcgen05:
      return "tcgen05";
    case MmaKind::tcgen05_pair:
      return "tcgen05_pair";
  }
  return "unknown";
}

Mma parse_mma(std::string_view kind_words, std::string_view shape_word) {
  const std::size_t space = kind_words.find(' ');
  const std::string_view kind_word = kind_words.substr(0, space);
  const std::string_view scaled_word =
      space == std::string_view::npos ? std::string_view() : kind_words.substr(space + 1);
  const std::optional<Shape> shape = parse_shape(shape_word);
  if (!shape)
    throw layout::Error("\"" + std::string(shape_word) +
                        "\" is no MMA: one is written m16n8k16, behind the word of its kind where "
                        "that is not mma.sync, as in wgmma m64n64k16.");
  Mma mma;
  mma.m = shape->m;
  mma.n = shape->n;
  mma.k = shape->k;
  std::string known;
  bool found = false;
  for (int i = 1; i < kKinds; ++i) {
    const auto kind = static_cast<MmaKind>(i);
    known += (known.empty() ? "" : ", ") + std::string(name(kind));
    if (name(kind) != kind_word) continue;
    mma.kind = kind;
    found = true;
  }
  if (!found)
    throw layout::Error("there is no kind of MMA \"" + std::string(kind_word) + "\"; known are " +
                        known + ".");
  if (!is_register_mma(mma.kind)) {
    mma.a = mma.b = first_type(mma.kind, mma.k);
    if (mma.kind >= MmaKind::tcgen05 && !scaled_word.empty()) {
      set_scaled(scaled_word, mma);
      return mma;
    }
  }
  if (!scaled_word.empty())
    throw layout::Error("\"" + std::string(scaled_word) + "\" stands only behind tcgen05 and " +
                        "tcgen05_pair, whose kind with scales it is.");
  if (!is_register_mma(mma.kind)) return mma;
  if (mma.kind == MmaKind::warp && mma.m == 8 && mma.k == 4) mma.kind = MmaKind::quad_pair;
  for (const MmaRow& row : kMmaRows) {
    if (row.kind != mma.kind || row.m != mma.m || row.n != mma.n || row.k != mma.k) continue;
    for (int i = kDTypeCount - 1; i >= 0; --i) {
      if ((row.operands >> i & 1) != 0) mma.a = mma.b = static_cast<DType>(i);
    }
    mma.sums = (row.sums >> static_cast<int>(DType::s32) & 1) != 0 ? DType::s32 : DType::f32;
    mma.scale_block = row.scale_block;
    mma.scale = row.scale;
    return mma;
  }
  const std::string rule = "there are " + list_of_rows([&](const MmaRow& row) {
                             return row.kind == mma.kind ||
                                    (mma.kind == MmaKind::warp && row.kind == MmaKind::quad_pair);
                           });
  throw layout::Error(shape_text(mma.m, mma.n, mma.k) + ": " + mma_fault(mma) + "; " + rule + ".",
                      rule);
}

std::string to_text(const Mma& mma) {
  const bool plain = mma.kind == MmaKind::warp || mma.kind == MmaKind::quad_pair;
  const bool scaled_umma = mma.kind >= MmaKind::tcgen05 && mma.scale_block != 0;
  std::string text = (plain ? "" : std::string(name(mma.kind)) + " ") +
                     (scaled_umma ? std::string(name(mma.umma)) + " " : "") +
                     shape_text(mma.m, mma.n, mma.k) + " " + std::string(numeric::name(mma.a)) +
                     " x " + std::string(numeric::name(mma.b)) + " + " +
                     std::string(numeric::name(mma.sums));
  if (mma.scale_block != 0)
    text +=
        " by " + std::string(numeric::name(mma.scale)) + " each " + std::to_string(mma.scale_block);
  return text;
}

std::string mma_refusal(const Mma& mma, int target) {
  const char* fault = target == 0 ? mma_fault(mma) : mma_fault(mma, target);
  if (fault == nullptr) return {};
  std::string text =
      to_text(mma) + (target == 0 ? "" : " on sm_" + std::to_string(target)) + ": " + fault;
  if (mma_fault(mma) != nullptr && is_register_mma(mma.kind)) {
    const std::string legal = list_of_rows([&](const MmaRow& row) {
      return row.kind == mma.kind && row.m == mma.m && row.n == mma.n && row.k == mma.k;
    });
    if (!legal.empty()) text += "; there is " + legal;
  } else if (mma_fault(mma) == nullptr && detail::target_bit(target) != 0) {
    if (mma.kind < MmaKind::tcgen05 || target < 100 || target >= 120)
      text += "; it has " + list_of_rows([&](const MmaRow& row) {
                return (row.targets & detail::target_bit(target)) != 0;
              });
    text += "; this one is on " + targets_of(mma);
  }
  return text + ".";
}

std::string targets_of(const Mma& mma) {
  std::string native;
  std::string emulated;
  for (const int target : kMmaTargets) {
    const MmaSupport support = mma_support(mma, target);
    if (support == MmaSupport::absent) continue;
    std::string& list = support == MmaSupport::native ? native : emulated;
    list += (list.empty() ? "sm_" : ", ") + std::to_string(target);
  }
  return native + (emulated.empty() ? "" : "; made of other instructions on " + emulated);
}

std::string print(const Mma& mma) {
  const layout::Tuple shape = layout::tuple(mma.m, mma.n, mma.k);
  std::string text = "MMA_Atom\n  ThrID:      " + layout::to_text(mma_thr_id(mma)) +
                     "\n  Shape_MNK:  " + layout::to_text(shape) +
                     "\n  LayoutA_TV: " + layout::to_text(mma_layout_a(mma)) +
                     "\n  LayoutB_TV: " + layout::to_text(mma_layout_b(mma)) +
                     "\n  LayoutC_TV: " + layout::to_text(mma_layout_c(mma)) + "\n";
  return text;
}

std::string print(const TiledMma& mma) {
  std::string permutation;
  for (int mode = 0; mode < 3; ++mode) {
    permutation += mode == 0 ? "(" : ",";
    if (mode >= mma.permutation.count || mma.permutation.keep[mode]) {
      permutation += "_";
    } else {
      const layout::Layout& order = mma.permutation.tile[mode];
      const bool is_run = order == layout::make_layout(layout::size(order));
      permutation += is_run ? std::to_string(layout::size(order)) : layout::to_text(order);
    }
  }
  return "TiledMMA\n  ThrLayoutVMNK:  " + layout::to_text(mma.thr_layout_vmnk()) +
         "\n  PermutationMNK: " + permutation + ")\n" + print(mma.atom);
}

std::string register_table(const TiledMma& mma, int thread) {
  const auto extent = [&](int mode) { return static_cast<int>(mma.tile_size(mode)); };
  const auto whole = [&](int row, int column) {
    return layout::make_layout(layout::tuple(extent(row), extent(column)));
  };
  const int threads = mma.thread_count();
  if (mma.atom.kind >= MmaKind::tcgen05)
    return "A and B are read from shared memory, and the sums lie in tensor memory: no register "
           "holds any of them.\n" +
           (mma.atom.scale_block == 0 ? "" : scale_steps(umma_of(mma.atom)));
  std::string text;
  if (mma.atom.kind == MmaKind::wgmma) {
    text += "A: in shared memory\n";
  } else {
    text += table_of("A: row,k of each register", threads, thread, extent(0),
                     32 / register_bits(mma.atom, mma.atom.a),
                     [&](int t) { return mma.get_slice(t).partition_a(whole(0, 2)); });
  }
  if (!is_register_mma(mma.atom.kind)) {
    text += "B: in shared memory\n";
  } else {
    text += table_of("B: column,k of each register", threads, thread, extent(1),
                     32 / register_bits(mma.atom, mma.atom.b),
                     [&](int t) { return mma.get_slice(t).partition_b(whole(1, 2)); });
  }
  text += table_of("C: row,column of each register", threads, thread, extent(0),
                   32 / numeric::bits(mma.atom.sums),
                   [&](int t) { return mma.get_slice(t).partition_c(whole(0, 1)); });
  return mma.atom.scale_block == 0 ? text : text + scale_table(mma.atom);
}

}  // namespace warpwright::atom
