// Where a CUTLASS 3.x kernel waits for the kernel before it (tessera/programmatic_launch.h).
//
// CUTLASS' kernels, compiled with CUTLASS_ENABLE_GDC_FOR_SM90, wait in the warps that load tiles (A
// and B, C), after barriers and clusters are set up; their MMA warps never wait. That is enough for
// what an MMA warp does after its first tile's mainloop: the loads that filled the tile's buffers
// were issued after the wait, and the buffer's barrier orders the wait before it. So D may be
// written over what the kernel before it read, and rows, columns and auxiliary operands may be
// read. It is not enough
//   - for a scalar operand, which every thread reads while it constructs the epilogue,
//   - for arrays, whose producer warps read pointers and rewrite tensor maps before that,
//   - for auxiliary loads of a mainloop, which do not wait in the cooperative kernel.
// Those kernels, and the mainloops of ours, wait at their entry, with all threads. Stream-K is
// launched plainly: its workspace is cleared before every launch, and its blocks of mere reduction
// would read that without a wait.
#pragma once

#include "tessera/programmatic_launch.h"
#include "tessera_cutlass/sm90.hpp"

namespace tessera_cutlass {

/// Whether a visitor tree (Sm90EVT or a topological one) has a scalar operand.
template <class Node>
inline constexpr bool reads_scalar = false;
template <class T, class Stride, int Count, template <class> class Function>
inline constexpr bool
    reads_scalar<cutlass::epilogue::fusion::Sm90ScalarBroadcast<T, Stride, Count, Function>> = true;
template <template <class...> class Tree, class... Nodes>
inline constexpr bool reads_scalar<Tree<Nodes...>> = (reads_scalar<Nodes> || ...);

/// Whether all that loads tiles is the producer warp of CUTLASS' own kernels.
template <class Policy>
inline constexpr bool loads_tiles_only = false;
template <int Stages, class Cluster, class Schedule>
inline constexpr bool
    loads_tiles_only<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<Stages, Cluster, Schedule>> =
        true;
template <int Stages, class Cluster, class Schedule>
inline constexpr bool loads_tiles_only<
    cutlass::gemm::MainloopSm90TmaGmmaRmemAWarpSpecialized<Stages, Cluster, Schedule>> = true;
template <int Stages, class Cluster, class Schedule>
inline constexpr bool loads_tiles_only<
    cutlass::gemm::MainloopSm90TmaGmmaWarpSpecializedFP8<Stages, Cluster, Schedule>> = true;

/// The scheduler that a kernel was asked for; void for arrays, which do not tell.
template <class Kernel, class = void>
struct SchedulerOf {
  using Tag = void;
};
template <class Kernel>
struct SchedulerOf<Kernel, cute::void_t<typename Kernel::TileSchedulerTag>> {
  using Tag = typename Kernel::TileSchedulerTag;
};
template <class Kernel, class Tag>
inline constexpr bool is_scheduled = cute::is_same_v<typename SchedulerOf<Kernel>::Tag, Tag>;

template <class Kernel>
inline constexpr bool stream_k = is_scheduled<Kernel, cutlass::gemm::StreamKScheduler>;

/// Whether CUTLASS' own waits are enough.
template <class Kernel>
inline constexpr bool waits_by_role =
    is_scheduled<Kernel, cutlass::gemm::PersistentScheduler> &&
    loads_tiles_only<typename Kernel::CollectiveMainloop::DispatchPolicy> &&
    !reads_scalar<typename Kernel::CollectiveEpilogue::FusionCallbacks>;

#if TESSERA_DEVICE_SIDE
template <class Kernel>
__global__ void __launch_bounds__(Kernel::MaxThreadsPerBlock, Kernel::MinBlocksPerMultiprocessor)
    waiting_kernel(CUTLASS_GRID_CONSTANT typename Kernel::Params const params) {
  extern __shared__ char smem[];
  tessera::wait_for_previous();
  Kernel kernel;
  kernel(params, smem);
}

/// What is launched for a kernel. The next kernel is let in where CUTLASS does it, after the last
/// tile's mainloop: a block fills its multiprocessor's shared memory until about then.
template <class Kernel>
const void* entry() {
#if TESSERA_PROGRAMMATIC_LAUNCH && !defined(CUTLASS_ENABLE_GDC_FOR_SM90)
#error "CUTLASS_ENABLE_GDC_FOR_SM90 is needed, too: CUTLASS' kernels do not wait without it"
#endif
  if constexpr (waits_by_role<Kernel> || stream_k<Kernel>) {
    return reinterpret_cast<const void*>(cutlass::device_kernel<Kernel>);
  } else {
    return reinterpret_cast<const void*>(waiting_kernel<Kernel>);
  }
}
#endif

}  // namespace tessera_cutlass
