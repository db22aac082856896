#include "warpwright/model/mutation.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace warpwright::model {
namespace {

using Kind = Mutation::Kind;

bool first_only(Kind kind) {
  return kind == Kind::drop_first || kind == Kind::repeat_first || kind == Kind::flip_first ||
         kind == Kind::bytes_first;
}

bool is_wait(SyncKind kind) {
  return kind == SyncKind::mbarrier_wait || kind == SyncKind::mbarrier_try_wait;
}

// What there is to say of a kind of statement.
struct Statement {
  SyncKind kind;
  std::string_view name;
  // How each of its sites is broken, beside being dropped,
  std::initializer_list<Kind> always = {};
  // and only those of its sites at which that changes what the statement says.
  std::initializer_list<Kind> where_it_matters = {};
};

// In the order of SyncKind, all of them.
constexpr std::array<Statement, static_cast<std::size_t>(SyncKind::map_acquire) + 1> statements{{
    {SyncKind::mbarrier_init,
     "mbarrier.init",
     {Kind::drop_first, Kind::count_up, Kind::count_down, Kind::repeat, Kind::other_lane}},
    {SyncKind::mbarrier_expect,
     "mbarrier.expect_tx",
     {Kind::drop_first, Kind::bytes_up, Kind::bytes_down, Kind::bytes_first, Kind::repeat}},
    {SyncKind::mbarrier_arrive,
     "mbarrier.arrive",
     {Kind::drop_first, Kind::repeat, Kind::repeat_first},
     {Kind::weaken, Kind::other_warpgroup, Kind::stranger}},
    {SyncKind::mbarrier_wait,
     "mbarrier wait",
     {Kind::drop_first, Kind::flip_parity, Kind::flip_first},
     {Kind::weaken, Kind::lane_zero}},
    {SyncKind::mbarrier_try_wait,
     "mbarrier.try_wait",
     {Kind::drop_first, Kind::flip_parity, Kind::flip_first},
     {Kind::weaken, Kind::lane_zero}},
    {SyncKind::fence_mbarrier_init, "fence.mbarrier_init", {Kind::other_lane}},
    {SyncKind::fence_proxy_async, "fence.proxy.async", {}, {Kind::lane_zero, Kind::other_lane}},
    {SyncKind::multicast, "multicast mask", {Kind::clear_low, Kind::clear_high}},
    {SyncKind::bulk_commit, "bulk commit_group", {Kind::drop_first, Kind::other_lane}},
    {SyncKind::bulk_wait, "bulk wait_group", {Kind::wait_more}, {Kind::no_registers}},
    // A group more makes waits stricter.
    {SyncKind::copy_commit, "cp.async.commit_group", {Kind::drop_first}},
    {SyncKind::copy_wait, "cp.async.wait_group", {Kind::drop_first, Kind::wait_more}},
    {SyncKind::copy_arrive,
     "cp.async.mbarrier.arrive",
     {Kind::drop_first, Kind::repeat, Kind::repeat_first},
     {Kind::lane_zero, Kind::other_lane}},
    {SyncKind::wgmma_fence, "wgmma.fence"},
    {SyncKind::wgmma_commit, "wgmma.commit_group"},
    {SyncKind::wgmma_wait, "wgmma.wait_group", {Kind::wait_more}, {Kind::no_registers}},
    {SyncKind::named_barrier, "named barrier", {Kind::count_up, Kind::count_down, Kind::no_wait}},
    {SyncKind::cluster_arrive, "cluster arrive", {}, {Kind::weaken}},
    {SyncKind::cluster_wait, "cluster wait"},
    {SyncKind::warp_sync, "syncwarp"},
    {SyncKind::tmem_alloc, "tcgen05.alloc"},
    {SyncKind::tmem_dealloc, "tcgen05.dealloc"},
    {SyncKind::tmem_relinquish, "tcgen05.relinquish_alloc_permit"},
    {SyncKind::tmem_copy, "tcgen05.cp", {Kind::drop_first}, {Kind::other_lane}},
    {SyncKind::tmem_shift, "tcgen05.shift", {Kind::drop_first}, {Kind::other_lane}},
    {SyncKind::umma_commit,
     "tcgen05.commit",
     {Kind::drop_first, Kind::repeat, Kind::repeat_first, Kind::other_lane}},
    {SyncKind::umma_commit_mask,
     "tcgen05.commit multicast",
     {Kind::clear_low, Kind::clear_high, Kind::drop_first, Kind::repeat, Kind::repeat_first,
      Kind::other_lane}},
    {SyncKind::tensor_fence_before,
     "tcgen05.fence::before_thread_sync",
     {},
     {Kind::lane_zero, Kind::other_lane}},
    {SyncKind::tensor_fence_after,
     "tcgen05.fence::after_thread_sync",
     {},
     {Kind::lane_zero, Kind::other_lane}},
    {SyncKind::tmem_wait_load, "tcgen05.wait::ld", {Kind::drop_first}, {Kind::no_registers}},
    {SyncKind::tmem_wait_store, "tcgen05.wait::st", {Kind::drop_first}, {Kind::no_registers}},
    {SyncKind::try_cancel, "try_cancel", {Kind::drop_first, Kind::repeat, Kind::repeat_first}},
    {SyncKind::draw, "draw", {Kind::count_up, Kind::repeat, Kind::repeat_first}},
    {SyncKind::store_async, "st.async", {Kind::drop_first, Kind::repeat, Kind::repeat_first}},
    {SyncKind::grid_wait, "griddepcontrol.wait", {}, {Kind::lane_zero}},
    {SyncKind::grid_launch, "griddepcontrol.launch_dependents", {Kind::too_early}},
    {SyncKind::flag_set, "flag set"},
    {SyncKind::flag_wait, "flag wait"},
    {SyncKind::flag_count, "flag count", {Kind::repeat, Kind::repeat_first}, {Kind::weaken}},
    {SyncKind::flag_clear, "flag clear", {Kind::drop_first}},
    {SyncKind::map_replace, "tensormap.replace"},
    {SyncKind::map_release, "tensormap.cp_fenceproxy", {Kind::weaken}},
    {SyncKind::map_acquire, "fence.proxy.tensormap", {}, {Kind::other_lane}},
}};
static_assert(std::ranges::adjacent_find(statements, std::greater_equal{}, &Statement::kind) ==
              statements.end());

constexpr std::pair<Kind, std::string_view> hows[] = {
    {Kind::drop, "dropped"},
    {Kind::drop_first, "dropped the first time"},
    {Kind::count_up, "count + 1"},
    {Kind::count_down, "count - 1"},
    {Kind::repeat, "executed twice"},
    {Kind::repeat_first, "executed twice the first time"},
    {Kind::flip_parity, "parity flipped"},
    {Kind::flip_first, "parity flipped the first time"},
    {Kind::initial_phase, "initial phase flipped"},
    {Kind::bytes_up, "bytes + 16"},
    {Kind::bytes_down, "bytes - 16"},
    {Kind::bytes_first, "bytes + 16 the first time"},
    {Kind::clear_low, "lowest bit cleared"},
    {Kind::clear_high, "highest bit cleared"},
    {Kind::wait_more, "one more group may be pending"},
    {Kind::weaken, "relaxed"},
    {Kind::no_wait, "arrives without waiting"},
    {Kind::other_lane, "by another lane"},
    {Kind::lane_zero, "only by lane 0"},
    {Kind::other_warpgroup, "by the warpgroup beside it"},
    {Kind::stranger, "by a thread of another role"},
    {Kind::no_registers, "without its registers"},
    {Kind::too_early, "before the wait"},
};

const Statement& statement_of(SyncKind kind) {
  return statements.at(static_cast<std::size_t>(kind));
}

// A relaxed arrival cannot be weakened, a statement of one warp not moved to another.
bool matters(Kind kind, const SyncSite& s) {
  switch (kind) {
    case Kind::weaken:
      return s.cluster_scope;
    case Kind::other_warpgroup:
      return s.warps > 1 && s.warpgroups > 1;
    case Kind::stranger:
      return s.warps > 1 && s.warpgroups <= 1;
    case Kind::lane_zero:
      return s.threads > s.warps;
    case Kind::other_lane:
      return s.threads <= s.warps;
    case Kind::no_registers:
      return (s.value & SyncSite::registers) != 0;
    default:
      return true;
  }
}

// The ways to break one site.
std::vector<Kind> ways(const SyncSite& s) {
  const Statement& statement = statement_of(s.kind);
  // Without it the next grid starts later, no more.
  if (s.kind == SyncKind::grid_launch) return statement.always;
  std::vector<Kind> all{Kind::drop};
  all.insert(all.end(), statement.always);
  std::ranges::copy_if(statement.where_it_matters, std::back_inserter(all),
                       [&](Kind kind) { return matters(kind, s); });
  return all;
}

// A file as tables name it: a path, for folders have files of the same name, from the library on.
std::string_view short_name(std::string_view file) {
  constexpr std::string_view library = "warpwright/";
  return file.starts_with(library) ? file.substr(library.size()) : file;
}

std::string place(SyncKind kind, const std::string& barrier, const std::string& file, int line) {
  std::string out(name(kind));
  if (!barrier.empty()) out += " " + barrier;
  return out.append(" at ").append(short_name(file)) + ":" + std::to_string(line);
}

}  // namespace

