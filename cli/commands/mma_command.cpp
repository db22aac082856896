#include "cli/commands/mma_command.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

#include "cli/files/printable.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"

namespace warpwright::cli {
namespace {

DType dtype_of(const char* option, const std::string& word) {
  const std::optional<DType> type = numeric::parse_dtype(word);
  if (!type)
    throw layout::Error(std::string(option) + " \"" + word +
                        "\": there is no such type; known are f16, bf16, tf32, f32, e4m3, e5m2, "
                        "e2m3, e3m2, e2m1, s4, s8, u8 and s32.");
  return *type;
}

void set_majors(const std::string& word, atom::Mma& mma) {
  if (word != "tn" && word != "nt" && word != "nn" && word != "tt")
    throw layout::Error("--majors \"" + word +
                        "\": it is tn, nt, nn or tt, A's letter first: A is K-major as t, B as n.");
  mma.a_major = word[0] == 't' ? atom::Major::k : atom::Major::mn;
  mma.b_major = word[1] == 'n' ? atom::Major::k : atom::Major::mn;
}

// "sm_80" or "80".
int target_of(const std::string& word) {
  const std::string digits = word.starts_with("sm_") ? word.substr(3) : word;
  int target = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, target);
  if (error != std::errc() || stop != end || target <= 0)
    throw layout::Error("--target \"" + word + "\": a target is written sm_80.");
  return target;
}

// "2x2", "2x2x1", or a layout.
layout::Layout threads_of(const std::string& word) {
  std::string text = word;
  if (word.find_first_not_of("0123456789x") == std::string::npos) {
    text = "(" + word + ")";
    std::replace(text.begin(), text.end(), 'x', ',');
  }
  if (text.starts_with("(")) {
    const layout::Value value = layout::evaluate(text);
    if (const auto* layout = std::get_if<layout::Layout>(&value)) return *layout;
    if (const auto* extents = std::get_if<layout::Shape>(&value)) {
      return layout::make_layout(extents->tuple);
    }
  }
  throw layout::Error("--tiled \"" + word +
                      "\": copies of the MMA are written 2x2, or as a layout of M, N and K.");
}

layout::Tiler permutation_of(const std::string& word) {
  const layout::Value value = layout::evaluate(word);
  if (const auto* tiler = std::get_if<layout::Tiler>(&value)) return *tiler;
  throw layout::Error("--permute \"" + word +
                      "\": a permutation is a tiler of M, N and K, such as <(4,4,2):(1,8,4),_,_>.");
}

std::string answer(const MmaOptions& o) {
  const bool has_kind = o.words.size() == 2;
  atom::Mma mma = atom::parse_mma(has_kind ? o.words[0] : "mma", o.words.back());
  if (!o.a_dtype.empty()) mma.a = mma.b = dtype_of("--a-dtype", o.a_dtype);
  if (!o.b_dtype.empty()) mma.b = dtype_of("--b-dtype", o.b_dtype);
  if (!o.a_dtype.empty()) mma.sums = numeric::is_float(mma.a) ? DType::f32 : DType::s32;
  if (!o.sums.empty()) mma.sums = dtype_of("--sums", o.sums);
  if (!o.majors.empty()) set_majors(o.majors, mma);
  const std::string refusal = atom::mma_refusal(mma, o.target.empty() ? 0 : target_of(o.target));
  if (!refusal.empty()) throw layout::Error(refusal);
  const bool is_tiled = !o.tiled.empty() || !o.permutation.empty();
  const atom::TiledMma tiled =
      atom::make_tiled_mma(mma, o.tiled.empty() ? layout::Layout{} : threads_of(o.tiled),
                           o.permutation.empty() ? layout::Tiler{} : permutation_of(o.permutation));
  return atom::to_text(mma) + ", on " + atom::targets_of(mma) + "\n" +
         (is_tiled ? atom::print(tiled) : atom::print(mma)) +
         (o.table ? atom::register_table(tiled) : "");
}

}  // namespace

CLI::App* add_mma_command(CLI::App& app, MmaOptions& o) {
  CLI::App* mma =
      app.add_subcommand("mma", "an MMA instruction: its targets, layouts and registers");
  mma->add_option("MMA", o.words,
                  "m16n8k16, or the word of its kind and its shape: f8f6f4, mxf8f6f4, mxf4, "
                  "mxf4nvf4, wgmma, wgmma_rs, tcgen05, tcgen05_pair")
      ->required()
      ->expected(1, 2)
      ->option_text("[KIND] SHAPE");
  mma->add_option("--a-dtype", o.a_dtype, "elements of A, and of B unless that is given")
      ->type_name("T");
  mma->add_option("--b-dtype", o.b_dtype, "elements of B")->type_name("T");
  mma->add_option("--sums", o.sums, "elements of C and D")->type_name("T");
  mma->add_option("--majors", o.majors,
                  "of m8n8k4: tn (A and B K-major, the default), nt, nn or tt")
      ->type_name("M");
  mma->add_option("--target", o.target, "refuse it where this target lacks it")->type_name("sm_N");
  mma->add_option("--tiled", o.tiled,
                  "copies along M, N and K: 2x2, or a layout such as (2,2):(2,1)")
      ->type_name("L");
  mma->add_option("--permute", o.permutation,
                  "order of the tile's elements along M, N and K, as a tiler")
      ->type_name("P");
  mma->add_flag("--table", o.table, "print what the registers of each lane hold");
  return mma;
}

int mma_command(const MmaOptions& options, std::ostream& out, std::ostream& err) {
  try {
    out << answer(options);
    return 0;
  } catch (const layout::Error& refusal) {
    err << printable(refusal.what()) << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
