#include "warpwright/pictures/role_graph.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

constexpr double kGraphWidth = 1180;
constexpr double kGraphEdge = 16;
constexpr double kRoleWidth = 250;
constexpr double kRoleHeight = 70;
constexpr double kRowLeft = 390;
constexpr double kRowWidth = kGraphWidth - 2 * kRowLeft;
constexpr double kRowHeight = 74;
constexpr double kRowGap = 14;

// Pale for boxes, strong for arrows. Roles beyond share them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> role_inks{{
    {ink::blue, ink::strong_blue},
    {ink::green, ink::strong_green},
    {ink::orange, ink::strong_orange},
    {ink::violet, ink::strong_violet},
    {ink::red, ink::strong_red},
}};

bool is_idle(const KernelRole& role) {
  return role.name == "idle";
}

// A colour each for those that do something.
std::pair<std::string_view, std::string_view> ink_of(const std::vector<KernelRole>& roles,
                                                     std::size_t role) {
  if (is_idle(roles[role])) return {ink::none, ink::line};
  const auto before = std::count_if(roles.begin(), roles.begin() + static_cast<long>(role),
                                    [](const KernelRole& r) { return !is_idle(r); });
  return role_inks[static_cast<std::size_t>(before) % role_inks.size()];
}

bool has(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

std::string warps_text(const KernelRole& role) {
  const std::string first = std::to_string(role.first_warp);
  return role.last_warp > role.first_warp
             ? "warps " + first + " to " + std::to_string(role.last_warp)
             : "warp " + first;
}

std::string parity_text(const pipeline::BarrierRow& row) {
  const int first = pipeline::first_parity(row);
  const std::string parity = std::to_string(first);
  if (row.alternates) return parity + " on one, " + std::to_string(first ^ 1) + " on the other";
  return parity + (first == 1 ? ", passes" : "");
}

// As much of the text as fits, in letters of this size.
std::string fitting(const std::string& text, double width, double size) {
  const auto room = static_cast<std::size_t>(width / (0.55 * size));
  return text.size() <= room ? text : text.substr(0, room - 3) + "...";
}

std::string names(const RoleGraph& graph, int barrier, bool waits) {
  std::string all;
  for (const RoleEdge& edge : role_edges(graph)) {
    if (edge.barrier != barrier || edge.waits != waits) continue;
    all += (all.empty() ? "" : ", ") + graph.roles[static_cast<std::size_t>(edge.role)].name;
  }
  return all;
}

// The roles of one side, each in the middle of its barriers where there is room.
struct Side {
  std::vector<int> roles;
  std::vector<double> tops;
};

double row_middle(double top, int barrier) {
  return top + barrier * (kRowHeight + kRowGap) + kRowHeight / 2;
}

Side side_of(const RoleGraph& graph, bool waits, double top) {
  std::vector<std::pair<double, int>> wanted;
  for (std::size_t role = 0; role < graph.roles.size(); ++role) {
    double sum = 0;
    int count = 0;
    for (const RoleEdge& edge : role_edges(graph)) {
      if (edge.role != static_cast<int>(role) || edge.waits != waits) continue;
      sum += row_middle(top, edge.barrier);
      ++count;
    }
    if (count > 0) wanted.emplace_back(sum / count, static_cast<int>(role));
  }
  std::stable_sort(wanted.begin(), wanted.end());
  Side side;
  double free = top;
  for (const auto& [middle, role] : wanted) {
    side.roles.push_back(role);
    side.tops.push_back(std::max(free, middle - kRoleHeight / 2));
    free = side.tops.back() + kRoleHeight + 12;
  }
  return side;
}

class GraphPicture {
 public:
  explicit GraphPicture(const RoleGraph& graph) : graph_(graph) {}

  std::string draw() {
    double y = strip(20);
    if (!graph_.barriers.empty()) y = barriers(y + 34);
    if (!graph_.beside.empty()) {
      y += 22;
      svg_ += svg_text(kGraphEdge, y, graph_.beside, 12);
    }
    return svg_head(kGraphWidth, y + 18) + svg_ + "</svg>\n";
  }

 private:
  // The warps of a CTA in their order.
  double strip(double y) {
    int warps = 1;
    for (const KernelRole& r : graph_.roles) warps = std::max(warps, r.last_warp + 1);
    const double width = (kGraphWidth - 2 * kGraphEdge) / warps;
    svg_ += svg_text(kGraphEdge, y, "The warps of a CTA", 12, "font-weight=\"600\"");
    y += 8;
    for (int warp = 0; warp < warps; ++warp) {
      const auto role = std::find_if(
          graph_.roles.begin(), graph_.roles.end(),
          [&](const KernelRole& r) { return warp >= r.first_warp && warp <= r.last_warp; });
      const bool plays = role != graph_.roles.end();
      svg_ += svg_box(
          kGraphEdge + warp * width, y, width - 2, 20,
          plays ? ink_of(graph_.roles, static_cast<std::size_t>(role - graph_.roles.begin())).first
                : ink::none,
          plays ? role->name : "idle");
      svg_ += svg_text(kGraphEdge + (warp + 0.5) * width - 1, y + 14, std::to_string(warp), 11,
                       "text-anchor=\"middle\"");
    }
    y += 20;
    for (const KernelRole& r : graph_.roles) {
      const double room = (r.last_warp - r.first_warp + 1) * width - 2;
      svg_ += svg_text(kGraphEdge + r.first_warp * width, y + 14, fitting(r.name, room, 11), 11);
      svg_ += svg_text(kGraphEdge + r.first_warp * width, y + 28,
                       fitting(std::to_string(r.registers) + " registers", room, 10), 10);
    }
    return y + 28;
  }

  double barriers(double y) {
    const double right = kGraphWidth - kGraphEdge - kRoleWidth;
    for (const auto& [x, text] : {std::pair{kGraphEdge, "who arrives"},
                                  {kRowLeft, "at which mbarrier"},
                                  {right, "who waits for it"}}) {
      svg_ += svg_text(x, y, text, 12, "font-weight=\"600\"");
    }
    const double top = y + 12;
    const Side arriving = side_of(graph_, false, top);
    const Side waiting = side_of(graph_, true, top);
    arrows(arriving, false, top);
    arrows(waiting, true, top);
    boxes(arriving, kGraphEdge);
    boxes(waiting, right);
    for (std::size_t i = 0; i < graph_.barriers.size(); ++i) barrier(i, top);
    double bottom = row_middle(top, static_cast<int>(graph_.barriers.size()) - 1) + kRowHeight / 2;
    for (const Side* side : {&arriving, &waiting}) {
      if (!side->tops.empty()) bottom = std::max(bottom, side->tops.back() + kRoleHeight);
    }
    return bottom;
  }

  void boxes(const Side& side, double x) {
    for (std::size_t i = 0; i < side.roles.size(); ++i) {
      const auto role = static_cast<std::size_t>(side.roles[i]);
      const KernelRole& r = graph_.roles[role];
      const double y = side.tops[i];
      svg_ += svg_box(x, y, kRoleWidth, kRoleHeight, ink_of(graph_.roles, role).first, r.does,
                      "rx=\"4\"");
      svg_ += svg_text(x + 10, y + 18, r.name, 13, "font-weight=\"600\"");
      svg_ += svg_text(x + 10, y + 34,
                       warps_text(r) + ", " + std::to_string(r.registers) + " registers", 11);
      // What it does, in two lines where it has to.
      const std::size_t room = 44;
      std::size_t end = r.does.size();
      if (end > room) end = std::min(end, r.does.rfind(' ', room));
      svg_ += svg_text(x + 10, y + 49, r.does.substr(0, end), 10);
      if (end < r.does.size()) {
        svg_ += svg_text(x + 10, y + 62, fitting(r.does.substr(end + 1), kRoleWidth - 14, 10), 10);
      }
    }
  }

  // From the box of a role to the barrier, or from the barrier to the box.
  void arrows(const Side& side, bool waits, double top) {
    for (const RoleEdge& edge : role_edges(graph_)) {
      const auto at = std::find(side.roles.begin(), side.roles.end(), edge.role);
      if (edge.waits != waits || at == side.roles.end()) continue;
      const double box = side.tops[static_cast<std::size_t>(at - side.roles.begin())];
      // Arrows of one role fan out over its edge.
      std::vector<int> of_role;
      for (const RoleEdge& other : role_edges(graph_)) {
        if (other.role == edge.role && other.waits == waits) of_role.push_back(other.barrier);
      }
      const auto place = std::find(of_role.begin(), of_role.end(), edge.barrier) - of_role.begin();
      const double share =
          (static_cast<double>(place) + 1) / (static_cast<double>(of_role.size()) + 1);
      // Those who arrive end in the upper half of their side of the barrier, so do those who wait.
      std::vector<int> at_barrier;
      for (const int role : side.roles) {
        const RoleEdge same{role, edge.barrier, waits};
        const auto all = role_edges(graph_);
        if (std::find(all.begin(), all.end(), same) != all.end()) at_barrier.push_back(role);
      }
      const auto turn =
          std::find(at_barrier.begin(), at_barrier.end(), edge.role) - at_barrier.begin();
      const double role_y = box + share * kRoleHeight;
      const double row_y = row_middle(top, edge.barrier) - kRowHeight / 2 +
                           (static_cast<double>(turn) + 1) /
                               (static_cast<double>(at_barrier.size()) + 1) * kRowHeight;
      const double right = kGraphWidth - kGraphEdge - kRoleWidth;
      const auto [from_x, from_y, to_x, to_y] =
          waits ? std::array{kRowLeft + kRowWidth, row_y, right, role_y}
                : std::array{kGraphEdge + kRoleWidth, role_y, kRowLeft, row_y};
      arrow(from_x, from_y, to_x, to_y, edge);
    }
  }

  void arrow(double from_x, double from_y, double to_x, double to_y, const RoleEdge& edge) {
    const std::string_view colour =
        ink_of(graph_.roles, static_cast<std::size_t>(edge.role)).second;
    const double middle = (from_x + to_x) / 2;
    const double end = to_x - 7;
    svg_ += "<path d=\"M" + decimal(from_x) + " " + decimal(from_y) + "C" + decimal(middle) + " " +
            decimal(from_y) + " " + decimal(middle) + " " + decimal(to_y) + " " + decimal(end) +
            " " + decimal(to_y) + "\" fill=\"none\" stroke=\"" + std::string(colour) +
            "\" stroke-width=\"1.6\"" + (edge.waits ? " stroke-dasharray=\"5 3\" " : " ") +
            data_row(static_cast<std::size_t>(edge.barrier)) + "/>\n";
    svg_ += "<path d=\"M" + decimal(end) + " " + decimal(to_y - 4) + "L" + decimal(to_x) + " " +
            decimal(to_y) + "L" + decimal(end) + " " + decimal(to_y + 4) + "Z\" fill=\"" +
            std::string(colour) + "\"/>\n";
  }

  void barrier(std::size_t i, double top) {
    const pipeline::BarrierRow& row = graph_.barriers[i];
    const double y = row_middle(top, static_cast<int>(i)) - kRowHeight / 2;
    svg_ += svg_box(kRowLeft, y, kRowWidth, kRowHeight, ink::yellow, "", "rx=\"4\" " + data_row(i));
    svg_ +=
        svg_text(kRowLeft + 12, y + 18,
                 std::string(row.name) + (row.copies > 1 ? " x " + std::to_string(row.copies) : ""),
                 13, "font-weight=\"600\"");
    std::string phase =
        std::to_string(row.arrivals) + (row.arrivals == 1 ? " arrival" : " arrivals");
    if (row.transaction_bytes > 0) phase += ", " + std::to_string(row.transaction_bytes) + " bytes";
    svg_ +=
        svg_text(kRowLeft + kRowWidth - 12, y + 18, phase + " a phase", 12, "text-anchor=\"end\"");
    const double room = kRowWidth - 20;
    svg_ += svg_text(kRowLeft + 12, y + 34, "first wait for parity " + parity_text(row), 11);
    svg_ += svg_text(kRowLeft + 12, y + 49,
                     fitting("arrives: " + std::string(row.arrivers), room, 10), 10);
    svg_ += svg_text(kRowLeft + 12, y + 64, fitting("waits: " + std::string(row.waiters), room, 10),
                     10);
  }

  const RoleGraph& graph_;
  std::string svg_;
};

}  // namespace

