// mma.sync: every instruction of atom/mma.h whose operands lie in registers, block-scaled ones too
// (PTX ISA 9.7.14.5).
#include <array>
#include <deque>

#include "warpwright/atom/mma.h"
#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

using atom::Mma;
using atom::MmaKind;

// All of them, whose numbers are Form::x.
std::deque<Mma>& all_mmas() {
  static std::deque<Mma> all;
  return all;
}

constexpr std::size_t kMostSums = 8;
constexpr std::size_t kMostOfOperand = 4;

// Op::a: whether it saturates. In Program::words from Op::x on: which instruction; where the
// registers of the sums that are written lie, of A, of B, and of those that are read; then, where A
// and B have scales, those, the byte and the lanes, of A and of B.
const Op* multiplies(Frame& f, const Op* op) {
  const std::uint32_t* at = f.program->words.data() + op->x;
  const Mma& mma = all_mmas()[*at++];
  std::array<std::uint32_t, kMostSums> sums;    // NOLINT: what is read is written
  std::array<std::uint32_t, kMostOfOperand> a;  // NOLINT
  std::array<std::uint32_t, kMostOfOperand> b;  // NOLINT
  const auto count = static_cast<std::size_t>(atom::mma_registers_c(mma));
  const auto take = [&](auto& to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] = f.r[*at++];
  };
  const std::uint32_t* const written = at;
  at += count;
  take(a, static_cast<std::size_t>(atom::mma_registers_a(mma)));
  take(b, static_cast<std::size_t>(atom::mma_registers_b(mma)));
  take(sums, count);
  model::MmaRequest request{.mma = &mma, .sums = sums.data(), .a = a.data(), .b = b.data()};
  request.saturates = op->a != 0;
  atom::MmaScaleSource from;
  if (mma.scale_block > 0) {
    request.scales_a = f.r[at[0]];
    request.scales_b = f.r[at[3]];
    from = {static_cast<int>(f.r[at[1]]), static_cast<int>(f.r[at[2]]),
            static_cast<int>(f.r[at[4]]), static_cast<int>(f.r[at[5]])};
    if (const char* fault = atom::mma_scales_fault(mma, from)) f.fail(op, fault);
    request.from = &from;
  }
  model::mma_sync(request, f.site(op));
  for (std::size_t i = 0; i < count; ++i) f.r[written[i]] = sums[i];
  return op + 1;
}

// What atom/mma.h knows of a target is known by its number there.
int known_target(int number) {
  int known = 0;
  for (const int t : atom::kMmaTargets) {
    if (t <= number) known = t;
  }
  return known;
}

// Which have it: "sm_80 or later", or one after the other.
std::string targets_of(const Mma& mma) {
  std::string all;
  std::string first;
  bool to_the_last = true;
  for (const int target : atom::kMmaTargets) {
    const bool has = atom::mma_support(mma, target) != atom::MmaSupport::absent;
    if (has && first.empty()) first = "sm_" + std::to_string(target);
    if (has) all += (all.empty() ? "sm_" : ", ") + std::to_string(target);
    to_the_last = to_the_last && (has || first.empty());
  }
  return to_the_last ? first + " or later" : all;
}

void check_target(Decoder& d, const Mma& mma) {
  if (atom::mma_support(mma, known_target(d.target().number)) != atom::MmaSupport::absent) return;
  d.fault(std::string(d.target().name) + " has no " + std::string(d.opcode()) + ": that is of " +
          targets_of(mma));
}

