#include "cli/gemm_job.h"

#include <unistd.h>

#include <array>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "cli/random.h"
#include "warpwright/atom/mask_text.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {
namespace {

// Streams of the random tensors.
enum Stream : std::uint64_t { kStreamA = 1, kStreamB = 2, kStreamC = 3 };

std::string name_of(DType t) {
  return std::string(numeric::name(t));
}

DType parse_operand(const std::string& text) {
  const std::optional<DType> type = numeric::parse_dtype(text);
  for (const DType known : {DType::bf16, DType::f16, DType::e4m3, DType::e5m2}) {
    if (type == known) return known;
  }
  throw InputError("--dtype is \"" + text +
                   "\"; it must be bf16 or fp16, or for sm_100 e4m3 or e5m2: the nearest is bf16.");
}

DType parse_result(const std::string& text) {
  const std::optional<DType> type = numeric::parse_dtype(text);
  for (const DType known : {DType::bf16, DType::f16, DType::f32}) {
    if (type == known) return known;
  }
  throw InputError("--d-dtype is \"" + text + "\"; it must be f32, bf16 or fp16.");
}

std::optional<kernel::TileSource> parse_scheduler(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "one") return kernel::TileSource::one_tile;
  if (text == "static") return kernel::TileSource::static_persistent;
  if (text == "clc") return kernel::TileSource::launch_control;
  throw InputError("--scheduler is \"" + text +
                   "\"; it must be one (a tile a cluster), static or clc (launch control).");
}

float parse_scalar(const char* name, const std::string& text, float otherwise) {
  if (text.empty()) return otherwise;
  const std::string what = std::string(name) + " is \"" + text + "\"";
  double value = 0;
  const char* first = text.data() + (text.front() == '+' ? 1 : 0);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, value);
  if (end != last || error == std::errc::invalid_argument) {
    throw InputError(what + "; it must be a number, for example 1 or -0.5.");
  }
  if (std::isnan(value)) throw InputError(what + "; it must be a number, and NaN is none.");
  if (error == std::errc::result_out_of_range ||
      (std::isfinite(value) && std::abs(value) > FLT_MAX)) {
    throw InputError(what + ", which an fp32 does not hold; the nearest legal value is " +
                     (text.find('-') == 0 ? "-" : "") + "3.4028234e38.");
  }
  return static_cast<float>(value);
}

HostTensor read_matrix(const char* name, const std::string& spec) {
  HostTensor tensor;
  try {
    tensor = read_tensor(spec);
  } catch (const InputError& refusal) {
    throw InputError(std::string(name) + ": " + refusal.what());
  }
  const std::string what = std::string(name) + " (" + spec + ")";
  if (tensor.shape.size() != 2) {
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
    const std::string nearest = rows > 0 ? "; the nearest legal shape is " + std::to_string(rows) +
                                               "x" + std::to_string(tensor.elements() / rows)
                                         : "";
    throw InputError(what + " has " + std::to_string(tensor.shape.size()) + " dimensions (shape " +
                     shape_text(tensor.shape) + "); a matrix has 2" + nearest + ".");
  }
  if (tensor.dtype != DType::f32 && tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) {
    throw InputError(what + " is " + name_of(tensor.dtype) +
                     "; matrices of f32, f16 and bf16 are multiplied: the nearest is bf16.");
  }
  return tensor;
}

// M, N and K when they are given as numbers.
std::optional<std::array<std::int64_t, 3>> given_extents(const GemmOptions& o) {
  if (!o.random.empty()) {
    if (o.random.size() != 3) throw InputError("--random takes three numbers: M N K.");
    return std::array{o.random[0], o.random[1], o.random[2]};
  }
  if (!o.m && !o.n && !o.k) return std::nullopt;
  if (!o.m || !o.n || !o.k) throw InputError("--m, --n and --k are given together or not at all.");
  return std::array{*o.m, *o.n, *o.k};
}

void read_files(const GemmOptions& o, GemmJob& job) {
  if (o.a.empty() || o.b.empty()) {
    throw InputError(std::string(o.a.empty() ? "A" : "B") +
                     " is missing: give both --a FILE and --b FILE, or --random M N K.");
  }
  job.a = read_matrix("A", o.a);
  job.b = read_matrix("B", o.b);
  job.m = job.a.shape[0];
  job.n = job.b.shape[0];
  job.k = job.a.shape[1];
  if (job.b.shape[1] != job.k) {
    throw InputError("A (" + o.a + ") is " + shape_text(job.a.shape) + " and B (" + o.b + ") is " +
                     shape_text(job.b.shape) +
                     "; their columns are both K and must agree: the nearest legal B is " +
                     std::to_string(job.n) + "x" + std::to_string(job.k) + ".");
  }
  if (!job.reads_c()) return;
  if (o.c.empty()) {
    throw InputError("C is missing: beta is " + o.beta + ", so give --c FILE, or leave beta at 0.");
  }
  job.c = read_matrix("C", o.c);
  if (job.c.shape != std::vector{job.m, job.n}) {
    throw InputError("C (" + o.c + ") is " + shape_text(job.c.shape) +
                     "; it must be as large as D: " + std::to_string(job.m) + "x" +
                     std::to_string(job.n) + ".");
  }
}