std::vector<int> roles_meant(const std::vector<KernelRole>& roles, std::string_view words,
                             std::string_view opposite) {
  if (words.starts_with("its leader")) words = opposite;
  const bool has_epilogue = std::any_of(roles.begin(), roles.end(),
                                        [](const KernelRole& r) { return r.name == "epilogue"; });
  const bool first_alone = words.starts_with("loading lane");
  const auto means = [&](const KernelRole& role) {
    if (is_idle(role)) return false;
    const std::string_view name = role.name;
    if (has(words, "all roles")) return name != "scales";
    if (name.starts_with("consumer")) {
      if (first_alone) return name == "consumer 0";
      return has(words, "consumer") || (!has_epilogue && has(words, "epilogue"));
    }
    if (name == "load") return has(words, "load thread");
    if (name == "mma") return has(words, "MMA") || has(words, "commit");
    if (name == "tokens") return has(words, "copies tokens");
    if (name == "scales") return has(words, "write scales");
    return has(words, name);
  };
  std::vector<int> meant;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (means(roles[i])) meant.push_back(static_cast<int>(i));
  }
  return meant;
}

std::vector<RoleEdge> role_edges(const RoleGraph& graph) {
  std::vector<RoleEdge> edges;
  for (std::size_t i = 0; i < graph.barriers.size(); ++i) {
    const pipeline::BarrierRow& row = graph.barriers[i];
    for (const bool waits : {false, true}) {
      const char* const words = waits ? row.waiters : row.arrivers;
      const char* const opposite = waits ? row.arrivers : row.waiters;
      for (const int role : roles_meant(graph.roles, words, opposite)) {
        edges.push_back({role, static_cast<int>(i), waits});
      }
    }
  }
  return edges;
}

View role_view(const RoleGraph& graph) {
  View view;
  view.id = "roles";
  view.title = "Roles and barriers";
  view.caption =
      graph.barriers.empty()
          ? "All warps do the same and meet at CTA barriers: there is no mbarrier."
          : "Whole arrows arrive, dashed ones wait. A phase of a barrier is complete when so many "
            "have arrived and so many bytes have landed; a first wait for parity 1 passes.";
  view.svg = GraphPicture(graph).draw();
  view.table.header = {
      "barrier", "copies", "arrivals a phase", "bytes a phase", "first wait parity",
      "arrives", "waits",  "who arrives",      "who waits"};
  for (std::size_t i = 0; i < graph.barriers.size(); ++i) {
    const pipeline::BarrierRow& row = graph.barriers[i];
    view.table.rows.push_back({row.name, std::to_string(row.copies), std::to_string(row.arrivals),
                               std::to_string(row.transaction_bytes), parity_text(row),
                               names(graph, static_cast<int>(i), false),
                               names(graph, static_cast<int>(i), true), row.arrivers, row.waiters});
  }
  return view;
}

}  // namespace warpwright::pictures
