// Who arrives at which mbarrier, and who waits for it: the roles of a CTA and its barriers as boxes
// and arrows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpwright/facts/declaration.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// The roles of a kernel and its barriers, as `explain` prints them.
struct RoleGraph {
  std::vector<KernelRole> roles;
  std::vector<pipeline::BarrierRow> barriers;
  std::string beside;  ///< a line below: what synchronises beside these; may be empty
};

/// An arrow, from a role to a barrier or back.
struct RoleEdge {
  int role = 0;
  int barrier = 0;
  bool waits = false;  ///< else the role arrives

  friend bool operator==(const RoleEdge&, const RoleEdge&) = default;
};

/// The roles that the words of a barrier's row mean ("one lane of each consumer warp ..."), by
/// index; `opposite` are the words of its other side, for "its leader".
std::vector<int> roles_meant(const std::vector<KernelRole>& roles, std::string_view words,
                             std::string_view opposite = "");

/// All arrows, barrier by barrier, those who arrive first.
std::vector<RoleEdge> role_edges(const RoleGraph& graph);

/// The view "roles": the warps of the CTA, below them each barrier between those who arrive and
/// those who wait. The table has a row a barrier.
View role_view(const RoleGraph& graph);

}  // namespace warpwright::pictures
