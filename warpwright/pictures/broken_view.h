// Mutants of a kernel: what a check finds where a statement is broken, and where the run parts from
// the unbroken one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "warpwright/model/report/report.h"
#include "warpwright/pictures/parting.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// A mutant in a word, for the view of all.
struct MutantLine {
  int number = 0;    ///< row of `check --mutate`
  std::string how;   ///< "dropped"
  std::string site;  ///< "mbarrier.arrive full at pipeline/tma_pipeline.h:118"
  std::string fate;  ///< "killed", "survived", "equivalent"
  std::string code;  ///< of the finding: "D1"; empty of one that lives
  std::string schedule;
};

/// A killed mutant.
struct BrokenStatement {
  MutantLine line;
  const model::Finding& finding;
  KeptRun whole;
  KeptRun broken;
};

/// The view "mutants": the sites, and beside each a box a mutant with what finds it. Boxes of
/// killed ones lead to their views. The table has a row a mutant.
View mutants_view(const std::vector<MutantLine>& mutants);

/// The id of a mutant's view: "m12".
std::string mutant_id(int number);

/// The view of a killed mutant: the roles of the CTA in which the runs part, unbroken above broken,
/// around that time, and what each does there. The table has what happens, side by side.
View broken_view(const BrokenStatement& statement);

}  // namespace warpwright::pictures
