// The bulk tensor TMA: loads, multicast loads, stores and reduce-add stores
// (PTX ISA 9.7.9.25 to 9.7.9.27; out-of-bounds and swizzle rules probed on an H200).
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "warpwright/model/memory/box.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {
namespace {

void add_element(std::byte* to, const std::byte* from, const TensorMapFields& map) {
  if (map.element_kind == 0) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, to, 4);
    std::memcpy(&b, from, 4);
    a += b;
    std::memcpy(to, &a, 4);
  } else if (map.element_kind == 1 || map.element_kind == 2) {
    const DType type = map.element_kind == 1 ? DType::f16 : DType::bf16;
    std::uint16_t a = 0;
    std::uint16_t b = 0;
    std::memcpy(&a, to, 2);
    std::memcpy(&b, from, 2);
    const double sum = numeric::to_double(type, a) + numeric::to_double(type, b);
    a = static_cast<std::uint16_t>(numeric::from_double(type, sum));
    std::memcpy(to, &a, 2);
  } else {
    std::uint64_t a = 0;  // integers of up to 8 bytes; the low ones of the sum are stored
    std::uint64_t b = 0;
    std::memcpy(&a, to, map.element_bits / 8);
    std::memcpy(&b, from, map.element_bits / 8);
    a += b;
    std::memcpy(to, &a, map.element_bits / 8);
  }
}

// Whether a store brings bytes to the tensor that nobody has written. What lies outside the tensor
// goes nowhere, such as the padding of a box that is wider than the tensor.
bool stores_undefined(const Cta& cta, const Copy& store) {
  const BoxShape box = box_shape(store);
  bool undefined = false;
  for_each_row(store, [&](int row, std::int64_t, std::int64_t first, std::int64_t count) {
    const std::int64_t end = count == 0 ? 0 : stored_end(store.map, first + count);
    const int piece = box.piece;
    for (std::int64_t b = bytes_of(store.map, first); b < end; b = b / piece * piece + piece) {
      const auto linear = static_cast<std::uint32_t>(row * box.pitch + b / piece * 16);
      const auto chunk =
          cta.defined.begin() + atom::apply_swizzle(store.map.swizzle, store.offset + linear);
      // Padded rows come as a whole.
      const std::int64_t past =
          store.map.padded ? 16 : std::min<std::int64_t>(16, end - b / 16 * 16);
      const auto last = chunk + past;
      undefined = undefined || std::find(chunk + b % piece, last, 0) != last;
    }
  });
  return undefined;
}

// 16 elements of 6 bits, each in the lower bits of a byte, to 12 bytes: a store takes them so from
// shared memory (b6p2x16), unlike a load, which leaves them packed.
void pack_sixes(const std::byte* from, std::byte* to) {
  for (int i = 0; i < 16; i += 4, from += 4, to += 3) {
    std::uint32_t four = 0;
    for (int e = 0; e < 4; ++e) four |= (std::to_integer<std::uint32_t>(from[e]) & 63) << 6 * e;
    std::memcpy(to, &four, 3);
  }
}

std::string signal_text(const Copy& copy) {
  return std::string("the signal of ") + copy.what();
}

std::string size_text(const TensorMapFields& map) {
  const int bits = map.element_bits;
  return bits % 8 == 0 ? std::to_string(bits / 8) + " bytes" : std::to_string(bits) + " bits";
}

// A copy of rows takes a map of a matrix whose box is one row.
void check_coordinates(const TensorMapFields& map, std::span<const int> coords, CopyMode mode,
                       Site site) {
  Machine& m = machine();
  if (mode == CopyMode::tile) {
    if (static_cast<int>(coords.size()) == map.rank) return;
    m.fatal(Check::tensor_map,
            "a copy with " + std::to_string(coords.size()) +
                " coordinates on a tensor map of rank " + std::to_string(map.rank),
            site);
  }
  if (map.rank == 2 && map.box[1] == 1) return;
  m.fatal(Check::tensor_map,
          m.who(m.current()) +
              ": a gather or scatter of four rows takes a tensor map of rank 2 whose box is one "
              "row, not one of rank " +
              std::to_string(map.rank) +
              (map.rank < 2 ? "" : " and " + std::to_string(map.box[1]) + " rows"),
          site);
}