std::string_view name(SyncKind kind) {
  return statement_of(kind).name;
}

std::string_view Mutation::how() const {
  if (at == SyncKind::named_barrier && kind == Kind::count_up) return "count + 32";
  if (at == SyncKind::named_barrier && kind == Kind::count_down) return "count - 32";
  return std::ranges::find(hows, kind, &std::pair<Kind, std::string_view>::first)->second;
}

std::string SyncSite::text() const {
  return place(kind, barrier, file, line);
}

std::string text(const Mutation& m) {
  if (m.kind == Kind::initial_phase) return "all waits on " + m.barrier;
  return place(m.at, m.barrier, m.file, m.line);
}

std::vector<Mutation> mutations(const std::vector<SyncSite>& sites) {
  std::vector<Mutation> all;
  std::vector<std::string> waited;
  for (const SyncSite& s : sites) {
    for (const Kind kind : ways(s)) all.push_back({kind, s.kind, s.file, s.line, s.barrier});
    if (is_wait(s.kind) && std::find(waited.begin(), waited.end(), s.barrier) == waited.end()) {
      waited.push_back(s.barrier);
    }
  }
  for (const std::string& barrier : waited) {
    all.push_back({Kind::initial_phase, SyncKind::mbarrier_wait, "", 0, barrier});
  }
  return all;
}

