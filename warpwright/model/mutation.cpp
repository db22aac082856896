#include "warpwright/model/mutation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

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

// The ways to break one site. Those that would not change what a statement says are left out: a
// relaxed arrival cannot be weakened, a statement of one warp not moved to another.
std::vector<Kind> ways(const SyncSite& s) {
  std::vector<Kind> all{Kind::drop};
  const auto add = [&](std::initializer_list<Kind> more) { all.insert(all.end(), more); };
  switch (s.kind) {
    case SyncKind::mbarrier_init:
      add({Kind::drop_first, Kind::count_up, Kind::count_down, Kind::repeat, Kind::other_lane});
      break;
    case SyncKind::mbarrier_expect:
      add({Kind::drop_first, Kind::bytes_up, Kind::bytes_down, Kind::bytes_first, Kind::repeat});
      break;
    case SyncKind::mbarrier_arrive:
      add({Kind::drop_first, Kind::repeat, Kind::repeat_first});
      if (s.cluster_scope) add({Kind::weaken});
      if (s.warps > 1) add({s.warpgroups > 1 ? Kind::other_warpgroup : Kind::stranger});
      break;
    case SyncKind::mbarrier_wait:
    case SyncKind::mbarrier_try_wait:
      add({Kind::drop_first, Kind::flip_parity, Kind::flip_first});
      if (s.cluster_scope) add({Kind::weaken});
      if (s.threads > s.warps) add({Kind::lane_zero});
      break;
    case SyncKind::fence_mbarrier_init:
      add({Kind::other_lane});
      break;
    case SyncKind::fence_proxy_async:
      add({s.threads > s.warps ? Kind::lane_zero : Kind::other_lane});
      break;
    case SyncKind::multicast:
      add({Kind::clear_low, Kind::clear_high});
      break;
    case SyncKind::bulk_commit:
      add({Kind::drop_first, Kind::other_lane});
      break;
    case SyncKind::copy_commit:
      add({Kind::drop_first});  // a group more makes waits stricter
      break;
    case SyncKind::copy_wait:
      add({Kind::drop_first, Kind::wait_more});
      break;
    case SyncKind::bulk_wait:
    case SyncKind::wgmma_wait:
      add({Kind::wait_more});
      if ((s.value & SyncSite::registers) != 0) add({Kind::no_registers});
      break;
    case SyncKind::named_barrier:
      add({Kind::count_up, Kind::count_down, Kind::no_wait});
      break;
    case SyncKind::cluster_arrive:
      if (s.cluster_scope) add({Kind::weaken});
      break;
    case SyncKind::umma_commit_mask:
      add({Kind::clear_low, Kind::clear_high});
      [[fallthrough]];
    case SyncKind::umma_commit:
      add({Kind::drop_first, Kind::repeat, Kind::repeat_first, Kind::other_lane});
      break;
    case SyncKind::tensor_fence_before:
    case SyncKind::tensor_fence_after:
      add({s.threads > s.warps ? Kind::lane_zero : Kind::other_lane});
      break;
    case SyncKind::draw:
      add({Kind::count_up, Kind::repeat, Kind::repeat_first});
      break;
    case SyncKind::store_async:
    case SyncKind::try_cancel:
      add({Kind::drop_first, Kind::repeat, Kind::repeat_first});
      break;
    case SyncKind::tmem_wait_load:
    case SyncKind::tmem_wait_store:
      add({Kind::drop_first});
      if ((s.value & SyncSite::registers) != 0) add({Kind::no_registers});
      break;
    case SyncKind::map_release:
      add({Kind::weaken});
      break;
    case SyncKind::map_acquire:
      if (s.threads == s.warps) add({Kind::other_lane});
      break;
    case SyncKind::grid_wait:
      if (s.threads > s.warps) add({Kind::lane_zero});
      break;
    case SyncKind::flag_clear:
      add({Kind::drop_first});
      break;
    case SyncKind::map_replace:
    case SyncKind::tmem_alloc:
    case SyncKind::tmem_dealloc:
    case SyncKind::tmem_relinquish:
    case SyncKind::cluster_wait:
    case SyncKind::wgmma_fence:
    case SyncKind::wgmma_commit:
    case SyncKind::warp_sync:
    case SyncKind::flag_set:
    case SyncKind::flag_wait:
      break;
  }
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
  switch (kind) {
    case SyncKind::mbarrier_init:
      return "mbarrier.init";
    case SyncKind::mbarrier_expect:
      return "mbarrier.expect_tx";
    case SyncKind::mbarrier_arrive:
      return "mbarrier.arrive";
    case SyncKind::mbarrier_wait:
      return "mbarrier wait";
    case SyncKind::mbarrier_try_wait:
      return "mbarrier.try_wait";
    case SyncKind::fence_mbarrier_init:
      return "fence.mbarrier_init";
    case SyncKind::fence_proxy_async:
      return "fence.proxy.async";
    case SyncKind::multicast:
      return "multicast mask";
    case SyncKind::bulk_commit:
      return "bulk commit_group";
    case SyncKind::bulk_wait:
      return "bulk wait_group";
    case SyncKind::copy_commit:
      return "cp.async.commit_group";
    case SyncKind::copy_wait:
      return "cp.async.wait_group";
    case SyncKind::wgmma_fence:
      return "wgmma.fence";
    case SyncKind::wgmma_commit:
      return "wgmma.commit_group";
    case SyncKind::wgmma_wait:
      return "wgmma.wait_group";
    case SyncKind::named_barrier:
      return "named barrier";
    case SyncKind::cluster_arrive:
      return "cluster arrive";
    case SyncKind::cluster_wait:
      return "cluster wait";
    case SyncKind::warp_sync:
      return "syncwarp";
    case SyncKind::tmem_alloc:
      return "tcgen05.alloc";
    case SyncKind::tmem_dealloc:
      return "tcgen05.dealloc";
    case SyncKind::tmem_relinquish:
      return "tcgen05.relinquish_alloc_permit";
    case SyncKind::umma_commit:
      return "tcgen05.commit";
    case SyncKind::umma_commit_mask:
      return "tcgen05.commit multicast";
    case SyncKind::tensor_fence_before:
      return "tcgen05.fence::before_thread_sync";
    case SyncKind::tensor_fence_after:
      return "tcgen05.fence::after_thread_sync";
    case SyncKind::tmem_wait_load:
      return "tcgen05.wait::ld";
    case SyncKind::tmem_wait_store:
      return "tcgen05.wait::st";
    case SyncKind::try_cancel:
      return "try_cancel";
    case SyncKind::draw:
      return "draw";
    case SyncKind::store_async:
      return "st.async";
    case SyncKind::grid_wait:
      return "griddepcontrol.wait";
    case SyncKind::flag_clear:
      return "flag clear";
    case SyncKind::flag_set:
      return "flag set";
    case SyncKind::flag_wait:
      return "flag wait";
    case SyncKind::map_replace:
      return "tensormap.replace";
    case SyncKind::map_release:
      return "tensormap.cp_fenceproxy";
    case SyncKind::map_acquire:
      return "fence.proxy.tensormap";
  }
  return "";
}

