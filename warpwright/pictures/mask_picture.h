// Clusters as pictures: who sends to whom, and who tells whom that a stage is free.
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// The cluster with the masks of all CTAs (atom::masks), and a view of each rank, or only of
/// `rank` where it is 0 or more: who receives its slice of A and of B, who hears its commit, and
/// who arrives at its empty barrier. Shape and rank must be legal.
Picture mask_picture(atom::ClusterShape shape, bool pair, int rank = -1);

}  // namespace warpwright::pictures
