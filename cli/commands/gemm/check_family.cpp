#include "cli/commands/gemm/check_family.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/gemm/check_command.h"
#include "cli/commands/gemm/check_members.h"
#include "cli/commands/gemm/companions.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm/groups.h"

namespace warpwright::cli {
namespace {

Member member_of(std::string what, const GemmOptions& options, std::shared_ptr<Product> product) {
  device::CheckOptions how;
  how.right = judge_of(*product);
  how.check_offsets = options.check_offsets;
  how.zero_rest = options.zero_rest;
  Member m{.what = std::move(what),
           .command = options.is_grouped ? "grouped" : "gemm",
           .arguments = arguments_text(options),
           .plan = product->plan.name(),
           .seconds = product->model_seconds(),
           .job = product,
           .subject = device::product_subject(product->plan, product->operands, how)};
  return m;
}

// The first of these arguments that are a product of the kernel, planned and with its tensors.
std::shared_ptr<Product> made_of(const std::vector<GemmOptions>& tries, GemmOptions& options) {
  std::ostringstream silent;
  for (const GemmOptions& o : tries) {
    try {
      auto product = std::make_shared<Product>(o, facts_of(o), silent);
      product->load(o.seed, silent, Draw::telling);
      options = o;
      return product;
    } catch (const InputError&) {  // the kernel does not take this one
    }
  }
  return nullptr;
}

// All that the kernel takes of them, and the names of those that it does not.
Family family_of(const GemmOptions& given, std::ostream& err) {
  auto first = std::make_shared<Product>(given, facts_of(given), err);
  const Plan& plan = first->plan;
  if (plan.kernel.empty()) {
    throw InputError("--family is given, and " + as_tensor("D") +
                     " has no element, so that no kernel runs: " + as_rule("leave it out") + ".");
  }
  first->load(given.seed, err, Draw::telling);
  GemmOptions options = given;
  options.kernel = plan.kernel;
  Family all{.name = plan.kernel, .noun = "product", .members = {}, .refused = {}, .coverage = {}};
  all.coverage = [first](const auto& ran) { return device::coverage(first->plan, ran); };
  all.members.push_back(member_of("as given", options, first));
  for (Companion& companion : companions_of(given, plan)) {
    if (auto product = made_of(companion.options, options); product == nullptr) {
      all.refused.push_back(companion.what);
    } else {
      all.members.push_back(member_of(companion.what, options, std::move(product)));
    }
  }
  return all;
}

}  // namespace

int check_family(const GemmOptions& given, const device::CheckOptions& options, bool mutate,
                 bool json, std::ostream& out, std::ostream& err) {
  if (!given.a.empty() || !given.b.empty()) {
    throw InputError("--family draws the tensors of all its products, and " + as_tensor("A") +
                     " is of a file: " +
                     as_rule(given.is_grouped ? "give --groups instead" : "give --random instead") +
                     ".");
  }
  return check_members(family_of(given, err), options, mutate, json, out, err);
}

}  // namespace warpwright::cli
