// CLC: clusters of the grid wait in a queue until SMs are free for them, and a running
// one may take the next off the queue and do its work (PTX ISA 9.7.13.17 and 9.7.13.18).
#include <algorithm>

#include "warpwright/model/launch_answers.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

constexpr int answer_bytes = 16;
constexpr std::uint64_t canceled_mark = 0x63616e63656c6564;  // tells an answer from other bytes
constexpr std::uint64_t refused_mark = 0x7265667573656421;

void check_answer_mark(const LaunchAnswer& answer, const char* what, Site site) {
  if (answer.high == canceled_mark || answer.high == refused_mark) return;
  Machine& m = machine();
  m.fatal(Check::clc, m.who(m.current()) + ": " + what + " on 16 bytes that no try_cancel wrote",
          site);
}

// The request's answer and its signal in one CTA.
void request(Cta& cta, std::uint32_t answer, std::uint32_t barrier,
             const std::shared_ptr<std::vector<std::byte>>& data, Site site) {
  Machine& m = machine();
  const std::uint32_t offset = answer & 0xffffffu;
  if (std::find(cta.unread_answers.begin(), cta.unread_answers.end(), offset) !=
      cta.unread_answers.end()) {
    m.finding(Check::clc,
              m.who(m.current()) + ": a try_cancel overwrites an answer at offset " +
                  std::to_string(offset) + " of CTA rank " + std::to_string(cta.rank) +
                  " that nobody has read",
              site);
  } else {
    cta.unread_answers.push_back(offset);
  }
  auto copy = std::make_unique<Copy>();
  copy->from = Copy::From::queue;
  copy->data = data;
  m.write_async(std::move(copy), cta, answer, barrier, site);
}

}  // namespace

void Machine::write_async(std::unique_ptr<Copy> copy, Cta& cta, std::uint32_t to,
                          std::uint32_t barrier, Site site) {
  copy->kind = Copy::Kind::load;
  copy->map.rank = 1;
  copy->map.element_bits = 8;
  copy->map.box = {answer_bytes};
  copy->cta = &cta;
  copy->signals = &cta;
  copy->offset = to & 0xffffffu;
  copy->barrier = barrier & 0xffffffu;
  copy->bytes = copy->reach = answer_bytes;
  copy->issuer = current_;
  copy->site = site;
  barrier_of(cta, copy->barrier, "the signal of an asynchronous write", site);
  issue(std::move(copy));
}

LaunchAnswer Machine::cancel_next(GridRun& grid) {
  const int first = grid.next_cta;
  if (first >= grid.shape().ctas) return {0, refused_mark};
  const int size = grid.shape().cluster_size;
  grid.next_cta += size;
  grid.holding -= size;  // they will never run
  return {static_cast<std::uint64_t>(first), canceled_mark};
}

void act::try_cancel(std::uint32_t answer, std::uint32_t barrier, bool multicast, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  m.spend(m.costs().tma_issue);
  if (answer % answer_bytes != 0) {
    m.fatal(Check::misaligned,
            m.who(self) + ": the answer of a try_cancel goes to a multiple of 16 bytes", site);
  }
  if (m.owner(answer, "try_cancel", site).rank != m.owner(barrier, "try_cancel", site).rank ||
      &m.owner(answer, "try_cancel", site) != self.cta) {
    m.fatal(Check::shared_bounds,
            m.who(self) +
                ": a try_cancel names memory of another CTA; answer and barrier are of "
                "the own one",
            site);
  }
  if (self.cta->launch_refused) {
    m.finding(
        Check::clc,
        m.who(self) + " asks with try_cancel again, after this CTA has seen an answer that said no",
        site);
  }
  const auto data = std::make_shared<std::vector<std::byte>>();
  if (!multicast) return request(*self.cta, answer, barrier, data, site);
  for (const auto& cta : self.cta->cluster->ctas) {
    if (cta->live_threads == 0) {
      m.fatal(Check::cluster_lifetime,
              m.who(self) + ": a try_cancel for the whole cluster, and CTA rank " +
                  std::to_string(cta->rank) + " has exited",
              site);
    }
    request(*cta, answer, barrier, data, site);
  }
}

void act::store_async(std::uint32_t to, const void* value, std::uint32_t barrier, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().shared_access);
  if (to % answer_bytes != 0) {
    m.fatal(Check::misaligned,
            m.who(m.current()) + ": an st.async of 16 bytes goes to a multiple of 16 bytes", site);
  }
  if (!m.shape().in_clusters) {
    m.fatal(Check::shared_bounds,
            m.who(m.current()) +
                ": an st.async in a grid that was launched without clusters, where it is an "
                "illegal instruction; launch clusters of one CTA",
            site);
  }
  Cta& cta = m.owner(to, "an st.async", site);
  if (&m.owner(barrier, "an st.async", site) != &cta) {
    m.fatal(Check::shared_bounds,
            m.who(m.current()) + ": an st.async names memory and a barrier of different CTAs",
            site);
  }
  auto copy = std::make_unique<Copy>();
  copy->from = Copy::From::registers;
  const auto* bytes = static_cast<const std::byte*>(value);
  copy->data = std::make_shared<std::vector<std::byte>>(bytes, bytes + answer_bytes);
  m.write_async(std::move(copy), cta, to, barrier, site);
}

void launch_answers_read(std::uint32_t at, int bytes) {
  const std::uint32_t first = at & 0xffffffu;
  const std::uint32_t end = first + static_cast<std::uint32_t>(bytes);
  std::erase_if(machine().current().cta->unread_answers, [&](std::uint32_t answer) {
    return answer < end && first < answer + answer_bytes;
  });
}

LaunchAnswer load_launch_answer(std::uint32_t answer, Site site) {
  LaunchAnswer value;
  shared_load(answer, &value, answer_bytes, site);
  launch_answers_read(answer, answer_bytes);
  return value;
}

bool cluster_canceled(const LaunchAnswer& answer, Site site) {
  check_answer_mark(answer, "query_cancel.is_canceled", site);
  const bool canceled = answer.high == canceled_mark;
  if (!canceled) machine().current().cta->launch_refused = true;
  return canceled;
}

int canceled_first_cta(const LaunchAnswer& answer, Site site) {
  check_answer_mark(answer, "query_cancel.get_first_ctaid", site);
  Machine& m = machine();
  if (answer.high != canceled_mark) {
    m.fatal(Check::clc, m.who(m.current()) + " asks for the first CTA of an answer that said no",
            site);
  }
  return static_cast<int>(answer.low);
}

}  // namespace warpwright::model
