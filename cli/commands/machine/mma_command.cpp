#include "cli/commands/machine/mma_command.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <variant>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "cli/files/printable.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/atom/descriptor_text.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/atom/values.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"
#include "warpwright/layout/text.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/plan/product/known_devices.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

// Is it a type of A and B, or of sums, of some MMA?
bool is_multiplied(DType type) {
  return std::any_of(
      std::begin(atom::kMmaRows), std::end(atom::kMmaRows),
      [&](const atom::MmaRow& row) { return (row.operands & atom::detail::types(type)) != 0; });
}
bool is_summed(DType type) {
  return std::any_of(
      std::begin(atom::kMmaRows), std::end(atom::kMmaRows),
      [&](const atom::MmaRow& row) { return (row.sums & atom::detail::types(type)) != 0; });
}

// The names of these types, as PTX has them.
std::string types(bool (*keep)(DType), const char* between, const char* before_last) {
  return joined(kept(all_types, keep), between, before_last, numeric::name);
}

DType dtype_of(const char* option, const std::string& word) {
  const std::optional<DType> type = numeric::parse_dtype(word);
  if (!type)
    throw layout::Error(
        std::string(option) + " \"" + word + "\": there is no such type; known are " +
        types([](DType t) { return is_multiplied(t) || is_summed(t); }, ", ", " and ") + ".");
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
  const auto target = as_number<int>(digits);
  if (!target || *target <= 0)
    throw layout::Error("--target \"" + word + "\": a target is written sm_80.");
  return *target;
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

void set_scales(const MmaOptions& o, atom::Mma& mma) {
  if ((o.block != 0 || !o.scales.empty()) && mma.scale_block == 0)
    throw layout::Error(
        "--scales and --block are those of MMAs with scales of blocks: mxf8f6f4, "
        "mxf4 and mxf4nvf4, for sm_120 and behind tcgen05.");
  if (!o.scales.empty()) {
    const std::optional<DType> type = numeric::parse_dtype(o.scales);
    if (type != DType::ue8m0 && type != DType::ue4m3)
      throw layout::Error("--scales \"" + o.scales + "\": scales are ue8m0 or ue4m3.");
    mma.scale = *type;
  }
  if (o.block == 0) return;
  mma.scale_block = o.block;
  if (o.scales.empty()) mma.scale = o.block == 16 ? DType::ue4m3 : DType::ue8m0;
}

// The target of a known device.
int target_as(const std::string& name) {
  const std::optional<DeviceFacts> device = known_facts(name);
  if (device) return device->architecture;
  throw layout::Error("--as \"" + name + "\": known are " + joined(known_devices()) + ".");
}

}  // namespace

atom::TiledMma tiled_mma_of(const MmaOptions& o) {
  std::string kind = o.words.size() == 1 ? "mma" : o.words[0];
  if (o.words.size() == 3) kind += " " + o.words[1];
  atom::Mma mma = atom::parse_mma(kind, o.words.back());
  if (!o.a_dtype.empty()) mma.a = mma.b = dtype_of("--a-dtype", o.a_dtype);
  if (!o.b_dtype.empty()) mma.b = dtype_of("--b-dtype", o.b_dtype);
  if (!o.a_dtype.empty()) mma.sums = numeric::is_float(mma.a) ? DType::f32 : DType::s32;
  if (!o.sums.empty()) mma.sums = dtype_of("--sums", o.sums);
  if (!o.majors.empty()) set_majors(o.majors, mma);
  set_scales(o, mma);
  const int target = !o.as.empty() ? target_as(o.as) : o.target.empty() ? 0 : target_of(o.target);
  const std::string refusal = atom::mma_refusal(mma, target);
  if (!refusal.empty()) throw layout::Error(refusal);
  return atom::make_tiled_mma(
      mma, o.tiled.empty() ? layout::Layout{} : threads_of(o.tiled),
      o.permutation.empty() ? layout::Tiler{} : permutation_of(o.permutation));
}

