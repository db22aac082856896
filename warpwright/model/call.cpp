#include "warpwright/model/call.h"

#include <cstring>
#include <vector>

#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

// From the outermost call on.
std::vector<Site> sites_of(const Call* call) {
  std::vector<Site> sites;
  for (; call != nullptr; call = call->around()) sites.insert(sites.begin(), call->site());
  return sites;
}

}  // namespace

Call::Call(Site site) : thread_(machine().current()), site_(site), around_(thread_.call) {
  // Lines tell the calls of one function apart, and those of several well enough.
  path_ = (path_of(around_) + static_cast<std::uint64_t>(site.line)) * 0x9e3779b97f4a7c15U;
  thread_.call = this;
}

Call::~Call() {
  thread_.call = around_;  // while a stopped run is taken apart, no thread is the current one
}

Parting parting(const Call* one, const Call* other) {
  const std::vector<Site> a = sites_of(one);
  const std::vector<Site> b = sites_of(other);
  const auto at = [](const std::vector<Site>& sites, std::size_t i) {
    return i < sites.size() ? sites[i] : Site{};
  };
  const auto same = [](const Site& x, const Site& y) {
    return x.line == y.line && std::strcmp(x.file, y.file) == 0;
  };
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && same(a[i], b[i])) ++i;
  return {at(a, i), at(b, i)};
}

}  // namespace warpwright::model
