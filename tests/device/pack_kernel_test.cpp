// Packing on the model: clean, the host's bytes, and what the host refuses.
#include "tests/campaign.h"
#include "tests/device/packed_there.h"
#include "tests/model/on_model.h"
#include "warpwright/device/pack_by.h"

namespace warpwright::tests {
namespace {

std::string pack_on_model(const weights::PlainWeights& w, const PackedFormat& format,
                          std::vector<std::byte>& bytes) {
  weights::PlainWeights from = w;
  const bool is_legal = packed::weight_form(format) != nullptr;
  model::Memory<std::byte> to(static_cast<std::size_t>(
      packed::kHeaderBytes + 128 + (is_legal ? packed::data_bytes(format, w.extents) : 0)));
  const auto at = reinterpret_cast<std::uintptr_t>(to.data());
  std::byte* const packed = to.data() + (128 - at % 128) % 128;
  const std::size_t size = to.size() - 128;
  const auto read = [](std::vector<std::byte>& v, const char* name) {
    return model::Allocation{v.data(), static_cast<std::int64_t>(v.size()), name, false};
  };
  OnModel on({read(from.codes, "codes"),
              read(from.scales, "scales"),
              read(from.zeros, "zero points"),
              {packed, static_cast<std::int64_t>(size), "the packed tensor", true}});
  const device::PlainInt4 plain{w.extents,
                                w.scale,
                                from.codes.data(),
                                from.scales.data(),
                                w.zeros.empty() ? nullptr : from.zeros.data(),
                                w.origin};
  if (const auto refused = device::pack_by(plain, format, packed, on)) return refused->reason;
  bytes.assign(packed, packed + size);
  return {};
}

TEST(PackKernel, TheBytesAreTheHosts) {
  expect_packed_as_on_the_host(1, campaign() ? 1 : 5, pack_on_model);
}

TEST(PackKernel, RefusesWhatTheHostRefuses) {
  expect_refused_as_on_the_host(pack_on_model);
}

}  // namespace
}  // namespace warpwright::tests