namespace {

struct Answer {
  atom::Mma mma;
  atom::TiledMma tiled;
  bool is_tiled = false;
  // What is asked for beside: of --partition and --eval texts, of --descriptor its fields.
  std::string operand, partition, fragment, value;
  std::optional<atom::OperandDescriptor> descriptor;
};

// The letter of an operand.
char operand_of(const char* option, const std::string& word) {
  if (word == "A" || word == "B" || word == "C") return word[0];
  throw layout::Error(std::string(option) + " \"" + word + "\": an operand is A, B or C.");
}

// Those of an MMA, and those of copies.
std::vector<layout::Function> functions_of(const atom::TiledMma& mma, int thread) {
  std::vector<layout::Function> functions = atom::mma_functions(mma, thread);
  for (const layout::Function& f : atom::copy_functions()) functions.push_back(f);
  return functions;
}

// The values that are asked for of the MMA.
void evaluate(const MmaOptions& o, Answer& found) {
  if (o.slice >= 0 && o.partition.empty() && o.eval.empty() && !o.table)
    throw layout::Error(
        "--slice is the thread of --partition, --eval or --table, and none of them is given.");
  const int threads = found.tiled.thread_count();
  if (o.slice >= threads)
    throw layout::Error("--slice " + std::to_string(o.slice) + ": the MMA has " +
                        (found.mma.kind >= atom::MmaKind::tcgen05 ? "CTAs" : "threads") + " 0 to " +
                        std::to_string(threads - 1) + ".");
  const int thread = std::max(o.slice, 0);
  const std::vector<layout::Function> functions = functions_of(found.tiled, thread);
  if (!o.partition.empty()) {
    const char operand = operand_of("--partition", o.partition[0]);
    const layout::Value part =
        atom::partition(found.tiled, operand, layout::evaluate(o.partition[1], functions), thread);
    found.operand = o.partition[0];
    found.partition = layout::to_text(part);
    found.fragment = layout::to_text(atom::fragment(found.tiled, operand, part));
  }
  if (!o.eval.empty()) found.value = layout::to_text(layout::evaluate(o.eval, functions));
  if (o.descriptor.empty()) return;
  if (o.descriptor != "A" && o.descriptor != "B")
    throw layout::Error("--descriptor \"" + o.descriptor +
                        "\": an operand in shared memory is A or B.");
  found.descriptor =
      atom::operand_descriptor(found.mma, o.descriptor[0], atom::parse_swizzle(o.swizzle), o.depth);
}

Answer answer(const MmaOptions& o) {
  Answer found;
  found.tiled = tiled_mma_of(o);
  found.mma = found.tiled.atom;
  found.is_tiled = !o.tiled.empty() || !o.permutation.empty();
  evaluate(o, found);
  return found;
}

std::string text_of(const Answer& answer, const MmaOptions& o) {
  const char letter = answer.operand.empty() ? 'A' : answer.operand[0];
  std::string text = atom::to_text(answer.mma) + ", on " + atom::targets_of(answer.mma) + "\n" +
                     (answer.is_tiled ? atom::print(answer.tiled) : atom::print(answer.mma)) +
                     (o.table ? atom::register_table(answer.tiled, o.slice) : "");
  if (!answer.partition.empty())
    text += std::string("partition_") + letter + ":     " + answer.partition + "\nmake_fragment_" +
            letter + ": " + answer.fragment + "\n";
  if (!answer.value.empty()) text += answer.value + "\n";
  return answer.descriptor ? text + atom::print(*answer.descriptor) : text;
}

// What every thread holds of a tile of `rows`, as [row, column] in the order of its values.
template <class Part>
ordered_json elements_of(int threads, std::int64_t rows, Part part) {
  ordered_json all = ordered_json::array();
  for (int thread = 0; thread < threads; ++thread) {
    const layout::Slice share = part(thread);
    ordered_json held = ordered_json::array();
    for (std::int64_t v = 0; v < layout::size(share.layout); ++v) {
      const std::int64_t element = share.offset + share.layout(v);
      held.push_back({element % rows, element / rows});
    }
    all.push_back(std::move(held));
  }
  return all;
}

// For the operands that lie in registers.
ordered_json registers_of(const atom::TiledMma& mma) {
  ordered_json json = ordered_json::object();
  const atom::MmaKind kind = mma.atom.kind;
  if (kind >= atom::MmaKind::tcgen05) return json;
  const int threads = mma.thread_count();
  const auto whole = [&](int row, int column) {
    return layout::make_layout(layout::tuple(mma.tile_size(row), mma.tile_size(column)));
  };
  if (kind != atom::MmaKind::wgmma) {
    json["a"] = elements_of(threads, mma.tile_size(0),
                            [&](int t) { return mma.get_slice(t).partition_a(whole(0, 2)); });
  }
  if (atom::is_register_mma(kind)) {
    json["b"] = elements_of(threads, mma.tile_size(1),
                            [&](int t) { return mma.get_slice(t).partition_b(whole(1, 2)); });
  }
  json["c"] = elements_of(threads, mma.tile_size(0),
                          [&](int t) { return mma.get_slice(t).partition_c(whole(0, 1)); });
  return json;
}

// Which scales each k_block takes, until the ids repeat.
ordered_json scale_steps_of(const atom::UmmaAtom& atom) {
  ordered_json steps = ordered_json::array();
  for (int step = 0; step == 0 || atom::scale_step(atom, step).id != 0; ++step) {
    const atom::ScaleStep at = atom::scale_step(atom, step);
    steps.push_back({{"id", at.id}, {"column_a", at.column_a}, {"column_b", at.column_b}});
  }
  return steps;
}

ordered_json descriptor_of(const atom::OperandDescriptor& o) {
  ordered_json steps = ordered_json::array();
  for (std::size_t i = 0; i < o.starts.size(); ++i)
    steps.push_back({{"start", o.starts[i]}, {"word", o.words[i]}});
  return {{"operand", std::string(1, o.operand)},
          {"rows", o.tile.rows},
          {"depth", o.tile.depth},
          {"swizzle", atom::name(o.tile.swizzle)},
          {"leading_bytes", o.fields.leading},
          {"stride_bytes", o.fields.stride},
          {"k_blocks", steps}};
}

ordered_json json_of(const Answer& answer, const MmaOptions& o) {
  const bool table = o.table;
  const atom::Mma& mma = answer.mma;
  const atom::TiledMma& tiled = answer.tiled;
  ordered_json json;
  json["mma"] = atom::to_text(mma);
  json["kind"] = atom::name(mma.kind);
  json["m"] = mma.m;
  json["n"] = mma.n;
  json["k"] = mma.k;
  json["a_dtype"] = numeric::name(mma.a);
  json["b_dtype"] = numeric::name(mma.b);
  json["sums"] = numeric::name(mma.sums);
  if (mma.scale_block > 0) {
    if (mma.kind >= atom::MmaKind::tcgen05) json["scaled_kind"] = atom::name(mma.umma);
    json["scale_block"] = mma.scale_block;
    json["scales"] = numeric::name(mma.scale);
  }
  json["targets"] = atom::targets_of(mma);
  json["threads"] = layout::to_text(atom::mma_thr_id(mma));
  json["layout_a_tv"] = layout::to_text(atom::mma_layout_a(mma));
  json["layout_b_tv"] = layout::to_text(atom::mma_layout_b(mma));
  json["layout_c_tv"] = layout::to_text(atom::mma_layout_c(mma));
  if (answer.is_tiled) {
    json["tiled"] = {{"threads_vmnk", layout::to_text(tiled.thr_layout_vmnk())},
                     {"tile", {tiled.tile_size(0), tiled.tile_size(1), tiled.tile_size(2)}}};
  }
  if (!answer.partition.empty()) {
    json["partition"] = {{"operand", answer.operand},
                         {"thread", std::max(o.slice, 0)},
                         {"value", answer.partition},
                         {"fragment", answer.fragment}};
  }
  if (!answer.value.empty()) json["value"] = answer.value;
  if (answer.descriptor) json["descriptor"] = descriptor_of(*answer.descriptor);
  if (table) json["registers"] = registers_of(tiled);
  if (table && mma.kind >= atom::MmaKind::tcgen05 && mma.scale_block > 0) {
    json["scale_steps"] = scale_steps_of(atom::umma_of(mma));
  }
  return json;
}

// What is asked of the MMA as a value.
void add_value_options(CLI::App& mma, MmaOptions& o) {
  mma.add_option("--partition", o.partition,
                 "an operand and a tensor, as of warpwright layout: what a thread has of it, and "
                 "what holds that")
      ->expected(2)
      ->option_text("A|B|C EXPR");
  const Values add(mma);
  add("--slice", o.slice, "T",
      "the thread of --partition, --eval and --table; for tcgen05 the CTA (0 unless given)",
      whole(0, 1023));
  add("--eval", o.eval, "EXPR",
      "an expression of warpwright layout in which the MMA's functions may stand too");
  offer(add("--descriptor", o.descriptor, "A|B",
            "print the descriptor of an operand in shared memory, and its swizzle"),
        "A B");
  CLI::Option* const descriptor = mma.get_option("--descriptor");
  offer(add("--swizzle", o.swizzle, "S", "of its tile: none, 32B, 64B or 128B (128B)")
            ->needs(descriptor),
        "none 32B 64B 128B");
  add("--depth", o.depth, "K", "K of its tile, in elements (a span of the swizzle)",
      whole(1, 65536))
      ->needs(descriptor);
}

// The functions that --eval has beside those of `warpwright layout`, a line each.
std::string functions_help() {
  const atom::TiledMma mma = atom::make_tiled_mma(atom::parse_mma("tcgen05", "m128n256k16"));
  std::string usage;
  for (const layout::Function& f : functions_of(mma, 0)) {
    usage += "  " + std::string(f.usage) + "\n";
  }
  return usage;
}

}  // namespace