// {d}, {a}, {b}, {c}; then, where A and B have scales, of each of them: scales, {byte, lanes}.
// Form::y: 1 where it saturates.
void decode_mma(Decoder& d, const Statement& s, const Form& form) {
  const Mma& mma = all_mmas()[form.x];
  check_target(d, mma);
  const bool is_scaled = mma.scale_block > 0;
  d.need(s, is_scaled ? 8 : 4, is_scaled ? 8 : 4);
  std::vector<std::uint32_t> words{form.x};
  const auto add = [&](const Operand& o, int count, bool writes, char kind) {
    const bool is_list = o.kind == Operand::Kind::list;
    const auto parts = is_list ? o.parts : std::vector{o};
    if (parts.size() != static_cast<std::size_t>(count)) {
      d.fault(std::string(d.opcode()) + " takes a list of " + std::to_string(count) + " there");
    }
    for (const Operand& part : parts) {
      words.push_back(writes ? d.write(part, 'I') : d.read(part, kind));
    }
  };
  const char sum = mma.sums == DType::f32 ? 'f' : 'i';
  add(s.operands[0], atom::mma_registers_c(mma), true, 'i');
  add(s.operands[1], atom::mma_registers_a(mma), false, 'i');
  add(s.operands[2], atom::mma_registers_b(mma), false, 'i');
  add(s.operands[3], atom::mma_registers_c(mma), false, sum);
  for (std::size_t i = 4; i < s.operands.size(); i += 2) {
    add(s.operands[i], 1, false, 'i');
    add(s.operands[i + 1], 2, false, 'h');
  }
  d.emit({.run = form.run, .a = form.y, .x = d.keep_words(words)});
}

std::string kind_text(const Mma& mma) {
  switch (mma.kind) {
    case MmaKind::f8f6f4:
      return ".kind::f8f6f4";
    case MmaKind::mxf8f6f4:
      return ".kind::mxf8f6f4";
    case MmaKind::mxf4:
      return ".kind::mxf4";
    case MmaKind::mxf4nvf4:
      return ".kind::mxf4nvf4";
    default:
      return "";
  }
}

void add_mma(Forms& forms, const Mma& mma) {
  const Form form{&multiplies, "", &decode_mma, static_cast<std::uint32_t>(all_mmas().size())};
  all_mmas().push_back(mma);
  const auto name = [](DType type) { return "." + std::string(numeric::name(type)); };
  const std::string shape = ".m" + std::to_string(mma.m) + "n" + std::to_string(mma.n) + "k" +
                            std::to_string(mma.k) +
                            (mma.a_major == atom::Major::k ? ".row" : ".col") +
                            (mma.b_major == atom::Major::k ? ".col" : ".row");
  const std::string sums = name(mma.sums);
  std::string types = sums + name(mma.a) + name(mma.b) + sums;
  std::string kind = kind_text(mma);
  std::vector<std::string> kinds = {kind};
  if (mma.scale_block > 0) {
    types += name(mma.scale);
    kind += ".block_scale";
    const std::string vector = ".scale_vec::" + std::to_string(atom::mma_scales(mma)) + "X";
    kinds = {kind + vector};
    if (mma.kind != MmaKind::mxf4nvf4) kinds.push_back(kind);  // it has one only
  }
  // The kind stands behind the shape, and ptxas takes it in front too.
  for (const std::string& k : kinds) {
    forms[name_of("mma.sync.aligned", shape, k, types)] = form;
    forms[name_of("mma.sync.aligned", k, shape, types)] = form;
  }
  if (mma.sums != DType::s32) return;
  Form saturating = form;
  saturating.y = 1;
  forms[name_of("mma.sync.aligned", shape, ".satfinite", types)] = saturating;
}

}  // namespace

void add_register_mmas(Forms& forms) {
  using atom::Major;
  constexpr Major majors[] = {Major::k, Major::mn};
  for (const atom::MmaRow& row : atom::kMmaRows) {
    for (int types = 0; types < kDTypeCount * kDTypeCount * kDTypeCount; ++types) {
      Mma mma{row.kind, row.m, row.n, row.k};
      mma.a = static_cast<DType>(types % kDTypeCount);
      mma.b = static_cast<DType>(types / kDTypeCount % kDTypeCount);
      mma.sums = static_cast<DType>(types / kDTypeCount / kDTypeCount);
      mma.scale_block = row.scale_block;
      mma.scale = row.scale;
      if (!atom::is_of(mma, row)) continue;
      for (const Major a : majors) {
        for (const Major b : majors) {
          mma.a_major = a;
          mma.b_major = b;
          if (atom::mma_fault(mma) == nullptr) add_mma(forms, mma);
        }
      }
    }
  }
}

}  // namespace warpwright::ptx
