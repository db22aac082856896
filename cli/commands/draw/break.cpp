#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/draw/drawn_run.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/check_command.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "cli/files/tensor_file.h"
#include "cli/reports/check_report.h"
#include "warpwright/pictures/broken_view.h"
#include "warpwright/simulation/recorded.h"

namespace warpwright::cli {
namespace {

struct BreakOptions : DrawnRun {
  std::string site;  // words of its text
  CheckCommandOptions check;
};

// Which mutants are wanted: by their place in the table of all, or by their site.
std::vector<int> wanted_numbers(const std::vector<model::Mutation>& all, const BreakOptions& o) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    const bool is_one =
        o.check.mutant ? number == *o.check.mutant : text(all[i]).find(o.site) != std::string::npos;
    if (is_one) numbers.push_back(number);
  }
  if (!numbers.empty()) return numbers;
  if (o.check.mutant) {
    throw InputError("--mutant is " + std::to_string(*o.check.mutant) + "; " +
                     as_rule("there are mutants 1 to ", std::to_string(all.size())) + ".");
  }
  std::string sites;
  std::string last;
  int count = 0;
  for (const model::Mutation& m : all) {
    if (text(m) == last) continue;
    last = text(m);
    if (++count <= 5) sites += (sites.empty() ? "" : "; ") + last;
  }
  throw InputError("--site \"" + o.site + "\": no site has these words; the " +
                   std::to_string(count) + " of this kernel begin with " + as_rule(sites) + ".");
}

const char* fate_text(device::Mutant::Fate fate) {
  return fate == device::Mutant::Fate::killed     ? "killed"
         : fate == device::Mutant::Fate::survived ? "survived"
                                                  : "equivalent";
}

pictures::MutantLine line_of(int number, const device::Mutant& m) {
  pictures::MutantLine line;
  line.number = number;
  line.how = m.mutation.how();
  line.site = m.site;
  line.fate = fate_text(m.fate);
  if (m.fate == device::Mutant::Fate::killed) {
    line.code = model::code(m.finding.check);
    line.schedule = m.by.text();
  }
  return line;
}

pictures::Picture draw_break_picture(BreakOptions& o, std::ostream& err) {
  const GemmOptions& run = *o.asked_product();
  if (o.check.mutant && !o.site.empty()) {
    throw InputError("--mutant and --site both choose: " + as_rule("leave one of them out") + ".");
  }
  if (parse_device(run.device) != run_on_model) {
    throw InputError("Only the model breaks kernels: " + as_rule("leave --device out") + ".");
  }
  device::CheckOptions options = check_options(run, o.check);
  options.fence_after_reads = false;  // `mutate` finds out under which reading
  Product product(run, facts_of(run), err);
  check_drawable(product, o.how.most_seconds);
  check_memory(product.job);
  note_checks(options, product.model_seconds(), true, err);
  product.load(run.seed, err, Draw::telling);
  options.right = judge_of(product);
  const auto subject = device::product_subject(product.plan, product.operands, options);

  const auto all = taken(device::mutants_of(*subject));
  if (all.empty()) {
    throw InputError("The kernel itself is not clean, so nothing is broken: see warpwright check.");
  }
  const std::vector<int> numbers = wanted_numbers(all, o);
  // Mutants of several kinds at one site have one text each with how they break it.
  std::size_t asked = 0;
  std::size_t next = 0;
  options.wanted = [&](const model::Mutation& /*mutation*/) {
    const int number = static_cast<int>(++asked);
    const bool is_next = next < numbers.size() && numbers[next] == number;
    if (is_next) ++next;
    return is_next;
  };
  const device::MutationReport report =
      taken(with_progress(err, "break", options,
                          [&subject](const auto& how) { return device::mutate(*subject, how); }));

  std::vector<pictures::View> views(report.mutants.size());
  std::vector<pictures::MutantLine> lines;
  for (std::size_t i = 0; i < report.mutants.size(); ++i) {
    lines.push_back(line_of(numbers[i], report.mutants[i]));
  }
  with_progress(err, "draw", options, [&](const auto& how) {
    device::record_mutants(
        *subject, report, how, [&](std::size_t at, const device::RecordedMutant& recorded) {
          views[at] = pictures::broken_view({lines[at],
                                             recorded.mutant.finding,
                                             {recorded.whole.trace, recorded.whole.barriers},
                                             {recorded.broken.trace, recorded.broken.barriers}});
        });
    return 0;
  });
  std::erase_if(views, [](const pictures::View& view) { return view.id.empty(); });
  views.insert(views.begin(), pictures::mutants_view(lines));
  views.front().caption += " The " + report.score() + ".";
  pictures::Picture picture;
  picture.title = product.title() + ", " + product.plan.name();
  picture.views = std::move(views);
  return picture;
}

}  // namespace

DrawKind add_draw_break(CLI::App& app) {
  CLI::App* kind = app.add_subcommand(
      "break",
      "mutants of a kernel: what a check finds, and where the run parts from the whole one");
  const auto o = std::make_shared<BreakOptions>();
  const Values add(*kind);
  add("--site", o->site, "WORDS",
      "only statements with these words, such as 'mbarrier.arrive full' or tma_pipeline.h:118 "
      "(default: all)");
  add("--mutant", o->check.mutant, "N", "only this row of check --mutate's table");
  add("--schedules", o->check.schedules, "N", "schedules to try (default 64)", whole(1, 1'000'000));
  add("--jobs", o->check.jobs, "J", "threads that share the work (default: those of the machine)");
  add_drawn_run(
      *kind, *o, {.lesson = false, .occupied = false},
      "  warpwright draw break gemm --random 128 128 128 --as h200 --site 'mbarrier.arrive "
      "empty' --svg break.svg\n"
      "  warpwright draw break gemm --random 128 128 128 --as h200 --mutant 3 --table");
  // A view a mutant: all of a kernel's are more than one page of another kind.
  return {kind, [o](std::ostream& err) { return draw_break_picture(*o, err); }, 4'000'000};
}

}  // namespace warpwright::cli
