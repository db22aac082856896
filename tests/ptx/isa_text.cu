// One kernel for each function of isa/ that is an instruction, or for a form of it, with the PTX
// that nvcc must make of it, whole and with all modifiers: isa_text_test.py compares. Registers are
// written %; a text that begins with "... " need only be among the kernel's lines.
#include "warpwright/isa/atomic.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/clc.h"
#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/draw.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/mma.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#if TEXT_ARCHITECTURE == 90
#include "warpwright/isa/wgmma.h"
#else
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/tcgen05_scaled.h"
#endif

using namespace warpwright;
using isa::Scope;
using isa::Words;

#define TEXT(name, ptx, ...)                                                                    \
  extern "C" __global__ void name(const __grid_constant__ isa::TensorMap map, unsigned at,      \
                                  unsigned* to, float* floats, int count, std::uint64_t word) { \
    __VA_ARGS__;                                                                                \
  }

// --- fences
TEXT(fence_proxy_async_shared, "fence.proxy.async.shared::cta;", isa::fence_proxy_async_shared())
TEXT(fence_proxy_async_global, "fence.proxy.async.global;", isa::fence_proxy_async_global())
TEXT(fence_mbarrier_init, "fence.mbarrier_init.release.cluster;", isa::fence_mbarrier_init())
TEXT(launch_dependents, "griddepcontrol.launch_dependents;", isa::launch_dependents())
TEXT(wait_for_prerequisites, "griddepcontrol.wait;", isa::wait_for_prerequisites())

// --- mbarriers
TEXT(mbarrier_init, "mbarrier.init.shared::cta.b64 [%], %;", isa::mbarrier_init(at, count))
TEXT(mbarrier_invalidate, "mbarrier.inval.shared::cta.b64 [%];", isa::mbarrier_invalidate(at))
TEXT(mbarrier_arrive_cta, "mbarrier.arrive.release.cta.shared::cluster.b64 _, [%];",
     isa::mbarrier_arrive<Scope::cta>(at))
TEXT(mbarrier_arrive_cluster, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%];",
     isa::mbarrier_arrive<Scope::cluster>(at))
TEXT(mbarrier_expect, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%], %;",
     isa::mbarrier_expect(at, count))
TEXT(mbarrier_arrive_expect,
     "{ .reg .b64 s; mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 s, [%], %; }",
     isa::mbarrier_arrive_expect(at, count))
TEXT(mbarrier_try_wait_cta,
     "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%], %; "
     "selp.u32 %, 1, 0, p; }",
     to[0] = isa::mbarrier_try_wait<Scope::cta>(at, count))
TEXT(mbarrier_try_wait_cluster,
     "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%], %; "
     "selp.u32 %, 1, 0, p; }",
     to[0] = isa::mbarrier_try_wait<Scope::cluster>(at, count))
TEXT(mbarrier_test_wait_cta,
     "{ .reg .pred p; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%], %; "
     "selp.u32 %, 1, 0, p; }",
     to[0] = isa::mbarrier_test_wait<Scope::cta>(at, count))
TEXT(mbarrier_test_wait_cluster,
     "{ .reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%], %; "
     "selp.u32 %, 1, 0, p; }",
     to[0] = isa::mbarrier_test_wait<Scope::cluster>(at, count))
TEXT(mbarrier_wait_cta,
     "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%], %; "
     "selp.u32 %, 1, 0, p; }",
     isa::mbarrier_wait<Scope::cta>(at, count))
TEXT(mbarrier_wait_cluster,
     "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%], %; "
     "selp.u32 %, 1, 0, p; }",
     isa::mbarrier_wait<Scope::cluster>(at, count))

// --- barriers of threads
TEXT(named_barrier_sync, "barrier.cta.sync.aligned %, %;", isa::named_barrier_sync(count, 64))
TEXT(named_barrier_arrive, "barrier.cta.arrive.aligned %, %;", isa::named_barrier_arrive(count, 64))
TEXT(sync_threads, "barrier.cta.sync.aligned %, %;", isa::sync_threads(64))
TEXT(cluster_arrive, "barrier.cluster.arrive.release.aligned;", isa::cluster_arrive())
TEXT(cluster_arrive_relaxed, "barrier.cluster.arrive.relaxed.aligned;",
     isa::cluster_arrive_relaxed())
