// The C++ text of generated CUTLASS libraries, with places `$NAME$` that cutlass_text.cpp fills.
#pragma once

namespace tessera::realize::templates {

inline constexpr const char* functor_template = R"CU(
template <class T>
struct $NAME$ {};
template <int N>
struct $NAME$<cutlass::Array<float, N>> {
  using Fragment = cutlass::Array<float, N>;
  CUTLASS_DEVICE Fragment operator()($PARAMETERS$) const {
#if TESSERA_DEVICE_SIDE
    Fragment result;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) {
$STATEMENTS$      result[i] = $RESULT$;
    }
    return result;
#endif
  }
};
)CU";

/// A part of the columns: its operands, and its function of one accumulator or of a pair.
inline constexpr const char* part_template = R"CU(
struct $NAME$ {
  static constexpr int period = $PERIOD$;
  int first, end;
$MEMBERS$  struct Shared {
$SHARED$  };
  struct Own {
$OWN$  };
  CUTLASS_HOST_DEVICE Shared shared([[maybe_unused]] int row, [[maybe_unused]] int column) const {
    return {$READ_SHARED$};
  }
  CUTLASS_HOST_DEVICE Own own([[maybe_unused]] int row, [[maybe_unused]] int group,
                         [[maybe_unused]] int column) const {
    return {$READ_OWN$};
  }
  CUTLASS_HOST_DEVICE static void apply([[maybe_unused]] Shared const& s, [[maybe_unused]] Own const& o,
                                   [[maybe_unused]] int i, $ACCUMULATORS$) {
#if TESSERA_DEVICE_SIDE
$STATEMENTS$$RESULTS$#endif
  }
};
)CU";

inline constexpr const char* product_template = R"CU(
namespace $NAME$ {
using namespace cute;
namespace fusion = cutlass::epilogue::fusion;
$FUNCTOR$
using ElementA = $TYPE_A$;
using ElementB = $TYPE_B$;
using ElementC = $TYPE_C$;
using ElementD = $TYPE_D$;
using LayoutA = cutlass::layout::$LAYOUT_A$;
using LayoutB = cutlass::layout::$LAYOUT_B$;
using LayoutC = cutlass::layout::$LAYOUT_C$;
using LayoutD = cutlass::layout::$LAYOUT_D$;
using Tile = Shape<_$TILE_M$, Int<$TILE_N$>, _$TILE_K$>;
using Cluster = Shape<_$CLUSTER_M$, _$CLUSTER_N$, _1>;

$VISITOR$
using $STOCK_EPILOGUE$ = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    $EPILOGUE_TILE$, float, float, ElementC, LayoutC, $ALIGN_C$,
    ElementD, LayoutD, $ALIGN_D$, cutlass::epilogue::$EPILOGUE_SCHEDULE$, Visitor>::CollectiveOp;
$RESTAGED$$MAINLOOP$
using Kernel = cutlass::gemm::kernel::GemmUniversal<$PROBLEM$, Mainloop, Epilogue, $SCHEDULER$>;
#if TESSERA_DEVICE_SIDE
const void* entry() { return tessera_cutlass::entry<Kernel>(); }
#endif

#if TESSERA_HOST_SIDE
$PREPARE$
/// `area` is what prepare() filled.
bool arguments(const tessera_launch* launch, void* workspace, [[maybe_unused]] void* area,
               typename Kernel::Arguments& r) {
  using namespace tessera_cutlass;
  const int64_t* v = launch->ints + $FIRST$;
  const Matrix a = matrix(launch, workspace, $FIRST$ + 8, sizeof(ElementA));
  const Matrix b = matrix(launch, workspace, $FIRST$ + 12, sizeof(ElementB));
  const Matrix d = matrix(launch, workspace, $FIRST$ + 16, sizeof(ElementD));
$LEAF_MATRICES$$RESULT_MATRICES$  if (!aligned16({a.data, b.data, d.data$TMA_POINTERS$$RESULT_POINTERS$})) return false;
  r.mode = cutlass::gemm::GemmUniversalMode::$MODE$;
  r.problem_shape = make_shape(static_cast<int>(v[0]), $N$, $K$, static_cast<int>(v[3]));
$OPERANDS$  r.epilogue.ptr_D = $POINTER_D$;
  r.epilogue.dD = stride<typename Kernel::StrideD>(d.ld, d.batch);
$SOURCE$$LEAF_ARGUMENTS$$STORE_ARGUMENTS$$PART_ARGUMENTS$  set_raster(r.scheduler, v[4], v[5]);
$STREAM_K$  const auto* device = hardware<Kernel>(TESSERA_ENTRY_OF("$ENTRY$", entry()));
  if (device == nullptr) return false;
  r.hw_info = *device;
  return true;
}
int enqueue(const typename Kernel::Arguments& r, void* workspace, cudaStream_t stream) {
  return tessera_cutlass::enqueue<Kernel>(r, TESSERA_ENTRY_OF("$ENTRY$", entry()), workspace, stream);
}
#endif
}  // namespace $NAME$
)CU";

