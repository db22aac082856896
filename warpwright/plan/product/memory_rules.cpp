// The rules of a product's memory: which addresses are known, and what may not lie in one place.
#include <string>
#include <string_view>

#include "warpwright/plan/product/asked.h"

namespace warpwright {
namespace {

bool same_view(const MatrixView& x, const MatrixView& y) {
  return x.data == y.data && x.dtype == y.dtype && x.row_stride == y.row_stride &&
         x.column_stride == y.column_stride && x.batch == y.batch &&
         (x.batch == 1 || x.batch_stride == y.batch_stride);
}

// `count` integers as a row of bytes.
MatrixView integers(const void* data, std::int64_t count, int width) {
  return matrix(const_cast<void*>(data), DType::e4m3, 1, count * width);
}

// The offsets of groups, and the index of rows.
MatrixView offsets_of(const GemmOperands& o) {
  return integers(o.groups->offsets, o.group_count() + 1, offset_bytes(o.groups->type));
}
MatrixView rows_of(const GemmOperands& o) {
  return integers(o.groups->rows, o.m(), 4);
}

}  // namespace

std::int64_t extent_bytes(const MatrixShape& v) {
  return numeric::packed_bytes(
      v.dtype,
      reach({{v.batch, v.batch_stride}, {v.rows, v.row_stride}, {v.columns, v.column_stride}}));
}

bool overlap(const MatrixView& x, const MatrixView& y) {
  const auto a = reinterpret_cast<std::uintptr_t>(x.data);
  const auto b = reinterpret_cast<std::uintptr_t>(y.data);
  const std::int64_t na = extent_bytes(x);
  const std::int64_t nb = extent_bytes(y);
  if (na == 0 || nb == 0) return false;
  return a < b + static_cast<std::uintptr_t>(nb) && b < a + static_cast<std::uintptr_t>(na);
}

Addresses addresses_of(const GemmOperands& o) {
  bool known = !o.groups ||
               (o.groups->offsets != nullptr && (!o.is_by_index() || o.groups->rows != nullptr));
  for_each_tensor_of(
      [&](const char*, const MatrixView& view) {
        known = known && (view.data != nullptr || view.rows == 0 || view.columns == 0);
      },
      o);
  return known ? Addresses::known : Addresses::unknown;
}

namespace product {

namespace {

Fault integers_fault(const char* name, const void* integers, int width) {
  const int known = alignment_of(integers);
  if (known >= width) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, "the ",
                as_rule("address of ", as_tensor(name),
                        " must be a multiple of its integers' size, ", width, " bytes"),
                "; it is one of ", known);
}

// For the index of rows.
Fault index_fault(const GemmOperands& o) {
  const std::int32_t* const rows = o.groups->rows;
  if (!o.is_by_index()) {
    if (rows == nullptr) return std::nullopt;
    return refuse(RefusalCode::bad_value, as_tensor("rows"),
                  " are given and rows_divisor is 0: the nearest is ",
                  as_nearest("1, for numbers of rows of A"));
  }
  if (rows == nullptr && o.m() > 0) {
    return refuse(RefusalCode::bad_pointer, as_tensor("rows"), " is a null pointer; ",
                  as_rule("rows_divisor is ", o.groups->rows_divisor, ", so D's ", o.m(),
                          " rows have an index each, in the operands' memory"));
  }
  return integers_fault("rows", rows, 4);
}

}  // namespace

Fault offsets_fault(const Asked& o) {
  if (o.memory == nullptr || !o.p.groups) return std::nullopt;
  const int width = offset_bytes(o.p.groups->type);
  const void* const offsets = o.memory->groups->offsets;
  if (offsets == nullptr) {
    return refuse(RefusalCode::bad_pointer, as_tensor("offsets"), " is a null pointer; ",
                  as_rule(o.p.group_count(), " groups have ", o.p.group_count() + 1,
                          " offsets, in the operands' memory"));
  }
  if (auto r = integers_fault("offsets", offsets, width)) return r;
  return index_fault(*o.memory);
}

namespace {

// Is a tensor read that is given? D counts as one: what is written beside it lies apart from it.
bool is_read(const Asked& asked, std::string_view name, const MatrixView& view) {
  const GemmOperands& o = *asked.memory;
  if (name == "a" || name == "b") return o.reads_ab();
  if (name == "c") return o.reads_c();
  if (name == "scale_a" || name == "scale_b") return reads_scales(asked.p);
  return name != "d_scales" && is_given(view);
}

// What refusals call it.
std::string in_words(std::string_view name) {
  if (name.size() == 1) return {static_cast<char>(name[0] - 'a' + 'A')};
  return (name == "bias" ? "the " : "") + std::string(name);
}

// What is written lies apart from all else, but for C, which may be D.
Fault written_fault(const Asked& asked, const char* written, const MatrixView& at) {
  const GemmOperands& o = *asked.memory;
  Fault fault;
  const auto look = [&](std::string_view name, const MatrixView& view) {
    if (fault || &view == &at) return;
    const bool may_be_same = name == "c" && &at == &o.d;
    if (!overlap(at, view) || (may_be_same && same_view(at, view))) return;
    const std::string other = in_words(name);
    fault = refuse(
        RefusalCode::overlap, as_tensor(written), " overlaps ", other, "; ",
        as_rule("it must lie apart from ", other, may_be_same ? " or be the very same view" : ""));
  };
  for_each_tensor_of(
      [&](std::string_view name, const MatrixView& view) {
        if (!is_read(asked, name, view)) return;
        if (name == "b") return look(name, stored_b(o));
        look(name, view);
      },
      o);
  if (!o.groups) return fault;
  look("offsets", offsets_of(o));
  if (o.is_by_index()) look("rows", rows_of(o));
  return fault;
}

}  // namespace

Fault overlap_fault(const Asked& asked) {
  if (asked.memory == nullptr) return std::nullopt;
  const GemmOperands& o = *asked.memory;
  if (auto r = written_fault(asked, "D", o.d)) return r;
  return o.is_quantised() ? written_fault(asked, "d_scales", o.d_scales) : std::nullopt;
}

}  // namespace product
}  // namespace warpwright