TEXT(cluster_wait, "barrier.cluster.wait.acquire.aligned;", isa::cluster_wait())
TEXT(map_rank, "mapa.shared::cluster.u32 %, %, %;", to[0] = isa::map_rank(at, count))

// --- memory
TEXT(shared_load_4, "ld.shared.u32 %, [%];", to[0] = isa::SharedView<unsigned>{at}.load())
TEXT(shared_load_16, "ld.shared.v4.u32 {%, %, %, %}, [%];",
     reinterpret_cast<Words<4>*>(to)[0] = isa::SharedView<Words<4>>{at}.load())
TEXT(shared_store_4, "st.shared.u32 [%], %;", isa::SharedView<unsigned>{at}.store(0, to[0]))
TEXT(shared_store_16, "st.shared.v4.u32 [%], {%, %, %, %};",
     isa::SharedView<Words<4>>{at}.store(0, reinterpret_cast<Words<4>*>(to)[0]))
TEXT(cluster_load, "ld.shared::cluster.v4.u32 {%, %, %, %}, [%];",
     reinterpret_cast<Words<4>*>(to)[0] = isa::ClusterView<Words<4>>{at}.load())
TEXT(cluster_store, "st.shared::cluster.v4.u32 [%], {%, %, %, %};",
     isa::ClusterView<Words<4>>{at}.store(reinterpret_cast<Words<4>*>(to)[0]))
TEXT(store_async,
     "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%], {%, %, %, %}, [%];",
     isa::store_async(at, reinterpret_cast<Words<4>*>(to)[0], at + 16))
TEXT(load_if_2, "{ .reg .pred p; setp.ne.u32 p, %, 0; @p ld.global.u16 %, [%]; }",
     isa::load_if(count > 7, reinterpret_cast<const std::uint16_t*>(floats), to[0]))
TEXT(load_if_4, "{ .reg .pred p; setp.ne.u32 p, %, 0; @p ld.global.u32 %, [%]; }",
     isa::load_if(count > 7, reinterpret_cast<const unsigned*>(floats), to[0]))
TEXT(draw, "... atom.relaxed.gpu.global.inc.u32 %, [%], %;",
     to[0] = isa::draw(to, 7, isa::wait_for_prerequisites()))
TEXT(global_max, "red.relaxed.gpu.global.max.u32 [%], %;",
     isa::global_max(reinterpret_cast<float*>(to), static_cast<float>(count)))
TEXT(global_min, "red.relaxed.gpu.global.min.u64 [%], %;",
     isa::global_min(reinterpret_cast<std::uint64_t*>(to), static_cast<std::uint64_t>(count)))
TEXT(global_add, "red.relaxed.gpu.global.add.u64 [%], %;",
     isa::global_add(reinterpret_cast<std::uint64_t*>(to), static_cast<std::uint64_t>(count)))
TEXT(cluster_add_word, "red.relaxed.cluster.shared::cluster.add.u32 [%], %;",
     isa::cluster_add(at, static_cast<std::uint32_t>(count)))
TEXT(cluster_add_float, "red.relaxed.cluster.shared::cluster.add.f32 [%], %;",
     isa::cluster_add(at, static_cast<float>(count)))
TEXT(global_store, "st.global.v4.b32 [%], {%, %, %, %};",
     isa::GlobalView<Words<4>>{reinterpret_cast<Words<4>*>(to)}.store(
         0, reinterpret_cast<Words<4>*>(to)[1]))
