#include "cli/commands/machine/kernels_command.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/values.h"
#include "cli/compute/words.h"
#include "cli/files/printable.h"
#include "cli/reports/plan_json.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

constexpr const char* kHowToGet =
    "the CMake option WARPWRIGHT_KERNELS is all, or names with commas; for pip it is "
    "cmake.define.WARPWRIGHT_KERNELS";

bool has(const std::vector<DType>& types, DType type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool has_feature(const KernelFacts& f, const std::string& feature) {
  return std::find(f.features.begin(), f.features.end(), feature) != f.features.end();
}

// Have its operands scales that the tensor core multiplies?
bool has_formats(const KernelFacts& f) {
  return std::any_of(f.features.begin(), f.features.end(), [](const std::string& feature) {
    return micro_formats_of(feature).has_value();
  });
}

// What --dtype names: A's and B's type, and of formats with scales what the kernel has.
struct WantedTypes {
  DType a = DType::bf16;
  DType b = DType::bf16;
  std::string feature;
  bool of_either = false;  // one type was given
};

WantedTypes wanted_types(const std::string& text) {
  if (const auto formats = micro_formats_of(text)) {
    const auto& [of_a, of_b] = *formats;
    return {of_a.element, of_b.element, micro_words(of_a, of_b), false};
  }
  const std::size_t comma = text.find(',');
  const auto a = numeric::parse_dtype(text.substr(0, comma));
  const auto b = comma == std::string::npos
                     ? a
                     : numeric::parse_dtype(std::string_view(text).substr(comma + 1));
  if (!a || !b) {
    throw InputError("--dtype is \"" + text + "\"; " +
                     as_rule("it must be ", operand_words(", "), "int4, ",
                             format_words(", ", " or "), ", or two of them as \"e4m3,e5m2\"") +
                     ": the nearest is " + as_nearest("bf16") + ".");
  }
  return {*a, *b, "", comma == std::string::npos};
}

bool multiplies(const KernelFacts& f, const WantedTypes& wanted) {
  if (!wanted.feature.empty()) return has_feature(f, wanted.feature);
  // With one type that stands for both, int4 weights are multiplied by tokens of another.
  if (wanted.of_either && wanted.a == DType::s4) return has(f.b, DType::s4);
  return has(f.a, wanted.a) && has(f.b, wanted.b) && !has_formats(f);
}

std::string types_text(const std::vector<DType>& types) {
  return joined(types, "/", "/", numeric::word);
}

std::string operands_text(const KernelFacts& f) {
  const std::string a = types_text(f.a);
  const std::string b = types_text(f.b);
  return a == b ? a : a + "," + b;
}

std::string targets_text(const KernelFacts& f) {
  const std::string first = "sm_" + std::to_string(f.architectures.front());
  const std::string last = std::to_string(f.architectures.back());
  if (f.architectures.size() < 3) return f.architectures.size() == 1 ? first : first + "," + last;
  return first + " to " + last;
}

/// A line a kernel, in the width of a terminal; what each does would take twice that.
void print_table(const std::vector<const KernelFacts*>& kernels, const KernelsOptions& o,
                 std::ostream& out) {
  std::vector<std::vector<std::string>> rows = {{"kernel", "build", "A,B", "D", "tile", "cluster"}};
  if (o.as.empty()) rows[0].emplace_back("runs on");
  if (o.features) rows[0].emplace_back("what it does");
  for (const KernelFacts* f : kernels) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        f->name, f->built ? "yes" : "no", operands_text(*f), std::string(numeric::word(f->result)),
        format("%dx%dx%d", f->tile.m, f->tile.n, f->tile.k),
        f->most_cluster_ctas() > 1 ? "to " + std::to_string(f->most_cluster_ctas()) : "-"});
    if (o.as.empty()) row.push_back(targets_text(*f));
    if (o.features) row.push_back(joined(f->features));
  }
  out << aligned(rows);
}

std::vector<const KernelFacts*> listed(const KernelsOptions& o) {
  const auto wanted = o.dtype.empty() ? std::nullopt : std::optional(wanted_types(o.dtype));
  std::optional<int> target;
  if (!o.as.empty()) {
    const std::optional<DeviceFacts> device = known_facts(o.as);
    if (!device) {
      throw InputError("--as is \"" + o.as + "\"; " + as_rule("it must be ", known_names()) + ".");
    }
    target = device->architecture;
  }
  std::vector<const KernelFacts*> kernels;
  for (const KernelFacts* f : all_kernels()) {
    if (wanted && !multiplies(*f, *wanted)) continue;
    if (target && std::find(f->architectures.begin(), f->architectures.end(), *target) ==
                      f->architectures.end()) {
      continue;
    }
    if ((o.grouped && !f->grouped) || (o.built && !f->built)) continue;
    kernels.push_back(f);
  }
  return kernels;
}

}  // namespace

void add_kernels_command(CLI::App& app, KernelsOptions& o) {
  CLI::App* kernels =
      app.add_subcommand("kernels", "list the kernels, and which of them this build has");
  const Values add(*kernels);
  offer(add("--dtype", o.dtype, "TYPE",
            "those that multiply operands of this type: " + operand_words(", ") + "int4, " +
                format_words(", ", ", ") + ", or A's and B's as e4m3,e5m2"),
        operand_words(" ") + "int4 " + format_words(" ", " "));
  offer(add("--as", o.as, "NAME", "those that run on this device: " + known_names()),
        device_words());
  kernels->add_flag("--grouped", o.grouped, "those of products in groups");
  kernels->add_flag("--built", o.built, "only those of this build");
  kernels->add_flag("--features", o.features, "and what each does, in lines of 200 characters");
  kernels->add_flag("--json", o.json, "for programs, with all that a kernel says of itself");
  kernels->footer(
      "A tile is M x N of a CTA by K of a stage, A and B are the caller's. Features are words of "
      "the\noptions that ask for them; --features lists them.\n\n"
      "Examples:\n"
      "  warpwright kernels --dtype fp16 --as h200\n"
      "  warpwright kernels --grouped --built\n"
      "  warpwright kernels --json");
}

int kernels_command(const KernelsOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    const std::vector<const KernelFacts*> kernels = listed(o);
    const auto built = std::count_if(kernels.begin(), kernels.end(),
                                     [](const KernelFacts* f) { return f->built; });
    if (o.json) {
      nlohmann::ordered_json json;
      json["built"] = built;
      json["kernels"] = nlohmann::ordered_json::array();
      for (const KernelFacts* f : kernels) json["kernels"].push_back(kernel_json(*f));
      out << json_text(json);
      return 0;
    }
    if (kernels.empty()) {
      err << "No kernel is so, in this build or any other.\n";
      return 0;
    }
    print_table(kernels, o, out);
    err << built << " of " << kernels.size()
        << (kernels.size() == 1 ? " kernel is" : " kernels are") << " in this build";
    const bool lacks = static_cast<std::size_t>(built) < kernels.size();
    err << (lacks ? std::string("; one with the others: ") + kHowToGet : "") << ".\n";
    return 0;
  });
}

}  // namespace warpwright::cli
