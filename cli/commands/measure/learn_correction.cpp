#include "cli/commands/measure/learn_correction.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/families/learnt.h"

namespace warpwright::cli {
namespace {

namespace fs = std::filesystem;

// The card's name. Throws InputError where no floor of its kernels is known.
std::string learnt_card(const DeviceFacts& facts) {
  if (facts.architecture != 90) {
    throw InputError("--learn is of Hopper cards, and " + facts.name + " is sm_" +
                     std::to_string(facts.architecture) + ": " +
                     as_rule("plans for others go by no correction") + ".");
  }
  if (machine_of_card(facts.name) == nullptr) {
    throw InputError(
        "--learn needs a description in numbers, and machines/ has none of " + facts.name + ": " +
        as_rule("it has those of h200, h100 and h20 by these words in a card's name") + ".");
  }
  return facts.name;
}

// The file of a script, installed beside the program or in its source tree.
std::string script_of(const LearnTools& tools, const std::string& name) {
  const fs::path above = fs::path(tools.program).parent_path().parent_path();
  for (const fs::path& folder : {above / "share/warpwright", above.parent_path() / "script"}) {
    std::error_code error;
    if (fs::is_regular_file(folder / name, error)) return (folder / name).string();
  }
  throw InputError("--learn needs the script " + name + ", and neither " +
                   printable((above / "share/warpwright").string()) +
                   " nor a source tree around this program has it: " +
                   as_rule("install Warpwright by `cmake --install`, or build it in its tree") +
                   ".");
}

std::string python_with_libraries() {
  std::string python = find_program("python3");
  if (python.empty()) {
    throw InputError("--learn runs scripts by python3, which is not on PATH: " +
                     as_rule("install Python 3, and `pip install lightgbm`") + ".");
  }
  const std::string looks =
      "import importlib.util as u, sys; "
      "sys.exit(not all(u.find_spec(name) for name in ('lightgbm', 'numpy')))";
  if (run_program({python, "-c", looks}, [](std::string_view) {}) != 0) {
    throw InputError("--learn needs LightGBM, which " + printable(python) +
                     " has not: " + as_rule("`pip install lightgbm`") + ".");
  }
  return python;
}

}  // namespace

void learn_correction(const LearnOptions& o, const LearnTools& tools, std::ostream& out) {
  const std::string card = learnt_card(taken(tools.card(o.device)));
  const std::string times = fs::path(o.file).replace_extension(".times.tsv.gz").string();
  check_output_file("The correction", o.file);
  check_output_file("The times", times);
  const std::string record = script_of(tools, "record");
  const std::string learn = script_of(tools, "learn.py");
  const std::string python = python_with_libraries();
  const auto run = [&](const std::string& script, std::vector<std::string> words) {
    words.insert(words.begin(), {python, script});
    const int status = run_program(words, [&](std::string_view said) {
      if (!o.json) out << said << std::flush;
    });
    if (status != 0) {
      throw RunError(Sentence{printable(script) + " did not do its work (what it says stands " +
                              "above); what was measured is in " + printable(times) +
                              ", and the same call goes on."});
    }
  };
  run(record, {times, "--program", tools.program, "--seconds", std::to_string(o.seconds),
               "--device", "cuda:" + std::to_string(o.device)});
  run(learn, {tools.program, "--times", times, "--out", o.file});
  if (const auto made = read_correction(o.file); !made) {
    throw RunError(Sentence{printable(o.file) + " is no correction: " + made.reason() + "."});
  }
  if (o.json) {
    out << json_text({{"correction", o.file}, {"times", times}, {"card", card}});
    return;
  }
  out << printable(o.file) << ": a correction of " << printable(card)
      << ". Plans follow it with --correction FILE, and in libraries with "
         "WARPWRIGHT_CORRECTION=FILE\n";
}

}  // namespace warpwright::cli