TensorMapFields checked(const TensorMap& map, std::span<const int> coords, CopyMode mode,
                        std::uint32_t address, Site site) {
  Machine& m = machine();
  TensorMap seen;
  std::memcpy(&seen, m.bytes_at(reinterpret_cast<std::uintptr_t>(&map)), sizeof seen);
  const auto fields = decode(seen);
  if (!fields) {
    m.fatal(Check::tensor_map, m.who(m.current()) + " uses a tensor map that nobody encoded", site);
  }
  if (const auto fault = invalid(*fields)) m.fatal(Check::tensor_map, *fault, site);
  check_coordinates(*fields, coords, mode, site);
  if (fields->padded && coords[0] % kPaddedBox != 0) {
    m.fatal(Check::tensor_map,
            m.who(m.current()) +
                ": the innermost coordinate of a copy of padded elements must be a multiple of "
                "128, not " +
                std::to_string(coords[0]),
            site);
  }
  if (coords[0] * static_cast<std::int64_t>(fields->element_bits) % 128 != 0) {
    m.fatal(Check::tensor_map,
            m.who(m.current()) +
                ": the innermost coordinate of a TMA copy must be a multiple of 16 bytes, not " +
                std::to_string(coords[0]) + " elements of " + size_text(*fields) +
                "; the hardware traps (illegal instruction)",
            site);
  }
  if (address % 128 != 0) {
    m.fatal(Check::tensor_map,
            m.who(m.current()) +
                ": the shared-memory address of a TMA copy must be a multiple "
                "of 128 bytes, not offset " +
                std::to_string(address & 0xffffffu),
            site);
  }
  return *fields;
}

}  // namespace

void Machine::block_for_bulk(Site site) {
  bulk_waiters_.push_back(current_);
  block({.kind = Wait::Kind::bulk, .site = site, .cta = current_->cta});
}

void Machine::finish_stores(const Thread& of, int pending, bool read_only) {
  const auto groups = static_cast<std::ptrdiff_t>(of.groups.size()) - pending;
  for (std::ptrdiff_t g = 0; g < groups; ++g) {
    const BulkGroup* const group = of.groups[static_cast<std::size_t>(g)].get();
    std::erase_if(copies_, [&](const auto& copy) {
      if (copy->group.get() != group || copy->reduce_add) return false;
      if (read_only && copy->stage == Copy::Stage::issued) advance(*copy);
      if (read_only) return false;
      while (!advance(*copy)) {
      }
      return true;
    });
  }
}

void Machine::mark(Copy& copy, int change) {
  auto& counts = copy.kind == Copy::Kind::load ? copy.cta->writers : copy.cta->readers;
  for_each_chunk(copy, [&](int, std::uint32_t at) {
    counts[at / 16] = static_cast<std::uint16_t>(counts[at / 16] + change);
  });
}

void Machine::issue(std::unique_ptr<Copy> copy) {
  ++statistics.copies;
  if (copy->kind == Copy::Kind::load) statistics.copied_bytes += copy->bytes;
  const bool load = copy->kind == Copy::Kind::load;
  Cta& cta = *copy->cta;
  const std::string operation = copy->what();
  const BoxShape box = box_shape(*copy);
  // Whole lines: the swizzle may carry a narrow box's chunks to any place of its line.
  copy->reach = box.rows * box.pitch;
  check_shared(cta, copy->offset, copy->reach, operation.c_str(), copy->site);
  if (order) prove(*copy);
  bool met = false;
  const MBarrier* covered = nullptr;
  for_each_chunk(*copy, [&](int, std::uint32_t at) {
    for (const std::uint32_t b : {at / 8, at / 8 + 1}) {
      const int slot = cta.barrier_at[b];
      if (slot < 0 || !cta.barriers[static_cast<std::size_t>(slot)].live) continue;
      covered = &cta.barriers[static_cast<std::size_t>(slot)];
    }
    met = met || cta.writers[at / 16] > 0 || (load && cta.readers[at / 16] > 0);
    if (load) {
      std::fill_n(cta.shared.begin() + at, 16, std::byte{0xff});
      // Padding has no value that anybody may read.
      std::fill_n(cta.defined.begin() + at, box.piece, std::uint8_t{1});
      std::fill_n(cta.defined.begin() + at + box.piece, 16 - box.piece, std::uint8_t{0});
    }
  });
  if (covered != nullptr) {
    finding(Check::barrier_storage,
            who(*current_) + ": " + operation + " touches the storage of " +
                barrier_text(cta, *covered),
            copy->site);
  }
  if (met) {
    finding(Check::in_flight_access,
            who(*current_) + ": " + operation + " meets shared memory of CTA rank " +
                std::to_string(cta.rank) + " at offset " + std::to_string(copy->offset) +
                " that is still in use by " + copies_into(cta, copy->offset, copy->reach),
            copy->site);
  }
  if (!load && stores_undefined(cta, *copy)) {
    finding(Check::uninitialised_read,
            who(*current_) + " stores shared memory at offset " + std::to_string(copy->offset) +
                " of which some bytes were never written",
            copy->site);
  }
  mark(*copy, +1);
  send(std::move(copy));
}

