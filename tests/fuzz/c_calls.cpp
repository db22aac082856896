// Random calls of the C ABI, legal and not, through the shared library: c_calls --count N --seed S.
// A call returns a result or a refusal of one sentence. What is refused writes nothing; what is
// computed is compared with float64, and nothing beside it may have changed. Calls are drawn one by
// one from the seed and their number, so that --first I --count 1 makes one again.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/draws.h"
#include "tests/reference.h"
#include "warpwright/c_members.h"
#include "warpwright/reference/mixture.h"

namespace warpwright::tests {
namespace {

constexpr char usage[] =
    "fuzz_c [--count N] [--seed S] [--first I]\n"
    "Makes the random calls I .. I + N - 1 (0, 20000) of seed S (drawn) and prints what became of\n"
    "them. Exits with 1 after the first that went wrong.\n";

constexpr std::int64_t strange[] = {0,
                                    -1,
                                    1,
                                    2,
                                    3,
                                    7,
                                    8,
                                    15,
                                    16,
                                    17,
                                    100,
                                    127,
                                    128,
                                    -16,
                                    1 << 16,
                                    INT32_MAX,
                                    1LL << 31,
                                    1LL << 32,
                                    1LL << 40,
                                    1LL << 61,
                                    (1LL << 62) + 1,
                                    INT64_MAX,
                                    INT64_MAX - 7,
                                    INT64_MIN,
                                    INT64_MIN + 16};
constexpr std::int32_t strange_words[] = {-1, 0, 1,  2,   3,       4,         5,
                                          6,  9, 16, 100, 1 << 30, INT32_MAX, INT32_MIN};
constexpr float strange_numbers[] = {0,      -0.0F, 1,         -1,         0.5F,
                                     1e-40F, 3e38F, HUGE_VALF, -HUGE_VALF, NAN};

// The number of the call that runs, for whoever looks at a crash.
volatile std::sig_atomic_t in_call = 0;

extern "C" void tell_crash(int signal) {
  char text[64] = "";
  const int length =
      std::snprintf(text, sizeof text, "\ncall %d ends with signal %d\n", in_call, signal);
  static_cast<void>(!write(2, text, static_cast<std::size_t>(length)));
  _exit(1);
}

struct Failure {
  std::string what;
};

// Memory of tensors, the same for all calls.
class Arena {
 public:
  static constexpr std::int64_t size = 1 << 24;
  static constexpr std::int64_t behind = 4096;  // of the last tensor, that may be used

  void clear() { used_ = 4096; }
  std::byte* take(std::int64_t bytes, std::int64_t shift) {
    std::byte* const at = base() + used_ + shift;
    used_ = (used_ + shift + bytes + 383) / 256 * 256;
    if (used_ + behind > size) throw Failure{"the arena is too small"};
    return at;
  }
  [[nodiscard]] bool holds(const void* at, __int128 low, __int128 high) const {
    const auto first = static_cast<__int128>(reinterpret_cast<std::uintptr_t>(at));
    const auto begin = static_cast<__int128>(reinterpret_cast<std::uintptr_t>(base()));
    return first + low >= begin && first + high <= begin + used_ + behind;
  }
  [[nodiscard]] std::byte* base() const { return memory_.get(); }
  void keep() { kept_.assign(base(), base() + used_ + behind); }
  [[nodiscard]] const std::vector<std::byte>& kept() const { return kept_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{4096}); }
  };
  std::unique_ptr<std::byte, Free> memory_{
      static_cast<std::byte*>(::operator new (size, std::align_val_t{4096}))};
  std::int64_t used_ = 0;
  std::vector<std::byte> kept_;
};

bool is_type(std::int32_t dtype) {
  return dtype > 0 && dtype < kDTypeCount;
}

// The numbers of a gate that a struct has: what is 0 is the activation's.
std::optional<GateNumbers> numbers_of(const ww_gate& g, Activation activation) {
  GateNumbers numbers = gate_of(activation);
  if (g.alpha != 0) numbers.alpha = g.alpha;
  if (g.beta != 0) numbers.beta = g.beta;
  if (g.limit != 0) numbers.limit = g.limit;
  return numbers;
}

MatrixView view_of(const ww_matrix& m) {
  return {m.data,       static_cast<DType>(m.dtype),
          m.rows,       m.columns,
          m.row_stride, m.column_stride,
          m.batch,      m.batch_stride};
}

// What the library reads of the matrices of a struct.
template <class Given, class Read, std::size_t N>
Read matrices_of(const Given& given, const c::MatrixMember<Given, Read> (&members)[N]) {
  Read read;
  for (const auto& member : members) read.*member.read = view_of(given.*member.given);
  return read;
}

// Are they scales, or factors of tensors?
bool scales(const char* name) {
  return std::string_view(name).find("scale") != std::string_view::npos ||
         std::string_view(name).starts_with("factor");
}

class Calls {
 public:
  /// `shows`: calls are printed before they are made.
  Calls(std::uint64_t seed, bool shows) : seed_(seed), shows_(shows) {
    std::memset(arena_.base(), 0x5a, Arena::size);
  }

  void call(std::uint64_t number) {
    in_call = static_cast<int>(number);
    draw_ = Draws(mixed(seed_) + number);
    arena_.clear();
    const int kind = draw_(1, 100);
    if (kind <= 50)
      run();
    else if (kind <= 75)
      plan_and_launch();
    else if (kind <= 83)
      quantise();
    else if (kind <= 90)
      int4();
    else if (kind <= 92)
      moe();
    else if (kind <= 94)
      views();
    else if (kind <= 97)
      handles();
    else
      nulls();
  }

  void print() const {
    std::printf(
        "computed and right: %lld by ww_run, %lld by ww_launch, %lld by ww_moe_run, %lld by "
        "ww_quantise, %lld packings; %lld refused:",
        runs_, launches_, mixtures_, quantised_, packed_, refused_);
    for (const auto& [code, count] : codes_) std::printf(" %s %lld", code.c_str(), count);
    std::printf("\n");
  }
  [[nodiscard]] long long checked() const { return runs_ + launches_; }

 private:
  // -- What calls are made of

  bool likely(int percent) { return draw_(1, 100) <= percent; }
  std::int64_t extent() {
    constexpr int all[] = {0, 1, 2, 5, 8, 16, 17, 24, 32, 33, 48, 64, 80, 128, 136};
    return draw_.of(all);
  }

  // A matrix of small numbers, K-major or (columns first) MN-major.
  ww_matrix matrix(DType type, std::int64_t rows, std::int64_t columns, std::int64_t batch,
                   bool columns_first = false, bool packed_rows = false) {
    const int bits = numeric::bits(type);
    const std::int64_t inner = columns_first ? rows : columns;
    const std::int64_t outer = columns_first ? columns : rows;
    std::int64_t pitch = inner;
    if (!packed_rows) {
      const std::int64_t step = std::max(1, 128 / bits);
      if (!likely(15)) pitch = (inner + step - 1) / step * step;
      if (likely(20)) pitch += step * draw_(1, 2);
      if (bits == 4) pitch += pitch % 2;
    }
    const std::int64_t each = std::max<std::int64_t>(1, pitch * outer);
    const std::int64_t bytes = (each * batch * bits + 7) / 8;
    const bool shifted = bits >= 8 && !packed_rows && likely(8);
    ww_matrix m = {arena_.take(bytes, shifted ? std::max(1, bits / 8) * draw_(1, 5) : 0),
                   rows,
                   columns,
                   columns_first ? 1 : pitch,
                   columns_first ? pitch : 1,
                   batch,
                   batch > 1 ? each : 0,
                   static_cast<std::int32_t>(type),
                   0};
    return m;
  }

  // Whole numbers, so that most sums are exact; for scales powers of two.
  void fill(const ww_matrix& m, bool scales = false) {
    if (m.data == nullptr || !is_type(m.dtype) || !inside(m)) return;
    for (const std::int64_t extent : {m.rows, m.columns, m.batch}) {
      if (extent < 1 || extent > 4'000'000) return;
    }
    if (static_cast<__int128>(m.rows) * m.columns * m.batch > 4'000'000) return;
    const auto type = static_cast<DType>(m.dtype);
    const int bits = numeric::bits(type);
    constexpr double powers[] = {0.25, 0.5, 1, 2};
    const int most = type == DType::e2m1 ? 2 : 3;
    std::uint64_t random = mixed(draw_.seed());
    for (std::int64_t b = 0; b < m.batch; ++b) {
      for (std::int64_t i = 0; i < m.rows; ++i) {
        for (std::int64_t j = 0; j < m.columns; ++j) {
          random = random * 6364136223846793005U + 1442695040888963407U;
          const auto r = static_cast<int>(random >> 40);
          const double x = scales ? powers[r % 4] : r % (2 * most + 1) - most;
          std::uint64_t code = type == DType::f32 || type == DType::tf32
                                   ? std::bit_cast<std::uint32_t>(static_cast<float>(x))
                                   : numeric::from_double(type, x);
          const std::int64_t place = b * m.batch_stride + i * m.row_stride + j * m.column_stride;
          auto* const at = static_cast<std::byte*>(m.data) + place * bits / 8;
          if (bits == 4) {
            const auto both = static_cast<unsigned>(*at);
            code = place % 2 == 0 ? (both & 0xf0U) | code : (both & 0xfU) | code << 4;
          }
          std::memcpy(at, &code, index(std::max(1, bits / 8)));
        }
      }
    }
  }

