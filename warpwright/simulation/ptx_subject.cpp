#include "warpwright/simulation/ptx_subject.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/simulation/model_parts.h"
#include "warpwright/simulation/trial.h"

namespace warpwright::device {
namespace {

using ptx::Fault;

std::size_t size_of(const PtxArgument& a) {
  if (a.map) return a.struct_bytes;
  return a.buffer ? sizeof(void*) : a.value.size();
}

struct PtxSubject final : Subject {
  const PtxLaunch& launch;
  explicit PtxSubject(const PtxLaunch& of) : launch(of) {}
  [[nodiscard]] std::unique_ptr<Trial> trial() const override;
  [[nodiscard]] std::vector<SubjectEdit> edits() const override;
  [[nodiscard]] std::unique_ptr<Trial> edited(std::size_t which) const override;

 private:
  const std::vector<ptx::Edit>& all_edits() const;
  mutable std::once_flag looked_;
  mutable std::vector<ptx::Edit> edits_;
};

class PtxTrial final : public Trial {
 public:
  explicit PtxTrial(const PtxLaunch& launch) : PtxTrial(launch, launch.kernel) {}
  PtxTrial(const PtxLaunch& launch, ptx::Kernel kernel)
      : launch_(launch),
        kernel_(std::move(kernel)),
        params_(host_memory(static_cast<std::int64_t>(kernel_.parameter_bytes()))) {
    for (const PtxBuffer& b : launch.buffers)
      memory_.push_back(host_memory(static_cast<std::int64_t>(b.bytes.size())));
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      write(launch.arguments[i], params_.get() + kernel_.parameters()[i].at);
    }
  }

  Result<model::Report> run(ModelOptions options) override {
    std::vector<model::Allocation> allocations;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const PtxBuffer& b = launch_.buffers[i];
      std::ranges::copy(b.bytes, memory_[i].get());
      if (b.bytes.empty()) continue;
      allocations.push_back(
          {memory_[i].get(), static_cast<std::int64_t>(b.bytes.size()), b.name, b.writable});
    }
    kernel_.add_variables(allocations);
    model::GridLaunch grid;
    grid.shape = kernel_.shape(launch_.launch);
    grid.allocations = allocations;
    grid.body = kernel_.body(params_.get(), launch_.launch, allocations);
    grid.dependent = kernel_.waits_for_grids();
    grid.name = kernel_.entry();
    Result<model::Report> report = run_on_model({grid}, model_facts(launch_.sms), options);
    for (std::size_t i = 0; launch_.ended && i < memory_.size(); ++i) {
      launch_.ended(options, i, {memory_[i].get(), launch_.buffers[i].bytes.size()});
    }
    return report;
  }

  ptx::Kernel& kernel() { return kernel_; }

  [[nodiscard]] int results() const override { return 1; }
  [[nodiscard]] ResultName name(int /*which*/) const override {
    return {"what the buffers hold", "expected result"};
  }
  [[nodiscard]] std::vector<std::byte> content(int /*which*/) const override {
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const std::byte* const begin = memory_[i].get();
      all.insert(all.end(), begin, begin + launch_.buffers[i].bytes.size());
    }
    return all;
  }
  [[nodiscard]] std::optional<Judged> is_right(int /*which*/) const override {
    if (!is_judged()) return std::nullopt;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const PtxBuffer& b = launch_.buffers[i];
      if (!b.expected) continue;
      const auto differ =
          std::mismatch(b.expected->begin(), b.expected->end(), memory_[i].get()).first;
      if (differ == b.expected->end()) continue;
      return Judged{false, "byte " + std::to_string(differ - b.expected->begin()) + " of " +
                               b.name + " is not the expected one"};
    }
    return Judged{true};
  }
  [[nodiscard]] bool is_judged() const override {
    return std::ranges::any_of(launch_.buffers,
                               [](const PtxBuffer& b) { return b.expected.has_value(); });
  }

 private:
  void write(const PtxArgument& a, std::byte* to) const {
    if (!a.buffer) {
      std::ranges::copy(a.value, to);
      return;
    }
    const auto address =
        static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory_[*a.buffer].get()) +
                                   static_cast<std::uintptr_t>(a.offset));
    if (!a.map) {
      std::memcpy(to, &address, sizeof address);
      return;
    }
    model::TensorMapFields fields = *a.map;
    fields.base = address;
    const model::TensorMap map = model::encode(fields);
    std::fill_n(to, a.struct_bytes, std::byte{0});
    std::memcpy(to, &map, sizeof map);
  }

  const PtxLaunch& launch_;
  ptx::Kernel kernel_;
  std::shared_ptr<std::byte> params_;
  std::vector<std::shared_ptr<std::byte>> memory_;
};

std::unique_ptr<Trial> PtxSubject::trial() const {
  return std::make_unique<PtxTrial>(launch);
}

// Those of the statements that run.
const std::vector<ptx::Edit>& PtxSubject::all_edits() const {
  std::call_once(looked_, [this] {
    PtxTrial trial(launch);
    trial.kernel().note_statements();
    for (const model::Mode mode : {model::Mode::latest, model::Mode::eager}) {
      ModelOptions how;
      how.mode = mode;
      static_cast<void>(trial.run(how));
    }
    edits_ = trial.kernel().edits();
  });
  return edits_;
}

