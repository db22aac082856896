// The kernels on a GPU, on random shapes, types, strides, addresses and clusters, with every
// element checked and every byte around D watched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "cli/compute/check.h"
#include "cli/compute/random.h"
#include "warpwright/device/cuda.h"
#include "warpwright/plan/plan.h"

namespace warpwright::cli {
namespace {

constexpr std::byte kPoison{0xff};
constexpr int kShapes = 100;
constexpr const char* kNoDevice = "did not run: no CUDA device here";

std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

std::int64_t size_of(DType t) {
  return numeric::bits(t) / 8;
}

// A matrix in device memory whose rows lie apart, some bytes behind the start of its buffer.
class DeviceMatrix {
 public:
  DeviceMatrix() = default;

  // Everything of the buffer that is no element of `content` keeps the poison (NaN).
  DeviceMatrix(const HostTensor& content, std::int64_t pitch, std::int64_t offset)
      : DeviceMatrix(content.dtype, content.shape[0], content.shape[1], pitch, offset) {
    const std::int64_t row = columns_ * size_of(dtype_);
    for (std::int64_t i = 0; i < rows_; ++i) {
      std::memcpy(image_.data() + place(i), content.bytes.data() + i * row,
                  static_cast<std::size_t>(row));
    }
    send();
  }

  DeviceMatrix(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
               std::int64_t offset)
      : dtype_(dtype), rows_(rows), columns_(columns), pitch_(pitch), offset_(offset) {
    // A kilobyte behind it, so that what is stored too far lands in what is watched.
    image_.assign(static_cast<std::size_t>((offset + rows * pitch) * size_of(dtype) + 1024),
                  kPoison);
    const auto made = device::CudaBuffer::make(static_cast<std::int64_t>(image_.size()));
    if (!made) throw std::runtime_error(made.reason());
    buffer_ = *made;
    send();
  }

  [[nodiscard]] MatrixView view() const {
    MatrixView v = matrix(static_cast<std::byte*>(buffer_->data()) + offset_ * size_of(dtype_),
                          dtype_, rows_, columns_);
    v.row_stride = pitch_;
    return v;
  }

  // Copies the buffer back; the elements without their gaps, and in `touched` the number of bytes
  // outside them that are no longer what they were.
  HostTensor receive(std::int64_t& touched) {
    std::vector<std::byte> now(image_.size());
    if (const auto r = buffer_->to_host(now.data(), buffer_->bytes())) {
      throw std::runtime_error(r->reason);
    }
    HostTensor result{dtype_, {rows_, columns_}, {}};
    const std::int64_t row = columns_ * size_of(dtype_);
    result.bytes.resize(static_cast<std::size_t>(rows_ * row));
    for (std::int64_t i = 0; i < rows_; ++i) {
      std::memcpy(result.bytes.data() + i * row, now.data() + place(i),
                  static_cast<std::size_t>(row));
      std::memcpy(now.data() + place(i), image_.data() + place(i), static_cast<std::size_t>(row));
    }
    touched = 0;
    for (std::size_t i = 0; i < now.size(); ++i) touched += now[i] != image_[i] ? 1 : 0;
    return result;
  }

 private:
  [[nodiscard]] std::int64_t place(std::int64_t row) const {
    return (offset_ + row * pitch_) * size_of(dtype_);
  }
  void send() {
    if (const auto r = buffer_->from_host(image_.data(), buffer_->bytes())) {
      throw std::runtime_error(r->reason);
    }
  }

  DType dtype_ = DType::f32;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t pitch_ = 0;        // in elements
  std::int64_t offset_ = 0;       // in elements
  std::vector<std::byte> image_;  // what the buffer was filled with
  std::shared_ptr<device::CudaBuffer> buffer_;
};

struct Case {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_pitch = 0, b_pitch = 0, c_pitch = 0, d_pitch = 0;
  std::int64_t c_offset = 0, d_offset = 0;
  DType operand = DType::bf16;
  DType result = DType::bf16;
  float alpha = 1, beta = 0;
  atom::ClusterShape cluster;
  int tile_n = 256;
  bool in_place = false;  // C is D
  std::uint64_t seed = 0;

