#include "warpwright/pictures/mask_picture.h"

#include <algorithm>
#include <string>
#include <vector>

#include "warpwright/atom/mask_text.h"
#include "warpwright/facts/format.h"
#include "warpwright/pictures/cells_svg.h"

namespace warpwright::pictures {
namespace {

using atom::ClusterShape;
using atom::Masks;

std::string hex(unsigned mask) {
  return format("0x%04x", mask);
}

bool has(unsigned mask, int rank) {
  return (mask >> rank & 1U) != 0;
}

// "0 4 8 12"
std::string members(unsigned mask) {
  std::string text;
  for (int r = 0; r < atom::kMaxClusterSize; ++r) {
    if (has(mask, r)) text += (text.empty() ? "" : " ") + std::to_string(r);
  }
  return text;
}

// Whose commits reach the empty barrier of `rank`: every MMA arrives once, a pair's by its leader.
unsigned arriving(ClusterShape shape, bool pair, int rank) {
  unsigned set = 0;
  for (int r = 0; r < atom::cluster_size(shape); ++r) {
    if (pair && !atom::is_pair_leader(r)) continue;
    if (has(atom::masks(shape, r, pair).commit, rank)) set |= 1U << r;
  }
  return set;
}

CellGrid cluster_grid(const std::string& title, ClusterShape shape, bool pair) {
  CellGrid grid = cell_grid(title, shape.m, shape.n);
  for (int x = 0; x < shape.m; ++x) grid.row_names.push_back("m " + std::to_string(x));
  for (int y = 0; y < shape.n; ++y) grid.column_names.push_back("n " + std::to_string(y));
  if (pair) grid.rows_together = 2;
  return grid;
}

Cell& cell_of(CellGrid& grid, ClusterShape shape, int rank) {
  const atom::ClusterCoord at = atom::coord_of(shape, rank);
  return grid.at(at.x, at.y);
}

constexpr const char* kCluster =
    "A cell is a CTA of the cluster: rows along M, columns along N, the rank counts down the "
    "columns.";

// All CTAs with their masks: equal masks have one colour.
View overview(ClusterShape shape, bool pair) {
  View view;
  view.id = "cluster";
  view.title = "The masks of all CTAs";
  view.caption = std::string(kCluster) +
                 " Bit r of a mask is the CTA of rank r; CTAs with one colour have the same mask, "
                 "and so exchange slices with each other." +
                 (pair ? " Gaps part the pairs; the even rank issues the MMAs of both." : "");
  view.table.header = {"rank", "m", "n", "A", "B", "commit", "arrivals"};
  const char* const names[] = {"rank", "A: who receives my slice", "B: who receives my slice",
                               "commit: who hears my MMA"};
  std::vector<CellGrid> grids;
  for (const char* name : names) grids.push_back(cluster_grid(name, shape, pair));
  std::vector<unsigned> known[4];
  for (int r = 0; r < atom::cluster_size(shape); ++r) {
    const Masks m = atom::masks(shape, r, pair);
    const atom::ClusterCoord at = atom::coord_of(shape, r);
    const unsigned masks[] = {0, m.a, m.b, m.commit};
    for (int i = 0; i < 4; ++i) {
      Cell& cell = cell_of(grids[static_cast<std::size_t>(i)], shape, r);
      cell.word = i == 0 ? std::to_string(r) : hex(masks[i]);
      cell.row = r;
      cell.tip = "rank " + std::to_string(r);
      if (i > 0) cell.tip += ": ranks " + members(masks[i]);
      const auto mask = std::find(known[i].begin(), known[i].end(), masks[i]);
      cell.colour = i == 0 ? -1 : static_cast<int>(mask - known[i].begin());
      if (mask == known[i].end()) known[i].push_back(masks[i]);
    }
    view.table.rows.push_back({std::to_string(r), std::to_string(at.x), std::to_string(at.y),
                               hex(m.a), hex(m.b), hex(m.commit), std::to_string(m.arrivals)});
  }
  view.svg = cells_svg("", grids);
  return view;
}

View rank_view(ClusterShape shape, bool pair, int rank) {
  const Masks m = atom::masks(shape, rank, pair);
  const unsigned arrives = arriving(shape, pair, rank);
  struct Role {
    std::string title;
    const char* word;
    unsigned set;
    int colour;
  };
  const Role roles[] = {
      {"sends A to " + hex(m.a), "gets A", m.a, 0},
      {"sends B to " + hex(m.b), "gets B", m.b, 1},
      {"its MMA commits to " + hex(m.commit), "hears", m.commit, 2},
      {std::to_string(m.arrivals) + " arrive at its empty barrier", "arrives", arrives, 3}};
  View view;
  view.id = "rank-" + std::to_string(rank);
  view.title = "CTA " + std::to_string(rank);
  view.caption = std::string(kCluster) + " The framed one is CTA " + std::to_string(rank) + "." +
                 (pair && !atom::is_pair_leader(rank)
                      ? " Its MMAs are issued by CTA " + std::to_string(atom::pair_peer(rank)) + "."
                      : "");
  view.table.header = {"rank", "gets A", "gets B", "hears the commit", "arrives"};
  std::vector<CellGrid> grids;
  for (const Role& role : roles) {
    CellGrid grid = cluster_grid(role.title, shape, pair);
    for (int r = 0; r < atom::cluster_size(shape); ++r) {
      Cell& cell = cell_of(grid, shape, r);
      cell.word = std::to_string(r);
      cell.row = r;
      cell.tip = "rank " + std::to_string(r) + (has(role.set, r) ? " " : ": nothing");
      if (has(role.set, r)) {
        cell.colour = role.colour;
        cell.tip += role.word;
      }
      cell.is_marked = r == rank;
    }
    grids.push_back(std::move(grid));
  }
  for (int r = 0; r < atom::cluster_size(shape); ++r) {
    std::vector<std::string> row = {std::to_string(r)};
    for (const Role& role : roles) row.emplace_back(has(role.set, r) ? "yes" : "");
    view.table.rows.push_back(std::move(row));
  }
  view.svg = cells_svg("", grids);
  return view;
}

}  // namespace

Picture mask_picture(ClusterShape shape, bool pair, int rank) {
  Picture picture;
  picture.kind = "mask";
  picture.title = "A cluster of " + std::to_string(shape.m) + " x " + std::to_string(shape.n) +
                  (pair ? " CTAs, in pairs" : " CTAs");
  picture.views.push_back(overview(shape, pair));
  const int last = rank < 0 ? atom::cluster_size(shape) - 1 : rank;
  for (int r = std::max(rank, 0); r <= last; ++r) {
    picture.views.push_back(rank_view(shape, pair, r));
  }
  return picture;
}

}  // namespace warpwright::pictures
