/* The dispatch policy of the split-tf32 mainloop, and the builder that assembles its CollectiveMma.
 *
 * The mainloop itself is split_tf32_collective.h; split_tf32.h says how everything is used.
 */
#pragma once
#include "cute/arch/mma_sm90.hpp"
#include "cute/atom/mma_atom.hpp"
#include "cutlass/arch/arch.h"
#include "cutlass/gemm/dispatch_policy.hpp"
#include "tessera_cutlass/split_tf32_layout.h"

namespace tessera {

/// Products of two-part tf32 operands, accumulated for at most PromoteK of k in the tensor core and
/// then added to fp32 registers. A stage holds 16 k of hi and lo of both tiles: (BM + BN) * 128
/// bytes.
template <int Stages_, class ClusterShape_ = cute::Shape<cute::_1, cute::_1, cute::_1>,
          class KernelSchedule_ = cutlass::gemm::KernelTmaWarpSpecializedCooperative,
          int PromoteK_ = 256>
struct MainloopSm90TmaGmmaSplitTf32 {
  static_assert(Stages_ >= 2, "one stage is in use while another is filled");
  static_assert(PromoteK_ >= kSplitGroup && PromoteK_ % kSplitGroup == 0,
                "promotion happens at stage boundaries: PromoteK must be a multiple of 16");
  static_assert(
      cute::is_base_of_v<cutlass::gemm::KernelTmaWarpSpecializedCooperative, KernelSchedule_> ||
          cute::is_base_of_v<cutlass::gemm::KernelTmaWarpSpecializedPingpong, KernelSchedule_>,
      "the schedule must be warp-specialized cooperative or ping-pong");
  static constexpr int Stages = Stages_;
  static constexpr int PromoteK = PromoteK_;
  using ClusterShape = ClusterShape_;
  using ArchTag = cutlass::arch::Sm90;
  using Schedule = KernelSchedule_;
};

/// The same products from plain fp32 operands, split by the consumers in shared memory: no
/// pre-pass, no packed copy. A stage holds 16 k of both raw tiles, (BM + BN) * 64 bytes, beside
/// three packed buffers of (BM + BN) * 128 bytes. Cooperative only: both warpgroups split for each
/// other.
template <int Stages_, class ClusterShape_ = cute::Shape<cute::_1, cute::_1, cute::_1>,
          class KernelSchedule_ = cutlass::gemm::KernelTmaWarpSpecializedCooperative,
          int PromoteK_ = 256>
struct MainloopSm90TmaGmmaSplitTf32Inline
    : MainloopSm90TmaGmmaSplitTf32<Stages_, ClusterShape_, KernelSchedule_, PromoteK_> {
  static_assert(
      cute::is_base_of_v<cutlass::gemm::KernelTmaWarpSpecializedCooperative, KernelSchedule_>,
      "the schedule must be warp-specialized cooperative");
};

}  // namespace tessera
