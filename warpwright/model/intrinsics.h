// What the instructions of isa/ do on the model. Every function acts for the current thread of the
// machine that is running on this OS thread. Addresses are shared::cluster addresses,
// rank << 24 | offset (probed on an H200); a CTA's own addresses carry its rank too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/model/memory/tensor_map.h"
#include "warpwright/model/report/site.h"
#include "warpwright/numeric/types.h"

namespace warpwright::atom {
struct Mma;
struct MmaScaleSource;
}  // namespace warpwright::atom

namespace warpwright::model {

/// How far a synchronising operation releases or acquires generic accesses.
/// (isa/ has no `relaxed`: only mutants use it.)
enum class Scope : std::uint8_t { cta, cluster, relaxed };
/// Which memory a proxy fence is about.
enum class Space : std::uint8_t { shared, global };

// --- who am I ---------------------------------------------------------------------------------
int thread_index();
/// The warp's index in its CTA; all lanes must execute it, as on a GPU.
int warp_index(Site site);
/// An instruction `what` that a GPU's lanes execute together, and that gives each what it has here.
void executed_by_all(const char* what, Site site);
int cta_index();
int cta_count();
int cluster_rank();
int cluster_size();
/// Names the part this thread plays, for reports.
void set_role(const char* role);
/// Names a barrier for reports: "full[2]", and who is to arrive on it.
void name_barrier(std::uint32_t address, const char* name, int index, const char* arrivers);
/// A tile is finished (progress and statistics).
void count_tile();
/// Opens a slice of the timeline of this thread's warp; `label` with every % replaced by a number.
void mark_begin(const char* label, int a, int b, int c);
/// Closes the innermost open slice.
void mark_end();

// --- memory -----------------------------------------------------------------------------------
std::uint32_t shared_base();
void shared_load(std::uint32_t address, void* to, int bytes, Site site);
void cluster_load(std::uint32_t address, void* to, int bytes, Site site);
void shared_store(std::uint32_t address, const void* from, int bytes, Site site);
void leave_unwritten(std::uint32_t address, int bytes, Site site);
void cluster_store(std::uint32_t address, const void* from, int bytes, Site site);
/// Atomically, in the order in which the threads come.
void cluster_add(std::uint32_t address, std::uint32_t value, Site site);
void cluster_add(std::uint32_t address, float value, Site site);
void global_load(const void* address, void* to, int bytes, Site site);
void global_store(void* address, const void* from, int bytes, Site site);
/// A 32-bit word in global memory by which one thread tells another, anywhere in the grid, that its
/// writes are done: `flag_set` releases them, `flag_wait` waits for the value and acquires them.
void flag_set(void* flag, std::uint32_t value, Site site);
/// `flag_wait` looks only at the bits of `mask`, and returns the word.
std::uint32_t flag_wait(void* flag, std::uint32_t value, std::uint32_t mask, Site site);
/// Returns the word and adds `by` to it; releases and acquires.
std::uint32_t flag_count(void* flag, std::uint32_t by, Site site);
void flag_add(void* flag, std::uint32_t by, Site site);
/// How an unsigned word of global memory is updated, at once.
enum class Update : std::uint8_t { add, least, largest };
void update_global(void* word, Update how, std::uint64_t value, int bytes, Site site);
/// Returns the word and makes it one more, or 0 where it was `last` or more; atomically.
std::uint32_t draw(std::uint32_t* counter, std::uint32_t last, Site site);
/// 16 bytes from registers to shared memory of any CTA of the cluster, signalled at a barrier of
/// it.
void store_async(std::uint32_t to, const void* value, std::uint32_t barrier, Site site);
/// Back to 0 for the next launch, which the end of this grid orders.
void flag_clear(void* flag, Site site);
/// Every thread's values meet: lane i gets the value of lane `source(i)`.
std::uint32_t shuffle(std::uint32_t value, int source_lane, Site site);
/// Bit i: what lane i says.
std::uint32_t ballot(bool says, Site site);
/// Bit i: whether lane i has the same value.
std::uint32_t match_any(std::uint32_t value, Site site);
/// Threads that read a peer's shared memory and have not used the values yet; how the machine
/// learns that they do, by the conversions of isa/numeric.h.
inline constinit thread_local int reads_in_flight = 0;
void values_used();
bool elect_one(Site site);
void sync_warp(Site site);
/// matrices: 1, 2 or 4 8x8 matrices of 16-bit elements; `row` is this lane's row address.
void load_matrix(std::uint32_t row, std::span<std::uint32_t> to, bool transpose, Site site);
/// The same of 8 x 16 elements of `bits`, 4 or 6, to bytes.
void load_matrix_padded(std::uint32_t row, std::span<std::uint32_t> to, int bits, Site site);
void store_matrix(std::uint32_t row, std::span<const std::uint32_t> from, bool transpose,
                  Site site);

// --- barriers ---------------------------------------------------------------------------------
void named_barrier(int id, int threads, bool wait, Site site);
void cluster_arrive(bool release, Site site);
void cluster_wait(Site site);
std::uint32_t map_rank(std::uint32_t address, int rank);

void mbarrier_init(std::uint32_t address, int count, Site site);
void mbarrier_invalidate(std::uint32_t address, Site site);
void mbarrier_expect(std::uint32_t address, int bytes, Site site);
void mbarrier_arrive(std::uint32_t address, int count, bool drop, Scope scope, Site site);
bool mbarrier_test(std::uint32_t address, int parity, bool may_suspend, Scope scope, Site site);
void mbarrier_wait(std::uint32_t address, int parity, Scope scope, Site site);

// --- fences -----------------------------------------------------------------------------------
void fence_mbarrier_init(Site site);
void fence_proxy_async(Space space, Site site);

// --- TMA ------------------------------------------------------------------------------
/// What a tensor copy moves of a tensor: the box at `coords`; or four rows, `coords` being the
/// column where they begin and their numbers (tile::gather4, tile::scatter4).
enum class CopyMode : std::uint8_t { tile, rows };
inline constexpr int kCopiedRows = 4;
/// One tiled tensor load. `multicast` 0 means the own CTA only; otherwise bit r is the destination
/// CTA of rank r, data and signal at the same offsets in each. With `ctas` 2 the signal goes to the
/// CTA of the destination's pair whose rank has the parity of the barrier's.
void tensor_load(const TensorMap& map, std::span<const int> coords, CopyMode mode,
                 std::uint32_t destination, std::uint32_t barrier, std::uint16_t multicast,
                 int ctas, Site site);
/// One tiled tensor store, or reduce-add, in this thread's current bulk group.
void tensor_store(const TensorMap& map, std::span<const int> coords, CopyMode mode,
                  std::uint32_t source, bool reduce_add, Site site);
/// `bytes` bytes of global memory from `from`, as they lie.
/// Moves nothing; the range must lie in a tensor.
void bulk_prefetch(const void* from, int bytes, Site site);
void bulk_load(const void* from, std::uint32_t destination, int bytes, std::uint32_t barrier,
               Site site);
void bulk_commit(Site site);
void bulk_wait(int pending, bool read_only, Site site);

// --- copies by threads (cp.async) ---------------------------------------------------------------
/// `bytes` (4, 8 or 16) from global to shared memory, of which `from_bytes` are read, in this
/// thread's current group.
void copy_async(std::uint32_t to, const void* from, int bytes, int from_bytes, Site site);
void copy_async_commit(Site site);
void copy_async_wait(int pending, Site site);
/// The arrival on `barrier`, of the own CTA, comes when this thread's copies so far are complete.
void copy_async_arrive(std::uint32_t barrier, Site site);

// --- tensor maps that a kernel changes ----------------------------------------------------------
/// Rewrites one field of the map at a shared address.
void replace_map_base(std::uint32_t map, std::uint64_t base, Site site);
void replace_map_extent(std::uint32_t map, int dimension, std::uint32_t extent, Site site);
/// A warp copies a map from shared to global memory and releases it to TMA.
void release_map(TensorMap* to, std::uint32_t from, Site site);
/// This thread's later copies see the map in global memory as it is now.
void acquire_map(const TensorMap* map, Site site);

// --- tensor core ------------------------------------------------------------------------------
/// State of one thread's registers while the model owns them (see isa::Fragment).
struct FragmentState {
  /// The wgmma.fence of the thread that covers its last access: the next one that names it.
  std::uint32_t touched_epoch = 0;
  bool in_flight = false;
  bool unnamed =
      false;           ///< the wait that gave it back did not name it: the compiler may read early
  int reads = 0;       ///< wgmmas in flight that take A from them
  bool was_a = false;  ///< one has
  const char* writer = "";  ///< what the thread must wait for: "a wgmma.wait_group covers ..."
};

struct WgmmaRequest {
  DType type = DType::bf16;    ///< of A
  DType type_b = DType::bf16;  ///< of B
  DType sums = DType::f32;     ///< f16: two in a register; or s32, where A and B are s8 or u8
  bool saturates = false;      ///< sums of s32 that are too large become the largest, or least
  int n = 8;
  std::uint64_t descriptor_a = 0;
  std::uint64_t descriptor_b = 0;
  const std::uint32_t* registers_a = nullptr;  ///< A from registers when set
  FragmentState* state_a = nullptr;            ///< theirs
  atom::Major major_a = atom::Major::k;
  atom::Major major_b = atom::Major::k;
  bool accumulate = false;
  float* fragment = nullptr;
  FragmentState* state = nullptr;
};

/// One lane's part of an mma.sync: `sums` are its registers, 32 bits each.
struct MmaRequest {
  const atom::Mma* mma = nullptr;
  void* sums = nullptr;
  const std::uint32_t* a = nullptr;
  const std::uint32_t* b = nullptr;
  // For a block-scaled one: the thread's scales, and whose are taken.
  const atom::MmaScaleSource* from = nullptr;
  std::uint32_t scales_a = 0;
  std::uint32_t scales_b = 0;
  bool saturates = false;  ///< sums of s32 that are too large become the largest, or least
};

void mma_sync(const MmaRequest& request, Site site);

void wgmma_fence(Site site);
void wgmma(const WgmmaRequest& request, Site site);
void wgmma_commit(Site site);
/// `registers`: it names accumulators, which `pin_fragment` is then told of.
void wgmma_wait(int pending, bool registers, Site site);
/// The compiler keeps reads of the accumulator behind this place.
void pin_fragment(FragmentState& state);
/// A register of an accumulator is read or written by its thread.
void touch_fragment(FragmentState& state, Site site);
/// The fragment ends: its registers may hold other values.
void end_fragment(FragmentState& state);

// --- tcgen05 ----------------------------------------------------------------------------------
/// How tcgen05.ld and .st spread tensor memory over a warp, by the lanes they cover, and what only
/// PTX texts use.
enum class TmemShape : std::uint8_t {
  lanes32 = 32,  ///< .32x32b: thread t, register r: lane t, column r
  lanes16 = 16,  ///< .16x256b: lane t/4 + 8 (r/2 % 2), column 8 (r/4) + 2 (t%4) + r%2
  b16x64 = 0,    ///< .16x64b: lane t/4 + 8 (t%2), column 2 r + t/2 % 2
  b16x128 = 1,   ///< .16x128b: lane t/4 + 8 (r%2), column 4 (r/2) + t%4
  b16x32x2 = 2,  ///< .16x32bx2: lane t%16, column r; from t = 16 on so many more as is said
};

/// Lanes of a CTA, or of the two of a pair, a bit each.
using KeptLanes = std::array<std::uint32_t, 8>;

struct UmmaRequest {
  atom::UmmaKind kind = atom::UmmaKind::f16;
  int ctas = 1;         ///< 2: a pair
  std::uint32_t d = 0;  ///< in tensor memory, lane << 16 | column
  std::uint64_t descriptor_a = 0;
  std::uint64_t descriptor_b = 0;
  std::uint32_t instruction = 0;
  bool accumulate = false;
  bool a_in_tmem = false;  ///< at `a`, in place of descriptor_a
  std::uint32_t a = 0;
  /// tcgen05.mma.ws. Its columns of B that are zeros, whatever lies there, as a zero-column mask
  /// descriptor (PTX ISA 9.7.16.4.3); 0: none.
  bool weights_stay = false;
  std::uint64_t zero_columns = 0;
  int halvings = 0;        ///< of D, before the product is added
  KeptLanes kept_lanes{};  ///< whose part of D is left as it is
  // For a block-scaled one: the elements that share a scale, and where the scales lie.
  int scale_block = 0;
  std::uint32_t scales_a = 0;
  std::uint32_t scales_b = 0;
};

/// tcgen05.shift.down: 31 rows of 8 columns of a warp's lanes.
inline constexpr int kShiftedColumns = 8;

struct TmemCopyRequest {
  atom::TmemCopy shape = atom::TmemCopy::b32x128_warpx4;
  atom::TmemWiden widen = atom::TmemWiden::none;
  int ctas = 1;
  std::uint32_t to = 0;  ///< in tensor memory
  std::uint64_t descriptor = 0;
};

/// What tcgen05.ld.red makes of a thread's words: the least or the largest, or that of their
/// absolute values.
struct TmemReduction {
  enum class Type : std::uint8_t { u32, s32, f32 };
  Type type = Type::f32;
  bool largest = false;
  bool absolute = false;
  bool keeps_nan = false;  ///< a NaN among them is the result
  float* to = nullptr;     ///< its register; none: nothing is made
  FragmentState* state = nullptr;
};

/// One thread's part of a load or store of tensor memory.
struct TmemAccess {
  TmemShape shape = TmemShape::lanes32;
  std::uint32_t address = 0;
  float* registers = nullptr;
  int count = 0;  ///< registers of a thread
  FragmentState* state = nullptr;
  int split = 0;  ///< of b16x32x2: columns from the first half to the second
  /// A register holds the lower halves of two cells side by side (pack::16b, unpack::16b).
  bool packed = false;
  TmemReduction reduction = {};
};

void tcgen05_allocate(std::uint32_t to, int columns, int ctas, Site site);
void tcgen05_deallocate(std::uint32_t address, int columns, int ctas, Site site);
void tcgen05_relinquish(int ctas, Site site);
void tcgen05_mma(const UmmaRequest& request, Site site);
void tcgen05_copy(const TmemCopyRequest& request, Site site);
/// Every one of the 32 lanes from `address` on takes what the next one has in 8 columns; the last
/// one stays. In both CTAs of a pair.
void tcgen05_shift(std::uint32_t address, int ctas, Site site);
/// `multicast` 0 means only the barrier at `barrier`.
void tcgen05_commit(std::uint32_t barrier, std::uint16_t multicast, int ctas, Site site);
void tcgen05_fence(bool before, Site site);
void tcgen05_load(const TmemAccess& access, Site site);
void tcgen05_store(const TmemAccess& access, Site site);
/// For this warp's loads, or else its stores. `registers` as for wgmma_wait.
void tcgen05_wait(bool loads, bool registers, Site site);

// --- CLC ---------------------------------------------------------------------------
/// What a request writes to shared memory.
struct LaunchAnswer {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

void try_cancel(std::uint32_t answer, std::uint32_t barrier, bool multicast, Site site);
LaunchAnswer load_launch_answer(std::uint32_t answer, Site site);
bool cluster_canceled(const LaunchAnswer& answer, Site site);
int canceled_first_cta(const LaunchAnswer& answer, Site site);

void set_max_registers(int count, bool increase, Site site);
/// This CTA lets the next grid start.
void launch_dependents(Site site);
/// Until the grids before this one have ended.
void wait_for_grids(Site site);

}  // namespace warpwright::model
