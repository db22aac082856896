// Asks the GPU: runs every probe, or those that are named, prints what it saw and compares it with
// what an H200 answered. With `--record` it prints the answers as h200.h keeps them. A probe that
// does not come back in 15 seconds hangs.
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/probes/h200.h"
#include "tests/probes/probes.h"

namespace warpwright::probes {
namespace {

__global__ void __launch_bounds__(threads) kernel(const __grid_constant__ Input in) {
  body(in);
}

bool ok(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return false;
}

CUtensorMapSwizzle swizzle_of(atom::SmemSwizzle s) {
  switch (s) {
    case atom::SmemSwizzle::b32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case atom::SmemSwizzle::b64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case atom::SmemSwizzle::b128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

CUtensorMapDataType type_of(DType t) {
  if (t == DType::f32) return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  return t == DType::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

bool encode(const Copy& c, void* base, isa::TensorMap& map) {
  void* pointer = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (!ok(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &pointer, 12000,
                                           cudaEnableDefault, &found),
          "cuTensorMapEncodeTiled")) {
    return false;
  }
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(c.columns),
                                static_cast<cuuint64_t>(c.rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(c.pitch * (c.type == DType::f32 ? 4 : 2))};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(c.box_columns),
                            static_cast<cuuint32_t>(c.box_rows)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap encoded;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(pointer)(
      &encoded, type_of(c.type), 2, base, extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(c.swizzle), CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  std::memcpy(map.opaque, &encoded, sizeof map.opaque);
  if (result != CUDA_SUCCESS) std::fprintf(stderr, "tensor map: %d\n", static_cast<int>(result));
  return result == CUDA_SUCCESS;
}

bool ask(const Probe& p, std::uint32_t* tensor, std::uint32_t* out,
         std::vector<std::uint32_t>& answer) {
  std::vector<std::uint32_t> before(tensor_words);
  for (int i = 0; i < tensor_words; ++i) before[i] = tensor_word(p, i);
  Input in{};
  in.copy = p.copy;
  in.kind = p.kind;
  in.words = p.words;
  in.stride = p.stride;
  in.tensor = tensor;
  in.out = out;
  if (!encode(p.copy, tensor, in.map) ||
      !ok(cudaMemcpy(tensor, before.data(), tensor_words * 4, cudaMemcpyHostToDevice), p.name) ||
      !ok(cudaMemset(out, 0xff, out_words * 4), p.name)) {
    return false;
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster_size(p));
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(cluster_size(p)));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  answer.resize(static_cast<std::size_t>(p.words));
  return ok(cudaLaunchKernelEx(&config, kernel, in), p.name) &&
         ok(cudaDeviceSynchronize(), p.name) &&
         ok(cudaMemcpy(answer.data(), answers_in_tensor(p.kind) ? tensor : out, answer.size() * 4,
                       cudaMemcpyDeviceToHost),
            p.name);
}

constexpr int no_device = 77;

/// What a child process writes for every probe that it has asked.
struct Result {
  std::uint32_t word[out_words];
};

/// The child: asks the probes from `first` on until one traps, which leaves a context unusable.
int ask_from(const std::vector<Probe>& asked, std::size_t first, int to) {
  int count = 0;
  cudaDeviceProp prop{};
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 ||
      cudaGetDeviceProperties(&prop, 0) != cudaSuccess || prop.major != 9) {
    return no_device;
  }
  std::uint32_t* tensor = nullptr;
  std::uint32_t* out = nullptr;
  if (!ok(cudaMalloc(&tensor, tensor_words * 4), "memory") ||
      !ok(cudaMalloc(&out, out_words * 4), "memory")) {
    return 2;
  }
  for (std::size_t i = first; i < asked.size(); ++i) {
    std::vector<std::uint32_t> answer;
    Result result{};
    alarm(15);
    if (!ask(asked[i], tensor, out, answer)) return 1;
    std::memcpy(result.word, answer.data(), answer.size() * 4);
    if (write(to, &result, sizeof result) != static_cast<ssize_t>(sizeof result)) return 2;
  }
  return 0;
}

bool read_result(int from, Result& result) {
  auto* at = reinterpret_cast<char*>(&result);
  std::size_t left = sizeof result;
  while (left > 0) {
    const ssize_t n = read(from, at, left);
    if (n <= 0) return false;
    at += n;
    left -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Prints one answer; a probe that trapped has no words. Returns whether it is the recorded one.
bool show(const Probe& p, const std::uint32_t* word, int words, bool record) {
  if (record) {
    if (words == hangs) {
      std::printf("    {\"%s\", hangs, {}},\n", p.name);
      return true;
    }
    std::printf("    {\"%s\",\n     %d,\n     {", p.name, words);
    for (int i = 0; i < words; ++i) {
      std::printf("%s0x%x", i == 0 ? "" : (i % 8 == 0 ? ",\n      " : ", "), word[i]);
    }
    std::printf("}},\n");
    return true;
  }
  const Answer* known = answer_of(p.name);
  const bool same =
      known != nullptr && known->words == words &&
      (words <= 0 || std::memcmp(known->word, word, static_cast<std::size_t>(words) * 4) == 0);
  std::printf("%-26s %s", p.name, same ? "as recorded:" : "DIFFERENT:  ");
  if (words <= 0) std::printf(words == 0 ? " traps" : " hangs");
  for (int i = 0; i < words && i < 16; ++i) std::printf(" %x", word[i]);
  std::printf("%s\n", words > 16 ? " ..." : "");
  return same;
}

/// Asks these probes and returns how many answered otherwise, or not at all; -1 without a device.
int ask_all(const std::vector<Probe>& asked, bool record) {
  int different = 0;
  std::size_t next = 0;
  while (next < asked.size()) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) _exit(ask_from(asked, next, ends[1]));
    close(ends[1]);
    Result result{};
    while (next < asked.size() && read_result(ends[0], result)) {
      different += show(asked[next], result.word, asked[next].words, record) ? 0 : 1;
      ++next;
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == no_device) return -1;
    const bool no_answer = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    if (!no_answer && (!WIFEXITED(status) || WEXITSTATUS(status) > 1)) return different + 1;
    if (next == asked.size()) break;
    different += show(asked[next], result.word, no_answer ? hangs : 0, record) ? 0 : 1;
    ++next;
  }
  return different;
}

int main_of(int count, char** words) {
  std::vector<Probe> asked;
  bool record = false;
  for (int i = 1; i < count; ++i) record = record || std::strcmp(words[i], "--record") == 0;
  const int names = count - 1 - (record ? 1 : 0);
  for (const Probe& p : all) {
    bool named = names == 0;
    for (int i = 1; i < count; ++i) named = named || std::strcmp(words[i], p.name) == 0;
    if (named) asked.push_back(p);
  }
  const int different = ask_all(asked, record);
  if (different < 0) {
    std::printf("did not run: no CUDA device here (of compute capability 9.0)\n");
    return 0;
  }
  if (!record) std::printf("%d of %zu probes differ\n", different, asked.size());
  return different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace warpwright::probes

int main(int argc, char** argv) {
  return warpwright::probes::main_of(argc, argv);
}