std::vector<SubjectEdit> PtxSubject::edits() const {
  return as_subject_edits(all_edits(), launch.kernel);
}

std::unique_ptr<Trial> PtxSubject::edited(std::size_t which) const {
  return std::make_unique<PtxTrial>(launch, launch.kernel.with(all_edits().at(which)));
}

void check_arguments(const PtxLaunch& launch) {
  const auto& parameters = launch.kernel.parameters();
  const auto count = [](std::size_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  if (launch.arguments.size() != parameters.size()) {
    throw Fault(0, count(launch.arguments.size(), "argument") + " for " + launch.kernel.entry() +
                       ", which takes " + count(parameters.size(), "parameter"));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const PtxArgument& a = launch.arguments[i];
    const std::string which = "argument " + std::to_string(i + 1);
    if (size_of(a) != parameters[i].bytes) {
      throw Fault(0, which + " has " + count(size_of(a), "byte") + ", and the parameter " +
                         parameters[i].name + " " + std::to_string(parameters[i].bytes));
    }
    if (!a.map) continue;
    model::TensorMapFields fields = *a.map;
    fields.base = 256;  // as aligned as every buffer is
    fields.base += static_cast<std::uint64_t>(a.offset);
    if (const auto fault = model::invalid(fields)) throw Fault(0, which + ": " + *fault);
  }
  static_cast<void>(launch.kernel.shape(launch.launch));
}

}  // namespace

std::optional<PtxNumber> PtxNumber::parse(std::string_view word) {
  for (const int bits : {8, 16, 32, 64}) {
    for (const char kind : {'u', 's', 'b'}) {
      if (word == kind + std::to_string(bits)) return PtxNumber{bits, kind == 's'};
    }
  }
  const auto type = numeric::parse_dtype(word);
  if (!type || !numeric::is_float(*type) || numeric::bits(*type) % 8 != 0) return std::nullopt;
  return PtxNumber{numeric::bits(*type), true, type};
}

std::int64_t PtxNumber::least() const {
  return is_signed ? std::int64_t{-1} << (bits - 1) : 0;
}

std::uint64_t PtxNumber::most() const {
  return ~std::uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
}

std::vector<std::byte> PtxNumber::bytes(std::uint64_t integer) const {
  std::vector<std::byte> all(static_cast<std::size_t>(bits) / 8);
  std::memcpy(all.data(), &integer, all.size());
  return all;
}

std::vector<std::byte> PtxNumber::bytes(double number) const {
  return bytes(numeric::from_double(floats.value(), number));
}

std::optional<std::string> PtxMap::fault() const {
  const std::size_t rank = extents.size();
  if (rank == 0 || rank > model::TensorMapFields::max_rank) return "1 to 5 extents";
  if (box.empty()) return "a box";
  if (box.size() != rank) {
    return "a box of as many extents as the tensor's, " + std::to_string(rank);
  }
  if (std::ranges::any_of(box, [](std::int64_t e) { return e < 1 || e > 256; })) {
    return "a box of extents from 1 to 256";
  }
  if (pitches.size() >= rank) return "a pitch for each extent but the innermost";
  if (std::ranges::any_of(extents, [](std::int64_t e) { return e < 1; }) ||
      std::ranges::any_of(pitches, [](std::int64_t e) { return e < 1; })) {
    return "extents and pitches above 0";
  }
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128) {
    return "a swizzle of none, 32, 64 or 128";
  }
  return std::nullopt;
}

model::TensorMapFields PtxMap::fields() const {
  model::TensorMapFields map;
  const std::size_t rank = extents.size();
  map.rank = static_cast<std::uint8_t>(rank);
  map.element_bits = static_cast<std::uint8_t>(element_bits);
  map.element_kind = type == DType::f32 ? 0 : type == DType::f16 ? 1 : type == DType::bf16 ? 2 : 3;
  map.swizzle = swizzle == 128  ? atom::SmemSwizzle::b128
                : swizzle == 64 ? atom::SmemSwizzle::b64
                : swizzle == 32 ? atom::SmemSwizzle::b32
                                : atom::SmemSwizzle::none;
  for (std::size_t d = 0; d < rank; ++d) {
    map.extents[d] = static_cast<std::uint64_t>(extents[rank - 1 - d]);
    map.box[d] = static_cast<std::uint16_t>(box[rank - 1 - d]);
  }
  std::uint64_t stride = map.extents[0] * map.element_bits / 8;
  for (std::size_t d = 0; d + 1 < rank; ++d) {
    if (d < pitches.size()) stride = static_cast<std::uint64_t>(pitches[pitches.size() - 1 - d]);
    map.strides[d] = stride;
    stride *= map.extents[d + 1];
  }
  return map;
}

std::unique_ptr<Subject> ptx_subject(const PtxLaunch& launch) {
  check_arguments(launch);
  return std::make_unique<PtxSubject>(launch);
}

std::vector<SubjectEdit> as_subject_edits(const std::vector<ptx::Edit>& edits,
                                          const ptx::Kernel& kernel) {
  std::vector<SubjectEdit> all;
  all.reserve(edits.size());
  for (const ptx::Edit& edit : edits) {
    all.push_back({std::string(name(edit.kind)),
                   edit.opcode + " at " + kernel.name() + ":" + std::to_string(edit.line),
                   edit.how});
  }
  return all;
}

}  // namespace warpwright::device
