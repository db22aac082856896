#include "bench/cublaslt.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <vector>

#include "warpwright/device/cuda.h"

namespace warpwright::bench {
namespace {

// What cuBLASLt may use; more than its default on Hopper (32 MiB), so that no algorithm is out.
constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

// The functions that are used.
struct Functions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

// The library's functions; null where it cannot be loaded. It stays loaded.
const Functions* functions() {
  static const std::unique_ptr<Functions> loaded = []() -> std::unique_ptr<Functions> {
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so"}) {
      if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return nullptr;
    auto f = std::make_unique<Functions>();
    const bool complete =
        find(library, "cublasLtCreate", f->create) &&
        find(library, "cublasLtDestroy", f->destroy) &&
        find(library, "cublasLtGetVersion", f->version) &&
        find(library, "cublasLtMatmulDescCreate", f->desc_create) &&
        find(library, "cublasLtMatmulDescDestroy", f->desc_destroy) &&
        find(library, "cublasLtMatmulDescSetAttribute", f->desc_set) &&
        find(library, "cublasLtMatrixLayoutCreate", f->layout_create) &&
        find(library, "cublasLtMatrixLayoutDestroy", f->layout_destroy) &&
        find(library, "cublasLtMatmulPreferenceCreate", f->preference_create) &&
        find(library, "cublasLtMatmulPreferenceDestroy", f->preference_destroy) &&
        find(library, "cublasLtMatmulPreferenceSetAttribute", f->preference_set) &&
        find(library, "cublasLtMatmulAlgoGetHeuristic", f->heuristic) &&
        find(library, "cublasLtMatmul", f->matmul);
    return complete ? std::move(f) : nullptr;
  }();
  return loaded.get();
}

std::optional<Refusal> failed(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return Refusal{std::string(what) + " failed in cuBLASLt (status " +
                 std::to_string(static_cast<int>(status)) + ")"};
}

cudaDataType_t type_of(DType t) {
  if (t == DType::f32) return CUDA_R_32F;
  return t == DType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

// cuBLAS is column-major and our D is row-major, so it computes D^T = B A^T: an N x M matrix whose
// columns are D's rows. It then reads the very same K-major A and B, B transposed.
class Loaded final : public CublasLt {
 public:
  explicit Loaded(const Functions& functions) : f_(functions) {}

  ~Loaded() override {
    if (preference_ != nullptr) f_.preference_destroy(preference_);
    for (cublasLtMatrixLayout_t layout : {a_, b_, d_}) {
      if (layout != nullptr) f_.layout_destroy(layout);
    }
    if (desc_ != nullptr) f_.desc_destroy(desc_);
    if (handle_ != nullptr) f_.destroy(handle_);
  }

  std::optional<Refusal> prepare(const GemmOperands& o, int offers) {
    if (auto r = failed(f_.create(&handle_), "starting")) return r;
    auto workspace = device::CudaBuffer::make(static_cast<std::int64_t>(kWorkspaceBytes));
    if (!workspace) return Refusal{workspace.reason()};
    workspace_ = *workspace;

    if (auto r = failed(f_.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing")) {
      return r;
    }
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasOperation_t as_is = CUBLAS_OP_N;
    if (auto r = set(CUBLASLT_MATMUL_DESC_TRANSA, transposed)) return r;
    if (auto r = set(CUBLASLT_MATMUL_DESC_TRANSB, as_is)) return r;
    if (auto r = layout(b_, o.b.dtype, o.b.columns, o.b.rows)) return r;
    if (auto r = layout(a_, o.a.dtype, o.a.columns, o.a.rows)) return r;
    if (auto r = layout(d_, o.d.dtype, o.d.columns, o.d.rows)) return r;
    if (auto r = failed(f_.preference_create(&preference_), "setting preferences")) return r;
    if (auto r = failed(f_.preference_set(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                          &kWorkspaceBytes, sizeof kWorkspaceBytes),
                        "setting preferences")) {
      return r;
    }
    offers_.resize(static_cast<std::size_t>(offers));
    int found = 0;
    if (auto r = failed(f_.heuristic(handle_, desc_, b_, a_, d_, d_, preference_, offers,
                                     offers_.data(), &found),
                        "asking for algorithms")) {
      return r;
    }
    offers_.resize(static_cast<std::size_t>(found));
    if (found == 0) return Refusal{"cuBLASLt has no algorithm for this product"};
    return std::nullopt;
  }

  [[nodiscard]] int algorithms() const override { return static_cast<int>(offers_.size()); }

  [[nodiscard]] std::string version() const override {
    const std::size_t v = f_.version();  // 130200 or, before 13, 120304
    return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
           std::to_string(v % 100);
  }

  std::optional<Refusal> launch(int algorithm, const GemmOperands& o, void* stream) override {
    const cublasLtMatmulHeuristicResult_t& offer = offers_[static_cast<std::size_t>(algorithm)];
    if (auto r = failed(offer.state, "an algorithm of its own heuristic")) return r;
    const void* c = o.beta != 0.0F ? o.c.data : o.d.data;
    return failed(f_.matmul(handle_, desc_, &o.alpha, o.b.data, b_, o.a.data, a_, &o.beta, c, d_,
                            o.d.data, d_, &offer.algo, workspace_->data(), kWorkspaceBytes,
                            static_cast<cudaStream_t>(stream)),
                  "launching");
  }

 private:
  template <class T>
  std::optional<Refusal> set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return failed(f_.desc_set(desc_, attribute, &value, sizeof value), "describing");
  }

  // A column-major matrix of `rows` x `columns` without gaps.
  std::optional<Refusal> layout(cublasLtMatrixLayout_t& to, DType t, std::int64_t rows,
                                std::int64_t columns) {
    return failed(f_.layout_create(&to, type_of(t), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
                  "describing");
  }

  const Functions& f_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  std::shared_ptr<device::CudaBuffer> workspace_;
  std::vector<cublasLtMatmulHeuristicResult_t> offers_;
};

}  // namespace

Result<std::shared_ptr<CublasLt>> CublasLt::make(const GemmOperands& operands, int offers) {
  const Functions* found = functions();
  if (found == nullptr) {
    return Refusal{"cuBLASLt (libcublasLt.so.13) is not on this machine"};
  }
  auto loaded = std::make_shared<Loaded>(*found);
  if (auto refusal = loaded->prepare(operands, offers)) return *refusal;
  return std::shared_ptr<CublasLt>(loaded);
}

}  // namespace warpwright::bench
