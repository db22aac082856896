#include "warpwright/model/polling.h"

#include <cstring>

#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

std::uint32_t value_of(const std::byte* word) {
  std::uint32_t value = 0;
  std::memcpy(&value, word, sizeof value);
  return value;
}

// The flag, and where its bytes are; a look at it costs time.
std::pair<Flag*, const std::byte*> looked_at(void* flag, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().global_access);
  return {&m.flag(flag, "a flag in global memory", site),
          m.bytes_at(reinterpret_cast<std::uintptr_t>(flag))};
}

}  // namespace

std::uint32_t flag_load(void* flag, Site site) {
  Machine& m = machine();
  const auto [f, word] = looked_at(flag, site);
  const auto at = reinterpret_cast<std::uintptr_t>(flag);
  if (m.explore) m.explore->may_touch(at);
  if (m.explore) m.explore->reads(at, nullptr, "flag_load", site);
  if (m.order) m.order->flag_waited(m.current(), f->order);
  return value_of(word);
}

std::uint32_t wait_for_word(void* flag, std::uint32_t value, std::uint32_t mask, bool any_other,
                            const char* what, Site site) {
  Machine& m = machine();
  const auto [f, word] = looked_at(flag, site);
  Thread* const self = &m.current();
  const Recorder::Wanted wanted{value, mask, any_other};
  const auto at = reinterpret_cast<std::uintptr_t>(flag);
  if (m.explore) m.explore->may_touch(at);
  while (((value_of(word) & mask) == value) == any_other) {
    if (m.explore) m.explore->blocks(at, wanted, what, site);
    f->waiting.push_back(self);
    m.block({.kind = Wait::Kind::flag,
             .site = site,
             .cta = self->cta,
             .word = at,
             .now = word,
             .value = value,
             .mask = mask,
             .any_other = any_other});
    if (m.explore) m.explore->may_touch(at);
  }
  if (m.explore) m.explore->reads(at, &wanted, what, site);
  if (m.order) m.order->flag_waited(*self, f->order);
  return value_of(word);
}

std::uint32_t flag_load_other(void* flag, std::uint32_t seen, Site site) {
  return wait_for_word(flag, seen, ~0U, true, "flag_load", site);
}

void flag_store(void* flag, std::uint32_t value, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  if (m.explore) {
    const auto at = reinterpret_cast<std::uintptr_t>(flag);
    m.explore->may_touch(at);
    m.explore->writes(at, value_of(m.bytes_at(at)), "flag_store", site);
  }
  global_store(flag, &value, sizeof value, site);
  Flag& f = m.flag(flag, "a flag in global memory", site);
  m.flag_written(f, site);
  m.wake_all(f.waiting);
}

}  // namespace warpwright::model
