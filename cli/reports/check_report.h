// What `check` found, and what it did not try: as text and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "warpwright/simulation/check.h"
#include "warpwright/simulation/coverage.h"

namespace warpwright::cli {

/// "pipeline/tma_pipeline.h:118", or nothing for a finding without a place.
std::string place(const model::Site& site);

/// A finding of `check --json`.
nlohmann::ordered_json checked_json(const device::CheckedFinding& finding);

/// The findings as text, a paragraph each.
void print_findings(const device::CheckReport& report, std::ostream& out);

/// "no findings", "1 finding", "3 findings".
std::string findings_text(std::size_t count);

/// What a check left out: statements that never ran, and ways of the kernel that the product does
/// not take.
struct Untried {
  device::Coverage coverage;
  std::vector<std::string> ways;
};

/// {"statements": N, "untried_statements": [...]}; null of a program that does not know them.
void add_json(const device::Coverage& coverage, nlohmann::ordered_json& json);

/// "3 of 41 synchronising statements (in Epilogue::load_c, ...); no C; no bias", or nothing where
/// all was tried. At most `most` functions are named.
std::string text(const Untried& untried, std::size_t most = 3);

/// "survived: mbarrier.arrive empty at kernel/a.h:176, ...": the sites of mutants that did.
std::string survivors_text(const device::MutationReport& report);

/// The mutants as a table, and the score.
void print_mutants(const device::MutationReport& report, bool json, std::ostream& out);

}  // namespace warpwright::cli
