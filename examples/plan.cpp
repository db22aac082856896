// Only planning, with warpwright::warpwright and nothing else: neither Boost nor the machine
// model. Says which kernel an H200 would run for a product in groups, and that this program cannot
// run it.
#include <warpwright/warpwright.h>

#include <cstdio>

int main() {
  using warpwright::DType;
  const auto problem =
      warpwright::packed_grouped_problem(300, 2048, 4096, 8, DType::e4m3, DType::bf16);
  const auto plan = warpwright::plan(problem, *warpwright::known_facts("h200"));
  if (!plan) {
    std::printf("refused: %s\n", plan.reason().c_str());
    return 1;
  }
  std::printf("%s", plan->explain().c_str());
  const auto on_model = warpwright::plan(problem, warpwright::model_facts());
  if (!on_model) return 1;
  warpwright::Workspace none;
  const auto refused = warpwright::launch(*on_model, {}, none, nullptr);
  if (!refused || refused->code != warpwright::RefusalCode::no_device) return 1;
  std::printf("%s\n", refused->reason.c_str());
  return 0;
}