void Machine::send(std::unique_ptr<Copy> copy) {
  if (explore) copy->explored = explore->issued();
  if (options_.mode == Mode::eager) {
    while (!advance(*copy)) {
    }
    return;
  }
  if (timed()) schedule(*copy);
  copies_.push_back(std::move(copy));
}

void Machine::prove(Copy& copy) {
  Thread& by = *current_;
  const bool load = copy.kind == Copy::Kind::load;
  if (load) {
    const auto slot = static_cast<std::size_t>(copy.signals->barrier_at[copy.barrier / 8]);
    order->begin_load(by, copy, copy.signals->barriers[slot]);
  } else {
    order->begin_store(by, copy);
  }
  static thread_local std::vector<std::uint32_t> pieces;
  pieces.clear();
  for_each_chunk(copy, [&](int, std::uint32_t at) { pieces.push_back(at / 16); });
  // A store uses its map until it is complete, not only until its source is read.
  if (copy.map_at != 0) {
    order->uses_map(load ? copy.reading : copy.writing, by, copy.map_at, copy.site);
  }
  Thread* const issuer = &by;
  order->touch(copy.reading, {&issuer, 1}, *copy.cta, pieces, load);
  if (!copy.by_engine()) return;
  // Global memory that the grid does not write needs no proof; for the grids before, a map's rows
  // are asked about once. One destination of a multicast load
  // stands for all of them: they read the same.
  bool asked = false;
  for_each_row(copy, [&](int, std::int64_t address, std::int64_t first, std::int64_t count) {
    const auto at = static_cast<std::uintptr_t>(address + bytes_of(copy.map, first));
    const std::int64_t bytes = bytes_of(copy.map, count);
    if (count == 0) return;
    if (!std::exchange(asked, true)) {
      check_prerequisites(at, !load, copy.what(), copy.site);
    }
    if (!order->tracked(at, bytes)) return;
    order->touch_global(load ? copy.reading : copy.writing, by, at, bytes, !load);
  });
  if (!load) {
    order->end(copy.reading);
    order->end(copy.writing);
  }
}

void Machine::read_global(Copy& load) {
  if (!load.data->empty()) {  // another destination of the multicast read it
    if (explore) explore->shares_data(load);
    return;
  }
  if (load.from == Copy::From::queue) {
    if (explore) explore->takes_from_queue(load);
    const LaunchAnswer answer = cancel_next(*load.cta->grid);
    const auto bytes = std::as_bytes(std::span(&answer, 1));
    load.data->assign(bytes.begin(), bytes.end());
    return;
  }
  const BoxShape box = box_shape(load);
  load.data->assign(static_cast<std::size_t>(box.global_bytes) * box.rows, std::byte{0});
  for_each_row(load, [&](int row, std::int64_t address, std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    const std::int64_t skip = bytes_of(load.map, first);
    const std::int64_t bytes = bytes_of(load.map, count);
    check_global(*load.cta->grid, static_cast<std::uintptr_t>(address + skip), bytes, false,
                 load.what(), load.site);
    std::memcpy(load.data->data() + row * box.global_bytes + skip,
                bytes_at(static_cast<std::uintptr_t>(address + skip)),
                static_cast<std::size_t>(bytes));
  });
}

