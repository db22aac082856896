// What the files of the C ABI share: its handles, how they refuse, and structs of callers as
// values. Internal to c.cpp and c_moe.cpp.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpwright/c_members.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/moe/moe_alternatives.h"
#include "warpwright/plan/search/alternatives.h"
#include "warpwright/run_moe.h"

struct ww_refusal {
  warpwright::Refusal refusal;
};

struct ww_device : warpwright::NamedDevice {};

struct ww_workspace {
  std::shared_ptr<void> memory;
  warpwright::Workspace workspace;
};

namespace warpwright::c {

using Fault = std::optional<Refusal>;

// What a refusal is told as where there is no memory for one.
inline ww_refusal* no_memory() {
  static ww_refusal refusal{{RefusalCode::out_of_memory, "the host has no memory left"}};
  return &refusal;
}

inline ww_refusal* told(Refusal refusal) {
  return new ww_refusal{std::move(refusal)};
}
inline ww_refusal* told(Fault refusal) {
  return refusal ? told(std::move(*refusal)) : nullptr;
}

// Runs `body`, whose exceptions stay here. None is expected but for want of memory.
template <class Body>
ww_refusal* guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::exception& unexpected) {
    try {
      return told(refuse(RefusalCode::device_error,
                         "the library failed, which is a fault of its own: ", unexpected.what()));
    } catch (...) {
      return no_memory();
    }
  } catch (...) {
    return no_memory();
  }
}

inline Refusal null_argument(const char* name) {
  return refuse(RefusalCode::bad_pointer, name, " is a null pointer; ",
                as_rule("it must point to one"));
}

// The first of these that is a null pointer.
inline Fault null_fault(std::initializer_list<std::pair<const char*, const void*>> all) {
  for (const auto& [name, pointer] : all) {
    if (pointer == nullptr) return null_argument(name);
  }
  return std::nullopt;
}

// A struct of a caller that may be older or newer than this library: what is not there keeps its
// default, and what this library does not know must be 0.
template <class T>
Fault copy_struct(const T* from, T& to, const char* name, std::size_t least) {
  if (from == nullptr) return std::nullopt;
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size < least || size > 4096) {
    return refuse(RefusalCode::bad_value, name, ".size is ", size, "; ",
                  as_rule("it is sizeof(", name, "), here ", sizeof(T)));
  }
  const char* const bytes = reinterpret_cast<const char*>(from);
  if (std::any_of(bytes + std::min(size, sizeof(T)), bytes + size, [](char c) { return c != 0; })) {
    return refuse(RefusalCode::unsupported, name,
                  " has members that this version of the library does not know; ",
                  as_rule("leave them 0"));
  }
  std::memcpy(&to, from, std::min(size, sizeof(T)));
  return std::nullopt;
}

// Makes a caller's struct of `size` bytes what `defaults` says. One that is older than this library
// is shorter; what a newer one has behind it is 0.
template <class T>
void init_struct(T* to, std::size_t size, const T& defaults) {
  if (to == nullptr || size < sizeof size) return;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &defaults, std::min(size, sizeof(T)));
  std::memcpy(static_cast<void*>(to), &size, sizeof size);
}

inline Fault word_fault(const char* name, std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most) return std::nullopt;
  return refuse(RefusalCode::bad_value, name, " is ", value, "; ",
                most == 0 ? as_rule("it is 0") : as_rule("it is 0 to ", most),
                ": the nearest legal is ", as_nearest(value < 0 ? 0 : most));
}

/// How sums of packed weights are summed says nothing where there are none.
inline Fault sums_fault(const char* name, std::int32_t sums, const char* form_name, bool has_form) {
  if (has_form) return word_fault(name, sums, WW_SUMS_OPEN);
  if (sums == 0 || sums == WW_SUMS_OPEN) return std::nullopt;
  return refuse(RefusalCode::bad_value, name, " is ", sums, " and ", form_name, " is NULL; ",
                as_rule("it says how packed weights are summed"), ": the nearest legal is ",
                as_nearest(int{WW_SUMS_OPEN}), " (WW_SUMS_OPEN)");
}

/// The numbers of a gate, where any is given; what is 0 is the activation's.
inline Fault read_gate(const ww_gate& given, Activation activation,
                       std::optional<GateNumbers>& to) {
  if (auto r = word_fault("gate.reserved", given.reserved, 0)) return r;
  if (given.alpha == 0 && given.beta == 0 && given.limit == 0) return std::nullopt;
  const GateNumbers own = gate_of(activation);
  const auto either = [](float number, float otherwise) {
    return number == 0 ? otherwise : number;
  };
  to = {either(given.alpha, own.alpha), either(given.beta, own.beta),
        either(given.limit, own.limit)};
  return std::nullopt;
}