// The number of infinite elements.
std::int64_t infinities(const HostTensor& t) {
  const std::int64_t count = t.elements();
  std::int64_t found = 0;
  if (t.dtype == DType::f32) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, t.bytes.data() + i * 4, 4);
      found += (code & 0x7fffffffU) == 0x7f800000U ? 1 : 0;
    }
    return found;
  }
  if (numeric::bits(t.dtype) != 16) return 0;  // 8-bit operands saturate
  const unsigned infinity = t.dtype == DType::f16 ? 0x7c00U : 0x7f80U;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, t.bytes.data() + i * 2, 2);
    found += (code & 0x7fffU) == infinity ? 1 : 0;
  }
  return found;
}

void round_to(HostTensor& tensor, DType type, const char* name, std::ostream& err) {
  if (tensor.dtype == type) return;
  HostTensor rounded = convert(tensor, type);
  if (tensor.dtype != DType::f32 && type != DType::f32) {
    err << "note: " << name << " is " << name_of(tensor.dtype) << " in its file and is rounded to "
        << name_of(type) << ".\n";
  }
  const std::int64_t lost = infinities(rounded) - infinities(tensor);
  if (lost > 0) {
    err << "note: " << lost << (lost == 1 ? " element" : " elements") << " of " << name
        << " beyond the largest " << name_of(type) << " became infinite.\n";
  }
  tensor = std::move(rounded);
}

// Refuses what this machine cannot hold, before the system ends the program for trying.
void check_memory(const GemmJob& job) {
  const auto m = static_cast<double>(job.m);
  const auto n = static_cast<double>(job.n);
  const auto k = static_cast<double>(job.k);
  const double operand = numeric::bits(job.operand) / 8.0;
  const double result = numeric::bits(job.result) / 8.0;
  const double wanted = (m + n) * k * operand + m * n * result * (job.reads_c() ? 2 : 1);
  const double present = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  if (wanted <= present * 0.95) return;
  char text[160];
  std::snprintf(
      text, sizeof(text),
      "A, B%s and D take %.1f GiB of memory, and this machine has %.1f: choose smaller M, "
      "N or K.",
      job.reads_c() ? ", C" : "", wanted * 0x1p-30, present * 0x1p-30);
  throw InputError(text);
}

}  // namespace

DeviceChoice parse_device(const std::string& text) {
  if (text == "model") return {true, 0};
  if (text == "cuda") return {false, 0};
  if (text.starts_with("cuda:")) {
    int index = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + 5, last, index);
    if (error == std::errc() && end == last && text.size() > 5 && index >= 0) return {false, index};
  }
  throw InputError("--device is \"" + text + "\"; it must be model, cuda or cuda:0, cuda:1, ...");
}

DeviceFacts facts_of(const DeviceChoice& device) {
  if (device.is_model) return model_facts();
  const Result<DeviceFacts> facts = device::cuda_device(device.index);
  if (!facts) throw InputError(facts.reason());
  return *facts;
}

DeviceFacts facts_as(const std::string& name) {
  if (name == "model") return model_facts();
  const std::optional<DeviceFacts> facts = known_facts(name);
  if (!facts) {
    throw InputError("--as is \"" + name +
                     "\"; the devices known by name are h200, b200 and model.");
  }
  return *facts;
}

DeviceFacts facts_of(const GemmOptions& options, int sms) {
  const DeviceChoice device = parse_device(options.device);
  if (options.as.empty()) return device.is_model ? model_facts(sms) : facts_of(device);
  const int architecture = facts_as(options.as).architecture;
  if (device.is_model) return model_facts(sms, architecture);
  DeviceFacts facts = facts_of(device);
  if (facts.architecture != architecture) {
    throw InputError("--as " + options.as + " asks for kernels of sm_" +
                     std::to_string(architecture) + ", and " + facts.name + " is sm_" +
                     std::to_string(facts.architecture) +
                     ": leave --as out, or give --device model.");
  }
  return facts;
}

