#include "cli/commands/gemm/run.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <new>
#include <utility>

#include "cli/compute/words.h"
#include "cli/files/printable.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/atom/mask_text.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

// Bytes that this program may still take: what the system has, and what its control group leaves
// of a limit, as containers have one.
double memory_here() {
  double free = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  std::ifstream system("/proc/meminfo");
  std::string word;
  while (system >> word) {
    double kib = 0;
    if (word == "MemAvailable:" && system >> kib) free = std::min(free, kib * 1024);
  }
  const auto number = [](const char* path) {
    double value = -1;
    std::ifstream(path) >> value;  // -1 for a text: "max"
    return value;
  };
  for (const auto& [limit, use] :
       {std::pair{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
         "/sys/fs/cgroup/memory/memory.usage_in_bytes"}}) {
    const double most = number(limit);
    if (most > 0) free = std::min(free, most - std::max(0.0, number(use)));
  }
  return std::max(0.0, free);
}

// What is known of the device `name`; for none, the model's facts. Throws InputError.
DeviceFacts facts_as(const std::string& name) {
  if (name.empty() || name == "model") return model_facts();
  const std::optional<DeviceFacts> facts = known_facts(name);
  if (!facts)
    throw InputError("--as is \"" + name + "\"; " + as_rule("it must be model, ", known_names()) +
                     ".");
  return *facts;
}

// SMs of the model: as many as were asked for, else 8, or what one cluster or the grid needs.
int sms_of(const RunOptions& o) {
  constexpr int usual = 8;
  constexpr int most = 256;
  const std::optional<atom::ClusterShape> cluster = atom::parse_cluster(o.cluster);
  if (o.sms) {
    // For what is too small the nearest has room for the cluster.
    const int least = *o.sms < 1 && cluster ? std::clamp(atom::cluster_size(*cluster), 1, most) : 1;
    require_between("--sms", *o.sms, least, most);
    return *o.sms;
  }
  const int wanted = std::max({usual, cluster ? atom::cluster_size(*cluster) : 1,
                               o.cluster_k.value_or(1), o.ctas.value_or(1)});
  return std::min(wanted, most);
}

// The description of --machine, of the architecture that --as asks for too; nothing where none is
// given.
std::shared_ptr<const MachineNumbers> described(const RunOptions& o) {
  if (o.machine.empty()) return nullptr;
  auto numbers = std::make_shared<const MachineNumbers>(read_machine("--machine", o.machine));
  if (!o.as.empty() && o.as != "model" && facts_as(o.as).architecture != numbers->architecture) {
    throw InputError("--machine is of sm_" + std::to_string(numbers->architecture) + ", and --as " +
                     o.as + " of sm_" + std::to_string(facts_as(o.as).architecture) + ": " +
                     as_rule("leave one of them out") + ".");
  }
  return numbers;
}

DeviceFacts corrected(DeviceFacts facts, const DeviceFiles& files) {
  if (files.correction.empty()) return facts;
  if (facts.architecture != 90) {
    throw InputError("--correction is of Hopper cards, and " + facts.name + " is sm_" +
                     std::to_string(facts.architecture) + ": " + as_rule("leave it out") + ".");
  }
  facts.correction = given_correction(files.correction);
  return facts;
}

void refuse_sms(const RunOptions& options, const std::string& why) {
  if (!options.sms) return;
  throw InputError("--sms is of the model, and " + why + ": " + as_rule("leave it out") + ".");
}

}  // namespace

int exit_status(std::ostream& out, std::ostream& err, bool json, const std::function<int()>& body) {
  const auto tell = [&](const char* code, const Sentence& known, const std::string& sentence) {
    if (json) out << json_text(error_json(code, known, sentence));
    err << sentence << (sentence.ends_with('\n') ? "" : "\n");
  };
  try {
    return body();
  } catch (const InputError& refusal) {
    tell(refusal.code(), refusal.sentence(), refusal.what());
    return 2;
  } catch (const RunError& failure) {
    tell(failure.code(), failure.sentence(), failure.what());
    return 1;
  } catch (const std::bad_alloc&) {
    tell(name(RefusalCode::out_of_memory), {},
         "This machine has not enough memory for these matrices: choose smaller ones.");
    return 2;
  }
}

int parse_device(const std::string& text) {
  const auto device = device_index(text);
  if (device && *device != run_nowhere && !text.starts_with("model:")) return *device;
  throw InputError("--device is \"" + text + "\"; " +
                   as_rule("it must be model, auto, cuda or cuda:0, cuda:1, ..."));
}