TEXT(flag_set, "st.release.gpu.global.u32 [%], %;", isa::flag_set(to, 1))
TEXT(flag_wait, "ld.acquire.gpu.global.u32 %, [%];", isa::flag_wait(to, 1))
TEXT(flag_count, "... atom.acq_rel.gpu.global.add.u32 %, [%], %;", to[0] = isa::flag_count(to))
TEXT(flag_add, "red.release.gpu.global.add.u32 [%], %;", isa::flag_add(to))
TEXT(flag_clear, "... st.relaxed.gpu.global.u32 [%], %;", isa::flag_clear(to))

// --- copies
TEXT(prefetch_map, "prefetch.tensormap [%];", isa::prefetch_map(map))
TEXT(tensor_load_1,
     "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%], [%, {%}], [%];",
     isa::tensor_load(at, map, at + 8, isa::Coords{count}))
TEXT(tensor_load_3,
     "cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [%], [%, {%, %, "
     "%}], [%];",
     isa::tensor_load(at, map, at + 8, isa::Coords{count, count, 0}))
TEXT(tensor_load_multicast_3,
     "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
     ".multicast::cluster [%], [%, {%, %, %}], [%], %;",
     isa::tensor_load_multicast(at, map, at + 8, 3, isa::Coords{count, count, 0}))
TEXT(tensor_load_to_3,
     "{ .reg .pred p; setp.ne.b16 p, %, 0; @p cp.async.bulk.tensor.3d.shared::cluster.global"
     ".mbarrier::complete_tx::bytes.multicast::cluster [%], [%, {%, %, %}], [%], %; @!p "
     "cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [%], [%, {%, %, "
     "%}], [%]; }",
     isa::tensor_load_to(static_cast<std::uint16_t>(count), at, map, at + 8,
                         isa::Coords{count, count, 0}))
TEXT(tensor_store_3, "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%, {%, %, %}], [%];",
     isa::tensor_store(map, at, isa::Coords{count, count, 0}))
TEXT(tensor_reduce_add_2,
     "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%, {%, %}], [%];",
     isa::tensor_reduce_add(map, at, isa::Coords{count, count}))
TEXT(bulk_load,
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%], [%], %, [%];",
     isa::bulk_load(at, to, count, at + 8))
TEXT(
    bulk_load_policy,
    "createpolicy.fractional.L2::evict_first.b64 %, 1.0; "
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%], [%], %, "
    "[%], %;",
    isa::bulk_load(at, to, count, at + 8, isa::evict_first()))
TEXT(bulk_prefetch, "cp.async.bulk.prefetch.L2.global [%], %;", isa::bulk_prefetch(to, count))
TEXT(bulk_commit, "cp.async.bulk.commit_group;", isa::bulk_commit())
TEXT(bulk_wait_read, "cp.async.bulk.wait_group.read 1;", isa::bulk_wait_read<1>())
TEXT(bulk_wait, "cp.async.bulk.wait_group 1;", isa::bulk_wait<1>())

TEXT(copy_async_16, "cp.async.cg.shared.global [%], [%], 16, %;",
     isa::copy_async<16>(at, to, count))
TEXT(copy_async_4, "cp.async.ca.shared.global [%], [%], 4, %;", isa::copy_async<4>(at, to))
TEXT(copy_async_or_zeros, "... cp.async.cg.shared.global [%], [%], 16, zeros;",
     isa::copy_async_or_zeros(at, to, count != 0))
TEXT(copy_async_line_or_zeros, "... cp.async.cg.shared.global.L2::128B [%], [%], 16, zeros;",
     isa::copy_async_or_zeros<true>(at, to, count != 0))
TEXT(copy_async_commit, "cp.async.commit_group;", isa::copy_async_commit())
TEXT(copy_async_wait, "cp.async.wait_group 3;", isa::copy_async_wait<3>())
TEXT(copy_async_arrive, "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%];",
     isa::copy_async_arrive(at))

