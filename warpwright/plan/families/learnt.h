// What a product takes by measured times of others: its floor, corrected by what floors lacked of
// these.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warpwright/plan/cost/correction.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// The correction of all devices that have none of their own: that of the file which the
/// environment variable WARPWRIGHT_CORRECTION names at the first call, else this build's. A file
/// that is none is told of on stderr.
const Correction& built_correction();
/// The device's own one, or the built-in one.
const Correction& correction_of(const DeviceFacts& device);
/// The correction of a file; refuses with what is wrong, by line and word, without the file's name.
Result<Correction> read_correction(const std::string& path);

/// Seconds of what has this floor, or each of these.
double learnt_seconds(const Floor& floor, const Correction& correction);
std::vector<double> learnt_seconds(std::span<const Floor> floors, const Correction& correction);
/// Seconds of the plan on its device; nothing where no product of the kind was measured: where
/// there is no floor either.
std::optional<double> learnt_seconds(const Plan& plan);

/// "2048x2048x2048": M, N and K, as the correction names products.
std::string shape_text(const GemmProblem& problem);
/// Had products of this shape no part in the correction?
bool is_held_out(const GemmProblem& problem);

}  // namespace warpwright