template <class Given, std::size_t N>
Fault words_fault(const Given& given, const WordMember<Given> (&members)[N]) {
  for (const auto& member : members) {
    if (auto r = word_fault(member.name, given.*member.given, member.most)) return r;
  }
  return std::nullopt;
}

inline bool is_given(const ww_matrix& m) {
  static constexpr ww_matrix none = {};
  return std::memcmp(&m, &none, sizeof none) != 0;
}

inline Fault view_of(const char* name, const ww_matrix& from, MatrixView& to) {
  if (!is_given(from)) return std::nullopt;
  const bool is_left_out = from.dtype == 0 && from.rows > 0 && from.columns > 0;
  if (is_left_out || from.dtype < 0 || from.dtype >= kDTypeCount) {
    return refuse(RefusalCode::bad_type, as_tensor(name), " has the type ", from.dtype,
                  ", which no type has; the nearest legal is ", as_nearest(int{WW_BF16}),
                  " (WW_BF16)");
  }
  if (from.reserved != 0) {
    return refuse(RefusalCode::bad_value, as_tensor(name), ".reserved is ", from.reserved, "; ",
                  as_rule("it is for later versions"), ": the nearest legal is ", as_nearest("0"));
  }
  to.data = from.data;
  to.dtype = static_cast<DType>(from.dtype);
  to.rows = from.rows;
  to.columns = from.columns;
  to.row_stride = from.row_stride;
  to.column_stride = from.column_stride;
  to.batch = from.batch;
  to.batch_stride = from.batch_stride;
  return std::nullopt;
}

// The matrices of a struct, but those of `is_apart`, which are packed.
template <class Given, class Read, std::size_t N, class IsApart>
Fault read_matrices(const Given& given, Read& to, const MatrixMember<Given, Read> (&members)[N],
                    const IsApart& is_apart) {
  for (const auto& member : members) {
    const ww_matrix& from = given.*member.given;
    if (is_apart(from)) continue;
    if (member.is_needed && !is_given(from)) {
      return refuse(RefusalCode::bad_pointer, as_tensor(member.name),
                    " is not given: all of its ww_matrix is 0; ", as_rule("ww_packed makes one"));
    }
    if (auto r = view_of(member.name, from, to.*member.read)) return r;
  }
  return std::nullopt;
}

// The form of packed weights; `open`: the encoding may be left to the packer; `any`: e2m1 is legal.
inline Fault read_form(const ww_packed_form& given, PackedFormat& format, packed::Extents& extents,
                       bool open, bool any = true) {
  ww_packed_form f = {};
  if (auto r = copy_struct(&given, f, "ww_packed_form", sizeof(ww_packed_form))) return r;
  if (auto r = word_fault("encoding", f.encoding, packed::last_form_number())) return r;
  if (auto r = word_fault("zero_points", f.zero_points, 1)) return r;
  if (!open && f.encoding == WW_PACKED_ANY) {
    return refuse(RefusalCode::bad_value, "encoding is ", f.encoding,
                  ", which is only for packing; the nearest legal value is ",
                  as_nearest(int{WW_PACKED_EX}));
  }
  const packed::WeightForm* const form =
      packed::weight_form(f.encoding == WW_PACKED_ANY ? WW_PACKED_EX : f.encoding);
  if (form == nullptr) {
    return refuse(RefusalCode::bad_value, "encoding is ", f.encoding, ", which no form has; ",
                  "the nearest legal value is ", as_nearest(int{WW_PACKED_EX}));
  }
  if (!any && packed::format_of(*form).code != DType::s4) {
    return refuse(RefusalCode::bad_value, "encoding is ", f.encoding, ", which is of ",
                  packed::format_of(*form).word, " weights, and these become int4; ",
                  as_rule("ww_fp4_pack packs the others"), ": the nearest legal is ",
                  as_nearest(int{WW_PACKED_ANY}));
  }
  const packed::WeightFormat& weights = packed::format_of(*form);
  if (std::ranges::count(weights.scales, static_cast<DType>(f.scale)) == 0 || f.scale == 0) {
    std::string nearest(numeric::name(weights.scales[0]));
    std::ranges::transform(nearest, nearest.begin(),
                           [](unsigned char c) { return std::toupper(c); });
    return refuse(RefusalCode::bad_type, "the scales of ", weights.word, " weights have the type ",
                  f.scale, "; the nearest legal is ",
                  as_nearest("WW_", nearest, ", ", static_cast<int>(weights.scales[0])));
  }
  constexpr std::int64_t most = std::int64_t{1} << 31;
  extents = {f.experts, f.n, f.k};
  if (f.experts < 1 || f.n < 0 || f.k < 0 || f.experts > most || f.n > most || f.k > most ||
      packed::too_many(extents)) {
    return refuse(RefusalCode::bad_shape, "packed weights of ", f.experts, " x ", f.n, " x ", f.k,
                  "; ",
                  as_rule("N and K are 0 or more, experts 1 or more, and all fit into a memory"));
  }
  format = packed::packed_format(form->number, f.group, static_cast<DType>(f.scale),
                                 static_cast<ZeroPoints>(f.zero_points));
  if (const std::string wrong = packed::format_fault(format); !wrong.empty()) {
    return refuse(RefusalCode::bad_value, wrong);
  }
  return std::nullopt;
}