void Machine::write_shared(Copy& load) {
  const auto piece = static_cast<std::size_t>(box_shape(load).piece);
  for_each_chunk(load, [&](int chunk, std::uint32_t at) {
    std::memcpy(load.cta->shared.data() + at, load.data->data() + chunk, piece);
  });
  mark(load, -1);
}

void Machine::read_shared(Copy& store) {
  const BoxShape box = box_shape(store);
  store.data->resize(static_cast<std::size_t>(box.global_bytes) * box.rows);
  for_each_chunk(store, [&](int chunk, std::uint32_t at) {
    std::byte* const to = store.data->data() + chunk;
    const std::byte* const from = store.cta->shared.data() + at;
    if (store.map.padded) {
      pack_sixes(from, to);
    } else {
      std::memcpy(to, from, 16);
    }
  });
  mark(store, -1);
  --store.group->unread;
  wake_all(bulk_waiters_);
}

void Machine::write_global(const Copy& store) {
  if (explore && store.reduce_add) explore->adds_to_memory(store);
  const BoxShape box = box_shape(store);
  const int size = store.map.element_bits / 8;
  for_each_row(store, [&](int row, std::int64_t address, std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    const std::int64_t skip = bytes_of(store.map, first);
    const std::int64_t bytes = stored_end(store.map, first + count) - skip;
    const auto at = static_cast<std::uintptr_t>(address + skip);
    check_global(*store.cta->grid, at, bytes, true, store.what(), store.site);
    std::byte* const to = bytes_at(at);
    const std::byte* const from = store.data->data() + row * box.global_bytes + skip;
    if (!store.reduce_add) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
      return;
    }
    for (std::int64_t i = 0; i < bytes; i += size) add_element(to + i, from + i, store.map);
  });
}

void Machine::end_copy(Copy& copy) {
  if (copy.kind == Copy::Kind::load) {
    MBarrier& bar = barrier_of(*copy.signals, copy.barrier, signal_text(copy).c_str(), copy.site);
    if (order) order->signalled(copy, bar);
    complete_tx(*copy.signals, bar, copy);
  } else {
    --copy.group->unwritten;
    wake_all(bulk_waiters_);
  }
}

bool Machine::advance(Copy& copy) {
  ++progress_;
  if (copy.from == Copy::From::thread) {
    arrive_behind_copies(copy);
    return true;
  }
  const bool load = copy.kind == Copy::Kind::load;
  switch (copy.stage) {
    case Copy::Stage::issued:
      copy.stage = Copy::Stage::read;
      load ? read_global(copy) : read_shared(copy);
      return false;
    case Copy::Stage::read:
      copy.stage = Copy::Stage::written;
      load ? write_shared(copy) : write_global(copy);
      return false;
    case Copy::Stage::written:
      end_copy(copy);
  }
  return true;
}

namespace {

// Sends a load on its way, into `cta`, whose barrier or that of `signals` it signals. `data` passes
// through the engine, once for all destinations of a multicast.
void start_load(const Copy& load, Cta& cta, Cta& signals,
                const std::shared_ptr<std::vector<std::byte>>& data) {
  Machine& m = machine();
  auto copy = std::make_unique<Copy>(load);
  copy->cta = &cta;
  copy->signals = &signals;
  copy->data = data;
  const BoxShape box = box_shape(*copy);
  copy->bytes = box.global_bytes * box.rows;
  copy->issuer = &m.current();
  m.barrier_of(signals, copy->barrier, signal_text(*copy).c_str(), copy->site);
  m.issue(std::move(copy));
}

// The CTA at `destination`, where a load without multicast must find its barrier too, or in the
// pair.
Cta& destination_of(const Copy& load, std::uint32_t destination, std::uint32_t barrier, int ctas) {
  Machine& m = machine();
  const bool one = destination >> 24 == barrier >> 24;
  const bool pair = destination >> 25 == barrier >> 25;
  if (ctas == 2 ? !pair : !one) {
    m.fatal(Check::tensor_map,
            m.who(m.current()) + ": " + load.what() + " signals a barrier of CTA rank " +
                std::to_string(barrier >> 24) + ", but its destination is CTA rank " +
                std::to_string(destination >> 24) + "; both must be of one " +
                (ctas == 2 ? "pair" : "CTA"),
            load.site);
  }
  return m.owner(destination, load.what(), load.site);
}

}  // namespace