std::string_view Mutation::how() const {
  switch (kind) {
    case Kind::drop:
      return "dropped";
    case Kind::drop_first:
      return "dropped the first time";
    case Kind::count_up:
      return at == SyncKind::named_barrier ? "count + 32" : "count + 1";
    case Kind::count_down:
      return at == SyncKind::named_barrier ? "count - 32" : "count - 1";
    case Kind::repeat:
      return "executed twice";
    case Kind::repeat_first:
      return "executed twice the first time";
    case Kind::flip_parity:
      return "parity flipped";
    case Kind::flip_first:
      return "parity flipped the first time";
    case Kind::initial_phase:
      return "initial phase flipped";
    case Kind::bytes_up:
      return "bytes + 16";
    case Kind::bytes_down:
      return "bytes - 16";
    case Kind::bytes_first:
      return "bytes + 16 the first time";
    case Kind::clear_low:
      return "lowest bit cleared";
    case Kind::clear_high:
      return "highest bit cleared";
    case Kind::wait_more:
      return "one more group may be pending";
    case Kind::weaken:
      return "relaxed";
    case Kind::no_wait:
      return "arrives without waiting";
    case Kind::other_lane:
      return "by another lane";
    case Kind::lane_zero:
      return "by lane 0 alone";
    case Kind::other_warpgroup:
      return "by the warpgroup beside it";
    case Kind::stranger:
      return "by a thread of another role";
    case Kind::no_registers:
      return "without its registers";
  }
  return "";
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

void SiteTable::name_init(const char* barrier) {
  if (latest_init_ != nullptr) latest_init_->named = barrier;
}

std::vector<SyncSite> SiteTable::sites() const {
  // One line of a header has a file name of its own in every translation unit: merge by text.
  using Place = std::tuple<std::string, int, SyncKind, std::string>;
  std::map<Place, std::pair<SyncSite, std::bitset<1024>>> merged;
  for (const auto& [key, entry] : entries_) {
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