void add_mma_choices(CLI::App& app, MmaOptions& o) {
  CLI::App* const mma = &app;
  mma->add_option("MMA", o.words,
                  "m16n8k16, or the word of its kind and its shape: f8f6f4, mxf8f6f4, mxf4, "
                  "mxf4nvf4, wgmma, wgmma_rs, tcgen05, tcgen05_pair; behind the last two also "
                  "mxf8f6f4, mxf4, mxf4nvf4")
      ->required()
      ->expected(1, 3)
      ->option_text("[KIND] SHAPE");
  const std::string operands = types(is_multiplied, " ", " ");
  const Values add(*mma);
  offer(add("--a-dtype", o.a_dtype, "T", "elements of A, and of B unless that is given"), operands);
  offer(add("--b-dtype", o.b_dtype, "T", "elements of B"), operands);
  offer(add("--sums", o.sums, "T", "elements of C and D"), types(is_summed, " ", " "));
  offer(
      add("--majors", o.majors, "M", "for m8n8k4: tn (A and B K-major, the default), nt, nn or tt"),
      "tn nt nn tt");
  offer(add("--scales", o.scales, "T", "of blocks: ue8m0 or ue4m3"), "ue8m0 ue4m3");
  offer(add("--block", o.block, "N", "elements of K that share a scale: 32 or 16"), "16 32");
  CLI::Option* const target =
      add("--target", o.target, "sm_N", "refuse it where this target lacks it");
  offer(add("--as", o.as, "NAME", "refuse it where this device lacks it, such as b300")
            ->excludes(target),
        device_words());
  add("--tiled", o.tiled, "L", "copies along M, N and K: 2x2, or a layout such as (2,2):(2,1)");
  add("--permute", o.permutation, "P", "order of the tile's elements along M, N and K, as a tiler");
}