  template <class Given, class Members>
  void fill(const Given& given, const Members& members) {
    for (const auto& member : members) {
      const ww_matrix& m = given.*member.given;
      if (m.dtype != WW_S4 && m.dtype != WW_S32) fill(m, scales(member.name));
    }
  }

  // A legal product, as c.h has it, and its memory.
  struct Product {
    // A struct may say that it is longer than it is known to be.
    alignas(16) std::byte room[4224] = {};
    ww_packed_form form = {};
    ww_matrix weights = {};  // what int4 weights were made of
    int architecture = 90;
    bool mutated = false;

    ww_gemm& g() { return *reinterpret_cast<ww_gemm*>(room); }
  };

  void draw(Product& p) {
    ww_gemm& g = p.g();
    ww_gemm_init(&g);
    enum { floats16, floats8, words, bytes, mxf8, nvf4, int4_weights };
    const int kind =
        draw_.of({floats16, floats16, floats8, floats8, words, bytes, mxf8, nvf4, int4_weights});
    const std::int64_t m = extent();
    std::int64_t n = extent();
    std::int64_t k = extent();
    g.gated = likely(12) ? draw_(1, WW_GATED_LAST) : WW_GATED_NONE;
    if (g.gated != WW_GATED_NONE)
      n = std::max<std::int64_t>(1, n / 16) * (kind == int4_weights ? 256 : 32);
    g.grouped = likely(25) && kind != mxf8 && kind != nvf4 ? 1 : 0;
    const std::int64_t batch = g.grouped == 1 ? draw_(1, 4) : likely(20) ? draw_(2, 3) : 1;
    DType a = DType::bf16;
    DType b = DType::bf16;
    DType d = DType::bf16;
    switch (kind) {
      case floats16:
        a = b = draw_.of({DType::bf16, DType::f16});
        d = likely(50) ? a : DType::f32;
        break;
      case floats8:
        a = draw_.of({DType::e4m3, DType::e4m3, DType::e5m2});
        b = draw_.of({DType::e4m3, DType::e4m3, DType::e5m2});
        d = draw_.of({DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2});
        break;
      case words:
        a = b = DType::tf32;
        d = draw_.of({DType::f32, DType::bf16});
        break;
      case bytes:
        a = b = DType::s8;
        d = draw_.of({DType::f32, DType::bf16});
        break;
      case mxf8:
      case nvf4:
        a = b = kind == mxf8 ? DType::e4m3 : DType::e2m1;
        k = std::max<std::int64_t>(32, k / 32 * 32);
        break;
      default:
        a = DType::e4m3;
        b = DType::s4;
        k = draw_.of({128, 256, 128});
        d = draw_.of({DType::bf16, DType::f16, DType::f32});
    }
    if (kind == mxf8 || kind == nvf4)
      p.architecture = 120;
    else if (likely(10))
      p.architecture = draw_.of({80, 89, 90, 100, 120, 75, 103});
    const bool turned = kind == floats16 && g.grouped == 0 && likely(25);
    const std::int64_t of_a = g.grouped == 1 || likely(30) ? 1 : batch;
    g.a = matrix(a, m, k, of_a, turned);
    if (kind == int4_weights) {
      draw_weights(p, n, k, batch);
    } else {
      g.b = matrix(b, n, k, g.grouped == 1 || of_a == 1 || likely(50) ? batch : 1,
                   turned && likely(50));
    }
    const std::int64_t columns = g.gated != WW_GATED_NONE ? n / 2 : n;
    const std::int64_t results =
        g.grouped == 1 ? 1 : std::max(of_a, g.packed != nullptr ? batch : g.b.batch);
    g.d = matrix(d, m, columns, results);
    if (g.gated == WW_GATED_NONE && likely(20)) {
      g.c = likely(30) ? g.d : matrix(d, m, n, results);
      g.beta = draw_.of(strange_numbers);
    }
    if (likely(20)) g.alpha = static_cast<float>(draw_(-4, 4)) / 2;
    if (likely(3)) g.alpha = draw_.of(strange_numbers);
    g.activation = g.gated != WW_GATED_NONE
                       ? draw_.of({WW_ACTIVATION_SILU, WW_ACTIVATION_SWIGLU_OAI})
                   : likely(40) ? draw_(0, WW_ACTIVATION_LAST)
                                : 0;
    if (g.gated != WW_GATED_NONE && likely(30)) draw(g.gate);
    if (likely(25)) {
      g.bias_along = g.grouped == 1 || likely(60) ? WW_BIAS_COLUMNS : WW_BIAS_ROWS;
      const DType type = (d == DType::bf16 || d == DType::f16) && likely(50) ? d : DType::f32;
      g.bias = matrix(type, g.bias_along == WW_BIAS_ROWS ? m : n, 1,
                      g.grouped == 1 && likely(70) ? batch : 1, true, true);
    }
    if (kind == floats8 || kind == bytes || kind == int4_weights) draw_scales(g, p, m, n, k, batch);
    if (kind == mxf8 || kind == nvf4) {
      g.scaling = WW_SCALING_BLOCK_SCALED;
      g.no_factors = likely(90) ? 1 : 0;
      const DType type = kind == mxf8 ? DType::ue8m0 : DType::ue4m3;
      const std::int64_t blocks = (k / (kind == mxf8 ? 32 : 16) + 3) / 4 * 4;
      g.scale_a = matrix(type, (m + 127) / 128 * 128, blocks, of_a, false, true);
      g.scale_b = matrix(type, (n + 127) / 128 * 128, blocks, g.b.batch, false, true);
    }
    if (numeric::bits(d) == 8 && likely(50)) g.scale_d = matrix(DType::f32, 1, 1, 1);
    if (g.grouped == 1) draw_offsets(g, m, batch);
  }

  void draw_scales(ww_gemm& g, const Product& p, std::int64_t m, std::int64_t n, std::int64_t k,
                   std::int64_t groups) {
    g.scaling = draw_.of({WW_SCALING_NONE, WW_SCALING_TENSOR, WW_SCALING_ROW_COLUMN,
                          WW_SCALING_BLOCKWISE, WW_SCALING_GROUP});
    if (g.a.dtype == WW_S8 && g.scaling == WW_SCALING_BLOCKWISE) g.scaling = WW_SCALING_NONE;
    if (g.grouped == 0 && g.scaling == WW_SCALING_GROUP) g.scaling = WW_SCALING_TENSOR;
    const std::int64_t of_b = g.grouped == 1 ? groups : 1;
    const std::int64_t block = p.weights.data != nullptr ? 128 : draw_.of({128, 128, 64, 32});
    const std::int64_t blocks = (k + block - 1) / block;
    std::int64_t rows_a = 1, columns_a = 1, rows_b = 1, columns_b = 1, batch_b = of_b;
    if (g.scaling == WW_SCALING_NONE) {
      if (likely(30)) g.accumulation = WW_ACCUMULATION_PROMOTED;
      if (g.packed != nullptr || g.a.dtype == WW_S8) g.accumulation = WW_ACCUMULATION_FAST;
      return;
    }
    if (g.scaling == WW_SCALING_ROW_COLUMN) {
      rows_a = m;
      rows_b = n;
    } else if (g.scaling == WW_SCALING_BLOCKWISE) {
      rows_a = m;
      rows_b = (n + block - 1) / block;
      columns_a = columns_b = blocks;
    } else if (g.scaling == WW_SCALING_GROUP) {
      rows_b = groups;
      batch_b = 1;
    } else {
      batch_b = 1;
    }
    g.scale_a = matrix(DType::f32, rows_a, columns_a, 1, g.scaling == WW_SCALING_BLOCKWISE);
    if (p.weights.data != nullptr && (g.scaling == WW_SCALING_BLOCKWISE || likely(30))) return;
    g.scale_b = matrix(DType::f32, rows_b, columns_b, batch_b);
  }

