// A kernel of a PTX text, decoded: an array of operations with the places of their registers, each
// with the function that carries it out. Internal to ptx/.
//
// Registers lie in one array of 32-bit words a thread: 64-bit ones take two, 128-bit ones four,
// smaller ones and predicates one. Constants are registers that nobody writes. The registers of an
// accumulator lie side by side, so that the tensor core of the model writes where the thread reads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "warpwright/model/intrinsics.h"
#include "warpwright/model/machine.h"
#include "warpwright/ptx/kernel.h"
#include "warpwright/ptx/module.h"

namespace warpwright::ptx {

struct Frame;
struct Op;
/// Carries out an operation and returns the next; null at the end of the thread.
using Run = const Op* (*)(Frame& f, const Op* op);

struct Op {
  Run run = nullptr;
  std::uint32_t d = 0;  ///< words of the register array
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t x = 0;      ///< what else: a list in Program::words, a target, bytes
  std::uint32_t place = 0;  ///< in Program::places
};

/// What a register holds when a thread begins.
enum class Given : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  cluster_ctarank,
  cluster_nctarank,
  clusterid_x,
  nclusterid_x,
  cluster_ctaid_x,
  cluster_nctaid_x,
  lanemask_lt,
  lanemask_le,
  lanemask_eq,
  lanemask_ge,
  lanemask_gt,
  dynamic_bytes,
  zero,  ///< those of the dimensions that clusters do not have
  one,
  shared,  ///< an address in the CTA's shared memory, `value` behind its begin
  param,   ///< an address of the parameters, and so on
  local,
  constant,
  global,
};

struct GivenRegister {
  Given what = Given::zero;
  std::uint32_t at = 0;
  bool wide = false;
  std::uint64_t value = 0;
};

/// Where an instruction stands, as findings say it: the line of the text behind that of the source,
/// "isa/fence.h:16 in hopper/gemm.h:120, k.ptx:1529".
struct Place {
  std::string file;
  int line = 0;
};

struct Program {
  std::string name;  ///< of the text, as findings name it
  std::string text;
  std::string entry;
  std::vector<Op> ops;
  std::vector<std::uint32_t> begins;  ///< of each statement's operations, and the end of all
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> image;  ///< the registers when a thread begins
  std::vector<GivenRegister> given;
  std::uint32_t accumulators = 0;  ///< runs of registers that wgmma owns while it is in flight
  std::vector<Parameter> params;
  std::uint32_t param_bytes = 0;
  std::uint32_t local_bytes = 0;
  std::uint32_t static_shared = 0;  ///< bytes from the begin of shared memory on
  int max_threads = 0;
  int min_ctas = 1;
  int max_registers = 0;
  bool waits_for_grids = false;      ///< it has a griddepcontrol.wait
  bool asks_for_clusters = false;    ///< it has a clusterlaunchcontrol.try_cancel
  std::vector<std::byte> constants;  ///< .const
  std::vector<std::byte> globals;    ///< .global: what they begin with
  std::vector<Place> places;
};

/// The coordinate along an axis of what is the index-th in a box.
constexpr int place_in(int index, const int (&extents)[3], int axis) {
  for (int a = 0; a < axis; ++a) index /= extents[a];
  return axis < 2 ? index % extents[axis] : index;
}

/// A thread of it.
struct Frame {
  std::uint32_t* r = nullptr;
  const Program* program = nullptr;
  const Launch* launch = nullptr;
  const std::byte* params = nullptr;
  std::byte* local = nullptr;
  const std::vector<model::Allocation>* allocations = nullptr;
  model::FragmentState* accumulators = nullptr;
  int lane = 0;
  std::uint32_t warp_mask = ~0U;  ///< lanes that its warp has
  int threads = 0;                ///< of the CTA
  std::uint32_t shared = 0;       ///< where its shared memory begins
  // What it asked last and was told "not yet", and how many instructions on memory it had executed.
  const Op* asked = nullptr;
  std::uint64_t question = 0;
  std::uint64_t effects = 0;
  std::uint64_t effects_then = 0;

  template <class T>
  [[nodiscard]] T get(std::uint32_t at) const {
    T value;
    std::memcpy(&value, r + at, sizeof value);
    return value;
  }
  template <class T>
  void put(std::uint32_t at, T value) {
    if constexpr (sizeof(T) < 4) {
      std::uint32_t wide = 0;
      std::memcpy(&wide, &value, sizeof value);
      r[at] = wide;
    } else {
      std::memcpy(r + at, &value, sizeof value);
    }
  }
  [[nodiscard]] model::Site place(const Op* op) const {
    const Place& at = program->places[op->place];
    return {at.file.c_str(), at.line};
  }
  /// Ends the thread: an instruction asks for what cannot be.
  [[noreturn]] void fail(const Op* op, const std::string& sentence) const {
    const Place& at = program->places[op->place];
    throw Fault(at.line, at.file + ":" + std::to_string(at.line) + ": " + sentence);
  }
  /// The place of an instruction that reaches outside of the registers.
  model::Site site(const Op* op) {
    ++effects;
    return place(op);
  }
  /// Is this the same question again, with nothing but arithmetic since?
  bool asks_again(const Op* op, std::uint64_t what) {
    const bool again = asked == op && question == what && effects_then == effects;
    asked = op;
    question = what;
    return again;
  }
  void not_yet() { effects_then = effects; }
};

}  // namespace warpwright::ptx
