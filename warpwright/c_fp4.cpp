// The C ABI of packing weights of e2m1.
#include <algorithm>
#include <cstring>

#include "warpwright/c_parts.h"
#include "warpwright/weights/pack_e2m1.h"

namespace {

using warpwright::as_nearest;
using warpwright::as_rule;
using warpwright::DType;
using warpwright::RefusalCode;
using warpwright::refuse;
using namespace warpwright::c;
namespace packed = warpwright::packed;
namespace weights = warpwright::weights;

// What a form's encoding leaves open.
Fault read_encoding(const ww_packed_form& form, weights::E2m1Options& options) {
  if (form.encoding == WW_PACKED_ANY) return std::nullopt;
  const packed::WeightForm* const asked = packed::weight_form(form.encoding);
  if (asked == nullptr || packed::format_of(*asked).code == DType::s4) {
    return refuse(RefusalCode::bad_value, "encoding is ", form.encoding,
                  ", and these weights are e2m1: the nearest legal is ",
                  as_nearest(int{WW_PACKED_ANY}), " (WW_PACKED_ANY)");
  }
  options = {asked->tokens, asked->storage.exponents};
  return std::nullopt;
}

Fault read_tensor(const char* name, const ww_matrix* given, warpwright::MatrixView& to) {
  if (given == nullptr) return null_argument(name);
  if (auto r = view_of(name, *given, to)) return r;
  if (to.data != nullptr) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, warpwright::as_tensor(name), " is a null pointer; ",
                as_rule("weights are packed from host memory"));
}

Fault factors_fault(const weights::MicroSource& source, const float* alphas) {
  const auto is_one = [](const weights::MicroSource::Matrix& m) { return m.tensor == 1; };
  if (alphas != nullptr || std::ranges::all_of(source.experts, is_one)) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, "alphas is NULL, and the weights have factors of their ",
                "tensors: ", as_rule("give it a float for each expert, and a product its alpha"));
}

}  // namespace

extern "C" ww_refusal* ww_fp4_pack(const char* layout, const ww_matrix* codes,
                                   const ww_matrix* scales, const ww_matrix* tensor_scale,
                                   ww_packed_form* form, float* alphas, void* packed) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"layout", layout}, {"form", form}})) return told(*r);
    weights::CheckpointTensors tensors;
    if (auto r = read_tensor("codes", codes, tensors.codes)) return told(*r);
    if (auto r = read_tensor("scales", scales, tensors.scales)) return told(*r);
    if (tensor_scale != nullptr) {
      if (auto r = read_tensor("tensor_scale", tensor_scale, tensors.tensor_scale)) return told(*r);
    }
    ww_packed_form asked = {};
    if (auto r = copy_struct(form, asked, "ww_packed_form", sizeof(ww_packed_form)))
      return told(*r);
    weights::E2m1Options options;
    if (auto r = read_encoding(asked, options)) return told(*r);
    const auto source = weights::read_micro_checkpoint(layout, std::span(&tensors, 1));
    if (!source) return told(source.refusal());
    const packed::WeightFormat* const has =
        packed::weight_format(source->format->element, source->format->scale);
    const packed::WeightForm* const wanted = packed::weight_form(asked.encoding);
    if (has != nullptr && wanted != nullptr && &packed::format_of(*wanted) != has) {
      return told(refuse(RefusalCode::bad_value, "encoding is ", asked.encoding, ", and ", layout,
                         " has ", source->format->word, " weights: the nearest legal is ",
                         as_nearest(packed::usual_form(*has).number)));
    }
    if (auto r = factors_fault(*source, alphas)) return told(*r);
    const auto format = weights::packed_format(*source, options);
    if (!format) return told(format.refusal());
    if (packed != nullptr) {
      options.exponents = format->exponents;
      const auto bytes = weights::pack_e2m1(*source, options);
      if (!bytes) return told(bytes.refusal());
      std::memcpy(packed, bytes->data(), bytes->size());
      for (std::size_t e = 0; alphas != nullptr && e < source->experts.size(); ++e) {
        alphas[e] = source->experts[e].tensor;
      }
    }
    write_form(*form, *format, source->extents);
    return nullptr;
  });
}
