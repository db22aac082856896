#include "bench/cublaslt.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "bench/device_math.h"
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
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
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
        find(library, "cublasLtMatrixLayoutSetAttribute", f->layout_set) &&
        find(library, "cublasLtMatmulPreferenceCreate", f->preference_create) &&
        find(library, "cublasLtMatmulPreferenceDestroy", f->preference_destroy) &&
        find(library, "cublasLtMatmulPreferenceSetAttribute", f->preference_set) &&
        find(library, "cublasLtMatmulAlgoGetHeuristic", f->heuristic) &&
        find(library, "cublasLtMatmul", f->matmul);
    return complete ? std::move(f) : nullptr;
  }();
  return loaded.get();
}

void succeed(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Failure{std::string(what) + " failed in cuBLASLt (status " +
                std::to_string(static_cast<int>(status)) + ")"};
}

cudaDataType_t type_of(DType t) {
  switch (t) {
    case DType::f32:
    case DType::tf32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_16BF;
  }
}

bool k_major(const MatrixView& v) {
  return v.column_stride == 1;
}

cublasLtEpilogue_t epilogue_of(const Epilogue& e) {
  const bool bias = e.bias == Bias::columns;
  switch (e.activation) {
    case Activation::relu:
      return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::gelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
      return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

// Where the scales of one set of operands lie for cuBLASLt.
struct ScalePointers {
  const void* a = nullptr;
  const void* b = nullptr;
};

// cuBLAS is column-major and our D is row-major, so it computes D^T = B A^T: an N x M matrix whose
// columns are D's rows. Its A is our B and its B is our A; K-major operands are columns of K for
// it, so that our B is transposed and our A is not.
class Loaded final : public CublasLt {
 public:
  explicit Loaded(const Functions& functions) : f_(functions) {}

  ~Loaded() override {
    if (preference_ != nullptr) f_.preference_destroy(preference_);
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_, d_}) {
      if (layout != nullptr) f_.layout_destroy(layout);
    }
    if (desc_ != nullptr) f_.desc_destroy(desc_);
    if (handle_ != nullptr) f_.destroy(handle_);
  }

  void prepare(const std::vector<GemmOperands>& sets, int offers) {
    const GemmOperands& o = sets.front();
    succeed(f_.create(&handle_), "starting");
    workspace_ = filled_memory(static_cast<std::int64_t>(kWorkspaceBytes));
    lay_scales_out(sets);
    describe_product(o);
    describe_layouts(o);
    ask(offers);
  }

  [[nodiscard]] int algorithms() const override { return static_cast<int>(offers_.size()); }

  std::optional<Refusal> launch(int algorithm, const GemmOperands& o, void* stream) override {
    const cublasLtMatmulHeuristicResult_t& offer = offers_[static_cast<std::size_t>(algorithm)];
    try {
      succeed(offer.state, "an algorithm of its own heuristic");
      set_pointers(o);
      const float beta = beta_of(o);
      const void* c = beta != 0.0F ? o.c.data : (numeric::is_8bit(o.d.dtype) ? nullptr : o.d.data);
      succeed(f_.matmul(handle_, desc_, &o.alpha, o.b.data, b_, o.a.data, a_, &beta, c, c_,
                        o.d.data, d_, &offer.algo, workspace_->data(), kWorkspaceBytes,
                        static_cast<cudaStream_t>(stream)),
              "launching");
    } catch (const Failure& failure) {
      return Refusal{RefusalCode::device_error, failure.sentence};
    }
    return std::nullopt;
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    succeed(f_.desc_set(desc_, attribute, &value, sizeof value), "describing");
  }

  void describe_product(const GemmOperands& o) {
    const bool is_tf32 = o.a.dtype == DType::tf32;
    const auto by = is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    succeed(f_.desc_create(&desc_, by, CUDA_R_32F), "describing");
    set(CUBLASLT_MATMUL_DESC_TRANSA, k_major(o.b) ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, k_major(o.a) ? CUBLAS_OP_N : CUBLAS_OP_T);
    if (numeric::is_8bit(o.a.dtype)) {
      // Block scales imply promoted sums; with this flag there is no algorithm for them.
      const bool promoted =
          o.accumulation == Accumulation::promoted || o.scaling == Scaling::blockwise;
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(promoted ? 0 : 1));
      set_scale_modes(o.scaling);
    }
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(o.epilogue));
    if (o.epilogue.bias != Bias::none) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(o.bias.dtype)));
    }
    set_pointers(o);
  }

  void set_scale_modes(Scaling scaling) {
    cublasLtMatmulMatrixScale_t ours_a = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    cublasLtMatmulMatrixScale_t ours_b = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    if (scaling == Scaling::row_column) {
      ours_a = ours_b = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    } else if (scaling == Scaling::blockwise) {
      ours_a = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
      ours_b = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    }
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, ours_b);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, ours_a);
  }

  // The addresses that are part of the description, and so belong to one set.
  void set_pointers(const GemmOperands& o) {
    if (o.epilogue.bias != Bias::none) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias.data);
    if (o.scale_d.data != nullptr) set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, o.scale_d.data);
    if (o.scaling == Scaling::none) return;
    const auto found = scales_.find(o.scale_a.data);
    if (found == scales_.end()) {
      throw Failure{"these operands are none of the sets that cuBLASLt was prepared for"};
    }
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, found->second.b);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, found->second.a);
  }

  // Scales of A 1 x 128: all of M for a block of K, then the next block. Those of B 128 x 128: the
  // blocks of K of one block of N, in steps of four, then the next. Rows' scales are packed.
  void lay_scales_out(const std::vector<GemmOperands>& sets) {
    const GemmOperands& o = sets.front();
    if (o.scaling == Scaling::none) return;
    if (o.scaling == Scaling::tensor) {
      for (const GemmOperands& s : sets) scales_[s.scale_a.data] = {s.scale_a.data, s.scale_b.data};
      return;
    }
    const bool block = o.scaling == Scaling::blockwise;
    const std::int64_t pitch_b = block ? (o.scale_b.columns + 3) / 4 * 4 : o.scale_b.rows;
    const std::int64_t count_a = padded(o.scale_a.rows * o.scale_a.columns);
    const std::int64_t count_b = padded(block ? pitch_b * o.scale_b.rows : pitch_b);
    const auto count = static_cast<std::int64_t>(sets.size());
    laid_out_ = filled_memory(count * (count_a + count_b) * 4, 0);
    auto* at = static_cast<float*>(laid_out_->data());
    for (const GemmOperands& s : sets) {
      MatrixView b = s.scale_b;
      if (block) {  // its blocks of K are next to each other
        std::swap(b.rows, b.columns);
        std::swap(b.row_stride, b.column_stride);
      }
      relay_column_major(s.scale_a, at, s.scale_a.rows, nullptr);
      relay_column_major(b, at + count_a, pitch_b, nullptr);
      scales_[s.scale_a.data] = {at, at + count_a};
      at += count_a + count_b;
    }
    require(device::synchronise_cuda());
  }

  // Whole multiples of 256 bytes.
  static std::int64_t padded(std::int64_t floats) { return (floats + 63) / 64 * 64; }

  // An operand's or result's matrix as cuBLAS sees it.
  void layout(cublasLtMatrixLayout_t& to, DType t, const MatrixView& v, std::int32_t batch) {
    const bool rows_run = k_major(v);  // our columns are neighbours: its rows
    const std::int64_t pitch = rows_run ? v.row_stride : v.column_stride;
    const std::int64_t rows = rows_run ? v.columns : v.rows;
    succeed(f_.layout_create(&to, type_of(t), static_cast<std::uint64_t>(rows),
                             static_cast<std::uint64_t>(rows_run ? v.rows : v.columns),
                             std::max(pitch, rows)),
            "describing");
    if (batch == 1) return;
    const std::int64_t step = v.batch > 1 ? v.batch_stride : 0;
    succeed(f_.layout_set(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
            "describing");
    succeed(f_.layout_set(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
            "describing");
  }

  void describe_layouts(const GemmOperands& o) {
    const auto batch = static_cast<std::int32_t>(o.d.batch);
    layout(b_, o.b.dtype, o.b, batch);
    layout(a_, o.a.dtype, o.a, batch);
    // An 8-bit D wants a C of 16 bits, also where there is none.
    const MatrixView& c = beta_of(o) != 0.0F ? o.c : o.d;
    layout(c_, numeric::is_8bit(c.dtype) ? DType::bf16 : c.dtype, c, batch);
    layout(d_, o.d.dtype, o.d, batch);
  }

  void ask(int offers) {
    succeed(f_.preference_create(&preference_), "setting preferences");
    succeed(f_.preference_set(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                              &kWorkspaceBytes, sizeof kWorkspaceBytes),
            "setting preferences");
    offers_.resize(static_cast<std::size_t>(offers));
    int found = 0;
    const cublasStatus_t status =
        f_.heuristic(handle_, desc_, b_, a_, c_, d_, preference_, offers, offers_.data(), &found);
    offers_.resize(static_cast<std::size_t>(found));
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
      throw Failure{"cuBLASLt has no algorithm for this product"};
    }
    succeed(status, "asking for algorithms");
  }

  const Functions& f_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  cublasLtMatrixLayout_t d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  std::shared_ptr<device::CudaBuffer> workspace_;
  std::shared_ptr<device::CudaBuffer> laid_out_;
  std::map<const void*, ScalePointers> scales_;  // of a set, by its scales of A
  std::vector<cublasLtMatmulHeuristicResult_t> offers_;
};

