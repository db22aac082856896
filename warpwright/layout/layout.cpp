#include "warpwright/layout/layout.h"

#include <cstring>
#include <ostream>
#include <string>

#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::layout {

void refuse(const char* sentence, Quote a, Quote b, Quote c, Quote d) {
  const Quote* const quotes[] = {&a, &b, &c, &d};
  std::string text;
  int next = 0;
  for (const char* p = sentence; *p != '\0'; ++p) {
    if (std::strncmp(p, "{}", 2) != 0 || next == 4) {
      text += *p;
      continue;
    }
    const Quote& quote = *quotes[next++];
    text += quote.layout != nullptr ? to_text(*quote.layout) : std::to_string(quote.number);
    ++p;
  }
  throw Error(text);
}

std::string to_text(const Leaf& leaf) {
  if (leaf.value == kAll) return "_";
  std::string text = std::to_string(leaf.value);
  if (leaf.basis == -1) return text;
  // The innermost level is printed first, and it is kept in the highest bits.
  std::string path = "@" + std::to_string(leaf.basis & 31);
  for (std::int32_t rest = leaf.basis >> 5; rest != 0; rest >>= 5)
    path.insert(0, "@" + std::to_string((rest & 31) - 1));
  return text + path;
}

std::string to_text(const Tuple& tuple) {
  std::string text;
  for (int i = 0; i < tuple.count; ++i) {
    if (i > 0) text += ',';
    text.append(tuple.open[i], '(');
    text += to_text(tuple.leaf[i]);
    text.append(tuple.close[i], ')');
  }
  return text;
}

std::string to_text(const Layout& layout) {
  return to_text(shape(layout)) + ":" + to_text(stride(layout));
}

std::string to_text(const Swizzle& swizzle) {
  return "Sw<" + std::to_string(swizzle.bits) + "," + std::to_string(swizzle.base) + "," +
         std::to_string(swizzle.shift) + ">";
}

std::string to_text(const ComposedLayout& layout) {
  // Only an offset: nothing is swizzled.
  if (layout.swizzle == Swizzle{})
    return std::to_string(layout.offset) + " o " + to_text(layout.layout);
  return to_text(layout.swizzle) + " o " + std::to_string(layout.offset) + " o " +
         to_text(layout.layout);
}

std::string to_text(const CoordinateTensor& tensor) {
  const std::string origin = to_text(tensor.origin);
  return "ArithTuple" +
         (rank(tensor.origin) == 1 && depth(tensor.origin) == 0 ? "(" + origin + ")" : origin) +
         " o " + to_text(tensor.layout);
}

std::string to_text(const Pointer& pointer) {
  if (pointer.space == Space::gmma_descriptors) return "GMMA::DescriptorIterator";
  if (pointer.space == Space::umma_descriptors) return "UMMA::DescriptorIterator";
  if (pointer.space == Space::tmem) return "tmem_[32b](0x0000.0000)";
  std::string text;
  if (pointer.swizzle.bits != 0) text = to_text(pointer.swizzle) + (pointer.is_set ? "_" : " o ");
  text += pointer.space == Space::shared ? "smem_ptr[" : "gmem_ptr[";
  text += std::to_string(pointer.bits) + "b](";
  if (!pointer.is_set) return text + "unset)";
  std::string digits;
  std::int64_t bytes = pointer.address / 8;
  do digits.insert(0, 1, "0123456789abcdef"[bytes % 16]);
  while ((bytes /= 16) != 0);
  const std::int64_t more = pointer.address % 8;
  return text + "0x" + digits + (more == 0 ? "" : "." + std::to_string(more)) + ")";
}

std::string to_text(const Tensor& tensor) {
  return to_text(tensor.pointer) + " o " + to_text(tensor.layout);
}

std::ostream& operator<<(std::ostream& out, const Tuple& tuple) {
  return out << to_text(tuple);
}
std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << to_text(layout);
}
std::ostream& operator<<(std::ostream& out, const ComposedLayout& layout) {
  return out << to_text(layout);
}

std::ostream& operator<<(std::ostream& out, const CoordinateTensor& tensor) {
  return out << to_text(tensor);
}

}  // namespace warpwright::layout
