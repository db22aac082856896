// Lesson 8: warps with roles.
//
// The kernel is examples/own_kernel/linear_relu.h: Y = relu(X * W^T + bias). One warp produces,
// four multiply, and a ring of three stages lies between them. Nobody does both, so the loads run
// as far ahead as the ring is long, and the protocol is declared, not counted: TmaPipelineShape
// says who takes part, and arrivals, bytes and first parities follow (deck pages 9 and 20 to 22).
#pragma once

#include "lessons/lesson.h"
#include "own_kernel/linear_relu.h"

namespace lessons::warp_specialised {

template <bool Broken>
using Kernel = own::LinearRelu<Broken ? own::Slip::early_release : own::Slip::none>;

inline testing::Outcome run(const Ask& ask) {
  constexpr int m = 64, n = 64, k = 512;
  Buffer<bf16_t> x("x", m * k, Access::input), w("w", n * k, Access::input), y("y", m * n);
  Buffer<float> bias("bias", n, Access::input);
  for (int i = 0; i < m * k; ++i) x[i] = bf16_t(float(i % 7 - 3));
  for (int i = 0; i < n * k; ++i) w[i] = bf16_t(float(i % 5 - 2));
  for (int i = 0; i < n; ++i) bias[i] = float(i % 9 - 4);
  const auto map = [](Buffer<bf16_t>& of, int rows, int columns) {
    return testing::tensor_map(of, {.rows = rows,
                                    .columns = columns,
                                    .box_rows = 64,
                                    .box_columns = 64,
                                    .swizzle = atom::SmemSwizzle::b128});
  };
  const own::LinearParams p{
      .x = map(x, m, k), .w = map(w, n, k), .y = map(y, m, n), .bias = bias.data(), .n = n, .k = k};
  std::vector<float> want;
  for (int i = 0; i < m * n; ++i) {
    int sum = i % n % 9 - 4;
    for (int l = 0; l < k; ++l) sum += ((i / n * k + l) % 7 - 3) * ((i % n * k + l) % 5 - 2);
    want.push_back(float(bf16_t(float(std::max(sum, 0)))));
  }
  const auto wrong = [&]() -> std::string {
    for (int i = 0; i < m * n; ++i) {
      if (float(y[i]) != want[i]) return "an element of y is wrong";
    }
    return "";
  };
  const Launch launch{.threads = Kernel<false>::threads,
                      .shared_bytes = Kernel<false>::shared_bytes,
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = wrong};
  return testing::run(
      [&] {
        if (ask.broken) return Kernel<true>::run(p);
        Kernel<false>::run(p);
      },
      launch, x, w, bias, y);
}

inline constexpr Lesson lesson{
    .number = 8,
    .name = "warp_specialised",
    .title = "Warps with roles: producer and consumers",
    .question = "When does a consumer give a stage back?",
    .answer = "Behind the wait for the wgmmas that read it: issued is not read.",
    .broken = "the stage is released as soon as its wgmmas are issued",
    .finding = Check::in_flight_access,
    .line = "isa::tensor_load(x",
    .pages = "deck 9, 20 to 22",
    .picture = Picture::timeline,
    .run = run,
};

}  // namespace lessons::warp_specialised