GemmJob read_job(const GemmOptions& o) {
  GemmJob job;
  job.alpha = parse_scalar("alpha", o.alpha, 1.0F);
  job.beta = parse_scalar("beta", o.beta, 0.0F);
  if (!o.c.empty() && o.beta.empty()) {
    throw InputError("C is given but beta is not, and its default is 0: give --beta too.");
  }
  if (!o.cluster.empty()) {
    job.choices.cluster = atom::parse_cluster(o.cluster);
    if (!job.choices.cluster) {
      throw InputError("--cluster is \"" + o.cluster +
                       "\"; it is written M,N with two integers, for example 2,1.");
    }
    const std::string refusal = atom::cluster_refusal(*job.choices.cluster, o.pair.value_or(false));
    if (!refusal.empty()) throw InputError(refusal);
  }
  job.choices.tile_n = o.tile_n;
  job.choices.pair = o.pair;
  job.choices.tiles = parse_scheduler(o.scheduler);
  job.choices.accumulators = o.accumulators;
  std::optional<DType> operand;
  if (!o.dtype.empty()) operand = parse_operand(o.dtype);
  std::optional<DType> result;
  if (!o.d_dtype.empty()) result = parse_result(o.d_dtype);
  std::optional<TensorSpec> out;
  if (!o.out.empty()) out = parse_spec(o.out);
  const bool to_npy = out && out->kind == TensorSpec::Kind::npy;

  if (const auto extents = given_extents(o)) {
    if (!o.a.empty() || !o.b.empty() || !o.c.empty()) {
      throw InputError("Files and numbers do not go together: give --a and --b, or M, N and K.");
    }
    job.is_random = true;
    job.m = (*extents)[0];
    job.n = (*extents)[1];
    job.k = (*extents)[2];
  } else {
    read_files(o, job);
    if (!operand && job.a.dtype == job.b.dtype && job.a.dtype != DType::f32) operand = job.a.dtype;
  }
  job.operand = operand.value_or(DType::bf16);
  // No epilogue rounds to 8 bits.
  const DType own = numeric::bits(job.operand) == 8 ? DType::bf16 : job.operand;
  job.result = result.value_or(to_npy ? DType::f32 : own);
  if (to_npy && job.result == DType::bf16) {
    throw InputError("D as bf16 cannot be written to " + o.out +
                     ": .npy has no bf16; choose --d-dtype f32 or fp16, or --out "
                     "FILE.safetensors:NAME.");
  }
  return job;
}

Plan plan_job(const GemmJob& job, const DeviceFacts& facts) {
  GemmProblem problem = packed_problem(job.m, job.n, job.k, job.operand, job.result, job.reads_c());
  problem.reads_ab = job.alpha != 0.0F && job.k > 0;
  Result<Plan> result = plan(problem, facts, job.choices);
  if (!result) throw InputError(result.reason());
  return *result;
}

void load(GemmJob& job, std::uint64_t seed, std::ostream& err) {
  check_memory(job);
  if (job.is_random) {
    job.a = random_normal(job.operand, {job.m, job.k}, seed, kStreamA);
    job.b = random_normal(job.operand, {job.n, job.k}, seed, kStreamB);
    if (job.reads_c()) job.c = random_normal(job.result, {job.m, job.n}, seed, kStreamC);
    return;
  }
  round_to(job.a, job.operand, "A", err);
  round_to(job.b, job.operand, "B", err);
  if (job.reads_c()) round_to(job.c, job.result, "C", err);
}

GemmOperands operands_of(GemmJob& job, HostTensor& d) {
  const auto view = [](HostTensor& t) {
    return matrix(t.bytes.data(), t.dtype, t.shape[0], t.shape[1]);
  };
  GemmOperands operands;
  operands.a = view(job.a);
  operands.b = view(job.b);
  if (job.reads_c()) operands.c = view(job.c);
  operands.d = view(d);
  operands.alpha = job.alpha;
  operands.beta = job.beta;
  return operands;
}

GemmCheck check_of(const GemmJob& job, DType type, const void* codes) {
  GemmCheck problem;
  problem.m = job.m;
  problem.n = job.n;
  problem.k = job.k;
  problem.a = {job.a.dtype, job.a.bytes.data()};
  problem.b = {job.b.dtype, job.b.bytes.data()};
  if (job.reads_c()) problem.c = {job.c.dtype, job.c.bytes.data()};
  problem.d = {type, codes};
  problem.alpha = static_cast<double>(job.alpha);
  problem.beta = static_cast<double>(job.beta);
  return problem;
}

}  // namespace warpwright::cli
