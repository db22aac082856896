// Every kernel on the model, on products small enough for a reference in double precision.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

#include "tests/campaign.h"
#include "tests/kernel/variant_sets.h"
#include "warpwright/device/model.h"

namespace warpwright::tests {
namespace {

struct Job {
  VariantCase what;
  model::Mode mode = model::Mode::latest;
};

std::vector<Job> jobs_of(const std::vector<VariantCase>& cases,
                         model::Mode mode = model::Mode::latest) {
  std::vector<Job> jobs;
  jobs.reserve(cases.size());
  for (const VariantCase& c : cases) jobs.push_back({c, mode});
  return jobs;
}

// What is wrong with the product by that kernel; empty when nothing is.
std::string fault(const Job& job) {
  const Variant variant(job.what.instance, job.what.ask);
  const GemmOperands operands = variant.operands();
  const auto made = plan(operands, model_facts(variant.sms()), variant.choices());
  if (!made) return made.reason();
  device::ModelOptions options;
  options.mode = job.mode;
  options.seed = job.what.ask.seed;
  const auto report = device::launch_on_model(*made, operands, options);
  if (!report) return report.reason();
  return report->clean() ? variant.fault() : report->text();
}

// All jobs, shared by some threads.
void expect_right(const std::vector<Job>& jobs) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      const std::string said = fault(jobs[i]);
      const std::lock_guard lock(mutex);
      const VariantCase& c = jobs[i].what;
      EXPECT_EQ(said, "") << c.instance.name << ", " << text(c.ask);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
}

TEST(Variants, EveryInstanceMultiplies) {
  expect_right(jobs_of(plain_cases()));
}

TEST(Variants, ClustersBatchesAndScales) {
  expect_right(jobs_of(sampled(cluster_cases(), 5)));
}

TEST(Variants, BatchesThatShareTheirMatrices) {
  expect_right(jobs_of(sampled(shared_cases(), 4, 1)));
}

TEST(Variants, WithoutAProduct) {
  expect_right(jobs_of(sampled(empty_cases(), 8)));
}

TEST(Variants, EpiloguesOnOddShapes) {
  expect_right(jobs_of(sampled(epilogue_cases(), 4, 2)));
}

TEST(Variants, RandomSchedules) {
  std::vector<Job> jobs;
  for (const Instance& i : instances()) {
    for (const model::Mode mode : {model::Mode::eager, model::Mode::random}) {
      Ask ask = extents(i.config, 1, mode == model::Mode::eager ? 201 : 202);
      ask.k = kernel::tile_k(i.config) * 4;
      jobs.push_back({{i, ask}, mode});
    }
  }
  expect_right(sampled(jobs, 7));  // both modes, and other kernels than the other tests
}

// C is D: no CTA of a cluster that shares a tile reads what another one stores. Found by problems
// by seed.
TEST(Variants, InPlaceWhereCtasShareATile) {
  std::vector<Job> jobs;
  for (const Instance& i : all_with([](const kernel::GemmConfig& c) {
         return shares_cluster_k(c) && !c.gated && numeric::bits(c.result) > 8;
       })) {
    for (const int padding : {0, 3}) {
      Ask ask = extents(i.config, 0, 301);
      ask.k = kernel::tile_k(i.config) * 4;
      ask.beta = 1;
      ask.in_place = true;
      ask.padding = padding;
      jobs.push_back({{i, ask}, model::Mode::latest});
    }
  }
  expect_right(sampled(jobs, 3));
}

// The comparison itself can fail: one wrong element, one element left out, one byte beside them.
TEST(Variants, WrongResultsAreSeen) {
  Ask ask = extents(instances().front().config, 0, 7);
  ask.k = 40;
  ask.n = 20;
  Variant variant(instances().front(), ask);
  const GemmOperands operands = variant.operands();
  const auto made = plan(operands, model_facts(2), variant.choices());
  ASSERT_TRUE(made) << made.reason();
  EXPECT_NE(variant.fault().find("D[0, 0, 0] is"), std::string::npos) << "D is still empty";
  ASSERT_TRUE(device::launch_on_model(*made, operands));
  ASSERT_EQ(variant.fault(), "");
  const double right = variant.d().get(0, 3, 11);
  variant.d().set(0, 3, 11, right + 0.125);
  EXPECT_NE(variant.fault().find("D[0, 3, 11] is"), std::string::npos);
  variant.d().set(0, 3, 11, right);
  ASSERT_EQ(variant.fault(), "");
  variant.d().memory()[255] = std::byte{0};
  EXPECT_EQ(variant.fault(), "1 bytes beside the elements of D were written");
}

}  // namespace
}  // namespace warpwright::tests