inline constexpr const char* one_result = R"CU(using Visitor = fusion::Sm90EVT<
    fusion::Sm90Compute<Fused, ElementD, float, cutlass::FloatRoundStyle::round_to_nearest>,
    $ACCUMULATOR$$LEAVES$>;)CU";

/// D and further results: a graph in the order accumulator, leaves, a computation and a store for
/// each further result, D's computation. $STORES$ are the pairs, $EDGES$ each operation's inputs.
inline constexpr const char* several_results =
    R"CU(using Descriptor = cutlass::epilogue::collective::detail::EpilogueDescriptor<
    Tile, $EPILOGUE_TILE$, ElementC, ElementD, cutlass::epilogue::$EPILOGUE_SCHEDULE$>;
template <class Element, class Layout>
using StoreDescriptor =
    cutlass::epilogue::collective::detail::AuxStoreDescriptor<Descriptor, Layout, Element>;
template <class Element, class Layout, class D = StoreDescriptor<Element, Layout>>
using Store = fusion::Sm90AuxStore<D::Stages, typename D::EpilogueTile, Element,
                                   cutlass::FloatRoundStyle::round_to_nearest, typename D::Stride,
                                   typename D::SmemLayoutAtom, typename D::CopyOpR2S>;
template <template <class> class Function, class Element>
using Compute =
    fusion::Sm90Compute<Function, Element, float, cutlass::FloatRoundStyle::round_to_nearest>;
using Visitor = fusion::Sm90TopologicalVisitor<
    float, cute::tuple<$EDGES$>,
    $ACCUMULATOR$$LEAVES$,
$STORES$    Compute<Fused, ElementD>>;)CU";

inline constexpr const char* stock_mainloop =
    R"CU(using Epilogue = $EPILOGUE$;
using Mainloop = $WIDE$typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, ElementA, LayoutA, $ALIGN_AB$, ElementB, LayoutB,
    $ALIGN_AB$, float, Tile, Cluster, $STAGES$,
    cutlass::gemm::$SCHEDULE$>::CollectiveOp$END_WIDE$;)CU";

inline constexpr const char* packed_mainloop =
    R"CU(using Epilogue = BuiltEpilogue;
using Mainloop = typename tessera::SplitTf32Builder<
    $TILE_M$, $TILE_N$, Cluster,
    tessera::split_tf32_stages($TILE_M$, $TILE_N$, sizeof(typename Epilogue::SharedStorage)),
    cutlass::gemm::$SCHEDULE$>::CollectiveOp;)CU";

inline constexpr const char* inline_mainloop =
    R"CU(using Epilogue = BuiltEpilogue;
using Mainloop = typename tessera::SplitTf32InlineBuilder<
    $TILE_M$, $TILE_N$, Cluster,
    tessera::split_tf32_inline_stages($TILE_M$, $TILE_N$, sizeof(typename Epilogue::SharedStorage)),
    tessera::$STRIDE_A$, tessera::$STRIDE_B$>::CollectiveOp;)CU";

/// Two products in one: N of the mainloop is (n, 2), the result's tile half as wide.
inline constexpr const char* paired_mainloop =
    R"CU(template <class AnyTile>
using Stock = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, ElementA, LayoutA, $ALIGN_AB$, ElementB, LayoutB,
    $ALIGN_AB$, float, AnyTile, Cluster, $STAGES$,
    cutlass::gemm::$SCHEDULE$>::CollectiveOp;
using Epilogue = tessera::GatedEpilogue<BuiltEpilogue, typename Stock<Tile>::TiledMma>;
using Mainloop = typename tessera::PairedMainloop<
    Stock<Shape<_$TILE_M$, Int<$TILES_N$>, _$TILE_K$>>,
    Shape<_$TILE_M$, Shape<Int<$TILE_N$>, _2>, _$TILE_K$>>::CollectiveOp;)CU";

inline constexpr const char* plain_operands = R"CU(  r.mainloop.ptr_A = a.as<ElementA>();
  r.mainloop.dA = stride<typename Kernel::StrideA>(a.ld, a.batch);
  r.mainloop.ptr_B = b.as<ElementB>();
  r.mainloop.dB = stride<typename Kernel::StrideB>(b.ld, b.batch);
)CU";