void add_mma_command(CLI::App& app, MmaOptions& o) {
  CLI::App* mma =
      app.add_subcommand("mma", "an MMA instruction: its targets, layouts and registers");
  add_mma_choices(*mma, o);
  add_value_options(*mma, o);
  mma->add_flag("--table", o.table, "print what the registers of each lane hold");
  mma->add_flag("--json", o.json, "for programs");
  mma->footer("Functions of --eval, beside those of warpwright layout:\n" + functions_help() +
              "\nExamples:\n"
              "  warpwright mma m16n8k16\n"
              "  warpwright mma m8n8k4 --tiled 2x2 --table\n"
              "  warpwright mma f8f6f4 m16n8k32 --a-dtype e2m1 --target sm_120\n"
              "  warpwright mma tcgen05_pair mxf4nvf4 m256n256k96 --as b300 --table\n"
              "  warpwright mma wgmma_rs m64n16k32 --a-dtype e4m3 --tiled 2x1 --partition A "
              "'(128,128,19)'\n"
              "  warpwright mma wgmma m64n128k16 --descriptor A --swizzle 64B");
}

int mma_command(const MmaOptions& options, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, options.json, [&] {
    try {
      const Answer found = answer(options);
      out << (options.json ? json_text(json_of(found, options)) : text_of(found, options));
      return 0;
    } catch (const layout::Error& refusal) {
      Sentence said = std::string_view(refusal.what());
      said.rule = refusal.rule();
      throw InputError(said);
    }
  });
}

}  // namespace warpwright::cli