// --- mma.sync: one statement for each count of registers
#define WITH_REGISTERS(Sum, c, ma, mb, ...)               \
  constexpr atom::Mma mma{__VA_ARGS__};                   \
  Sum sums[c];                                            \
  std::uint32_t a[ma];                                    \
  std::uint32_t b[mb];                                    \
  for (Sum & word : sums) word = static_cast<Sum>(*to++); \
  for (std::uint32_t & word : a) word = *to++;            \
  for (std::uint32_t & word : b) word = *to++;            \
  isa::mma_sync<mma>(sums, a, b);                         \
  for (const Sum word : sums) *to++ = static_cast<std::uint32_t>(word)
TEXT(mma_4_4_2,
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%, %, %, %}, {%, %, %, %}, {%, %}, "
     "{%, %, %, %};",
     WITH_REGISTERS(float, 4, 4, 2, atom::MmaKind::warp, 16, 8, 16, DType::bf16, DType::bf16))
TEXT(mma_4_4_2_integers,
     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%, %, %, %}, {%, %, %, %}, {%, %}, "
     "{%, %, %, %};",
     WITH_REGISTERS(std::int32_t, 4, 4, 2, atom::MmaKind::warp, 16, 8, 32, DType::s8, DType::s8,
                    DType::s32))
TEXT(mma_4_2_1,
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%, %, %, %}, {%, %}, {%}, {%, %, %, %};",
     WITH_REGISTERS(float, 4, 2, 1, atom::MmaKind::warp, 16, 8, 8))
TEXT(mma_2_4_2,
     "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%, %}, {%, %, %, %}, {%, %}, {%, %};",
     WITH_REGISTERS(std::uint32_t, 2, 4, 2, atom::MmaKind::warp, 16, 8, 16, DType::f16, DType::f16,
                    DType::f16))
TEXT(mma_2_2_1, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%, %}, {%, %}, {%}, {%, %};",
     WITH_REGISTERS(std::uint32_t, 2, 2, 1, atom::MmaKind::warp, 16, 8, 8, DType::f16, DType::f16,
                    DType::f16))
TEXT(mma_2_1_1, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%, %}, {%}, {%}, {%, %};",
     WITH_REGISTERS(std::int32_t, 2, 1, 1, atom::MmaKind::warp, 8, 8, 16, DType::s8, DType::s8,
                    DType::s32))
TEXT(mma_8_2_2,
     "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%, %, %, %, %, %, %, %}, {%, %}, {%, %}, "
     "{%, %, %, %, %, %, %, %};",
     WITH_REGISTERS(float, 8, 2, 2, atom::MmaKind::quad_pair, 8, 8, 4))
TEXT(mma_4_2_2,
     "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16 {%, %, %, %}, {%, %}, {%, %}, {%, %, %, %};",
     WITH_REGISTERS(std::uint32_t, 4, 2, 2, atom::MmaKind::quad_pair, 8, 8, 4, DType::f16,
                    DType::f16, DType::f16, atom::Major::mn, atom::Major::mn))

// --- tensor maps that change
TEXT(replace_address, "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%], %;",
     isa::tensormap_replace_global_address(at, to))
TEXT(replace_dim, "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%], 1, %;",
     isa::tensormap_replace_global_dim<1>(at, at))
TEXT(cp_fenceproxy,
     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%], "
     "[%], 128;",
     isa::tensormap_cp_fenceproxy(reinterpret_cast<isa::TensorMap*>(to), at))
TEXT(acquire_map, "fence.proxy.tensormap::generic.acquire.gpu [%], 128;",
     isa::fence_proxy_tensormap_acquire(*reinterpret_cast<isa::TensorMap*>(to)))

// --- warps
TEXT(elect_one, "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %, 1, 0, p; }",
     to[0] = isa::elect_one())
TEXT(sync_warp, "... bar.warp.sync -1;", isa::sync_warp())
TEXT(shuffle, "... shfl.sync.idx.b32 %|%, %, %, ", to[0] = isa::shuffle(to[0], count))
TEXT(ballot, "... vote.sync.ballot.b32 %, %, ", to[0] = isa::ballot(count == 3))
TEXT(load_matrix_4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%, %, %, %}, [%];",
     std::uint32_t words[4];
     isa::load_matrix(at, words); to[0] = words[0])