DeviceFacts facts_of(int device) {
  return *taken(run_facts(device));
}

DeviceFacts with_files(const DeviceFacts& facts, const DeviceFiles& files) {
  if (files.machine.empty()) return corrected(facts, files);
  const MachineNumbers numbers = read_machine("--machine", files.machine);
  if (numbers.architecture != facts.architecture) {
    throw InputError("--machine is of sm_" + std::to_string(numbers.architecture) + ", and " +
                     facts.name + " is sm_" + std::to_string(facts.architecture) + ": " +
                     as_rule("leave it out, or give a file of such a device") + ".");
  }
  return corrected(with_numbers(facts, numbers), files);
}

std::string known_names() {
  return joined(known_devices(), ", ", " or ");
}

std::string device_words() {
  std::string text;
  for (const std::string_view name : known_devices()) text += std::string(name) + " ";
  return text;
}

std::string kernel_words(std::optional<bool> grouped) {
  std::string text;
  for (const KernelFacts* kernel : all_kernels()) {
    const bool is_meant = kernel->grouped == grouped.value_or(kernel->grouped);
    if (kernel->built && is_meant) text += kernel->name + " ";
  }
  return text;
}

DeviceFacts facts_of(const RunOptions& options, bool needs_gpu) {
  const int device = parse_device(options.device);
  const DeviceFacts as = facts_as(options.as);
  const auto numbers = described(options);
  const int architecture = numbers ? numbers->architecture : as.architecture;
  if (device == run_on_model) {
    DeviceFacts facts = model_facts(sms_of(options), architecture);
    facts.numbers = numbers ? numbers : as.numbers;
    return corrected(std::move(facts), options);
  }
  refuse_sms(options, "a GPU has its own number");
  if (const auto found = run_facts(device); !found) {
    const bool any = !device::cuda_devices().empty();
    throw InputError(
        found.reason() + (any || needs_gpu ? "" : "; the model is always there: --device model"),
        name(found.code()));
  }
  DeviceFacts facts = facts_of(device);
  if (!options.as.empty() && facts.architecture != architecture) {
    throw InputError("--as " + options.as + " asks for kernels of sm_" +
                     std::to_string(architecture) + ", and " + facts.name + " is sm_" +
                     std::to_string(facts.architecture) + ": " +
                     as_rule("leave --as out, or give --device model") + ".");
  }
  return with_files(facts, options);
}

DeviceFacts facts_elsewhere(const RunOptions& options) {
  const bool is_described = !options.machine.empty() && options.as != "model" &&
                            parse_device(options.device) == run_on_model;
  if (is_described) {
    const auto numbers = described(options);
    refuse_sms(options, "--machine says that device's own");
    return corrected(machine_facts(*numbers), options);
  }
  if (options.as.empty() || options.as == "model") return facts_of(options);
  refuse_sms(options, "--as " + options.as + " plans for that device's own");
  return corrected(facts_as(options.as), options);
}

void require_between(const char* option, std::int64_t value, std::int64_t least,
                     std::int64_t most) {
  if (value >= least && value <= most) return;
  throw InputError(std::string(option) + " is " + std::to_string(value) +
                   "; the nearest legal value is " +
                   as_nearest(std::to_string(value < least ? least : most)) + ".");
}

void require_jobs(const std::optional<int>& jobs) {
  if (!jobs || *jobs >= 1) return;
  throw InputError("--jobs is " + std::to_string(*jobs) + "; the nearest legal value is " +
                   as_nearest("1") + ": leave it out for all threads of the machine.");
}

void require(const std::optional<Refusal>& refusal) {
  if (refusal) throw InputError(*refusal);
}

void require_memory(const std::string& what, double bytes, const std::string& advice) {
  const double present = memory_here();
  if (bytes <= present * 0.95) return;
  throw InputError(what +
                   format(" take %.1f GiB of memory, and this machine has %.1f free: ",
                          bytes * 0x1p-30, present * 0x1p-30) +
                   advice + ".");
}

std::optional<model::Mode> parse_mode(const std::string& text) {
  std::optional<model::Mode> mode;
  choose<model::Mode>(mode, "--mode", text,
                      {{"eager", model::Mode::eager},
                       {"latest", model::Mode::latest},
                       {"random", model::Mode::random},
                       {"starve", model::Mode::starve}});
  return mode;
}

void require_clean(const model::Report& report) {
  if (report.clean()) return;
  throw RunError(
      "The model found faults, so " + as_tensor("D") + " is not to be trusted:\n" + report.text(),
      RefusalCode::model_findings);
}

}  // namespace warpwright::cli
