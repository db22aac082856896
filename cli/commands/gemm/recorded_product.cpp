#include "cli/commands/gemm/recorded_product.h"

#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/model_time.h"
#include "warpwright/device/trace_cuda.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/machine_numbers.h"

namespace warpwright::cli {
namespace {

model::Trace trace_on_gpu(const Product& product, int index) {
  if (!device::built_with_trace()) {
    throw InputError("This build's kernels record no timeline; " +
                     as_rule("configure with -DWARPWRIGHT_CUDA=ON -DWARPWRIGHT_TRACE=ON, or trace "
                             "on the model: --device model") +
                     ".");
  }
  run_on_gpu(product, index);  // unrecorded: caches and clocks warm up
  const auto recording = device::CudaTrace::start(product.plan);
  if (!recording) throw RunError(recording.refusal());
  run_on_gpu(product, index);
  const Result<model::Trace> trace = (*recording)->finish();
  if (!trace) throw RunError(trace.refusal());
  return *trace;
}

// By whose costs the model runs: the file's, or those of the device that --as names.
MachineNumbers machine_of(const GemmOptions& run, const DeviceFacts& device) {
  if (!run.machine.empty() && !device.is_model) {
    throw InputError("--machine is of the model, and " + device.name + " has its own times: " +
                     as_rule("leave it out, or give --device model") + ".");
  }
  return numbers_of(device);
}

// The SM that another grid holds must be one of the model's, and not the last that is left.
void check_occupied(const RecordHow& how, const DeviceFacts& device) {
  if (!how.occupy_sm) return;
  const std::string what = "--occupy-sm is " + std::to_string(*how.occupy_sm);
  if (!device.is_model) {
    throw InputError(
        what + "; " +
        as_rule("only the model's SMs can be held: leave it out, or give --device model") + ".");
  }
  if (*how.occupy_sm < 0 || *how.occupy_sm >= device.sms) {
    throw InputError(what + "; " +
                     as_rule("the model has SMs 0 to ", std::to_string(device.sms - 1)) +
                     ": the nearest legal value is " +
                     as_nearest(std::to_string(*how.occupy_sm < 0 ? 0 : device.sms - 1)) + ".");
  }
}

}  // namespace

void check_drawable(const Product& product, double most_seconds) {
  const std::int64_t tiles = tiles_of(product.job, product.plan);
  if (tiles == 0) throw InputError("D has no element, so no kernel runs.");
  const double seconds = product.model_seconds();
  if (seconds <= most_seconds) return;
  const std::int64_t depth =
      product.plan.problem.reads_ab()
          ? (product.job.product.k() + product.plan.tile().k - 1) / product.plan.tile().k
          : 0;
  const std::int64_t events = tiles * (20 + 10 * depth);
  throw InputError(
      format("The run is too long to draw: %lld tiles of %lld k_tiles are some %lld events, "
             "roughly %.0f s on the model; ",
             static_cast<long long>(tiles), static_cast<long long>(depth),
             static_cast<long long>(events), seconds) +
      as_rule("give a smaller D or a smaller K") + ".");
}

std::string RecordedProduct::plan_on_device() const {
  return product->plan.name() + " on " + product->plan.device.name;
}

RecordedProduct record_product(const GemmOptions& run, const RecordHow& how, const char* label,
                               std::ostream& err) {
  const int index = parse_device(run.device);
  RecordedProduct recorded;
  recorded.product = std::make_unique<Product>(run, facts_of(run), err);
  Product& product = *recorded.product;
  const DeviceFacts& device = product.plan.device;
  check_occupied(how, device);
  recorded.machine = machine_of(run, device);
  check_memory(product.job);
  if (index == run_on_model) {
    if (how.most_seconds > 0) check_drawable(product, how.most_seconds);
    note_duration(err, label, product.model_seconds(), "smaller extents are faster");
  }
  product.load(run.seed, err);
  if (index != run_on_model) {
    recorded.trace = trace_on_gpu(product, index);
    return recorded;
  }
  device::ModelOptions options;
  options.mode = model::Mode::timed;
  options.trace = &recorded.trace;
  if (how.barriers) options.barrier_events = &recorded.barriers;
  options.machine = &recorded.machine;
  options.occupied_sm = how.occupy_sm.value_or(-1);
  recorded.report = run_with_checks(product, options, label, err);
  return recorded;
}

}  // namespace warpwright::cli
