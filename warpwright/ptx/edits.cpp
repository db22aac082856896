#include "warpwright/ptx/edits.h"

#include <algorithm>
#include <array>
#include <utility>

#include "warpwright/ptx/decoder.h"

namespace warpwright::ptx {
namespace {

using Kind = Edit::Kind;

// A statement as it is written: where each of its operands lies.
struct Written {
  std::string_view text;  // the whole of it, without its guard
  std::vector<std::string_view> operands;
  std::string_view guard;  // "@%p1 ", or nothing
};

Written written(const Module& module, const Statement& s) {
  const std::string_view all = *module.text;
  const auto begin = static_cast<std::size_t>(s.opcode.data() - all.data());
  Written w;
  w.text = all.substr(begin, all.find(';', begin) + 1 - begin);
  if (s.guard >= 0) {
    const std::size_t at = all.rfind('@', begin);
    w.guard = all.substr(at, begin - at);
  }
  int depth = 0;
  std::size_t first = s.opcode.size();
  for (std::size_t i = first; i < w.text.size(); ++i) {
    const char c = w.text[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > 0 || (c != ',' && c != ';')) continue;
    std::string_view operand = w.text.substr(first, i - first);
    operand.remove_prefix(std::min(operand.find_first_not_of(" \t\n"), operand.size()));
    w.operands.push_back(operand);
    first = i + 1;
  }
  return w;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Collects the edits of one statement.
class Editor {
 public:
  Editor(const Module& module, const Statement& s, std::vector<Edit>& all)
      : module_(module), s_(s), w_(written(module, s)), all_(all) {}

  void edit() {
    if (s_.opcode.starts_with("wgmma.mma_async")) edit_wgmma();
    if (s_.opcode.starts_with("tcgen05.mma")) edit_tcgen05();
    edit_types();
    edit_addresses();
    edit_lanes();
    edit_words();
    edit_copies();
  }

 private:
  // --- how an edit is made
  void add(Kind kind, std::string how, std::string_view old, std::string to) {
    const auto at = static_cast<std::size_t>(old.data() - module_.text->data());
    all_.push_back(
        {kind, s_.line, std::string(s_.opcode), std::move(how), at, old.size(), std::move(to)});
  }
  // Another word in the opcode, where there is such an instruction.
  void reword(Kind kind, std::string_view word, std::string_view to) {
    const std::size_t at = s_.opcode.find(word);
    if (at == std::string_view::npos) return;
    std::string opcode(s_.opcode);
    opcode.replace(at, word.size(), to);
    if (!is_known(opcode)) return;
    add(kind, std::string(word) + " became " + (to.empty() ? "nothing" : std::string(to)),
        s_.opcode.substr(at, word.size()), std::string(to));
  }
  // The statement with `made` for operand i, which a statement in front makes of it.
  void replace(Kind kind, std::string how, std::string_view operand, int bits,
               const std::string& op, const std::string& value) {
    const std::string type = std::to_string(bits);
    std::string statement(w_.text);
    statement.replace(static_cast<std::size_t>(operand.data() - w_.text.data()), operand.size(),
                      "ww_v");
    const std::string front = "{ .reg .b" + type + " ww_v; " + op + type + " ww_v, " +
                              std::string(operand) + ", " + value + "; ";
    wrap(kind, std::move(how), front, std::string(w_.guard) + statement);
  }
  // All of the statement becomes a block of its own, on the same line.
  void wrap(Kind kind, std::string how, const std::string& front, const std::string& statement) {
    const std::string_view whole =
        w_.guard.empty() ? w_.text
                         : std::string_view(w_.guard.data(), w_.guard.size() + w_.text.size());
    add(kind, std::move(how), whole, front + statement + " }");
  }

  // --- what is edited
  void edit_descriptor(const char* whose, std::size_t which, std::initializer_list<int> swizzle) {
    if (which >= s_.operands.size() || s_.operands[which].kind != Operand::Kind::reg) return;
    const std::string_view operand = w_.operands[which];
    const std::string name = std::string(whose) + "'s descriptor, ";
    for (const int bit : swizzle) {
      replace(Kind::swizzle, name + "bit " + std::to_string(bit) + " flipped", operand, 64, "xor.b",
              std::to_string(std::uint64_t{1} << bit) + "U");
    }
    constexpr std::pair<int, const char*> fields[] = {
        {0, "start address"}, {16, "leading dimension's stride"}, {32, "other stride"}};
    for (const auto& [bit, what] : fields) {
      replace(Kind::descriptor, name + what + " + 16", operand, 64, "add.s",
              std::to_string(std::uint64_t{1} << bit));
    }
  }
  void edit_wgmma() {
    edit_descriptor("A", 1, {62, 63});
    edit_descriptor("B", 2, {62, 63});
    // Behind the two signs: is A, or B, MN-major?
    for (std::size_t i = 6; i < s_.operands.size(); ++i) {
      const bool is_mn = s_.operands[i].bits != 0;
      const char* const whose = i + 1 == s_.operands.size() ? "B" : "A";
      add(Kind::instruction,
          std::string(whose) + (is_mn ? " taken for" : " not taken for") + " K-major",
          w_.operands[i], is_mn ? "0" : "1");
    }
  }
  void edit_tcgen05() {
    edit_descriptor("A", 1, {61, 62});
    edit_descriptor("B", 2, {61, 62});
    if (s_.operands.size() < 4 || s_.operands[3].kind != Operand::Kind::reg) return;
    // D's type, A's, B's, whether A and B are MN-major, N and M.
    for (const int bit : {4, 7, 10, 15, 16, 17, 24}) {
      replace(Kind::instruction, "instruction descriptor, bit " + std::to_string(bit) + " flipped",
              w_.operands[3], 32, "xor.b", std::to_string(1U << bit));
    }
  }
  // Types of A and B, where the opcode has them.
  void edit_types() {
    if (!s_.opcode.starts_with("wgmma.mma_async") && !s_.opcode.starts_with("mma.sync")) return;
    for (const auto& [from, to] : {std::pair{".bf16.bf16", ".f16.f16"},
                                   {".f16.f16", ".bf16.bf16"},
                                   {".e4m3.e4m3", ".e5m2.e4m3"},
                                   {".e4m3.e4m3", ".e4m3.e5m2"},
                                   {".e5m2.e5m2", ".e4m3.e5m2"},
                                   {".s8.s8", ".u8.s8"}}) {
      reword(Kind::instruction, from, to);
    }
  }
  // Which operand is an address of shared memory; none: of no operand.
  [[nodiscard]] std::size_t shared_operand() const {
    constexpr std::size_t none = ~std::size_t{0};
    const std::string_view o = s_.opcode;
    const auto begins = [o](std::initializer_list<std::string_view> words) {
      return std::ranges::any_of(words, [o](std::string_view w) { return o.starts_with(w); });
    };
    std::size_t at = none;
    if (begins({"ld.shared", "ldmatrix", "atom.shared"}) ||
        (begins({"cp.async.bulk"}) && has(o, ".global.shared::cta"))) {
      at = 1;
    } else if (begins({"st.shared", "stmatrix", "red.shared", "st.async", "cp.async.ca",
                       "cp.async.cg"}) ||
               has(o, ".shared::cluster.global") || has(o, ".shared::cta.global")) {
      at = 0;
    } else if (begins({"mbarrier.", "cp.async.mbarrier"})) {
      const auto first = std::ranges::find(s_.operands, Operand::Kind::address, &Operand::kind);
      at = static_cast<std::size_t>(first - s_.operands.begin());
    }
    return at < s_.operands.size() && s_.operands[at].kind == Operand::Kind::address ? at : none;
  }
  void edit_addresses() {
    const std::size_t at = shared_operand();
    if (at >= s_.operands.size()) return;
    const std::string_view written = w_.operands[at];
    const std::string_view base = written.substr(1, written.find_first_of("+-]", 1) - 1);
    add(Kind::address, "address + 16", written.substr(0, written.find(']') + 1),
        "[" + std::string(base) + "+" +
            std::to_string(s_.operands[at].offset + base_offset(s_.operands[at]) + 16) + "]");
  }
  static std::int64_t base_offset(const Operand& o) {
    return o.parts.empty() ? 0 : o.parts[0].offset;
  }
  // Lane 31 is not there.
  void edit_lanes() {
    const std::string_view o = s_.opcode;
    const bool of_a_warp = has(o, ".aligned") || o.starts_with("bar.sync") ||
                           o.starts_with("shfl.") || o.starts_with("vote.") ||
                           o.starts_with("elect.") || o.starts_with("match.") ||
                           o.starts_with("bar.warp");
    if (!of_a_warp) return;
    std::string front =
        "{ .reg .pred ww_q; .reg .b32 ww_l; mov.u32 ww_l, %laneid; setp.ne.u32 ww_q, ww_l, 31; ";
    if (s_.guard >= 0) {
      std::string_view p = w_.guard.substr(s_.guard_not ? 2 : 1);
      p = p.substr(0, p.find_last_not_of(" \t\n") + 1);
      front += s_.guard_not ? ".reg .pred ww_n; not.pred ww_n, " + std::string(p) +
                                  "; and.pred ww_q, ww_q, ww_n; "
                            : "and.pred ww_q, ww_q, " + std::string(p) + "; ";
    }
    wrap(Kind::lanes, "without lane 31", front, "@ww_q " + std::string(w_.text));
  }
  void edit_words() {
    const std::string_view o = s_.opcode;
    if (o.starts_with("fence.proxy.async")) {
      if (has(o, ".shared::cta")) reword(Kind::space, ".shared::cta", ".global");
      if (has(o, ".global")) reword(Kind::space, ".global", ".shared::cta");
      if (o == "fence.proxy.async") {
        reword(Kind::space, ".async", ".async.global");
        reword(Kind::space, ".async", ".async.shared::cta");
      }
    }
    if (o == "cp.async.bulk.wait_group") reword(Kind::reads, ".wait_group", ".wait_group.read");
    if (o.starts_with("mbarrier.")) {
      reword(Kind::scope, ".release.cluster", ".release.cta");
      reword(Kind::scope, ".acquire.cluster", ".acquire.cta");
    }
  }
  void edit_copies() {
    const std::string_view o = s_.opcode;
    if (!o.starts_with("cp.async.bulk") || s_.operands.empty()) return;
    if (has(o, ".tensor") && !has(o, "prefetch")) {
      const std::size_t map = has(o, ".global.shared::cta") ? 0 : 1;
      if (map < s_.operands.size()) edit_coordinates(s_.operands[map], w_.operands[map]);
    } else if (has(o, "complete_tx::bytes") && s_.operands.size() > 2) {
      if (s_.operands[2].kind != Operand::Kind::reg) {
        add(Kind::bytes, "16 bytes less", w_.operands[2],
            std::to_string(static_cast<std::int64_t>(s_.operands[2].bits) - 16));
      } else {
        replace(Kind::bytes, "16 bytes less", w_.operands[2], 32, "sub.s", "16");
      }
    }
  }
  // [map, {c0, c1}]
  void edit_coordinates(const Operand& o, std::string_view written) {
    std::size_t begin = written.find('{') + 1;
    for (std::size_t i = 1; i < o.parts.size() && begin != 0; ++i) {
      begin = written.find_first_not_of(" \t", begin);
      const std::size_t end = written.find_first_of(",}", begin);
      std::string_view one = written.substr(begin, end - begin);
      one = one.substr(0, one.find_last_not_of(" \t") + 1);
      replace(Kind::coordinate, "coordinate " + std::to_string(i - 1) + " + 1", one, 32, "add.s",
              "1");
      begin = end + 1;
    }
  }

  const Module& module_;
  const Statement& s_;
  Written w_;
  std::vector<Edit>& all_;
};

}  // namespace

std::string_view name(Kind kind) {
  constexpr std::array<std::string_view, Edit::kinds> names = {
      "swizzle bits of a descriptor",
      "address and strides of a descriptor",
      "instruction descriptor",
      "address of shared memory + 16",
      "a whole warp's instruction without lane 31",
      "proxy fence for other memory",
      "wait for reads only",
      "cluster's scope made a CTA's",
      "bytes of a bulk copy",
      "coordinate of a tensor copy",
  };
  return names.at(static_cast<std::size_t>(kind));
}

std::vector<Edit> edits(const Module& module, const Entry& entry, const std::vector<bool>& ran) {
  std::vector<Edit> all;
  for (std::size_t i = 0; i < entry.statements.size() && i < ran.size(); ++i) {
    if (ran[i]) Editor(module, entry.statements[i], all).edit();
  }
  return all;
}

std::string edited(std::string_view text, const Edit& edit) {
  std::string out(text);
  return out.replace(edit.at, edit.length, edit.to);
}

}  // namespace warpwright::ptx