// Why cuBLASLt cannot express the product, whatever its heuristic says; empty when it can.
std::string unfit(const GemmOperands& o) {
  if (o.epilogue.gated) return "cuBLASLt has no gated epilogue";
  if (o.a.dtype == DType::s8) return "cuBLASLt gives products of s8 32-bit or 8-bit integers";
  if (o.scaling == Scaling::block_scaled) return "cuBLASLt has no such kernels before sm_100";
  const Activation activation = o.epilogue.activation;
  if (activation > Activation::gelu) return std::string("cuBLASLt has no ") + name(activation);
  if (o.epilogue.bias == Bias::rows) {
    return "cuBLASLt has a bias along the columns of a row-major D, none along its rows";
  }
  if (o.a.dtype == DType::e5m2 && o.b.dtype == DType::e5m2) {
    return "cuBLASLt does not multiply e5m2 by e5m2";
  }
  if (o.scale_d.data != nullptr && !numeric::is_8bit(o.d.dtype)) {
    return "cuBLASLt scales only a D of 8 bits";
  }
  if (o.scaling == Scaling::none) return {};
  if (!numeric::is_8bit(o.a.dtype)) return "cuBLASLt scales only 8-bit operands";
  if (o.scale_a.batch > 1 || o.scale_b.batch > 1) {
    return "cuBLASLt has no scales for each matrix of a batch";
  }
  if (o.scaling != Scaling::blockwise) return {};
  if (o.a.rows % 4 != 0 || o.b.rows % 4 != 0) {
    return "cuBLASLt scales blocks of products whose M and N are multiples of 4; here " +
           std::to_string(o.a.rows) + " and " + std::to_string(o.b.rows);
  }
  return numeric::is_8bit(o.d.dtype) ? "cuBLASLt gives block-scaled products 16 or 32 bits" : "";
}

}  // namespace

std::string cublaslt_version() {
  const Functions* f = functions();
  if (f == nullptr) return {};
  const std::size_t v = f->version();  // 130200 or, before 13, 120304
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
         std::to_string(v % 100);
}

Result<std::shared_ptr<CublasLt>> CublasLt::make(const std::vector<GemmOperands>& sets,
                                                 int offers) {
  const Functions* found = functions();
  if (found == nullptr) {
    return Refusal{RefusalCode::unsupported, "cuBLASLt (libcublasLt.so.13) is not on this machine"};
  }
  if (const std::string why = unfit(sets.front()); !why.empty()) {
    return Refusal{RefusalCode::unsupported, why};
  }
  auto loaded = std::make_shared<Loaded>(*found);
  try {
    loaded->prepare(sets, offers);
  } catch (const Failure& failure) {
    return Refusal{RefusalCode::unsupported, failure.sentence};
  }
  return std::shared_ptr<CublasLt>(loaded);
}

}  // namespace warpwright::bench
