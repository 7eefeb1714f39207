/* One GEMM of the self-test: compiled once for each TESSERA_SPLIT_INSTANCE of
 * split_tf32_instances.inc. */
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/fusion/operations.hpp"
#include "cutlass/epilogue/thread/activation.h"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/gemm/kernel/tile_scheduler.hpp"
#include "split_tf32_config.h"
#include "tessera_cutlass/split_tf32.h"

namespace {
using namespace cute;
namespace fusion = cutlass::epilogue::fusion;
using cutlass::epilogue::collective::EpilogueTileAuto;

using Plain = fusion::LinearCombination<float, float>;
using BiasRelu = fusion::LinCombPerColBiasEltAct<cutlass::epilogue::thread::ReLu, float, float>;
using Cooperative = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using Pingpong = cutlass::gemm::KernelTmaWarpSpecializedPingpong;

template <int M, int N, int ClusterM, int ClusterN, int PromoteK_, class EpilogueTile_,
          class ElementC_, class Fusion_, class Schedule_, class InlineB_ = void,
          class InlineA_ = tessera::KMajorStride>
struct Config {
  // InlineB void: packed operands. Else the inline mainloop with operands of these strides.
  using InlineA = InlineA_;
  using InlineB = InlineB_;
  static constexpr int kM = M, kN = N, kPromoteK = PromoteK_;
  using Cluster = Shape<Int<ClusterM>, Int<ClusterN>, _1>;
  using EpilogueTile = EpilogueTile_;
  using ElementC = ElementC_;
  using Fusion = Fusion_;
  using Schedule = Schedule_;
};
template <int N>
using Narrow = Shape<_128, Int<N>>;

#define INSTANCE(id, label, ...)                            \
  [[maybe_unused]] constexpr char const* kName##id = label; \
  using Config##id = Config<__VA_ARGS__>;
#include "split_tf32_instances.inc"
#undef INSTANCE

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
using Chosen = JOIN(Config, TESSERA_SPLIT_INSTANCE);
constexpr char const* kName = JOIN(kName, TESSERA_SPLIT_INSTANCE);

constexpr bool kCooperative = is_same_v<Chosen::Schedule, Cooperative>;
using Row = cutlass::layout::RowMajor;
using Tile = Shape<Int<Chosen::kM>, Int<Chosen::kN>, Int<tessera::kSplitGroup>>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Chosen::Cluster,
    Chosen::EpilogueTile, float, float, Chosen::ElementC, Row, 4, float, Row, 4,
    conditional_t<kCooperative, cutlass::epilogue::TmaWarpSpecializedCooperative,
                  cutlass::epilogue::TmaWarpSpecialized>,
    Chosen::Fusion>::CollectiveOp;
constexpr bool kInline = !is_void_v<Chosen::InlineB>;
constexpr int kEpilogueBytes = sizeof(typename Epilogue::SharedStorage);

template <class StrideB>
struct ChooseMainloop {
  static constexpr int kStages =
      tessera::split_tf32_inline_stages(Chosen::kM, Chosen::kN, kEpilogueBytes);
  using Type = typename tessera::SplitTf32InlineBuilder<Chosen::kM, Chosen::kN, Chosen::Cluster,
                                                        kStages, Chosen::InlineA, StrideB,
                                                        Chosen::kPromoteK>::CollectiveOp;
};
template <>
struct ChooseMainloop<void> {
  static constexpr int kStages = tessera::split_tf32_stages(Chosen::kM, Chosen::kN, kEpilogueBytes);
  using Type =
      typename tessera::SplitTf32Builder<Chosen::kM, Chosen::kN, Chosen::Cluster, kStages,
                                         Chosen::Schedule, Chosen::kPromoteK>::CollectiveOp;
};
using Mainloop = typename ChooseMainloop<Chosen::InlineB>::Type;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
constexpr bool kHasC = !is_void_v<Chosen::ElementC>;
constexpr bool kBiasRelu = is_same_v<Chosen::Fusion, BiasRelu>;

template <class FusionArguments>
void set_bias([[maybe_unused]] FusionArguments& fusion_args, [[maybe_unused]] float const* bias) {
  if constexpr (kBiasRelu) fusion_args.bias_ptr = bias;
}

[[maybe_unused]] void set_strides(tessera::KMajorStride& stride, int64_t row, int64_t batch) {
  stride = {row, _1{}, batch};
}
[[maybe_unused]] void set_strides(tessera::RowMajorStride& stride, int64_t k, int64_t batch) {
  stride = {_1{}, k, batch};
}

typename Gemm::Arguments arguments(split_test::GemmCall const& call) {
  typename Kernel::StrideD const stride{call.d_row_stride, _1{}, call.d_batch_stride};
  typename Gemm::Arguments args{};
  args.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  args.problem_shape = {call.m, call.n, call.k, call.batches};
  args.mainloop.ptr_A = call.a;
  set_strides(args.mainloop.dA, call.a_row_stride, call.a_batch_stride);
  args.mainloop.ptr_B = call.b;
  set_strides(args.mainloop.dB, call.b_row_stride, call.b_batch_stride);
  args.epilogue.thread.alpha = call.alpha;
  args.epilogue.thread.beta = call.beta;
  set_bias(args.epilogue.thread, call.bias);
  if constexpr (kHasC) args.epilogue.ptr_C = call.c;
  args.epilogue.dC = stride;
  args.epilogue.ptr_D = call.d;
  args.epilogue.dD = stride;
  static int const sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
  args.hw_info.sm_count = sm_count;
  args.scheduler.max_swizzle_size = call.swizzle;
  using Order = decltype(args.scheduler.raster_order);
  args.scheduler.raster_order = call.raster_along_m ? Order::AlongM : Order::AlongN;
  return args;
}

size_t workspace_bytes(split_test::GemmCall const& call) {
  return Gemm::get_workspace_size(arguments(call));
}

char const* run(split_test::GemmCall const& call, void* workspace, cudaStream_t stream) {
  auto const args = arguments(call);
  Gemm gemm;
  cutlass::Status status = gemm.can_implement(args);
  if (status == cutlass::Status::kSuccess) status = gemm.initialize(args, workspace, stream);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  return status == cutlass::Status::kSuccess ? nullptr : cutlassGetStatusString(status);
}

}  // namespace

extern split_test::GemmInstance const JOIN(split_instance_, TESSERA_SPLIT_INSTANCE);
split_test::GemmInstance const JOIN(split_instance_, TESSERA_SPLIT_INSTANCE) = {
    kName,
    kHasC,
    kBiasRelu,
    kInline,
    is_same_v<Chosen::InlineA, tessera::KMajorStride>,
    is_same_v<Chosen::InlineB, tessera::KMajorStride>,
    static_cast<int>(Kernel::SharedStorageSize),
    workspace_bytes,
    run};