TEXT(load_matrix_2_transposed, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%, %}, [%];",
     std::uint32_t words[2];
     isa::load_matrix<2, true>(at, words); to[0] = words[0])
#if TEXT_ARCHITECTURE >= 100
TEXT(load_matrix_padded_4,
     "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%, %, %, %}, [%];",
     std::uint32_t words[4];
     isa::load_matrix_padded<4, 4>(at, words); to[0] = words[0])
TEXT(load_matrix_padded_2, "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%, %}, [%];",
     std::uint32_t words[2];
     isa::load_matrix_padded<2, 6>(at, words); to[0] = words[0])
#endif
TEXT(store_matrix_4, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%], {%, %, %, %};",
     std::uint32_t words[4] = {1, 2, at, 4};
     isa::store_matrix(at, words))
TEXT(store_matrix_1_transposed, "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%], {%};",
     std::uint32_t words[1] = {at};
     isa::store_matrix<1, true>(at, words))

// --- conversions
TEXT(pack_bf16, "cvt.rn.bf16x2.f32 %, %, %;", to[0] = isa::pack<DType::bf16>(floats[0], floats[1]))
TEXT(pack_f16, "cvt.rn.f16x2.f32 %, %, %;", to[0] = isa::pack<DType::f16>(floats[0], floats[1]))
TEXT(pack_e4m3, "cvt.rn.satfinite.e4m3x2.f32 %, %, %;",
     to[0] = isa::pack_bytes<DType::e4m3>(floats[0], floats[1]))
TEXT(pack_e5m2, "cvt.rn.satfinite.e5m2x2.f32 %, %, %;",
     to[0] = isa::pack_bytes<DType::e5m2>(floats[0], floats[1]))
TEXT(halves_of_bytes, "cvt.rn.f16x2.e4m3x2 %, %;",
     to[0] = isa::halves_of_bytes(static_cast<std::uint16_t>(count)))
TEXT(multiply_f16_pairs, "mul.rn.f16x2 %, %, %;",
     to[0] = isa::multiply_pairs<DType::f16>(at, at + 8))
TEXT(multiply_bf16_pairs, "mul.rn.bf16x2 %, %, %;",
     to[0] = isa::multiply_pairs<DType::bf16>(at, at + 8))
TEXT(subtract_f16_pairs, "sub.rn.f16x2 %, %, %;",
     to[0] = isa::subtract_pairs<DType::f16>(at, at + 8))
TEXT(subtract_bf16_pairs, "sub.rn.bf16x2 %, %, %;",
     to[0] = isa::subtract_pairs<DType::bf16>(at, at + 8))
TEXT(multiply_subtract_f16_pairs, "fma.rn.f16x2 %, %, %, %;",
     to[0] = isa::multiply_subtract_pairs<DType::f16>(at, at + 8, count))
TEXT(multiply_subtract_bf16_pairs, "fma.rn.bf16x2 %, %, %, %;",
     to[0] = isa::multiply_subtract_pairs<DType::bf16>(at, at + 8, count))
TEXT(and_or, "lop3.b32 %, %, %, %, 0xea;", to[0] = isa::and_or(at, count, at + 8))
TEXT(permute_bytes, "prmt.b32 %, %, %, %;", to[0] = isa::permute_bytes(at, at + 8, count))
TEXT(bytes_of_halves, "cvt.rn.satfinite.e4m3x2.f16x2 %, %;", to[0] = isa::bytes_of_halves(at))

#if TEXT_ARCHITECTURE == 90
// --- Hopper's tensor core
TEXT(set_registers_down, "setmaxnreg.dec.sync.aligned.u32 24;", isa::decrease_registers<24>())
TEXT(set_registers_up, "setmaxnreg.inc.sync.aligned.u32 240;", isa::increase_registers<240>())
#define WITH_SUM(statement)                       \
  isa::Fragment<float, 4> sum;                    \
  for (int i = 0; i < 4; ++i) sum[i] = floats[i]; \
  statement;                                      \
  for (int i = 0; i < 4; ++i) floats[i] = sum[i]
