// clang-format off
/* fp32-accurate GEMM on Hopper's tf32 tensor cores: a mainloop for CUTLASS 3.x. Include this file.
 *
 * Every fp32 operand is split into hi + lo (both tf32) by a pre-pass; the mainloop accumulates
 * hi*hi + hi*lo + lo*hi and promotes to fp32 registers every PromoteK of k. Everything after the
 * accumulator is stock CUTLASS: GemmUniversal (cooperative or ping-pong), persistent or stream-K
 * scheduler, any epilogue and visitor tree, batches in L.
 *
 * Complete example: D[l] = alpha A[l] B[l], D row-major, N a multiple of 4 (TMA epilogue).
 *
 *   #include "cute/tensor.hpp"
 *   #include "cutlass/cutlass.h"
 *   #include "cutlass/epilogue/collective/collective_builder.hpp"
 *   #include "cutlass/gemm/device/gemm_universal_adapter.h"
 *   #include "cutlass/gemm/kernel/gemm_universal.hpp"
 *   #include "tessera_cutlass/split_tf32.h"
 *   using namespace cute;
 *
 *   using Cluster = Shape<_2, _1, _1>;
 *   using Tile = Shape<_128, _192, _16>;        // the K extent is always 16
 *   using Schedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
 *   using Row = cutlass::layout::RowMajor;
 *   using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
 *       cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
 *       Shape<_128, _16>,                       // epilogue tile; this one leaves room for 5 stages
 *       float, float,
 *       void, Row, 4,                            // C: void without a source, else float
 *       float, Row, 4, cutlass::epilogue::TmaWarpSpecializedCooperative,
 *       cutlass::epilogue::fusion::LinearCombination<float, float>  // or any visitor tree
 *       >::CollectiveOp;
 *   constexpr int kStages =
 *       tessera::split_tf32_stages(128, 192, sizeof(typename Epilogue::SharedStorage));
 *   using Mainloop = typename tessera::SplitTf32Builder<
 *       128, 192, Cluster, kStages, Schedule, 128>::CollectiveOp;       // 128 = PromoteK: half the error of 256 for 1-2 % of time
 *   using Kernel =
 *       cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
 *   using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
 *
 *   // A[M, K], B[K, N]: any strides, in elements; the rows of B are n. The packed arrays hold
 *   // tessera::split_packed_elements(M, K, L) and (N, K, L) floats, 128-byte aligned. An operand
 *   // that is packed already (constant weights) skips its call: the two halves are independent.
 *   tessera::split_tf32_pack(a_packed, {a, M, K, L, a_stride_m, a_stride_k, a_stride_l}, stream);
 *   tessera::split_tf32_pack(b_packed, {b, N, K, L, b_stride_n, b_stride_k, b_stride_l}, stream);
 *
 *   typename Kernel::StrideD stride_d{ldd, _1{}, batch_stride_d};
 *   typename Gemm::Arguments args{};
 *   args.mode = cutlass::gemm::GemmUniversalMode::kGemm;                // for L > 1, too
 *   args.problem_shape = {M, N, K, L};                                  // the true K
 *   args.mainloop = {a_packed, tessera::split_stride(M, K),             // ptr_A, dA, ptr_B, dB
 *                    b_packed, tessera::split_stride(N, K)};
 *   args.epilogue.thread.alpha = alpha;                                 // or the tree's arguments
 *   args.epilogue.dC = stride_d;
 *   args.epilogue.ptr_D = d;
 *   args.epilogue.dD = stride_d;
 *   args.hw_info.sm_count = 132;
 *   Gemm gemm;
 *   gemm.can_implement(args); gemm.initialize(args, workspace, stream); gemm.run(stream);
 *
 * Compile with -std=c++17 or later, -O3, --expt-relaxed-constexpr,
 * -gencode=arch=compute_90a,code=sm_90a and **-DNDEBUG**: an assertion in device code is a function
 * call, for which ptxas serializes every wgmma (its warning C7510).
 *
 * Batches. dA and dB are (row stride, _1, batch stride) in packed elements; a batch stride of 0
 * uses one packed matrix for every l. K slices of one long product are a batch of L slices of K / L
 * (a multiple of 16): pack the whole once, row stride split_row_elements(K), batch stride
 * split_row_elements(K / L), then add the L products (sum_slices.h).
 *
 * Without a pre-pass. The inline mainloop takes plain fp32 and splits in shared memory. Pointers
 * must be 16-byte aligned and every stride but the unit one a multiple of 4 elements.
 *
 *   constexpr int kStages = tessera::split_tf32_inline_stages(128, 192, kEpilogueBytes);
 *   using Mainloop = typename tessera::SplitTf32InlineBuilder<
 *       128, 192, Cluster, kStages,
 *       tessera::KMajorStride,                   // A: k contiguous; RowMajorStride: m contiguous
 *       tessera::RowMajorStride,                 // B: n contiguous; KMajorStride: k contiguous
 *       256>::CollectiveOp;
 *   args.mainloop = {a, {stride_m, _1{}, stride_l}, b, {_1{}, stride_k, stride_l}};
 *
 * It moves a third of the bytes through DRAM and needs no workspace, but splits every tile again in
 * each block that reads it: for long K, for few tiles, for batches. Packed: large square products,
 * and constant operands that are packed once.
 *
 * Choosing. Shared memory per stage: (BM + BN) * 128 bytes; have 4 or more (inline: * 64 bytes a
 * stage beside 3 * (BM + BN) * 128). BM * BN <= 128 * 192
 * (cooperative, BM = 128 or 256) or 64 * 192 (ping-pong, BM = 64, not with stream-K). A smaller
 * PromoteK is more exact and a little slower.
 *
 * Range. An element below about 1e-31 keeps only its high part. An infinity or NaN in an operand
 * makes the results that use it infinite or NaN (not always the same one as fp32 would); inline, so
 * does an element within 2^116 of the largest float.
 */
// clang-format on
#pragma once
#include "tessera_cutlass/split_tf32_builder.h"
#include "tessera_cutlass/split_tf32_collective.h"
#include "tessera_cutlass/split_tf32_inline_collective.h"
#include "tessera_cutlass/split_tf32_layout.h"
#include "tessera_cutlass/split_tf32_pack.h"
#include "tessera_cutlass/split_tf32_policy.h"
