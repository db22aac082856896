// `run`: names of devices, plans that are kept, and what is checked of a product that was seen.
#include <gmock/gmock.h>

#include <vector>

#include "tests/must.h"
#include "warpwright/numeric/scalar.h"
#include "warpwright/run.h"

namespace warpwright {
namespace {

using numeric::bf16_t;
using testing::HasSubstr;

// A product of ones, 16 x 32 times 24 x 32.
struct Ones {
  explicit Ones(std::int64_t rows = 16) : a(static_cast<std::size_t>(rows) * 32, bf16_t(1.0F)) {
    operands.a = matrix(a.data(), DType::bf16, rows, 32);
    operands.b = matrix(b.data(), DType::bf16, 24, 32);
    d.resize(static_cast<std::size_t>(rows) * 24);
    operands.d = matrix(d.data(), DType::f32, rows, 24);
  }
  std::vector<bf16_t> a;
  std::vector<bf16_t> b = std::vector<bf16_t>(std::size_t{24} * 32, bf16_t(1.0F));
  std::vector<float> d;
  GemmOperands operands;
};

TEST(Run, DevicesHaveNames) {
  const auto index = [](const char* name) { return device_index(name).value(); };
  EXPECT_EQ(index("model"), run_on_model);
  EXPECT_EQ(index("model:rtx5090"), run_on_model);
  EXPECT_EQ(index("cuda"), 0);
  EXPECT_EQ(index("cuda:17"), 17);  // whether it is there or not
  EXPECT_EQ(index("h200"), run_nowhere);
  EXPECT_EQ(index("auto"), device::cuda_devices().empty() ? run_on_model : 0);
  EXPECT_EQ(device_named("model:rtx5090")->facts.architecture, 120);
  EXPECT_TRUE(device_named("auto").ok());
  for (const char* name : {"", "cuda:", "cuda:-1", "cuda:1x", "model:", "model:model", "Model"}) {
    const auto refused = device_index(name);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.code(), RefusalCode::no_device);
    EXPECT_THAT(refused.reason(), HasSubstr("there is no device \"" + std::string(name) + "\""));
  }
}

TEST(Run, ADeviceToPlanForAloneHasNoMemory) {
  const auto refused = run_memory(*device_named("h200"), 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.reason(), HasSubstr("h200 is a device only to plan for"));
  EXPECT_TRUE(run_memory(*device_named("model"), 8).ok());
}

TEST(Run, AProductThatWasSeenIsCheckedAsAnyOther) {
  Ones first(16);
  std::shared_ptr<const Plan> made;
  ASSERT_FALSE(run(first.operands, {}, &made));
  ASSERT_NE(made, nullptr);
  const std::shared_ptr<const Plan> plan = made;
  Ones again(16);
  ASSERT_FALSE(run(again.operands, {}, &made));
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(again.d, std::vector<float>(again.d.size(), 32.0F));
  // Beside what the plan was made for, the memory of this call.
  again.operands.d.data = again.a.data();
  EXPECT_EQ(run(again.operands, {})->code, RefusalCode::overlap);
  again.operands.d.data = nullptr;
  EXPECT_EQ(run(again.operands, {})->code, RefusalCode::bad_pointer);
  // The caller's plan is held against the operands.
  const Ones longer(48);
  EXPECT_EQ(run(*plan, longer.operands, {})->code, RefusalCode::plan_mismatch);
  LaunchOptions checked;
  checked.check_offsets = true;
  EXPECT_EQ(run(first.operands, {.launch = checked})->code, RefusalCode::bad_value);
}

TEST(Run, MeasuresNothingOnTheModel) {
  Ones ones(16);
  RunOptions how;
  how.measure = 4;
  std::shared_ptr<const Plan> made;
  ASSERT_FALSE(run(ones.operands, how, &made));
  EXPECT_EQ(ones.d, std::vector<float>(ones.d.size(), 32.0F));
  const auto usual = run_plan(ones.operands, model_facts(), {});
  const auto asked = must(measured_plan(ones.operands, model_facts(), run_on_model, {}, 4));
  EXPECT_EQ(asked->reason, usual->reason);
  for (const int measure : {-1, most_measured + 1}) {
    how.measure = measure;
    const auto refused = must(run(ones.operands, how));
    EXPECT_EQ(refused->code, RefusalCode::bad_value);
    EXPECT_THAT(refused->reason, HasSubstr("0 to 256 plans are measured"));
    EXPECT_FALSE(measured_plan(ones.operands, model_facts(), run_on_model, {}, measure).ok());
  }
}

}  // namespace
}  // namespace warpwright