TEXT(wgmma_fence, "... wgmma.fence.sync.aligned;", WITH_SUM(isa::wgmma_fence(sum)))
TEXT(wgmma_commit, "wgmma.commit_group.sync.aligned;", isa::wgmma_commit())
TEXT(wgmma_wait, "wgmma.wait_group.sync.aligned 1;", isa::wgmma_wait<1>())
TEXT(wgmma_wait_for, "... wgmma.wait_group.sync.aligned 0;", WITH_SUM(isa::wgmma_wait<0>(sum)))
TEXT(wgmma_bf16,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
     "{%, %, %, %}, %, %, p, 1, 1, 0, 0; }",
     WITH_SUM((isa::wgmma<DType::bf16, 8>(sum, word, word, count != 0))))
TEXT(wgmma_f16_mn,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
     "{%, %, %, %}, %, %, p, 1, 1, 1, 0; }",
     WITH_SUM((isa::wgmma<DType::f16, 8, atom::Major::mn>(sum, word, word, count != 0))))
TEXT(wgmma_bf16_b_mn,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
     "{%, %, %, %}, %, %, p, 1, 1, 0, 1; }",
     WITH_SUM((isa::wgmma<DType::bf16, 8, atom::Major::k, atom::Major::mn>(sum, word, word,
                                                                           count != 0))))
TEXT(wgmma_e4m3_e5m2,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 "
     "{%, %, %, %}, %, %, p, 1, 1; }",
     WITH_SUM((isa::wgmma<DType::e4m3, DType::e5m2, 8>(sum, word, word, count != 0))))
TEXT(wgmma_registers,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
     "{%, %, %, %}, {%, %, %, %}, %, p, 1, 1, 0; }",
     isa::Fragment<std::uint32_t, 4> a;
     WW_UNROLL for (int i = 0; i < 4; ++i) a[i] = at;
     WITH_SUM((isa::wgmma_registers<DType::bf16, 8>(sum, a, word, count != 0))))
TEXT(wgmma_registers_e4m3,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 "
     "{%, %, %, %}, {%, %, %, %}, %, p, 1, 1; }",
     isa::Fragment<std::uint32_t, 4> a;
     WW_UNROLL for (int i = 0; i < 4; ++i) a[i] = at;
     WITH_SUM((isa::wgmma_registers<DType::e4m3, 8>(sum, a, word, count != 0))))
#else
// --- Blackwell's; the shapes of its loads and stores are in isa_forms.cu
TEXT(allocate, "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%], %;",
     isa::tcgen05_allocate<1>(at, 64))
TEXT(deallocate, "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %, %;",
     isa::tcgen05_deallocate<2>(at, 64))
TEXT(relinquish, "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
     isa::tcgen05_relinquish<1>())
TEXT(mma_f16,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; tcgen05.mma.cta_group::1.kind::f16 [%], %, %, %, p; }",
     (isa::tcgen05_mma<atom::UmmaKind::f16, 1>(at, word, word, at, count != 0)))
TEXT(
    mma_f8_pair,
    "{ .reg .pred p; setp.ne.b32 p, %, 0; tcgen05.mma.cta_group::2.kind::f8f6f4 [%], %, %, %, p; }",
    (isa::tcgen05_mma<atom::UmmaKind::f8f6f4, 2>(at, word, word, at, count != 0)))
TEXT(mma_tmem,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; tcgen05.mma.cta_group::1.kind::f16 [%], [%], %, %, p; }",
     (isa::tcgen05_mma_tmem<atom::UmmaKind::f16, 1>(at, at, word, at, count != 0)))
TEXT(mma_scaled,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; "
     "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 [%], %, %, %, [%], [%], p; }",
     (isa::tcgen05_mma_scaled<atom::UmmaKind::mxf4nvf4, 16, 2>(at, word, word, at, at, at,
                                                               count != 0)))
