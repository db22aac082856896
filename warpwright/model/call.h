// From where a function of a kernel was called. A site is the line of the innermost statement;
// lanes that come to it out of two calls stand at two instructions once the compiler has unfolded
// them.
#pragma once

#include <cstdint>

#include "warpwright/model/report/site.h"

namespace warpwright::model {

struct Thread;

/// Says, while it lives, that the current thread is in a function that was called from `site`.
/// Calls of one thread nest, and each knows the one around it.
class Call {
 public:
  explicit Call(Site site);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  [[nodiscard]] Site site() const { return site_; }
  [[nodiscard]] const Call* around() const { return around_; }
  /// For this call and those around it: threads that came by the same calls have the same number.
  [[nodiscard]] std::uint64_t path() const { return path_; }

 private:
  Thread& thread_;
  Site site_;
  const Call* around_;
  std::uint64_t path_;
};

/// The number of no call at all, else that of the call.
inline std::uint64_t path_of(const Call* call) {
  return call == nullptr ? 0 : call->path();
}

/// Where two paths that differ part, seen from outside: the sites of the calls that differ first.
/// A path that ends there has a site without a line.
struct Parting {
  Site one, other;
};
Parting parting(const Call* one, const Call* other);

}  // namespace warpwright::model