void act::tensor_load(const TensorMap& map, std::span<const int> coords, CopyMode mode,
                      std::uint32_t destination, std::uint32_t barrier, std::uint16_t multicast,
                      int ctas, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  Copy load;
  load.mode = mode;
  load.map = checked(map, coords, mode, destination, site);
  load.map_at = m.map_in_memory(map);
  std::copy(coords.begin(), coords.end(), load.coords.begin());
  load.offset = destination & 0xffffffu;
  load.barrier = barrier & 0xffffffu;
  load.site = site;
  m.spend(m.costs().tma_issue);
  const auto data = std::make_shared<std::vector<std::byte>>();
  const auto& all = self.cta->cluster->ctas;
  const std::uint32_t parity = barrier >> 24 & 1;
  const auto to = [&](Cta& cta) {
    const std::size_t signals =
        ctas == 2 ? (static_cast<std::size_t>(cta.rank) & ~std::size_t{1}) | parity
                  : static_cast<std::size_t>(cta.rank);
    if (signals >= all.size()) {
      m.fatal(Check::tensor_map,
              m.who(self) + ": " + load.what() + " signals CTA rank " + std::to_string(signals) +
                  ", which the cluster does not have",
              site);
    }
    start_load(load, cta, *all[signals], data);
  };
  load.destinations = std::max(1, std::popcount(multicast));
  if (multicast == 0) return to(destination_of(load, destination, barrier, ctas));
  for (unsigned rank = 0; rank < 16; ++rank) {
    if ((multicast >> rank & 1) == 0) continue;
    if (rank >= all.size() || all[rank]->live_threads == 0) {
      m.fatal(Check::multicast_mask,
              m.who(self) + ": a multicast " + load.verb() + " names CTA rank " +
                  std::to_string(rank) + ", which " +
                  (rank >= all.size() ? "the cluster does not have" : "has exited"),
              site);
    }
    to(*all[rank]);
  }
}

void bulk_prefetch(const void* from, int bytes, Site site) {
  Machine& m = machine();
  const auto base = reinterpret_cast<std::uintptr_t>(from);
  if (base % 16 != 0 || bytes % 16 != 0 || bytes <= 0) {
    m.fatal(Check::misaligned,
            m.who(m.current()) +
                ": a prefetch takes an address and a length that are multiples "
                "of 16 bytes; it has " +
                std::to_string(bytes) + " bytes, from an address that is " +
                std::to_string(base % 16) + " past a multiple",
            site);
  }
  m.check_global(*m.current().cta->grid, base, bytes, false, "a prefetch", site);
}

void bulk_load(const void* from, std::uint32_t destination, int bytes, std::uint32_t barrier,
               Site site) {
  constexpr int piece = 16;
  constexpr int most = 1 << 20;
  Machine& m = machine();
  m.maybe_yield();
  const auto base = reinterpret_cast<std::uintptr_t>(from);
  if (destination % piece != 0 || base % piece != 0 || bytes % piece != 0 || bytes <= 0 ||
      bytes >= most) {
    m.fatal(Check::misaligned,
            m.who(m.current()) +
                ": a bulk load takes addresses and a length that are multiples of 16 bytes, fewer "
                "than 2^20; it has " +
                std::to_string(bytes) + " bytes, for offset " +
                std::to_string(destination & 0xffffffu) + ", from an address that is " +
                std::to_string(base % piece) + " past a multiple",
            site);
  }
  // A tensor of one dimension, and a box as large.
  Copy load;
  load.from = Copy::From::bytes;
  load.map.base = base;
  load.map.rank = 1;
  load.map.element_bits = 8 * piece;
  load.map.extents[0] = static_cast<std::uint64_t>(bytes / piece);
  load.map.box[0] = static_cast<std::uint16_t>(bytes / piece);
  load.offset = destination & 0xffffffu;
  load.barrier = barrier & 0xffffffu;
  load.site = site;
  m.spend(m.costs().tma_issue);
  Cta& cta = destination_of(load, destination, barrier, 1);
  start_load(load, cta, cta, std::make_shared<std::vector<std::byte>>());
}