/// K slices that alternate by the K tile.
inline constexpr const char* interleaved_mainloop =
    R"CU(using Epilogue = BuiltEpilogue;
using Mainloop = typename tessera::InterleavedMainloop<
    typename cutlass::gemm::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, ElementA, LayoutA, $ALIGN_AB$, ElementB, LayoutB,
        $ALIGN_AB$, float, Tile, Cluster, $STAGES$, cutlass::gemm::$SCHEDULE$>::CollectiveOp,
    Shape<_$TILE_M$, Int<$TILE_N$>, Shape<_$TILE_K$, _1>>>::CollectiveOp;)CU";

inline constexpr const char* interleaved_operands = R"CU(  r.mainloop.ptr_A = a.as<ElementA>();
  r.mainloop.dA = tessera::interleaved_stride<typename Kernel::StrideA>(a.ld, v[3], $TILE_K$);
  r.mainloop.ptr_B = b.as<ElementB>();
  r.mainloop.dB = tessera::interleaved_stride<typename Kernel::StrideB>(b.ld, v[3], $TILE_K$);
)CU";

/// The weights' view starts at the lower address; the epilogue is told which that is.
inline constexpr const char* paired_operands = R"CU(  r.mainloop.ptr_A = a.as<ElementA>();
  r.mainloop.dA = stride<typename Kernel::StrideA>(a.ld, a.batch);
  const auto* const gate = b.as<ElementB>();
  const auto* const value = x1.as<ElementB>();
  const bool gate_is_high = gate > value;
  const int64_t distance = gate_is_high ? gate - value : value - gate;
  if (!tma_stride(distance * static_cast<int64_t>(sizeof(ElementB)))) return false;
  r.mainloop.ptr_B = gate_is_high ? value : gate;
  r.mainloop.dB = tessera::paired_stride<typename Kernel::StrideB>(b.ld, distance, b.batch);
  r.epilogue.exchanged = gate_is_high;
)CU";

inline constexpr const char* packed_operands = R"CU(  r.mainloop.ptr_A = static_cast<float*>(area);
  r.mainloop.dA = tessera::split_stride(v[0], v[2]);
  if (a.batch == 0) get<2>(r.mainloop.dA) = 0;
  r.mainloop.ptr_B = reinterpret_cast<float*>(static_cast<char*>(area) + packed_bytes(v[0], v[2], a.batch ? v[3] : 1));
  r.mainloop.dB = tessera::split_stride(v[1], v[2]);
  if (b.batch == 0) get<2>(r.mainloop.dB) = 0;
)CU";

/// Arrays of pointers in `area`: A, B, D and the source operand.
inline constexpr const char* pointer_operands =
    R"CU(  r.mainloop.ptr_A = pointer_array<const ElementA>(area, 0, v[3]);
  r.mainloop.dA = stride<typename Kernel::StrideA>(a.ld, 0);
  r.mainloop.ptr_B = pointer_array<const ElementB>(area, 1, v[3]);
  r.mainloop.dB = stride<typename Kernel::StrideB>(b.ld, 0);
)CU";

inline constexpr const char* prepare_pointers =
    R"CU(int64_t prepared_bytes(const tessera_launch* launch) {
  return $ARRAYS$ * tessera_cutlass::pointer_array_bytes(launch->ints[$FIRST$ + 3]);
}
int prepare(const tessera_launch* launch, void* workspace, void* area, cudaStream_t stream) {
  using namespace tessera_cutlass;
  const int64_t* v = launch->ints + $FIRST$;
  const auto batches = [&](int at, int outer, int64_t element_bytes) {
    const Matrix m = matrix(launch, workspace, $FIRST$ + at, static_cast<int>(element_bytes));
    return Batches{m.data, m.batch * element_bytes, v[outer] * element_bytes};
  };
  const BatchesOf<$ARRAYS$> all{
      static_cast<int>(v[$INNER$]),
      {batches(8, $A_OUTER$, sizeof(ElementA)), batches(12, $B_OUTER$, sizeof(ElementB)),
       batches(16, $D_OUTER$, sizeof(ElementD))$SOURCE_BATCHES$}};
  return fill_pointers(all, area, launch->ints[$FIRST$ + 3], stream);
}
)CU";

inline constexpr const char* nothing_to_prepare =
    R"CU(int64_t prepared_bytes(const tessera_launch*) { return 0; }
int prepare(const tessera_launch*, void*, void*, cudaStream_t) { return 0; }
)CU";

