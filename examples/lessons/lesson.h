// What the lessons have in common: what a lesson is, and the matrices that its kernel multiplies.
//
// A lesson is a small kernel on isa/, atom/ and pipeline/, the same lines for a GPU and for the
// machine model. It has one question, one picture, and a broken twin: the same source with a
// constant `Broken` that takes one thing away, and what the model finds then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <warpwright/atom/descriptor.h>
#include <warpwright/atom/wgmma.h>
#include <warpwright/isa/barrier.h>
#include <warpwright/isa/fence.h>
#include <warpwright/isa/mbarrier.h>
#include <warpwright/isa/memory.h>
#include <warpwright/isa/numeric.h>
#include <warpwright/isa/thread.h>
#include <warpwright/isa/tma.h>
#include <warpwright/isa/trace.h>
#include <warpwright/isa/warp.h>
#include <warpwright/isa/wgmma.h>
#include <warpwright/layout/layout.h>
#include <warpwright/model/schedules.h>
#include <warpwright/numeric/scalar.h>
#include <warpwright/pipeline/pipeline_state.h>

namespace lessons {

namespace atom = warpwright::atom;
namespace isa = warpwright::isa;
namespace layout = warpwright::layout;
namespace numeric = warpwright::numeric;
namespace pipeline = warpwright::pipeline;
namespace testing = warpwright::model::testing;
using isa::Coords;
using isa::Scope;
using isa::SharedAddress;
using numeric::bf16_t;
using testing::Access;
using testing::Buffer;
using testing::Launch;
using warpwright::DType;
using warpwright::model::Check;

/// How a lesson is run.
struct Ask {
  bool broken = false;
  int stages = 0;      ///< of its ring, where the lesson leaves that open; 0: as the lesson has it
  int in_flight = -1;  ///< groups of MMAs that stay in flight, likewise
  testing::Schedules schedules = {};
  testing::Recording* recording = nullptr;
  const warpwright::MachineNumbers* machine = nullptr;  ///< what the clock's schedule costs
};

/// A grid of cells, each with a word and a colour: a picture of a layout.
struct Cells {
  std::string title;
  int rows = 0;
  int columns = 0;
  std::function<std::string(int row, int column)> word;
  std::function<int(int row, int column)> colour;  ///< 0 to 7
};

/// What a lesson's picture shows of a run.
enum class Picture : std::uint8_t {
  cells,     ///< `Lesson::cells`, without a run
  barriers,  ///< the mbarriers, event by event
  timeline,  ///< roles, TMA and tensor core on one axis
  grid,      ///< which SM works on which tile
};

struct Lesson {
  int number = 0;
  std::string_view name;  ///< of its file, without the number
  std::string_view title;
  std::string_view question;
  std::string_view answer;  ///< what one sees
  std::string_view broken;  ///< what the broken twin leaves out
  Check finding;            ///< what is found then
  std::string_view line;    ///< words of the source line that the finding names; empty: none
  std::string_view pages;   ///< where the seeds teach it
  Picture picture = Picture::timeline;
  testing::Outcome (*run)(const Ask&) = nullptr;
  std::vector<Cells> (*cells)() = nullptr;
  int stages = 0;        ///< the most stages that --stages takes; 0: the lesson has no such knob
  int in_flight = 0;     ///< the most that --in-flight takes, likewise
  int occupied_sm = -1;  ///< for Picture::grid: the SM that another grid holds
};

/// All of them, in their order.
const std::vector<Lesson>& all();

/// D[m x n] = A[m x k] * B[n x k]^T of small whole numbers, whose sums are exact in every order.
template <class T>
struct Product {
  int m, n, k;
  Buffer<T> a{"A", std::size_t(m) * k, Access::input};
  Buffer<T> b{"B", std::size_t(n) * k, Access::input};
  Buffer<float> d{"D", std::size_t(m) * n};

  Product(int rows, int columns, int depth) : m(rows), n(columns), k(depth) {
    for (int i = 0; i < m * k; ++i) a[i] = T(float(i % 7 - 3));
    for (int i = 0; i < n * k; ++i) b[i] = T(float(i % 5 - 2));
    for (int i = 0; i < m * n; ++i) {
      int sum = 0;
      for (int l = 0; l < k; ++l) sum += ((i / n * k + l) % 7 - 3) * ((i % n * k + l) % 5 - 2);
      want_.push_back(float(sum));
    }
  }

  /// The map of A or B in boxes of `rows` x one span of 128 bytes, swizzled.
  isa::TensorMap map_a(int rows) { return map(a, m, rows); }
  isa::TensorMap map_b(int rows) { return map(b, n, rows); }

  /// What is wrong with D first; empty when it is right.
  std::string wrong() {
    for (int i = 0; i < m * n; ++i) {
      if (d[i] == want_[i]) continue;
      return "D[" + std::to_string(i / n) + "," + std::to_string(i % n) + "] is " +
             std::to_string(d[i]) + ", not " + std::to_string(want_[i]);
    }
    return "";
  }

  template <class Kernel>
  testing::Outcome run(const Kernel& kernel, Launch launch, const Ask& ask) {
    launch.schedules = ask.schedules;
    launch.recording = ask.recording;
    launch.machine = ask.machine;
    launch.verify = [this] { return wrong(); };
    return testing::run(kernel, launch, a, b, d);
  }

 private:
  isa::TensorMap map(Buffer<T>& tensor, int rows, int box) {
    return testing::tensor_map(tensor, {.rows = rows,
                                        .columns = k,
                                        .box_rows = box,
                                        .box_columns = 128 / int(sizeof(T)),
                                        .swizzle = atom::SmemSwizzle::b128});
  }

  std::vector<float> want_;
};

/// A k_tile of an operand: 64 rows of 64 bf16, a row a span of 128 bytes.
inline constexpr atom::OperandTile tile64{64, 64, 16, atom::Major::k, atom::SmemSwizzle::b128};
inline constexpr int tile_bytes = atom::tile_bytes(tile64);  // 8 KiB

/// Starts the four wgmmas of one k_tile: sum += A * B^T of tiles at `a` and `b`.
WW_DEVICE void multiply_tile(isa::Fragment<float, 32>& sum, SharedAddress a, SharedAddress b,
                             bool accumulate, isa::Site site = isa::Site::sync()) {
  constexpr atom::OperandTile tile = tile64;  // (device code has no address of the other)
  const std::uint64_t of_a = atom::encode(atom::descriptor(tile, a));
  const std::uint64_t of_b = atom::encode(atom::descriptor(tile, b));
  isa::wgmma_fence(sum, site);
  for (int k_block = 0; k_block < 4; ++k_block) {
    isa::wgmma<DType::bf16, 64>(sum, atom::advance(of_a, 32U * k_block),
                                atom::advance(of_b, 32U * k_block), accumulate || k_block > 0,
                                site);
  }
  isa::wgmma_commit(site);
}

/// The thread's values of a 64 x 64 tile to rows of `pitch` floats.
WW_DEVICE void store_tile(isa::Fragment<float, 32>& sum, float* d, int pitch,
                          isa::Site site = isa::Site::here()) {
  const isa::GlobalView<float> to{d};
  const int thread = isa::thread_index() % 128;
  for (int i = 0; i < 32; ++i) {
    to.store(atom::c_row(thread, i) * pitch + atom::c_col(thread, i), sum[i], site);
  }
}

}  // namespace lessons