// What a form is to say afterwards.
inline void write_form(ww_packed_form& form, const PackedFormat& format,
                       const packed::Extents& extents) {
  form.experts = extents.experts;
  form.n = extents.n;
  form.k = extents.k;
  form.group = format.group;
  form.encoding = packed::weight_form(format)->number;
  form.scale = static_cast<std::int32_t>(format.scale);
  form.zero_points = static_cast<std::int32_t>(format.zero_points);
}

// Packed weights, whose bytes begin at given.data: `to` are their tiles.
inline Fault packed_weights(const char* name, const ww_matrix& given, const ww_packed_form& form,
                            std::int32_t sums, MatrixView& to, PackedWeights& packed) {
  packed::Extents extents;
  if (auto r = read_form(form, packed.format, extents, false)) return r;
  packed.sums = static_cast<GroupSums>(sums);
  ww_matrix rest = given;
  rest.data = nullptr;
  if (is_given(rest)) {
    return refuse(RefusalCode::bad_value, name,
                  " has extents, strides or a type beside packed, whose form says them: ",
                  as_rule("leave all but ", name, ".data 0"));
  }
  auto* const data = static_cast<std::byte*>(given.data);
  to = matrix(data == nullptr ? nullptr : data + WW_PACKED_HEADER, packed.format.code, extents.n,
              extents.k);
  to.batch = extents.experts;
  to.batch_stride = extents.experts > 1 ? extents.n * extents.k : 0;
  return std::nullopt;
}

template <class T>
void hand_out(T** out, std::unique_ptr<T> made) {
  *out = made.release();
}

/// What a handle of a plan holds; its texts are made when they are first asked for.
template <class Planned>
struct PlanHandle {
  std::shared_ptr<const Planned> plan;
  std::once_flag once;
  std::string name;
  std::string line;
  std::string explain;
};

template <class Handle, class Planned>
std::unique_ptr<Handle> handle_of(std::shared_ptr<const Planned> plan) {
  auto made = std::make_unique<Handle>();
  made->plan = std::move(plan);
  return made;
}

/// The plan of several for one device that is predicted to be the fastest: number and handle.
template <class Handle>
ww_refusal* fastest_of(const Handle* const* plans, std::int32_t count, std::int32_t* which,
                       Handle** plan) {
  return guarded([&]() -> ww_refusal* {
    if (plans == nullptr) return told(null_argument("plans"));
    if (plan == nullptr) return told(null_argument("plan"));
    using Planned = std::remove_cvref_t<decltype(*plans[0]->plan)>;
    std::vector<Planned> all;
    for (std::int32_t i = 0; i < count; ++i) {
      if (plans[i] == nullptr) return told(null_argument("a plan of plans"));
      all.push_back(*plans[i]->plan);
    }
    auto chosen = fastest(all);
    if (!chosen) return told(chosen.refusal());
    if (which != nullptr) *which = static_cast<std::int32_t>(chosen->index);
    hand_out(plan, handle_of<Handle>(std::make_shared<const Planned>(std::move((*chosen).plan))));
    return nullptr;
  });
}

/// A text of a plan. For want of memory there is none.
template <class Handle, class Get>
const char* text_of(const Handle* plan, const Get& get) noexcept {
  try {
    if (plan == nullptr) return "";
    auto* const p = const_cast<Handle*>(plan);
    std::call_once(p->once, [p] {
      p->name = p->plan->name();
      p->explain = p->plan->explain();
      p->line = plan_line(*p->plan);
    });
    return get(*plan).c_str();
  } catch (...) {
    return "";
  }
}

}  // namespace warpwright::c

struct ww_plan : warpwright::c::PlanHandle<warpwright::Plan> {};
struct ww_moe_plan : warpwright::c::PlanHandle<warpwright::MixturePlan> {};
