// What the bench makes on the GPU beside the products: random operands, pauses and marks. (What is
// right says reference/cuda.h.) Everything is enqueued on a stream; pointers are device pointers.
// Internal to bench/: failures are exceptions here, and become refusals at its border.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "warpwright/device/cuda.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::bench {

/// A failure of the runtime or a refusal on the way.
struct Failure {
  std::string sentence;
};

/// Throws a Failure where there is one.
void require(cudaError_t error, const char* what);
void require(const std::optional<Refusal>& refusal);
template <class T>
T require(const Result<T>& result) {
  if (!result) throw Failure{result.reason()};
  return *result;
}

/// Device memory of the current device, every byte `value`.
std::shared_ptr<device::CudaBuffer> filled_memory(std::int64_t bytes, int value = 0xff);

/// Fills `count` elements of `dtype` (f32, bf16, f16, e4m3 or e5m2) with normal values of mean 0
/// and variance 1. Element i is a function only of seed, stream and i.
void fill_normal(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                 std::uint64_t stream, cudaStream_t on);

/// Fills `count` elements of `dtype` with positive values between 1/2 and 2, evenly on a
/// logarithmic scale; or so many `times` that.
void fill_scales(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                 std::uint64_t stream, cudaStream_t on, float times = 1);

/// Fills `count` codes of int4 weights, two a byte, with what normal weights have in groups of 128,
/// but none below `least`.
void fill_codes(std::uint8_t* codes, std::int64_t count, int least, std::uint64_t seed,
                std::uint64_t stream, cudaStream_t on);

/// What `count` codes stand for: those of each `group` of them times its scale.
void int4_values(const std::uint8_t* codes, const void* scales, DType scale, int group,
                 std::int64_t count, float* values, cudaStream_t on);

/// Fills the tiles of packed e2m1 weights with random codes and scales around 1/16, and `values`,
/// [experts, N, K], with what they stand for.
void fill_e2m1(const PackedFormat& format, const packed::Extents& extents, void* tiles,
               float* values, std::uint64_t seed, std::uint64_t stream, cudaStream_t on);

/// Copies a matrix of floats (no batch) to `to`, where neighbours along its rows' index lie next to
/// each other and columns are `pitch` apart.
void relay_column_major(const MatrixView& from, float* to, std::int64_t pitch, cudaStream_t on);

/// Keeps the GPU waiting for some time, so that the host can enqueue what comes behind it.
void delay(double seconds, cudaStream_t on);

/// Marks in a profiler's list of kernels what comes behind it: a launch of kMarkKernel whose grid
/// has `number` CTAs.
void mark(int number, cudaStream_t on);

/// Elements from the first to behind the last one of a view; 0 when it is empty.
std::int64_t span_elements(const MatrixView& view);
/// The bytes they take.
std::int64_t span_bytes(const MatrixView& view);

}  // namespace warpwright::bench
