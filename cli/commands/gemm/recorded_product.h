// A product that runs once with its timeline kept, for `trace` and for pictures.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/gemm/gemm_job.h"
#include "cli/commands/gemm/product.h"
#include "warpwright/facts/machine_numbers.h"
#include "warpwright/model/report/barrier_event.h"
#include "warpwright/model/report/trace.h"

namespace warpwright::cli {

/// How it is recorded.
struct RecordHow {
  std::optional<int> occupy_sm;  ///< an SM of the model that another grid holds
  bool barriers = false;         ///< keeps the events of mbarriers too
  double most_seconds = 0;       ///< refuses what the model would need longer for; 0: nothing
};

/// What came of it.
struct RecordedProduct {
  std::unique_ptr<Product> product;
  MachineNumbers machine;  ///< whose costs the model ran by
  model::Trace trace;
  std::vector<model::BarrierEvent> barriers;  ///< of the model, where asked for
  model::Report report;                       ///< of the model

  /// "hopper_bf16_bf16_128x128_c1x1 on h200".
  [[nodiscard]] std::string plan_on_device() const;
};

/// Refuses (InputError) a product without a tile, and one that the model needs longer for than
/// `most_seconds`, with the number of its events and what to shorten.
void check_drawable(const Product& product, double most_seconds);

/// Plans the product that `run` describes, draws its tensors and runs it on its device: on the
/// model by the clock of Mode::timed. `label` names the lines of progress on `err`. Throws
/// InputError or RunError; findings of the model are in the report.
RecordedProduct record_product(const GemmOptions& run, const RecordHow& how, const char* label,
                               std::ostream& err);

}  // namespace warpwright::cli
