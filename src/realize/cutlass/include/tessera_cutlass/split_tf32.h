/* fp32-accurate GEMM on Hopper's tf32 tensor cores, as a mainloop for CUTLASS 3.x. Include this
 * one.
 *
 * Every fp32 operand is split into hi + lo (both tf32) by a pre-pass; the mainloop accumulates
 * hi*hi + hi*lo + lo*hi and promotes to fp32 registers every PromoteK of k. Everything after the
 * accumulator is stock CUTLASS: GemmUniversal (cooperative or ping-pong), persistent or stream-K
 * scheduler, any epilogue and visitor tree, batches in L.
 *
 * Complete example: D[l] = alpha * A[l] B[l] + beta * C[l], D row-major, N a multiple of 4 (TMA
 * epilogue):
 *
 *   #include "cutlass/epilogue/collective/collective_builder.hpp"
 *   #include "cutlass/gemm/device/gemm_universal_adapter.h"
 *   #include "cutlass/gemm/kernel/gemm_universal.hpp"
 *   #include "tessera_cutlass/split_tf32.h"
 *   using namespace cute;
 *
 *   using Cluster = Shape<_2, _1, _1>;
 *   using Tile = Shape<_128, _192, _16>;                        // K extent always 16
 * (tessera::kSplitGroup) using Schedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative; using
 * Row = cutlass::layout::RowMajor; using Epilogue = typename
 * cutlass::epilogue::collective::CollectiveBuilder< cutlass::arch::Sm90,
 * cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
 * float, float, void, Row, 4,                                           // C: void when beta = 0;
 * else float (more smem) float, Row, 4, cutlass::epilogue::TmaWarpSpecializedCooperative
 *       // , the fusion: an operation tag or a visitor tree
 *       >::CollectiveOp;
 *   constexpr int kStages = tessera::split_tf32_stages(128, 192, sizeof(typename
 * Epilogue::SharedStorage)); using Mainloop = typename tessera::SplitTf32Builder<128, 192, Cluster,
 * kStages, Schedule, 256>::CollectiveOp; using Kernel =
 * cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>; using Gemm =
 * cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
 *
 *   // A[M, K] and B[K, N] of any strides (elements); rows of B are n. `a_packed` holds
 *   // tessera::split_packed_elements(M, K, L) floats. Skip the call for an operand that is packed
 * already. tessera::split_tf32_pack(a_packed, {a, M, K, L, a_stride_m, a_stride_k, a_stride_l},
 * stream); tessera::split_tf32_pack(b_packed, {b, N, K, L, b_stride_n, b_stride_k, b_stride_l},
 * stream);
 *
 *   typename Gemm::Arguments args{
 *       cutlass::gemm::GemmUniversalMode::kGemm, {M, N, K, L},  // kGemm also for L > 1; K is the
 * true K {a_packed, tessera::split_stride(M, K), b_packed, tessera::split_stride(N, K)},
 *       {{alpha, beta}, nullptr, stride_c, d, stride_d}};       // the epilogue's own arguments
 *   args.hw_info.sm_count = 132;
 *   Gemm gemm;                                                  // then can_implement, initialize,
 * run as always
 *
 * A batch stride of 0 in dA or dB broadcasts one packed matrix. K slices of one long product are a
 * batch: L slices of K / L each (a multiple of 16), packed once as a whole, row stride
 * split_row_elements(K), batch stride split_row_elements(K / L); then add the L partial products.
 *
 * Compile with -std=c++17 or later, --expt-relaxed-constexpr, -DNDEBUG (an assertion in the device code is a function call,
 * which makes ptxas serialize every wgmma: warning C7510) and -gencode=arch=compute_90a,code=sm_90a.
 *
 * Choosing: shared memory per stage is (BM + BN) * 128 bytes; 4 or more stages. BM * BN <= 128 *
 * 192 (cooperative, BM = 128 or 256) or 64 * 192 (ping-pong, BM = 64; not with stream-K). A smaller
 * PromoteK is more exact and slower. Range: |a| and |b| within about 1e-31 ... 3e38, the product's
 * low terms likewise; an infinity in an operand gives NaN or infinity, never a finite value.
 */
#pragma once
#include "tessera_cutlass/split_tf32_builder.h"
#include "tessera_cutlass/split_tf32_collective.h"
#include "tessera_cutlass/split_tf32_layout.h"
#include "tessera_cutlass/split_tf32_pack.h"
#include "tessera_cutlass/split_tf32_policy.h"
