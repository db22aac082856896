// Why something was not done, as a code and a sentence, and a value or that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace warpwright {

/// What kind of thing a refusal is about, for programs; docs/api.md says more of each. New ones may
/// be added at the end.
enum class RefusalCode : std::uint8_t {
  bad_value,       ///< a scalar, a hint or a word: NaN, out of range, given where nothing reads it
  bad_shape,       ///< extents, or the length of a batch
  bad_type,        ///< an element type
  bad_stride,      ///< a stride or the memory order it makes
  bad_pointer,     ///< null, or not aligned
  overlap,         ///< the result overlaps an input, or itself
  unsupported,     ///< well formed, but not what the kernels of this device compute
  bad_choice,      ///< what the caller fixed is not legal, by itself or on this device
  no_kernel,       ///< legal, but no kernel of this build does it
  no_device,       ///< a device that is not there, or that this build has no kernels for
  wrong_device,    ///< the plan was made for another device
  plan_mismatch,   ///< the operands are not those of the plan
  bad_workspace,   ///< null, too small, or not aligned
  out_of_memory,   ///< of the device
  device_error,    ///< the CUDA runtime, the driver or a running kernel failed
  model_findings,  ///< the machine model found faults in the kernel
  file_error,      ///< a file could not be read or written
};

/// The code's own name: "bad_stride".
constexpr const char* name(RefusalCode code) {
  constexpr const char* names[] = {
      "bad_value",      "bad_shape",     "bad_type",      "bad_stride",    "bad_pointer",
      "overlap",        "unsupported",   "bad_choice",    "no_kernel",     "no_device",
      "wrong_device",   "plan_mismatch", "bad_workspace", "out_of_memory", "device_error",
      "model_findings", "file_error"};
  return names[static_cast<std::size_t>(code)];
}

/// What is said of something wrong, and, for programs, what of it the rule that says so knows. The
/// parts of a sentence are added up; those that as_tensor and its like have made are fields too.
struct Sentence {
  std::string reason;
  std::string tensor;   ///< which one: "A", "bias", "scale_a", "offsets"; empty where none is named
  std::string rule;     ///< what is broken, in words; or empty
  std::string nearest;  ///< what would be accepted; or empty

  Sentence() = default;
  template <class Text, class = std::enable_if_t<std::is_convertible_v<Text, std::string_view>>>
  Sentence(const Text& text) : reason(std::string_view(text)) {}  // NOLINT: meant to be implicit

  /// The first part that names a tensor, a rule, a nearest value is the one that counts.
  Sentence& operator+=(const Sentence& more) {
    reason += more.reason;
    if (tensor.empty()) tensor = more.tensor;
    if (rule.empty()) rule = more.rule;
    if (nearest.empty()) nearest = more.nearest;
    return *this;
  }
  friend Sentence operator+(Sentence x, const Sentence& y) { return std::move(x += y); }
};

/// These parts, texts and whole numbers, one behind the other.
template <class... Parts>
Sentence sentence_of(const Parts&... parts) {
  Sentence made;
  const auto add = [&made](const auto& part) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>) {
      made += std::to_string(part);
    } else {
      made += part;
    }
  };
  (add(parts), ...);
  return made;
}

/// The part of a sentence that names the tensor, says the rule, says what would be accepted.
inline Sentence as_tensor(std::string_view name) {
  Sentence made = name;
  made.tensor = name.starts_with("the ") ? name.substr(4) : name;
  return made;
}
template <class... Parts>
Sentence as_rule(const Parts&... parts) {
  Sentence made = sentence_of(parts...);
  made.rule = made.reason;
  return made;
}
template <class... Parts>
Sentence as_nearest(const Parts&... parts) {
  Sentence made = sentence_of(parts...);
  made.nearest = made.reason;
  return made;
}

/// Why something was not done: a code, and one sentence that names the tensor, the rule and the
/// nearest legal value.
struct [[nodiscard]] Refusal : Sentence {
  RefusalCode code;

  Refusal(RefusalCode what, Sentence said) : Sentence(std::move(said)), code(what) {}
};

/// A refusal whose sentence is made of these parts: texts and whole numbers.
template <class... Parts>
Refusal refuse(RefusalCode code, const Parts&... parts) {
  return {code, sentence_of(parts...)};
}

/// A value or a refusal.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}            // NOLINT: meant to be implicit
  Result(Refusal refusal) : content_(std::move(refusal)) {}  // NOLINT: meant to be implicit

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(content_); }
  explicit operator bool() const { return ok(); }
  /// The value; only when `ok()`.
  [[nodiscard]] const T& value() const& { return std::get<T>(content_); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return std::get<T>(content_); }
  /// For a result that nobody holds the value itself: `for (auto& x : *candidates(...))` is no walk
  /// over what has ended.
  [[nodiscard]] T value() && { return std::get<T>(std::move(content_)); }
  T operator*() && { return std::get<T>(std::move(content_)); }
  const T* operator->() const { return &value(); }
  /// The sentence; only when not `ok()`.
  [[nodiscard]] const std::string& reason() const { return refusal().reason; }
  /// Its kind; only when not `ok()`.
  [[nodiscard]] RefusalCode code() const { return refusal().code; }
  /// Both; only when not `ok()`.
  [[nodiscard]] const Refusal& refusal() const { return std::get<Refusal>(content_); }

 private:
  std::variant<T, Refusal> content_;
};

}  // namespace warpwright