TEXT(mma_scaled_tmem,
     "{ .reg .pred p; setp.ne.b32 p, %, 0; "
     "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [%], [%], %, %, [%], [%], p; }",
     (isa::tcgen05_mma_scaled_tmem<atom::UmmaKind::mxf8f6f4, 32, 1>(at, at, word, at, at, at,
                                                                    count != 0)))
TEXT(copy_scales, "tcgen05.cp.cta_group::1.32x128b.warpx4 [%], %;",
     (isa::tcgen05_copy<isa::TmemCopy::b32x128_warpx4, 1>(at, word)))
TEXT(copy_widening, "tcgen05.cp.cta_group::2.64x128b.warpx2::01_23.b8x16.b6x16_p32 [%], %;",
     (isa::tcgen05_copy<isa::TmemCopy::b64x128_warpx2_01_23, 2, isa::TmemWiden::from_b6x16_p32>(
         at, word)))
TEXT(commit, "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%];",
     isa::tcgen05_commit<1>(at))
TEXT(commit_multicast,
     "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
     "[%], %;",
     isa::tcgen05_commit_multicast<2>(at, 3))
TEXT(fence_before, "tcgen05.fence::before_thread_sync;", isa::tcgen05_fence_before_sync())
TEXT(fence_after, "tcgen05.fence::after_thread_sync;", isa::tcgen05_fence_after_sync())
TEXT(wait_load, "tcgen05.wait::ld.sync.aligned;", isa::tcgen05_wait_load())
TEXT(wait_store, "tcgen05.wait::st.sync.aligned;", isa::tcgen05_wait_store())
TEXT(tensor_load_pair,
     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 "
     "[%], [%, {%, %}], [%];",
     isa::tensor_load<2>(at, map, at + 8, isa::Coords{count, count}))
TEXT(tensor_gather4_to,
     "{ .reg .pred p; setp.ne.b16 p, %, 0; @p cp.async.bulk.tensor.2d.shared::cluster.global"
     ".tile::gather4.mbarrier::complete_tx::bytes.multicast::cluster [%], [%, {%, %, %, %, %}], "
     "[%], %; @!p cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4"
     ".mbarrier::complete_tx::bytes [%], [%, {%, %, %, %, %}], [%]; }",
     isa::tensor_gather4_to(static_cast<std::uint16_t>(count), at, map, at + 8, count,
                            {count, 2, 3, 4}))
TEXT(tensor_gather4_to_pair,
     "{ .reg .pred p; setp.ne.b16 p, %, 0; @p cp.async.bulk.tensor.2d.shared::cluster.global"
     ".tile::gather4.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 "
     "[%], [%, {%, %, %, %, %}], [%], %; @!p cp.async.bulk.tensor.2d.shared::cluster.global"
     ".tile::gather4.mbarrier::complete_tx::bytes.cta_group::2 [%], [%, {%, %, %, %, %}], [%]; }",
     isa::tensor_gather4_to<2>(static_cast<std::uint16_t>(count), at, map, at + 8, count,
                               {count, 2, 3, 4}))
TEXT(tensor_scatter4,
     "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
     "[%, {%, %, %, %, %}], [%];",
     isa::tensor_scatter4(map, at, count, {count, 2, 3, 4}))
TEXT(tensor_load_to_pair,
     "{ .reg .pred p; setp.ne.b16 p, %, 0; @p cp.async.bulk.tensor.2d.shared::cluster.global"
     ".mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [%], [%, {%, %}], [%], %; @!p "
     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 "
     "[%], [%, {%, %}], [%]; }",
     isa::tensor_load_to<2>(static_cast<std::uint16_t>(count), at, map, at + 8,
                            isa::Coords{count, count}))
TEXT(try_cancel,
     "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%], "
     "[%];",
     isa::try_cancel(at, at + 16))
TEXT(try_cancel_multicast,
     "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
     ".multicast::cluster::all.b128 [%], [%];",
     isa::try_cancel_multicast(at, at + 16))
#endif
