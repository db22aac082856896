// Kernels that differ by a choice, for tests of the model.
#pragma once

namespace warpwright::tests {

/// `kernel` with these choices made, as the model runs it.
template <class Kernel, class... Choices>
auto chosen(const Kernel& kernel, Choices... choices) {
  return [kernel, choices...] { kernel(choices...); };
}

}  // namespace warpwright::tests