std::size_t SiteTable::Hash::operator()(const Key& key) const {
  std::size_t h = reinterpret_cast<std::size_t>(key.file);
  h = h * 31 + reinterpret_cast<std::size_t>(key.barrier);
  h = h * 31 + static_cast<std::size_t>(key.line);
  return h * 31 + static_cast<std::size_t>(key.kind);
}

bool SiteTable::matches(const Key& key) const {
  if (!mutation_) return false;
  const Mutation& m = *mutation_;
  if (m.kind == Kind::initial_phase) return is_wait(key.kind) && m.barrier == key.barrier;
  // An init learns its name only afterwards.
  return m.at == key.kind && m.line == key.line && m.file == key.file &&
         (key.kind == SyncKind::mbarrier_init || m.barrier == key.barrier);
}

const Mutation* SiteTable::visit(SyncKind kind, Site site, const char* barrier, int value,
                                 bool cluster_scope, Executor who) {
  const Key key{site.file, barrier, site.line, kind};
  const auto [it, is_new] = entries_.try_emplace(key);
  Entry& entry = it->second;
  if (is_new) entry.broken = matches(key);
  ++entry.executions;
  entry.threads.set(static_cast<std::size_t>(who.thread));
  entry.value |= value;
  entry.cluster_scope = entry.cluster_scope || cluster_scope;
  if (std::find(entry.roles.begin(), entry.roles.end(), who.role) == entry.roles.end()) {
    entry.roles.push_back(who.role);
  }
  if (kind == SyncKind::mbarrier_init) latest_init_ = &entry;
  if (!entry.broken) return nullptr;
  if (first_only(mutation_->kind)) {
    const auto id = static_cast<std::uint64_t>(who.cta) << 10 | static_cast<unsigned>(who.thread);
    if (!broke_.insert(id).second) return nullptr;
  }
  return &*mutation_;
}

void SiteTable::rely_on(SyncKind kind, Site site) {
  for (auto& [key, entry] : entries_) {
    if (key.kind == kind && key.line == site.line && key.file == site.file) entry.relied_on = true;
  }
}

void SiteTable::name_init(const char* barrier) {
  if (latest_init_ != nullptr) latest_init_->named = barrier;
}

std::vector<SyncSite> SiteTable::sites() const {
  // One line of a header has a file name of its own in every translation unit: merge by text.
  using Place = std::tuple<std::string, int, SyncKind, std::string>;
  std::map<Place, std::pair<SyncSite, std::bitset<1024>>> merged;
  for (const auto& [key, entry] : entries_) {
    if (key.kind == SyncKind::grid_launch && !entry.relied_on) continue;
    const std::string barrier = key.kind == SyncKind::mbarrier_init ? entry.named : key.barrier;
    auto& [site, threads] = merged[{key.file, key.line, key.kind, barrier}];
    site.kind = key.kind;
    site.file = key.file;
    site.line = key.line;
    site.barrier = barrier;
    site.executions += entry.executions;
    site.value |= entry.value;
    site.cluster_scope = site.cluster_scope || entry.cluster_scope;
    threads |= entry.threads;
    for (const char* role : entry.roles) {
      if (std::find(site.roles.begin(), site.roles.end(), role) == site.roles.end()) {
        site.roles.emplace_back(role);
      }
    }
  }
  std::vector<SyncSite> out;
  for (auto& [place, found] : merged) {
    auto& [site, threads] = found;
    site.threads = static_cast<int>(threads.count());
    std::bitset<32> warps;
    std::bitset<8> groups;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      if (!threads.test(i)) continue;
      warps.set(i / 32);
      groups.set(i / 128);
    }
    site.warps = static_cast<int>(warps.count());
    site.warpgroups = static_cast<int>(groups.count());
    std::sort(site.roles.begin(), site.roles.end());
    out.push_back(std::move(site));
  }
  return out;
}

}  // namespace warpwright::model