// What a store through this map at these coordinates would trap on, or leave open.
static void check_store(const Copy& store, std::span<const int> coords, Site site) {
  Machine& m = machine();
  const std::string who = m.who(m.current()) + ": " + store.what();
  const bool loads_only = store.map.padded && store.map.element_bits == 4;
  if (loads_only || (store.reduce_add && store.map.element_bits < 8)) {
    m.fatal(Check::tensor_map,
            who + " through a tensor map of " + (store.map.padded ? "padded" : "packed") +
                " elements of " + size_text(store.map) + "; such maps are for loads" +
                (loads_only ? "" : " and stores"),
            site);
  }
  if (std::any_of(coords.begin(), coords.end(), [](int c) { return c < 0; })) {
    m.fatal(Check::tensor_map,
            who + " at a negative coordinate traps on the hardware" +
                (store.mode == CopyMode::rows ? ". A row to be left out is one past the last" : ""),
            site);
  }
  if (store.mode == CopyMode::tile) return;
  for (std::size_t i = 1; i < coords.size(); ++i) {
    const auto first = coords.begin() + 1;
    const auto inside = static_cast<std::uint64_t>(coords[i]) < store.map.extents[1];
    if (!inside || std::find(first, first + static_cast<std::ptrdiff_t>(i) - 1, coords[i]) ==
                       first + static_cast<std::ptrdiff_t>(i) - 1) {
      continue;
    }
    m.fatal(Check::data_race,
            who + " names row " + std::to_string(coords[i]) +
                " twice; which of the two stays is not said",
            site);
  }
}

void tensor_store(const TensorMap& map, std::span<const int> coords, CopyMode mode,
                  std::uint32_t source, bool reduce_add, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  m.spend(m.costs().tma_issue);
  auto copy = std::make_unique<Copy>();
  copy->kind = Copy::Kind::store;
  copy->mode = mode;
  copy->reduce_add = reduce_add;
  copy->map = checked(map, coords, mode, source, site);
  copy->map_at = m.map_in_memory(map);
  check_store(*copy, coords, site);
  std::copy(coords.begin(), coords.end(), copy->coords.begin());
  copy->cta = &m.owner(source, copy->what(), site);
  if (copy->cta != self.cta) {
    m.fatal(Check::shared_bounds,
            std::string(copy->what()) + " reads its own CTA's shared memory only", site);
  }
  copy->offset = source & 0xffffffu;
  const BoxShape box = box_shape(*copy);
  copy->bytes = box.global_bytes * box.rows;
  copy->data = std::make_shared<std::vector<std::byte>>();
  if (!self.open_group) self.open_group = std::make_shared<BulkGroup>();
  copy->group = self.open_group;
  copy->group->site = site;
  ++copy->group->unread;
  ++copy->group->unwritten;
  copy->issuer = &self;
  copy->site = site;
  m.issue(std::move(copy));
}

void act::bulk_commit(Site site) {
  Thread& self = machine().current();
  if (!self.open_group) self.bare_bulk_commit_site = site;
  if (!self.open_group) self.open_group = std::make_shared<BulkGroup>();
  self.groups.push_back(std::move(self.open_group));
  self.open_group.reset();
  ++self.order.committed;
}

void act::bulk_wait(int pending, bool read_only, Site site) {
  Machine& m = machine();
  Thread& self = m.current();
  const auto over = [&] {
    // Groups complete in order: drop what is complete, then count what is not.
    while (!self.groups.empty() && self.groups.front()->unwritten == 0) self.groups.pop_front();
    // The engine may finish a newer group first, but the instruction waits for all older ones.
    const auto open = std::find_if(self.groups.begin(), self.groups.end(), [&](const auto& g) {
      return (read_only ? g->unread : g->unwritten) > 0;
    });
    return self.groups.end() - open > pending;
  };
  if (m.explore) m.finish_stores(self, pending, read_only);
  while (over()) m.block_for_bulk(site);
  if (m.order) m.order->bulk_waited(self, pending, read_only);
}

}  // namespace warpwright::model