  [[nodiscard]] std::string text() const {
    std::ostringstream s;
    s << m << "x" << n << "x" << k << " " << numeric::name(operand) << " to "
      << numeric::name(result) << ", alpha " << alpha << ", beta " << beta << ", cluster "
      << cluster.m << "x" << cluster.n << ", tile_n " << tile_n << ", pitches A " << a_pitch
      << " B " << b_pitch << " C " << c_pitch << " D " << d_pitch << ", offsets C " << c_offset
      << " D " << d_offset << (in_place ? ", in place" : "") << ", seed " << seed;
    return s.str();
  }
};

Case random_case(int number, std::mt19937_64& random) {
  const auto below = [&random](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  constexpr atom::ClusterShape clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 4}};
  constexpr DType results[] = {DType::f32, DType::bf16, DType::f16};
  Case c;
  c.seed = random();
  // Every combination of cluster, types and tile comes round in 60 cases; the rest is drawn.
  c.cluster = clusters[number % 5];
  c.result = results[number / 5 % 3];
  c.operand = number / 15 % 2 == 0 ? DType::bf16 : DType::f16;
  c.tile_n = number / 30 % 2 == 0 ? 256 : 128;
  c.m = 1 + below(number % 4 == 0 ? 3000 : 700);
  c.n = 1 + below(number % 4 == 1 ? 3000 : 700);
  c.k = 1 + below(number % 4 == 2 ? 5000 : 600);
  if (number % 3 != 0) {
    c.m |= 1;
    c.n |= 1;
  }
  // A third has rows without gaps, whose K must then be a multiple of 8; the others have K tails
  // of any length and NaN between their rows.
  if (number % 3 == 0) {
    c.k = round_up(c.k, 8);
    c.n = round_up(c.n, 8);  // rows of D that end at 16 bytes: the copy engine may store them
  }
  c.a_pitch = round_up(c.k, 8) + (number % 3 == 0 ? 0 : 8 * below(4));
  c.b_pitch = round_up(c.k, 8) + (number % 3 == 0 ? 0 : 8 * below(4));
  // C and D: whole 16 bytes (the copy engine's path) or any pitch and address.
  const std::int64_t vector = 16 / size_of(c.result);
  const auto layout = [&](std::int64_t& pitch, std::int64_t& offset) {
    const bool whole = below(2) == 0 || number % 6 == 0;
    pitch = whole ? round_up(c.n, vector) + vector * below(3) : c.n + below(20);
    offset = whole ? vector * below(3) : below(3 * vector);
  };
  layout(c.d_pitch, c.d_offset);
  layout(c.c_pitch, c.c_offset);
  if (below(2) == 0) c.alpha = static_cast<float>(below(17) - 8) / 4;
  if (below(2) == 0) c.beta = static_cast<float>(below(17) - 8) / 4;
  c.in_place = c.beta != 0 && below(4) == 0;
  return c;
}

enum class Outcome { right, wrong, not_launchable };

Outcome run_case(const Case& c, const DeviceFacts& facts, bool& copy_engine) {
  SCOPED_TRACE(c.text());
  const HostTensor a = random_normal(c.operand, {c.m, c.k}, c.seed, 1);
  const HostTensor b = random_normal(c.operand, {c.n, c.k}, c.seed, 2);
  const HostTensor previous = random_normal(c.result, {c.m, c.n}, c.seed, 3);
  const DeviceMatrix there_a(a, c.a_pitch, 0);
  const DeviceMatrix there_b(b, c.b_pitch, 0);
  const bool reads_c = c.beta != 0;
  DeviceMatrix there_c;
  DeviceMatrix there_d = c.in_place ? DeviceMatrix(previous, c.d_pitch, c.d_offset)
                                    : DeviceMatrix(c.result, c.m, c.n, c.d_pitch, c.d_offset);
  if (reads_c && !c.in_place) there_c = DeviceMatrix(previous, c.c_pitch, c.c_offset);

  GemmOperands operands;
  operands.a = there_a.view();
  operands.b = there_b.view();
  operands.d = there_d.view();
  if (reads_c) operands.c = c.in_place ? operands.d : there_c.view();
  operands.alpha = c.alpha;
  operands.beta = c.beta;
  PlanChoices choices;
  choices.cluster = c.cluster;
  choices.tile_m = 128;
  choices.tile_n = c.tile_n;
  choices.swapped = false;
  choices.schedule = c.tile_n == 128 ? kernel::Schedule::pingpong : kernel::Schedule::cooperative;
  const Result<Plan> made = plan(operands, facts, choices);
  if (!made) {
    ADD_FAILURE() << "no plan: " << made.reason();
    return Outcome::wrong;
  }
  copy_engine = made->d_path == EpiloguePath::copy_engine;
  auto workspace = Workspace::make(*made);
  if (!workspace) {
    ADD_FAILURE() << workspace.reason();
    return Outcome::wrong;
  }
  if (const auto refusal = launch(*made, operands, *workspace, nullptr)) {
    // A GPU need not have 16 free SMs in one GPC; smaller clusters always go.
    if (atom::cluster_size(c.cluster) > atom::kPortableClusterSize) return Outcome::not_launchable;
    ADD_FAILURE() << refusal->reason;
    return Outcome::wrong;
  }
  if (const auto failure = device::synchronise_cuda()) {
    ADD_FAILURE() << failure->reason;
    return Outcome::wrong;
  }
  std::int64_t touched = 0;
  const HostTensor d = there_d.receive(touched);
  EXPECT_EQ(touched, 0) << "bytes outside D's elements were written";

  GemmCheck problem;
  problem.m = c.m;
  problem.n = c.n;
  problem.k = c.k;
  problem.a = {c.operand, a.bytes.data()};
  problem.b = {c.operand, b.bytes.data()};
  if (reads_c) problem.c = {c.result, previous.bytes.data()};
  problem.d = {c.result, d.bytes.data()};
  problem.alpha = static_cast<double>(c.alpha);
  problem.beta = static_cast<double>(c.beta);
  const CheckResult found = check_gemm(problem);
  EXPECT_TRUE(found.passed) << describe(found);
  return found.passed && touched == 0 ? Outcome::right : Outcome::wrong;
}

// The seed of this run: WARPWRIGHT_TEST_SEED, or 1.
std::uint64_t test_seed() {
  const char* text = std::getenv("WARPWRIGHT_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

TEST(GemmOnGpu, RandomShapes) {
  const std::vector<DeviceFacts> devices = device::cuda_devices();
  if (devices.empty()) GTEST_SKIP() << kNoDevice;
  ASSERT_FALSE(device::use_cuda_device(0));
  const std::uint64_t seed = test_seed();
  std::cout << "seed " << seed << " (WARPWRIGHT_TEST_SEED)\n";
  std::mt19937_64 random(seed);
  int right = 0;
  int not_launchable = 0;
  int by_copy_engine = 0;
  for (int i = 0; i < kShapes; ++i) {
    bool copy_engine = false;
    const Case c = random_case(i, random);
    const Outcome outcome = run_case(c, devices.front(), copy_engine);
    right += outcome == Outcome::right ? 1 : 0;
    not_launchable += outcome == Outcome::not_launchable ? 1 : 0;
    by_copy_engine += copy_engine ? 1 : 0;
    if (outcome == Outcome::wrong) {
      std::cout << "wrong: case " << i << ": " << c.text() << "\n";
      // A kernel that failed takes the context with it: what follows would fail for that alone.
      if (device::synchronise_cuda()) break;
    }
  }
  std::cout << right << " of " << kShapes << " right, " << by_copy_engine
            << " stored by the copy engine, " << not_launchable
            << " of cluster 4x4 that this GPU does not launch\n";
  EXPECT_EQ(right + not_launchable, kShapes);
  EXPECT_GT(by_copy_engine, kShapes / 10);
  EXPECT_LT(by_copy_engine, kShapes - kShapes / 10);
}

TEST(GemmOnGpu, ScalesWithoutAProduct) {
  const std::vector<DeviceFacts> devices = device::cuda_devices();
  if (devices.empty()) GTEST_SKIP() << kNoDevice;
  ASSERT_FALSE(device::use_cuda_device(0));
  for (const float alpha : {0.0F, 1.0F}) {
    for (const float beta : {0.0F, -0.5F}) {
      Case c;
      c.m = 137;
      c.n = 201;
      c.k = alpha == 0.0F ? 64 : 0;  // either way nothing is multiplied
      c.a_pitch = c.b_pitch = c.k;
      c.c_pitch = c.d_pitch = c.n;
      c.result = DType::f32;
      c.alpha = alpha;
      c.beta = beta;
      c.cluster = {1, 1};
      bool copy_engine = false;
      EXPECT_EQ(run_case(c, devices.front(), copy_engine), Outcome::right) << c.text();
    }
  }
}

}  // namespace
}  // namespace warpwright::cli
