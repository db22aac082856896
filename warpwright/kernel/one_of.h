// One of several forms of a thing: each is a struct of its own, with what only that form has.
#pragma once

#include <concepts>

namespace warpwright::kernel {

/// As std::variant, in fewer steps of the compiler: tables of kernels have hundreds. The forms that
/// it is not keep their defaults.
template <class... Forms>
class OneOf : Forms... {
 public:
  template <class Form>
  requires(std::same_as<Form, Forms> || ...) constexpr OneOf(const Form& form)  // NOLINT: is one
      : Form(form), which_(number<Form>) {}

  template <class Form>
  [[nodiscard]] constexpr bool is() const {
    return which_ == number<Form>;
  }
  /// Its form, or the defaults of one that it is not.
  template <class Form>
  [[nodiscard]] constexpr const Form& as() const {
    return *this;
  }
  /// The same to write to: of another form this does not compile, where constants are made.
  template <class Form>
  [[nodiscard]] constexpr Form& as() {
    return is<Form>() ? static_cast<Form&>(*this) : throw "another form";
  }

  friend constexpr bool operator==(const OneOf&, const OneOf&) = default;

 private:
  template <class Form>
  static constexpr int number = [] {
    int before = 0;
    static_cast<void>(((std::same_as<Form, Forms> || (++before, false)) || ...));
    return before;
  }();

  int which_;
};

}  // namespace warpwright::kernel
