// What a check runs: a launch with results of its own. Internal to simulation/.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "warpwright/simulation/check.h"
#include "warpwright/simulation/model.h"

namespace warpwright::device {

/// The subject of one OS thread: its results are its own.
class Trial {
 public:
  Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  virtual ~Trial() = default;

  /// One run from fresh results.
  virtual Result<model::Report> run(ModelOptions options) = 0;

  static constexpr int most_results = 2;
  [[nodiscard]] virtual int results() const = 0;
  /// What a finding calls a result, and what it is to be.
  struct ResultName {
    const char* name;
    const char* of;
  };
  [[nodiscard]] virtual ResultName name(int which) const = 0;
  [[nodiscard]] virtual std::vector<std::byte> content(int which) const = 0;
  /// What the caller says of it; nothing where it left that open.
  [[nodiscard]] virtual std::optional<Judged> is_right(int which) const = 0;
  /// Does the caller say something of the first?
  [[nodiscard]] virtual bool is_judged() const = 0;
};

}  // namespace warpwright::device