/// Both operands in their two tf32 parts.
inline constexpr const char* prepare_packed =
    R"CU(int64_t packed_bytes(int64_t rows, int64_t k, int64_t l) {
  return tessera_cutlass::align256(tessera::split_packed_elements(rows, k, l) * 4);
}
int64_t prepared_bytes(const tessera_launch* launch) {
  const int64_t* v = launch->ints + $FIRST$;
  return packed_bytes(v[0], v[2], v[11] ? v[3] : 1) + packed_bytes(v[1], v[2], v[15] ? v[3] : 1);
}
int prepare(const tessera_launch* launch, void* workspace, void* area, cudaStream_t stream) {
  using namespace tessera_cutlass;
  const int64_t* v = launch->ints + $FIRST$;
  const Matrix a = matrix(launch, workspace, $FIRST$ + 8, sizeof(ElementA));
  const Matrix b = matrix(launch, workspace, $FIRST$ + 12, sizeof(ElementB));
  const int64_t la = a.batch ? v[3] : 1;
  const int64_t lb = b.batch ? v[3] : 1;
  auto* packed_a = static_cast<float*>(area);
  auto* packed_b = reinterpret_cast<float*>(static_cast<char*>(area) + packed_bytes(v[0], v[2], la));
  if (check(tessera::split_tf32_pack(packed_a, {a.as<float>(), v[0], v[2], la, $A_ROW$, $A_K$, a.batch}, stream),
            "split_tf32_pack: A")) {
    return -1;
  }
  return check(tessera::split_tf32_pack(packed_b, {b.as<float>(), v[1], v[2], lb, $B_ROW$, $B_K$, b.batch}, stream),
               "split_tf32_pack: B");
}
)CU";

inline constexpr const char* library_template =
    R"CU(// $TITLE$: generated; the same text serves every problem with these types, layouts and epilogue.
$SIDES$$INCLUDES$
#if TESSERA_DEVICE_SIDE
$PRELUDE$#endif
namespace tessera_generated {
$BODY$
#if TESSERA_HOST_SIDE
constexpr int int_count = $INT_COUNT$;

int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

bool well_formed(const tessera_launch* launch) {
  if (launch->int_count == int_count) return true;
  tessera_cutlass::fail("expected %d integers, got %d", int_count, launch->int_count);
  return false;
}

int64_t workspace_size(const tessera_launch* launch) {
  if (!well_formed(launch)) return -1;
  const int64_t scratch = tessera_cutlass::align256(launch->ints[0]);
  int64_t prepared = 0;
  int64_t most = 0;
$WORKSPACES$  return scratch + prepared + most;
}

int run(const tessera_launch* launch, void* workspace, cudaStream_t stream) {
  if (!well_formed(launch)) return -1;
  char* const area = static_cast<char*>(workspace) + tessera_cutlass::align256(launch->ints[0]);
  int64_t prepared = 0;
$RUNS$  $TAIL$
}
#endif
}  // namespace tessera_generated

#if TESSERA_HOST_SIDE
TESSERA_EXPORT const char* tessera_describe(void) {
  return R"json($DESCRIBE$)json";
}
TESSERA_EXPORT const char* tessera_last_error(void) { return tessera_cutlass::last_error(); }
TESSERA_EXPORT int64_t tessera_workspace_size(const tessera_launch* launch) {
  return tessera_generated::workspace_size(launch);
}
TESSERA_EXPORT int tessera_run(const tessera_launch* launch, void* workspace, void* stream) {
  return tessera_generated::run(launch, workspace, static_cast<cudaStream_t>(stream));
}
#endif
)CU";

inline constexpr const char* prepared_of_product =
    R"CU(  prepared = larger(prepared, $NAME$::prepared_bytes(launch));
)CU";

inline constexpr const char* workspace_of_product = R"CU(  {
    typename $NAME$::Kernel::Arguments r{};
    prepared = larger(prepared, $NAME$::prepared_bytes(launch));
    if (!$NAME$::arguments(launch, nullptr, nullptr, r)) return -1;
    const int64_t bytes = tessera_cutlass::workspace_bytes<$NAME$::Kernel>(r);
    if (bytes < 0) return bytes;
    most = larger(most, bytes);
  }
)CU";

inline constexpr const char* run_of_product = R"CU(  {
    if ($NAME$::prepare(launch, workspace, area, stream)) return -1;
    typename $NAME$::Kernel::Arguments r{};
    if (!$NAME$::arguments(launch, workspace, area, r)) return -1;
    if (const int status = $NAME$::enqueue(r, rest, stream)) return status;
  }
)CU";

}  // namespace tessera::realize::templates
