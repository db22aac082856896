// The rules of a product's memory: which addresses are known, and what may not lie in one place.
#include <type_traits>

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
  for_each_field(o, [&](const char*, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const MatrixView&>) {
      known = known && (field.data != nullptr || field.rows == 0 || field.columns == 0);
    }
  });
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

// For scales that are written, with anything.
Fault d_scales_overlap(const Asked& asked) {
  const GemmOperands& o = *asked.memory;
  if (!o.is_quantised()) return std::nullopt;
  struct Other {
    const char* name;
    bool is_used;
    MatrixView view;
  };
  const bool scales = reads_scales(asked.p);
  for (const Other& other :
       {Other{"D", true, o.d},
        {"A", o.reads_ab(), o.a},
        {"B", o.reads_ab(), stored_b(o)},
        {"scale_a", scales, o.scale_a},
        {"scale_b", scales, o.scale_b},
        {"the bias", o.has_bias(), o.bias},
        {"offsets", o.groups.has_value(), o.groups ? offsets_of(o) : MatrixView()},
        {"rows", o.is_by_index(), o.is_by_index() ? rows_of(o) : MatrixView()}}) {
    if (!other.is_used || !overlap(o.d_scales, other.view)) continue;
    return refuse(RefusalCode::overlap, as_tensor("d_scales"), " overlaps ", other.name, "; ",
                  as_rule("it must lie apart from ", other.name));
  }
  return std::nullopt;
}

}  // namespace

Fault overlap_fault(const Asked& asked) {
  if (asked.memory == nullptr) return std::nullopt;
  const GemmOperands& o = *asked.memory;
  const auto apart = [](const char* name) {
    return refuse(RefusalCode::overlap, as_tensor("D"), " overlaps ", name, "; ",
                  as_rule("it must lie apart from ", name));
  };
  if (o.reads_c() && overlap(o.c, o.d) && !same_view(o.c, o.d)) {
    return refuse(RefusalCode::overlap, as_tensor("D"), " overlaps C; ",
                  as_rule("it must lie apart from C or be the very same view"));
  }
  if (o.reads_ab() && overlap(o.d, o.a)) return apart("A");
  if (o.reads_ab() && overlap(o.d, stored_b(o))) return apart("B");
  if (reads_scales(asked.p) && overlap(o.d, o.scale_a)) return apart("scale_a");
  if (reads_scales(asked.p) && overlap(o.d, o.scale_b)) return apart("scale_b");
  if (is_given(o.scale_d) && overlap(o.d, o.scale_d)) return apart("scale_d");
  if (is_given(o.factor_a) && overlap(o.d, o.factor_a)) return apart("factor_a");
  if (is_given(o.factor_b) && overlap(o.d, o.factor_b)) return apart("factor_b");
  if (o.has_bias() && overlap(o.d, o.bias)) return apart("the bias");
  if (auto r = d_scales_overlap(asked)) return r;
  if (o.groups) {
    if (overlap(o.d, offsets_of(o))) return apart("offsets");
    if (o.is_by_index() && overlap(o.d, rows_of(o))) return apart("rows");
  }
  return std::nullopt;
}

}  // namespace product
}  // namespace warpwright