  void draw_offsets(ww_gemm& g, std::int64_t m, std::int64_t groups) {
    g.offset_type = draw_(0, 1);
    const std::int64_t width = g.offset_type == WW_INT64 ? 8 : 4;
    std::byte* const at = arena_.take((groups + 1) * width, 0);
    g.offsets = at;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i <= groups; ++i) all.push_back(draw_(0, static_cast<int>(m)));
    std::sort(all.begin(), all.end());
    if (likely(5)) all[index(draw_(0, static_cast<int>(groups)))] = draw_.of(strange);
    for (std::int64_t i = 0; i <= groups; ++i)
      std::memcpy(at + i * width, &all[index(i)], index(width));
    if (likely(20)) g.expected_tokens = draw_(1, 50);
    if (likely(20)) g.expected_lengths = WW_LENGTHS_EQUAL;
    if (likely(20)) g.expected_zipf = static_cast<float>(draw_(0, 8));
  }

  // int4 weights whose scales are 1: of every group one has the largest code.
  void draw_weights(Product& p, std::int64_t n, std::int64_t k, std::int64_t experts) {
    ww_packed_form& f = p.form;
    ww_packed_form_init(&f);
    f.experts = experts;
    f.n = n;
    f.k = k;
    f.group = draw_.of({32, 64, 128});
    f.scale = draw_.of({WW_BF16, WW_F16, WW_F32});
    f.encoding = draw_.of({WW_PACKED_SM, WW_PACKED_EX});
    ww_gemm& g = p.g();
    g.sums = draw_(0, 3);
    if (g.sums == WW_SUMS_TABLE) f.encoding = WW_PACKED_SM;
    p.weights = matrix(DType::f32, n, k, experts, false, true);
    std::int64_t bytes = 0;
    if (ww_refusal* const r = ww_packed_bytes(&f, &bytes)) {
      const std::string why = ww_refusal_text(r);
      ww_refusal_free(r);
      throw Failure{"the size of legal weights is refused: " + why};
    }
    g.b.data = arena_.take(bytes, 0);
    g.packed = &p.form;
  }

  void fill(Product& p) {
    ww_gemm& g = p.g();
    fill(g, c::gemm_matrices);
    if (g.packed == nullptr || p.mutated) return;
    fill(p.weights);
    auto* const w = static_cast<float*>(p.weights.data);
    for (std::int64_t i = 0; i < p.weights.batch * p.weights.rows * p.weights.columns; ++i) {
      if (i % p.weights.columns % p.form.group == 0) w[i] = 7;
    }
    ww_packed_form form = p.form;
    if (ww_refusal* const r = ww_int4_quantise(&p.weights, &form, g.b.data)) {
      if (std::string_view(ww_refusal_code(r)) != "bad_shape" || p.weights.rows > 0) {
        throw Failure{std::string("legal weights are refused: ") + ww_refusal_text(r)};
      }
      ww_refusal_free(r);
    }
    ++packed_;
  }

  void spoil(ww_matrix& m) {
    std::int64_t* const numbers[] = {&m.rows,          &m.columns, &m.row_stride,
                                     &m.column_stride, &m.batch,   &m.batch_stride};
    switch (draw_(0, 9)) {
      case 0:
        m.data = draw_.of({static_cast<void*>(nullptr), static_cast<void*>(arena_.base()),
                           static_cast<void*>(arena_.base() + 4097)});
        break;
      case 1:
        if (m.data != nullptr) m.data = static_cast<std::byte*>(m.data) + draw_(1, 17);
        break;
      case 2:
        m.dtype = likely(70) ? draw_(-1, 17) : draw_.of(strange_words);
        break;
      case 3:
        m.reserved = draw_.of(strange_words);
        break;
      case 4:
        m = {};
        break;
      case 5:
        *draw_.of(numbers) += draw_.of({-1, 1, 8, -8});
        break;
      default:
        *draw_.of(numbers) = draw_.of(strange);
    }
  }

  void spoil(Product& p) {
    ww_gemm& g = p.g();
    p.mutated = true;
    const auto tensor = [&]() -> ww_matrix& {
      return likely(30) ? *draw_.of({&g.a, &g.b, &g.d}) : g.*draw_.of(c::gemm_matrices).given;
    };
    switch (draw_(0, 13)) {
      case 0:
        g.size = draw_.of({0UL, 8UL, 500UL, 575UL, 576UL, 584UL, 591UL, 592UL, 600UL, 4096UL,
                           4097UL, ~0UL, 592UL << 32});
        if (likely(30)) p.room[draw_(592, 4223)] = std::byte{1};
        break;
      case 1:
      case 2:
        (likely(10) ? g.sums : g.*draw_.of(c::gemm_words).given) = draw_.of(strange_words);
        break;
      case 3:
        *draw_.of({&g.alpha, &g.beta, &g.expected_zipf, &g.gate.alpha, &g.gate.beta,
                   &g.gate.limit}) = draw_.of(strange_numbers);
        break;
      case 4:
        g.expected_tokens = draw_.of({-1.0, 1e300, 1e-300, std::nan(""), 7.5, -0.0});
        break;
      case 5:
        g.offsets = draw_.of({static_cast<const void*>(nullptr),
                              static_cast<const void*>(arena_.base() + 4096),
                              static_cast<const void*>(arena_.base() + 4098)});
        break;
      case 6:
        g.packed = g.packed == nullptr ? &p.form : nullptr;
        break;
      case 7:
        spoil(p.form);
        break;
      case 8:
        std::swap(tensor(), tensor());
        break;
      case 9:
        tensor() = tensor();
        break;
      default:
        spoil(tensor());
    }
    if (likely(25)) spoil(p);
  }

  void spoil(ww_packed_form& f) {
    switch (draw_(0, 3)) {
      case 0:
        f.size = draw_.of({0UL, 47UL, 49UL, 4096UL, ~0UL});
        if (f.size > sizeof f) f.size = sizeof f - 1;  // what lies behind it is not ours
        break;
      case 1:
        *draw_.of({&f.experts, &f.n, &f.k}) = draw_.of(strange);
        break;
      default:
        *draw_.of({&f.group, &f.encoding, &f.scale, &f.zero_points}) = draw_.of(strange_words);
    }
  }

  // -- What of a call is safe to make, and what it must give

  [[nodiscard]] bool inside(const ww_matrix& m) const {
    // What is no view at all must be refused before its memory is looked at.
    if (m.data == nullptr || !is_type(m.dtype) || m.rows < 0 || m.columns < 0 || m.batch < 0) {
      return true;
    }
    if (m.rows == 0 || m.columns == 0 || m.batch == 0) return true;
    __int128 low = 0;
    __int128 high = 0;
    const std::pair<std::int64_t, std::int64_t> walks[] = {
        {m.rows, m.row_stride}, {m.columns, m.column_stride}, {m.batch, m.batch_stride}};
    for (const auto& [count, stride] : walks) {
      const __int128 last = static_cast<__int128>(count - 1) * stride;
      if (last > (static_cast<__int128>(1) << 100) || last < -(static_cast<__int128>(1) << 100)) {
        return false;
      }
      (last < 0 ? low : high) += last;
    }
    const int bits = numeric::bits(static_cast<DType>(m.dtype));
    return arena_.holds(m.data, low * bits / 8 - 1, (high + 1) * bits / 8 + 1);
  }

  [[nodiscard]] bool safe(Product& p) const {
    ww_gemm& g = p.g();
    for (const auto& member : c::gemm_matrices) {
      const ww_matrix& m = g.*member.given;
      if (!inside(m) && (&m != &g.b || g.packed == nullptr)) return false;
    }
    // A view of one element a row may be of any extents: no more than can be multiplied.
    const auto work = static_cast<__int128>(std::max<std::int64_t>(1, g.d.batch)) *
                      std::max<std::int64_t>(1, g.a.rows) *
                      std::max<std::int64_t>(1, g.packed != nullptr ? p.form.n : g.b.rows) *
                      std::max<std::int64_t>(1, g.a.columns);
    if (work > 40'000'000) return false;
    std::int64_t groups = g.b.batch;
    if (g.packed != nullptr) {
      std::int64_t bytes = 0;
      if (ww_refusal* const r = ww_packed_bytes(&p.form, &bytes)) {
        ww_refusal_free(r);
        return true;  // as it will be
      }
      if (g.b.data != nullptr && !arena_.holds(g.b.data, 0, bytes)) return false;
      groups = p.form.experts;
    }
    if (g.grouped == 1 && g.offsets != nullptr && groups > 0) {
      return groups < 1000 && arena_.holds(g.offsets, 0, (groups + 1) * 8);
    }
    return true;
  }

  // A refusal, which is looked at and freed; true where there was one.
  bool refused(ww_refusal* r) {
    if (r == nullptr) return false;
    const std::string text = ww_refusal_text(r);
    const std::string code = ww_refusal_code(r);
    ww_refusal_free(r);
    ++refused_;
    ++codes_[code];
    if (text.size() < 10 || text.find('\n') != std::string::npos) {
      throw Failure{"this is no sentence: \"" + text + "\" (" + code + ")"};
    }
    if (code == "model_findings" || text.find("fault of its own") != std::string::npos) {
      throw Failure{"the library has failed: " + text};
    }
    last_ = code + ": " + text;
    return true;
  }

  void expect_untouched(const char* what) const {
    // That offsets are not in order is known at the end.
    if (last_.find("offset") != std::string::npos) return;
    if (std::memcmp(arena_.base(), arena_.kept().data(), arena_.kept().size()) == 0) return;
    throw Failure{std::string(what) + " has written to memory"};
  }

  // Is D the product, and is all else as it was?
  void verify(Product& p, bool zero_rest) {
    ww_gemm& g = p.g();
    std::vector<std::byte> after = {arena_.base(), arena_.base() + arena_.kept().size()};
    // The inputs as they were: D may be C.
    std::memcpy(arena_.base(), arena_.kept().data(), after.size());
    GemmOperands o = matrices_of(g, c::gemm_matrices);
    if (g.packed != nullptr) o.b = view_of(p.weights);
    o.alpha = g.alpha;
    o.beta = g.beta;
    o.scaling = static_cast<Scaling>(g.scaling);
    o.epilogue = {static_cast<Activation>(g.activation), g.gated != WW_GATED_NONE,
                  static_cast<Bias>(g.bias_along), g.gated == WW_GATED_INTERLEAVED};
    if (o.epilogue.gated && g.size >= sizeof(ww_gemm)) {
      o.epilogue.gate = numbers_of(g.gate, o.epilogue.activation);
    }
    // Where one has no elements the others need no memory, and may have any extents.
    for (const MatrixView* v : {&o.a, &o.b, &o.d}) {
      if (v->rows == 0 || v->columns == 0 || v->batch == 0 || v->batch > 10'000) {
        if (after == arena_.kept() || o.d.rows * o.d.columns != 0) return;
        throw Failure{"memory was written for a result of no elements"};
      }
    }
    // For numbers that are none nothing is compared but the surroundings; times an alpha of 0
    // nothing is read, and may be anywhere.
    const auto lies_here = [&](const ww_matrix& m) { return m.data != nullptr && inside(m); };
    const bool has_numbers =
        lies_here(g.a) && (g.packed != nullptr ? !p.mutated : lies_here(g.b)) &&
        (g.alpha != 0 || g.scaling == WW_SCALING_NONE) && std::isfinite(g.alpha) &&
        std::isfinite(g.beta) && std::fabs(g.alpha) < 1e6F && std::fabs(g.beta) < 1e6F;
    std::optional<tests::Product> want;
    if (has_numbers) want.emplace(o);
    const DType type = o.d.dtype;
    const bool narrow = numeric::bits(o.a.dtype) == 8 && o.a.dtype != DType::s8;
    const double share =
        narrow ? static_cast<double>(o.a.columns / 32 + 3) * 33 * 0x1p-16 : 0x1p-16;
    const auto loss = [&](const Sum& sum) { return share * (sum.size + 0.1); };
    const std::int64_t groups = g.grouped == 1 ? o.b.batch : 1;
    for (std::int64_t l = 0; l < o.d.batch; ++l) {
      for (std::int64_t i = 0; i < o.d.rows; ++i) {
        std::int64_t group = l;
        bool is_open = false;
        if (g.grouped == 1) group = group_of(g, groups, i, is_open);
        for (std::int64_t j = 0; j < o.d.columns; ++j) {
          const std::int64_t place = (o.d.batch == 1 ? 0 : l * o.d.batch_stride) +
                                     i * o.d.row_stride + j * o.d.column_stride;
          const auto at =
              static_cast<std::byte*>(o.d.data) - arena_.base() + place * numeric::bits(type) / 8;
          std::uint64_t code = 0;
          const auto width = index(numeric::bits(type) / 8);
          std::memcpy(&code, after.data() + at, width);
          const bool is_none = g.grouped == 1 && group < 0;
          if (!is_none) std::memcpy(after.data() + at, arena_.kept().data() + at, width);
          if (is_none && !is_open && zero_rest) {
            if (code != 0) throw Failure{"a row in no group is not 0"};
            std::memcpy(after.data() + at, arena_.kept().data() + at, width);
          }
          if (is_open) std::memcpy(after.data() + at, arena_.kept().data() + at, width);
          if (is_none || is_open || !want) continue;
          Bounded w = want->bounded(g.grouped == 1 ? 0 : l, group, i, j, loss, slope);
          w.value = reference::saturated(type, w.value);
          w.bound += 0.52 * numeric::ulp(type, std::fabs(w.value) + w.bound) +
                     std::fabs(w.value) * 1e-5 + 1e-6;
          const double is = numeric::to_double(type, code);
          if (std::fabs(is - w.value) <= w.bound) continue;
          // What two spoilt tensors share may be any number, and sums may leave their type.
          if (!(std::fabs(w.value) + w.bound < (type == DType::f16 ? 60000 : 1e30))) continue;
          throw Failure{"D[" + std::to_string(l) + ", " + std::to_string(i) + ", " +
                        std::to_string(j) + "] is " + std::to_string(is) + " and should be " +
                        std::to_string(w.value) + " within " + std::to_string(w.bound)};
        }
      }
    }
    if (after == arena_.kept()) return;
    throw Failure{"memory beside the result was written"};
  }

  // The group of a row, -1 for none. For offsets that are not in order nothing is said.
  static std::int64_t group_of(const ww_gemm& g, std::int64_t groups, std::int64_t row,
                               bool& is_open) {
    std::int64_t found = -1;
    std::int64_t before = 0;
    for (std::int64_t i = 0; i <= groups; ++i) {
      std::int64_t at = 0;
      if (g.offset_type == WW_INT64) {
        at = static_cast<const std::int64_t*>(g.offsets)[i];
      } else {
        at = static_cast<const std::int32_t*>(g.offsets)[i];
      }
      if (at < before || at > g.a.rows) is_open = true;
      if (i > 0 && before <= row && row < at) found = i - 1;
      before = at;
    }
    return found;
  }

  std::string text(Product& p) const {
    ww_gemm& g = p.g();
    std::string said;
    for (const auto& member : c::gemm_matrices) {
      const ww_matrix* const m = &(g.*member.given);
      if (m->data == nullptr && m->rows == 0) continue;
      said += std::string(" ") + member.name + "={at " +
              std::to_string(static_cast<const std::byte*>(m->data) - arena_.base()) + ", " +
              std::to_string(m->rows) + " x " + std::to_string(m->columns) + ", strides " +
              std::to_string(m->row_stride) + ", " + std::to_string(m->column_stride) + ", batch " +
              std::to_string(m->batch) + " by " + std::to_string(m->batch_stride) + ", dtype " +
              std::to_string(m->dtype) + "}";
    }
    for (const auto& member : c::gemm_words) {
      said += std::string(" ") + member.name + "=" + std::to_string(g.*member.given);
    }
    const std::pair<const char*, double> words[] = {{"alpha", g.alpha},
                                                    {"beta", g.beta},
                                                    {"gate.alpha", g.gate.alpha},
                                                    {"gate.beta", g.gate.beta},
                                                    {"gate.limit", g.gate.limit},
                                                    {"sums", g.sums},
                                                    {"packed", g.packed != nullptr},
                                                    {"group", p.form.group},
                                                    {"encoding", p.form.encoding},
                                                    {"scale", p.form.scale},
                                                    {"architecture", p.architecture}};
    for (const auto& [name, value] : words) {
      said += std::string(" ") + name + "=" + std::to_string(value);
    }
    return said + (p.mutated ? " spoilt" : "");
  }

  // -- The calls

  ww_choices draw_choices(bool& given) {
    ww_choices c = {};
    c.size = sizeof c;
    given = likely(30);
    if (!given) return c;
    if (likely(40)) c.batch_invariant = 1;
    if (likely(20)) c.batch_invariant = draw_.of(strange_words);
    if (likely(30)) c.cluster_m = c.cluster_n = draw_(1, 2);
    if (likely(10)) c.cluster_m = draw_.of(strange_words);
    if (likely(10)) c.cluster_n = draw_.of(strange_words);
    if (likely(10)) c.measure = draw_.of(strange_words);
    if (likely(15)) c.kernel = draw_.of({"", "x", "hopper_bf16_bf16_128x128_pp", "%s%n"});
    if (likely(5)) c.size = draw_.of({0UL, 31UL, 16UL});
    return c;
  }

  ww_launch_options draw_launch(bool& given) {
    ww_launch_options o = {};
    o.size = sizeof o;
    given = likely(40);
    if (!given) return o;
    o.dependent = draw_(0, 1);
    o.check_offsets = likely(30) ? 1 : 0;
    o.zero_rest = draw_(0, 1);
    if (likely(10)) {
      *draw_.of({&o.dependent, &o.check_offsets, &o.zero_rest, &o.reserved}) =
          draw_.of(strange_words);
    }
    if (likely(5)) o.size = draw_.of({0UL, 23UL, 8UL});
    return o;
  }

  void run() {
    Product p;
    draw(p);
    // As many legal ones as there is time for.
    if (likely(96)) spoil(p);
    bool choices_given = false;
    bool options_given = false;
    const ww_choices choices = draw_choices(choices_given);
    const ww_launch_options options = draw_launch(options_given);
    const ww_choices* const c = choices_given ? &choices : nullptr;
    const ww_launch_options* const o = options_given ? &options : nullptr;
    std::int32_t device = likely(97) ? WW_MODEL : draw_.of(strange_words);
    const bool runs = safe(p);
    // The memory of what is not ours must not be looked at, as it is on no device at all.
    if (!runs) device = draw_.of({0, 7, -2, INT32_MIN, INT32_MAX});
    if (device != WW_MODEL && device >= 0 && ww_cuda_device_count() > 0) return;
    if (runs) {
      fill(p);
      arena_.keep();
    }
    ww_plan* made = nullptr;
    const bool wants_plan = likely(50);
    in(p, [&] {
      const bool was_refused =
          refused(ww_run(&p.g(), device, c, nullptr, o, wants_plan ? &made : nullptr));
      if (runs && was_refused) expect_untouched("a refused call");
      if (was_refused) return;
      if (!runs) throw Failure{"a call on a device that is not there was not refused"};
      ++runs_;
      verify(p, o != nullptr && o->zero_rest == 1);
    });
    if (made != nullptr && *ww_plan_explain(made) == '\0') throw Failure{"a plan says nothing"};
    ww_plan_free(made);
  }

  // Tells of a failure with the call that it is of.
  template <class Body>
  void in(Product& p, const Body& body) const {
    const std::string before = text(p);
    if (shows_) {
      std::printf("%s\n", before.c_str());
      std::fflush(stdout);
    }
    try {
      body();
    } catch (const Failure& failure) {
      throw Failure{failure.what + "\n " + before};
    }
  }

  void plan_and_launch() {
    Product p;
    draw(p);
    if (likely(85)) spoil(p);
    ww_device* device = nullptr;
    if (refused(ww_device_model(likely(95) ? draw_(1, 8) : draw_.of(strange_words),
                                likely(95) ? p.architecture : draw_.of(strange_words), &device))) {
      return;
    }
    bool choices_given = false;
    const ww_choices choices = draw_choices(choices_given);
    ww_plan* plan = nullptr;
    const bool has_plan =
        !refused(ww_plan_make(&p.g(), device, choices_given ? &choices : nullptr, &plan));
    if (has_plan &&
        (plan == nullptr || *ww_plan_name(plan) == '\0' || *ww_plan_line(plan) == '\0')) {
      throw Failure{"a plan says nothing"};
    }
    if (has_plan && likely(30)) launch(p, plan, device);
    if (has_plan && likely(10)) {
      const ww_plan* const both[] = {plan, plan};
      std::int32_t which = -1;
      ww_plan* chosen = nullptr;
      if (refused(ww_plan_fastest(both, 2, &which, &chosen)) || which != 0) {
        throw Failure{"of two of a plan there is no first"};
      }
      ww_plan_free(chosen);
    }
    ww_plan_free(plan);
    ww_device_free(device);
  }

  void launch(Product& p, const ww_plan* plan, const ww_device* device) {
    if (likely(20)) spoil(p);
    bool options_given = false;
    const ww_launch_options options = draw_launch(options_given);
    ww_workspace* workspace = nullptr;
    const std::int64_t needs = ww_plan_workspace_bytes(plan);
    std::int64_t bytes = std::max<std::int64_t>(256, needs + 256);
    if (likely(20)) bytes = draw_.of({std::int64_t{1}, needs - 1, needs, std::int64_t{0}});
    if (likely(70)) {
      if (likely(50)) {
        if (bytes > (1 << 20) || refused(ww_workspace_make(device, bytes, &workspace))) return;
      } else {
        if (bytes < 0 || bytes > (1 << 20)) return;
        if (refused(ww_workspace_over(arena_.take(bytes, likely(10) ? draw_(1, 128) : 0), bytes,
                                      &workspace))) {
          return;
        }
      }
    }
    if (likely(30)) refused(ww_prepare(plan, workspace, nullptr));
    const bool over = workspace != nullptr;
    if (safe(p)) {
      fill(p);
      // The caller's workspace changes: it is looked at only by its use.
      arena_.keep();
      in(p, [&] {
        const bool was_refused = refused(
            ww_launch(plan, &p.g(), workspace, nullptr, options_given ? &options : nullptr));
        if (was_refused) {
          if (!over) expect_untouched("a refused launch");
          return;
        }
        ++launches_;
        if (!over) verify(p, options_given && options.zero_rest == 1);
      });
      refused(ww_workspace_offsets_fault(workspace, plan, nullptr));
    }
    ww_workspace_free(workspace);
  }

  void quantise() {
    const std::int64_t m = extent();
    const std::int64_t k = extent();
    const std::int32_t scaling =
        likely(90) ? draw_(WW_SCALING_TENSOR, WW_SCALING_BLOCKWISE) : draw_.of(strange_words);
    ww_matrix x = matrix(draw_.of({DType::f32, DType::f16, DType::bf16}), m, k, 1);
    ww_matrix codes = matrix(DType::e4m3, m, k, 1);
    const std::int64_t block = draw_.of({128, 64, 32});
    ww_matrix scales = scaling == WW_SCALING_BLOCKWISE
                           ? matrix(DType::f32, m, (k + block - 1) / block, 1, likely(50))
                           : matrix(DType::f32, scaling == WW_SCALING_TENSOR ? 1 : m, 1, 1, true);
    const bool legal = likely(30);
    if (!legal) {
      spoil(*draw_.of({&x, &codes, &scales}));
      if (likely(30)) spoil(*draw_.of({&x, &codes, &scales}));
    }
    for (const ww_matrix* each : {&x, &codes, &scales}) {
      if (!inside(*each)) return;
      if (static_cast<__int128>(std::max<std::int64_t>(1, each->rows)) *
              std::max<std::int64_t>(1, each->columns) * std::max<std::int64_t>(1, each->batch) >
          1'000'000) {
        return;
      }
    }
    if (legal) {
      fill(x);
      fill(scales, true);
    }
    arena_.keep();
    const std::int32_t given = likely(80) ? 0 : draw_(-1, 2);
    const std::int32_t device = likely(95) ? WW_MODEL : 1 << draw_(0, 30);
    if (device != WW_MODEL && ww_cuda_device_count() > 0) return;
    if (refused(ww_quantise(likely(98) ? &x : nullptr, likely(98) ? &codes : nullptr,
                            likely(98) ? &scales : nullptr, scaling, given, device, nullptr))) {
      expect_untouched("a refused quantisation");
      return;
    }
    ++quantised_;
    if (!legal) return;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < k; ++j) {
        const double scale = scaling == WW_SCALING_TENSOR ? element(view_of(scales), 0, 0, 0)
                             : scaling == WW_SCALING_ROW_COLUMN
                                 ? element(view_of(scales), 0, i, 0)
                                 : element(view_of(scales), 0, i, j / block);
        const double want = element(view_of(x), 0, i, j);
        const double is = element(view_of(codes), 0, i, j) * scale;
        // Half a unit of e4m3's three bits, or of its smallest number. Scales given may saturate.
        if (std::fabs(is - want) <= std::fabs(want) * 0x1.1p-4 + scale * 0x1p-9) continue;
        throw Failure{"x[" + std::to_string(i) + ", " + std::to_string(j) + "] is " +
                      std::to_string(want) + " and was quantised to " + std::to_string(is)};
      }
    }
  }

  // A legal mixture of experts, and its memory.
  void draw(ww_gate& g) {
    if (likely(70)) g.limit = draw_.of({0.5F, 2.0F, 10.0F});
    if (likely(40)) g.alpha = draw_.of({0.5F, 1.702F});
    if (likely(40)) g.beta = draw_.of({-1.0F, 0.25F, 1.0F});
  }

  void draw(ww_moe& m) {
    ww_moe_init(&m);
    const std::int64_t tokens = draw_.of({0, 1, 3, 9});
    const bool routed = !likely(12);
    const std::int64_t experts = routed ? draw_(1, 4) : 1;
    m.apply_router_weight_on_input = routed && likely(10) ? 1 : 0;
    const std::int64_t top_k = m.apply_router_weight_on_input == 1 ? 1 : draw_(1, 3);
    if (likely(15)) m.gate_up = WW_GATED_NONE;
    if (routed && likely(20)) m.combine = draw_(WW_COMBINE_WEIGHTED, WW_COMBINE_NONE);
    if (routed && m.combine != WW_COMBINE_NONE && likely(20)) m.routed_scaling_factor = -1.5F;
    const std::int64_t parts = m.gate_up == WW_GATED_NONE ? 1 : 2;
    const std::int64_t hidden = draw_.of({8, 24, 64, 128});
    const std::int64_t inner = draw_.of({8, 32, 64});
    const DType weights = likely(40) ? DType::e4m3 : DType::bf16;
    const std::int64_t block = draw_.of({128, 128, 64, 32});
    const auto blocks = [block](std::int64_t extent) { return (extent + block - 1) / block; };
    const bool codes = weights == DType::e4m3 && m.apply_router_weight_on_input == 0 && likely(30);
    m.x = matrix(codes ? DType::e4m3 : DType::bf16, tokens, hidden, 1);
    if (routed) {
      m.topk_ids = matrix(DType::s32, tokens, top_k, 1, false, true);
      for (std::int64_t i = 0; i < tokens * top_k; ++i) {
        static_cast<std::int32_t*>(m.topk_ids.data)[i] = draw_(-1, 6);
      }
      m.topk_weights = matrix(draw_.of({DType::f32, DType::bf16, DType::f16}), tokens, top_k, 1);
    }
    m.w13 = matrix(weights, parts * inner, hidden, experts);
    m.w2 = matrix(weights, hidden, inner, experts);
    const std::int64_t results = m.combine == WW_COMBINE_SUM ? tokens : tokens * top_k;
    m.d = matrix(draw_.of({DType::bf16, DType::f32}), results, hidden, 1);
    if (routed && m.combine == WW_COMBINE_SUM && likely(20)) {
      const DType type = draw_.of({DType::bf16, DType::f16, DType::f32});
      m.shared_output = matrix(type, tokens, hidden, 1);
    }
    if (weights == DType::e4m3 && likely(50)) {
      m.scaling = WW_SCALING_ROW_COLUMN;
      if (codes) m.scale_x = matrix(DType::f32, likely(30) ? 1 : tokens, 1, 1);
      m.scale_w13 = matrix(DType::f32, parts * inner, 1, experts, false, true);
      m.scale_w2 = matrix(DType::f32, hidden, 1, experts, false, true);
    } else if (weights == DType::e4m3) {
      m.scaling = WW_SCALING_BLOCKWISE;
      if (codes) m.scale_x = matrix(DType::f32, tokens, blocks(hidden), 1);
      m.scale_w13 = matrix(DType::f32, blocks(parts * inner), blocks(hidden), experts);
      m.scale_w2 = matrix(DType::f32, blocks(hidden), blocks(inner), experts);
    }
    if (likely(30)) m.bias13 = matrix(DType::f32, parts * inner, 1, experts, false, true);
    if (likely(30)) m.bias2 = matrix(DType::f32, hidden, 1, experts, false, true);
    if (parts == 1) {
      m.activation = draw_.of({WW_ACTIVATION_RELU2, WW_ACTIVATION_GELU, WW_ACTIVATION_SILU});
    } else {
      if (likely(50))
        m.activation =
            draw_.of({WW_ACTIVATION_SWIGLU_OAI, WW_ACTIVATION_GELU, WW_ACTIVATION_GELU_ERF});
      if (likely(30)) m.gate_up = WW_GATED_INTERLEAVED;
      if (likely(30)) draw(m.gate);
    }
    if (routed && likely(30)) {
      m.first_expert = draw_(0, 2);
      m.experts_total = experts + 2;
    }
  }

  void spoil(ww_moe& m) {
    if (likely(70)) {
      spoil(m.*draw_.of(c::moe_matrices).given);
    } else if (likely(60)) {
      (likely(20) ? m.sums_w13 : m.*draw_.of(c::moe_words).given) = draw_.of(strange_words);
    } else if (likely(20)) {
      *draw_.of({&m.gate.alpha, &m.gate.beta, &m.gate.limit}) = draw_.of(strange_numbers);
    } else {
      *draw_.of({&m.first_expert, &m.experts_total}) = draw_.of(strange);
    }
  }

  void moe() {
    ww_moe m;
    draw(m);
    const bool spoilt = likely(70);
    if (spoilt) spoil(m);
    const bool runs = std::ranges::all_of(
        c::moe_matrices, [&](const auto& member) { return inside(m.*member.given); });
    ww_moe_choices choices = {};
    choices.size = sizeof choices;
    choices.batch_invariant = likely(20) ? 1 : 0;
    choices.by_index = draw_(0, likely(5) ? 3 : 2);
    if (likely(20)) choices.sums_in_product = WW_NO;
    for (const c::MoeChoiceMember& member : c::moe_choices) {
      if (likely(20)) choices.*member.given = draw_(0, likely(5) ? 3 : 2);
    }
    ww_moe_plan* made = nullptr;
    if (!runs) {
      ww_device* device = nullptr;
      if (refused(ww_device_open("model", &device))) throw Failure{"there is no model"};
      for (ww_matrix* each : {&m.x, &m.w13, &m.w2, &m.d}) each->data = nullptr;
      refused(ww_moe_plan_make(&m, device, &choices, &made));
      ww_device_free(device);
    } else {
      fill(m, c::moe_matrices);
      arena_.keep();
      if (refused(ww_moe_run(&m, WW_MODEL, &choices, nullptr, nullptr, &made))) {
        expect_untouched("a refused mixture");
      } else {
        ++mixtures_;
        verify(m, spoilt);
      }
    }
    if (made != nullptr && *ww_moe_plan_explain(made) == '\0') throw Failure{"a plan says nothing"};
    if (made != nullptr && likely(30)) {
      const ww_moe_plan* const both[] = {made, made};
      std::int32_t which = -1;
      ww_moe_plan* chosen = nullptr;
      if (refused(ww_moe_plan_fastest(both, 2, &which, &chosen)) || which != 0) {
        throw Failure{"of two of a mixture's plan there is no first"};
      }
      ww_moe_plan_free(chosen);
    }
    ww_moe_plan_free(made);
  }

  // Is d the mixture, and is all else as it was? For spoilt ones only the latter.
  void verify(const ww_moe& m, bool spoilt) {
    MixtureOperands o = matrices_of(m, c::moe_matrices);
    o.scaling = static_cast<Scaling>(m.scaling);
    o.activation = static_cast<Activation>(m.activation);
    o.gate = numbers_of(m.gate, o.activation);
    o.is_gated = m.gate_up != WW_GATED_NONE;
    o.interleaved = m.gate_up == WW_GATED_INTERLEAVED;
    o.combine = static_cast<Combine>(m.combine);
    o.apply_router_weight_on_input = m.apply_router_weight_on_input == 1;
    o.routed_scaling_factor = m.routed_scaling_factor;
    o.first_expert = m.first_expert;
    o.experts_total = m.experts_total;
    if (!spoilt && o.d.rows > 0) {
      const reference::MixtureVerdict verdict = reference::check_mixture(o);
      if (verdict.failures > 0) {
        throw Failure{"d[" + std::to_string(verdict.worst_token) + ", " +
                      std::to_string(verdict.worst_column) + "] of a mixture is " +
                      std::to_string(verdict.worst_got) + " and should be " +
                      std::to_string(verdict.worst_want) + " within " +
                      std::to_string(verdict.worst_allowed)};
      }
    }
    const int bytes = numeric::bits(o.d.dtype) / 8;
    for (std::int64_t i = 0; i < o.d.rows && o.d.columns > 0; ++i) {
      auto* const row = static_cast<std::byte*>(o.d.data) + i * o.d.row_stride * bytes;
      std::memcpy(row, arena_.kept().data() + (row - arena_.base()), index(o.d.columns * bytes));
    }
    if (std::memcmp(arena_.base(), arena_.kept().data(), arena_.kept().size()) != 0) {
      throw Failure{"memory beside the result of a mixture was written"};
    }
  }

  void int4() {
    Product p;
    const std::int64_t n = extent();
    const std::int64_t k = draw_.of({0, 1, 32, 64, 100, 128, 256});
    draw_weights(p, n, k, draw_(1, 3));
    ww_packed_form& f = p.form;
    if (likely(30)) f.zero_points = 1;
    const bool legal = likely(15);
    if (!legal) spoil(f);
    if (!legal && likely(30)) spoil(p.weights);
    std::int64_t bytes = 0;
    const bool has_bytes = !refused(ww_packed_bytes(&f, &bytes));
    if (has_bytes && bytes < WW_PACKED_HEADER) throw Failure{"weights have less than no bytes"};
    if (likely(20)) {
      ww_packed_form form = {};
      std::byte* const at = arena_.take(512, draw_(0, 8));
      for (int i = 0; i < 512; ++i) at[i] = static_cast<std::byte>(draw_.seed());
      if (likely(50)) std::memset(at, 0, 512);
      refused(ww_packed_read(likely(95) ? at : nullptr,
                             draw_.of({std::int64_t{0}, std::int64_t{-1}, std::int64_t{127},
                                       std::int64_t{128}, std::int64_t{512}}),
                             likely(95) ? &form : nullptr));
    }
    if (!inside(p.weights) || p.weights.rows > 1000 || p.weights.columns > 1000 ||
        p.weights.batch > 100) {
      return;
    }
    if (likely(20)) {
      ww_matrix scales = matrix(draw_.of({DType::bf16, DType::f16, DType::f32, DType::u8}), n,
                                std::max<std::int64_t>(1, k / 32), 1);
      ww_matrix codes = matrix(draw_.of({DType::u8, DType::s32, DType::s8}), n, k / 2, 1);
      if (likely(50)) spoil(codes);
      if (likely(50)) spoil(scales);
      if (!inside(codes) || !inside(scales) || codes.rows > 1000 || codes.columns > 1000 ||
          codes.batch > 100) {
        return;
      }
      ww_packed_form form = f;
      refused(ww_int4_pack(
          draw_.of({"int4", "gptq", "gptq-v2", "awq", "w4afp8", "compressed-tensors", "", "x"}),
          likely(98) ? &codes : nullptr, likely(98) ? &scales : nullptr,
          likely(30) ? &codes : nullptr, likely(10) ? &scales : nullptr, &form, nullptr));
      ww_packed_form of_e2m1 = f;
      of_e2m1.encoding = draw_.of({std::int32_t{WW_PACKED_ANY}, std::int32_t{WW_PACKED_MXF4_BF16},
                                   std::int32_t{WW_PACKED_NVF4_F16}, f.encoding});
      float alphas[101];
      refused(ww_fp4_pack(draw_.of({"gpt-oss", "deepseek-mxfp4", "modelopt-nvfp4", "int4", ""}),
                          likely(98) ? &codes : nullptr, likely(98) ? &scales : nullptr,
                          likely(30) ? &scales : nullptr, &of_e2m1, likely(50) ? alphas : nullptr,
                          nullptr));
    }
    // `packed` has room only for the legal form, and extents come from the weights.
    const bool fits = has_bytes && p.weights.rows == f.n && p.weights.columns == f.k &&
                      std::max<std::int64_t>(1, p.weights.batch) == f.experts && bytes < (1 << 20);
    if (!fits) return;
    std::byte* const packed = arena_.take(bytes, 0);
    if (legal) fill(p.weights);
    ww_packed_form made = f;
    if (refused(ww_int4_quantise(likely(98) ? &p.weights : nullptr, &made, packed))) return;
    ++packed_;
    ww_packed_form back = {};
    back.size = sizeof back;
    if (refused(ww_packed_read(packed, bytes, &back)))
      throw Failure{"what was packed is not read: " + last_};
    if (back.n != f.n || back.k != f.k || back.experts != f.experts || back.group != f.group) {
      throw Failure{"what was packed reads as another form"};
    }
    if (bytes > WW_PACKED_HEADER) {  // a damaged bit is noticed
      packed[draw_(0, static_cast<int>(bytes) - 1)] ^= static_cast<std::byte>(1 << draw_(0, 7));
      if (!refused(ww_packed_read(packed, bytes, &back))) throw Failure{"damage is not noticed"};
    }
  }

  // The same values as a view of another kind: rows or matrices apart, every second, transposed, at
  // an odd address, backwards; or all rows the first.
  ww_matrix laid(const ww_matrix& m) {
    ww_matrix v = m;
    const std::int64_t bytes = numeric::bits(static_cast<DType>(m.dtype)) / 8;
    const int kind = draw_(0, 6);
    v.column_stride = kind == 1 ? 2 : kind == 2 ? m.rows : 1;
    v.row_stride = kind == 2 ? 1 : m.columns * v.column_stride;
    if (kind == 0) v.row_stride += draw_(1, 40);
    if (kind == 6) v.row_stride = 0;
    v.batch_stride = kind == 2 ? m.rows * m.columns
                               : m.rows * std::max(m.columns * v.column_stride, v.row_stride);
    if (kind == 3) v.batch_stride += draw_(1, 40);
    std::byte* at = arena_.take(m.batch * v.batch_stride * bytes, kind == 4 ? bytes : 0);
    if (kind == 5) {  // its first row is the last in memory
      at += (m.rows - 1) * v.row_stride * bytes;
      v.row_stride = -v.row_stride;
    }
    v.data = at;
    for (std::int64_t b = 0; b < m.batch; ++b) {
      for (std::int64_t i = m.rows; i-- > 0;) {
        for (std::int64_t j = 0; j < m.columns; ++j) {
          std::memcpy(place_in(v, b, i, j), place_in(m, b, i, j), index(bytes));
        }
      }
    }
    return v;
  }
  static std::byte* place_in(const ww_matrix& m, std::int64_t b, std::int64_t i, std::int64_t j) {
    return static_cast<std::byte*>(m.data) +
           (b * m.batch_stride + i * m.row_stride + j * m.column_stride) *
               numeric::bits(static_cast<DType>(m.dtype)) / 8;
  }
  // Its elements one behind the other.
  ww_matrix contiguous(const ww_matrix& m) {
    ww_matrix to = m;
    const std::int64_t bytes = numeric::bits(static_cast<DType>(m.dtype)) / 8;
    to.row_stride = m.columns;
    to.column_stride = 1;
    to.batch_stride = m.rows * m.columns;
    to.data = arena_.take(m.batch * to.batch_stride * bytes, 0);
    for (std::int64_t b = 0; b < m.batch; ++b) {
      for (std::int64_t i = 0; i < m.rows; ++i) {
        for (std::int64_t j = 0; j < m.columns; ++j) {
          std::memcpy(place_in(to, b, i, j), place_in(m, b, i, j), index(bytes));
        }
      }
    }
    return to;
  }

  // What packs weights takes views for what they are, or refuses them.
  void views() {
    const std::int64_t n = 8 * draw_(1, 12);
    const std::int64_t k = 128 * draw_(1, 2);
    const std::int64_t experts = draw_(1, 2);
    const auto drawn = [&](DType type, std::int64_t rows, std::int64_t columns, bool numbers) {
      ww_matrix m = contiguous(matrix(type, rows, columns, experts, false, true));
      const std::int64_t bytes = m.batch * rows * columns * numeric::bits(type) / 8;
      if (numbers) fill(m, true);
      for (std::int64_t i = 0; !numbers && i < bytes; ++i) {
        static_cast<std::byte*>(m.data)[i] = static_cast<std::byte>(draw_.seed() >> 20);
      }
      return m;
    };
    const char* const layout =
        draw_.of({"floats", "int4", "gptq-v2", "awq", "gpt-oss", "modelopt-nvfp4"});
    const std::string_view word = layout;
    const bool is_e2m1 = word == "gpt-oss" || word == "modelopt-nvfp4";
    ww_matrix all[4] = {};  // codes or weights, scales, zeros or the tensors' scales, group index
    if (word == "floats") {
      all[0] = drawn(draw_.of({DType::bf16, DType::f32}), n, k, true);
    } else if (word == "int4") {
      all[0] = drawn(DType::s8, n, k / 2, false);
      all[1] = drawn(DType::bf16, n, k / 128, true);
    } else if (is_e2m1) {
      all[0] = drawn(DType::u8, n, k / 2, false);
      all[1] = drawn(word == "gpt-oss" ? DType::u8 : DType::e4m3, n,
                     k / (word == "gpt-oss" ? 32 : 16), word != "gpt-oss");
      if (word == "gpt-oss") std::memset(all[1].data, 0x7f, index(experts * n * k / 32));
      if (word != "gpt-oss") all[2] = drawn(DType::f32, 1, 1, true);
    } else {
      all[0] =
          word == "awq" ? drawn(DType::s32, k, n / 8, false) : drawn(DType::s32, k / 8, n, false);
      all[1] = drawn(DType::f16, k / 128, n, true);
      all[2] = drawn(DType::s32, k / 128, n / 8, false);
    }
    ww_packed_form form;
    ww_packed_form_init(&form);
    form.experts = experts;
    form.n = n;
    form.k = k;
    if (word == "floats") form.encoding = WW_PACKED_EX;
    float alphas[2];
    const auto pack = [&](ww_packed_form& f, void* to) {
      if (word == "floats") return ww_int4_quantise(&all[0], &f, to);
      ww_matrix* const third = all[2].data != nullptr ? &all[2] : nullptr;
      return is_e2m1 ? ww_fp4_pack(layout, &all[0], &all[1], third, &f, alphas, to)
                     : ww_int4_pack(layout, &all[0], &all[1], third, nullptr, &f, to);
    };
    int which = draw_(0, 2);
    if (all[which].data == nullptr) which = 0;
    const ww_matrix viewed = laid(all[which]);
    all[which] = contiguous(viewed);
    ww_packed_form of_copy = form;
    std::int64_t bytes = 0;
    if (refused(ww_packed_bytes(&of_copy, &bytes))) throw Failure{"a legal form is refused"};
    const std::int64_t room = 4 * bytes + 65536;  // of any group
    std::byte* const right = arena_.take(room, 0);
    std::byte* const got = arena_.take(room, 0);
    std::memset(right, 0, index(room));
    std::memset(got, 0, index(room));
    if (refused(pack(of_copy, right))) throw Failure{"legal weights are refused: " + last_};
    all[which] = viewed;
    ww_packed_form of_view = form;
    if (refused(pack(of_view, got))) return;
    if (std::memcmp(right, got, index(room)) != 0) {
      throw Failure{std::string("weights in a view were packed as others: ") + layout};
    }
    ++packed_;
  }

  void handles() {
    ww_device* device = nullptr;
    const char* const name =
        draw_.of({"model", "h200", "b200", "model:rtx5090", "model:b200", "cuda:7", "cuda:-1",
                  "cuda:99999999999999999999", "", "x", "model:", "model:model", "%n"});
    if (refused(ww_device_open(name, &device))) return;
    if (*ww_device_name(device) == '\0') throw Failure{"a device has no name"};
    ww_workspace* workspace = nullptr;
    // Sizes that no machine has, and some that every one has.
    const std::int64_t bytes = likely(50) ? draw_(-2, 1 << 20) : draw_.of(strange);
    if (bytes >= (1LL << 31) - 1 && bytes < (1LL << 50)) {
      ww_device_free(device);
      return;
    }
    if (!refused(ww_workspace_make(device, bytes, &workspace)) &&
        ww_workspace_bytes(workspace) != bytes) {
      throw Failure{"a workspace is of another size"};
    }
    ww_workspace_free(workspace);
    ww_device_free(device);
  }

  void nulls() {
    Product p;
    draw(p);
    draw_weights(p, 64, 128, 1);
    ww_device* device = nullptr;
    ww_plan* plan = nullptr;
    ww_workspace* workspace = nullptr;
    std::int64_t bytes = 0;
    const auto must_refuse = [&](ww_refusal* r) {
      if (!refused(r)) throw Failure{"a null pointer was not refused"};
      const bool says =
          last_.find(" null") != std::string::npos || last_.find("no plan") != std::string::npos;
      if (!says) throw Failure{"a null pointer is refused as another thing: " + last_};
    };
    must_refuse(ww_run(nullptr, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    must_refuse(ww_plan_make(nullptr, nullptr, nullptr, nullptr));
    must_refuse(ww_plan_make(&p.g(), nullptr, nullptr, &plan));
    must_refuse(ww_launch(nullptr, &p.g(), nullptr, nullptr, nullptr));
    must_refuse(ww_prepare(nullptr, nullptr, nullptr));
    must_refuse(ww_workspace_make(nullptr, 1, &workspace));
    must_refuse(ww_workspace_over(nullptr, 1, nullptr));
    must_refuse(ww_workspace_offsets_fault(nullptr, nullptr, nullptr));
    must_refuse(ww_device_open(nullptr, &device));
    must_refuse(ww_device_open("model", nullptr));
    must_refuse(ww_device_model(1, 90, nullptr));
    must_refuse(ww_packed_bytes(nullptr, &bytes));
    must_refuse(ww_packed_bytes(&p.form, nullptr));
    must_refuse(ww_packed_read(nullptr, 128, nullptr));
    must_refuse(ww_int4_quantise(nullptr, nullptr, nullptr));
    must_refuse(ww_int4_pack(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    must_refuse(ww_fp4_pack(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    must_refuse(ww_pack_on(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                           nullptr, WW_MODEL, nullptr));
    must_refuse(ww_int4_pack_on(nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr));
    must_refuse(ww_int4_pack_on(&p.form, nullptr, nullptr, WW_BF16, nullptr, nullptr, 0, nullptr));
    ww_plan* chosen = nullptr;
    must_refuse(ww_plan_fastest(nullptr, 1, nullptr, &chosen));
    must_refuse(ww_plan_fastest(nullptr, 0, nullptr, nullptr));
    ww_moe_plan* mixture = nullptr;
    must_refuse(ww_moe_run(nullptr, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    must_refuse(ww_moe_plan_make(nullptr, nullptr, nullptr, &mixture));
    must_refuse(ww_moe_plan_fastest(nullptr, 1, nullptr, &mixture));
    must_refuse(ww_moe_plan_fastest(nullptr, 0, nullptr, nullptr));
    must_refuse(ww_moe_launch(nullptr, nullptr, nullptr, nullptr, nullptr));
    must_refuse(ww_moe_prepare(nullptr));
    must_refuse(ww_moe_ids_fault(nullptr, nullptr, nullptr));
    must_refuse(ww_quantise(nullptr, nullptr, nullptr, 0, 0, WW_MODEL, nullptr));
    must_refuse(ww_quantise_blocks(nullptr, WW_MODEL, nullptr));
    must_refuse(ww_order_scales(nullptr, nullptr, 0, nullptr, WW_MODEL, nullptr));
    ww_gemm_init(nullptr);
    ww_packed_form_init(nullptr);
    for (const char* said :
         {ww_refusal_text(nullptr), ww_refusal_code(nullptr), ww_refusal_tensor(nullptr),
          ww_refusal_rule(nullptr), ww_refusal_nearest(nullptr), ww_device_name(nullptr),
          ww_plan_name(nullptr), ww_plan_kernel(nullptr), ww_plan_explain(nullptr),
          ww_plan_line(nullptr), ww_moe_plan_name(nullptr)}) {
      if (said == nullptr || *said != '\0') throw Failure{"nothing has a text"};
    }
    if (ww_plan_workspace_bytes(nullptr) != 0 || ww_workspace_bytes(nullptr) != 0) {
      throw Failure{"nothing has a size"};
    }
    ww_refusal_free(nullptr);
    ww_device_free(nullptr);
    ww_plan_free(nullptr);
    ww_workspace_free(nullptr);
  }

  std::uint64_t seed_;
  bool shows_;
  Draws draw_{0};
  Arena arena_;
  std::string last_;
  long long runs_ = 0, launches_ = 0, mixtures_ = 0, quantised_ = 0, packed_ = 0, refused_ = 0;
  std::map<std::string, long long> codes_;
};

}  // namespace
}  // namespace warpwright::tests

int main(int argc, char** argv) {
  std::uint64_t count = 20000;
  std::uint64_t first = 0;
  std::uint64_t seed = warpwright::tests::run_seed();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    std::uint64_t* const to = name == "--count"   ? &count
                              : name == "--seed"  ? &seed
                              : name == "--first" ? &first
                                                  : nullptr;
    if (to == nullptr) {
      std::fputs(warpwright::tests::usage, stderr);
      return 2;
    }
    *to = std::strtoull(argv[i + 1], nullptr, 10);
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    std::signal(signal, warpwright::tests::tell_crash);
  }
  std::printf("%llu random calls of the C ABI, seed %llu\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  warpwright::tests::Calls calls(seed, count == 1);
  for (std::uint64_t i = first; i < first + count; ++i) {
    try {
      calls.call(i);
    } catch (const warpwright::tests::Failure& failure) {
      std::printf("call %llu of seed %llu: %s\n", static_cast<unsigned long long>(i),
                  static_cast<unsigned long long>(seed), failure.what.c_str());
      return 1;
    }
  }
  calls.print();
  return 0;
}
