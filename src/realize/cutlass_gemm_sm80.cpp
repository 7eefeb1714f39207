// CUTLASS 2.x on Ampere's instructions (cp.async, ldmatrix, mma.sync): for machines without wgmma,
// and on Hopper for extents that TMA cannot take.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "realize/common/cutlass_text.h"
#include "realize/realize.h"

namespace tessera::realize {
namespace {

struct Config {
  int tile_m, tile_n, tile_k, warp_m, warp_n, stages;
};

constexpr const char* text =
    R"CU(// cutlass_gemm_sm80: generated; serves every problem with these types, layouts, alignments and epilogue.
#include "tessera_cutlass/functors.hpp"
#include "tessera_cutlass/sm80.hpp"
$PRELUDE$
namespace tessera_generated {
using namespace cute;
namespace visitor = cutlass::epilogue::threadblock;
$FUNCTOR$
using ElementAB = $TYPE_AB$;
using ElementD = $TYPE_D$;
using LayoutA = cutlass::layout::$LAYOUT_A$;
using LayoutB = cutlass::layout::$LAYOUT_B$;
using Tile = cutlass::gemm::GemmShape<$TILE$>;
using Warp = cutlass::gemm::GemmShape<$WARP$>;
using Instruction = cutlass::gemm::GemmShape<$INSTRUCTION$>;
using Threads = visitor::OutputTileThreadLayout<Tile, Warp, ElementD, $ALIGN_D$, 1>;
using Fusion = visitor::Sm80EVT<
    visitor::VisitorAuxStore<Threads, ElementD, cutlass::FloatRoundStyle::round_to_nearest, Stride<int64_t, _1, int64_t>>,
    visitor::Sm80EVT<
        visitor::VisitorCompute<Fused, ElementD, float, cutlass::FloatRoundStyle::round_to_nearest>,
        visitor::VisitorAccFetch$LEAVES$>>;
using Kernel = typename cutlass::gemm::kernel::DefaultGemmWithVisitor<
    ElementAB, LayoutA, cutlass::ComplexTransform::kNone, $ALIGN_A$, ElementAB, LayoutB,
    cutlass::ComplexTransform::kNone, $ALIGN_B$, ElementD, cutlass::layout::RowMajor, $ALIGN_D$, float, float,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, Tile, Warp, Instruction, Fusion,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, $STAGES$, cutlass::arch::$OPERATOR$, 1>::GemmKernel;
using Gemm = cutlass::gemm::device::GemmUniversalBase<Kernel>;
constexpr int int_count = $INT_COUNT$;

bool arguments(const tessera_launch* launch, void* workspace, typename Gemm::Arguments& r) {
  using namespace tessera_cutlass;
  if (launch->int_count != int_count) {
    fail("expected %d integers, got %d", int_count, launch->int_count);
    return false;
  }
  const int64_t* v = launch->ints;
  const Matrix a = matrix(launch, workspace, 8, sizeof(ElementAB));
  const Matrix b = matrix(launch, workspace, 12, sizeof(ElementAB));
  const Matrix d = matrix(launch, workspace, 16, sizeof(ElementD));
$LEAF_MATRICES$  if (!aligned16({a.data, b.data, d.data$FULL_POINTERS$})) return false;
  typename Fusion::Arguments fusion{};
  auto& inner = fusion.op_0;
  fusion.op_1.ptr_aux = d.as<ElementD>();
  fusion.op_1.dAux = {d.ld, _1{}, d.batch};
$LEAF_ARGUMENTS$  r = typename Gemm::Arguments(
      v[3] > 1 ? cutlass::gemm::GemmUniversalMode::kBatched : cutlass::gemm::GemmUniversalMode::kGemm,
      {static_cast<int>(v[0]), static_cast<int>(v[1]), static_cast<int>(v[2])}, static_cast<int>(v[3]), fusion, a.data,
      b.data, nullptr, nullptr, a.batch, b.batch, 0, 0, a.ld, b.ld, int64_t{0}, int64_t{0});
  return true;
}
}  // namespace tessera_generated

TESSERA_EXPORT const char* tessera_describe(void) { return R"json($DESCRIBE$)json"; }
TESSERA_EXPORT const char* tessera_last_error(void) { return tessera_cutlass::last_error(); }
TESSERA_EXPORT int64_t tessera_workspace_size(const tessera_launch* launch) {
  typename tessera_generated::Gemm::Arguments r;
  if (!tessera_generated::arguments(launch, nullptr, r)) return -1;
  return tessera_cutlass::workspace_bytes_2x<tessera_generated::Gemm>(r);
}
TESSERA_EXPORT int tessera_run(const tessera_launch* launch, void* workspace, void* stream) {
  typename tessera_generated::Gemm::Arguments r;
  if (!tessera_generated::arguments(launch, workspace, r)) return -1;
  return tessera_cutlass::enqueue_2x<tessera_generated::Gemm>(r, workspace, static_cast<cudaStream_t>(stream));
}
)CU";

/// Elements that every access of a matrix may take at once: its strides', its extent's and at most
/// 16 bytes.
int access(const Matrix& m, int64_t contiguous_extent) {
  return static_cast<int>(std::gcd<int64_t>(m.alignment(), contiguous_extent));
}

int access_of_result(const GemmProblem& p) {
  int elements = access(p.outputs.front(), p.n);
  for (const Leaf& x : p.leaves) {
    if (x.kind == Leaf::Kind::full) elements = std::gcd(elements, access(x.matrix, p.n));
    if (x.kind == Leaf::Kind::row)
      elements = std::gcd(elements, std::gcd(x.matrix.alignment(), 16));
  }
  return elements;
}

std::string visitor_of(const Leaf& x) {
  const std::string type = cutlass_type(x.matrix.dtype);
  switch (x.kind) {
    case Leaf::Kind::row:
      return fmt::format(
          ",\n        visitor::VisitorRowBroadcast<Threads, {}, Stride<_0, _1, int64_t>>", type);
    case Leaf::Kind::column:
      return fmt::format(
          ",\n        visitor::VisitorColBroadcast<Threads, {}, Stride<_1, _0, int64_t>>", type);
    case Leaf::Kind::scalar:
      return fmt::format(",\n        visitor::VisitorScalarBroadcast<{}, Stride<_0, _0, int64_t>>",
                         type);
    case Leaf::Kind::product:  // paired problems are for wgmma only
    case Leaf::Kind::full:
      break;
  }
  return fmt::format(
      ",\n        visitor::VisitorAuxLoad<Threads, {}, Stride<int64_t, _1, int64_t>>", type);
}

std::string arguments_of(const Leaf& x, int i, bool members) {
  const std::string node =
      members ? fmt::format("inner.op_{}", i + 1) : fmt::format("get<{}>(inner)", i + 1);
  const std::string value = fmt::format("x{}.as<{}>()", i + 1, cutlass_type(x.matrix.dtype));
  switch (x.kind) {
    case Leaf::Kind::row:
      return fmt::format("  {0}.ptr_row = {1};\n  get<2>({0}.dRow) = x{2}.batch;\n", node, value,
                         i + 1);
    case Leaf::Kind::column:
      return fmt::format("  {0}.ptr_col = {1};\n  get<2>({0}.dCol) = x{2}.batch;\n", node, value,
                         i + 1);
    case Leaf::Kind::scalar:
      return fmt::format("  {0}.scalar_ptrs[0] = {1};\n  get<2>({0}.dScalar) = x{2}.batch;\n", node,
                         value, i + 1);
    case Leaf::Kind::product:  // paired problems are for wgmma only
    case Leaf::Kind::full:
      break;
  }
  return fmt::format("  {0}.ptr_aux = {1};\n  {0}.dAux = {{x{2}.ld, _1{{}}, x{2}.batch}};\n", node,
                     value, i + 1);
}

std::string source_text(const GemmProblem& p, const Config& c, std::string_view arch) {
  const int bytes = size_of(p.a.dtype);
  std::string leaves, matrices, arguments, pointers;
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const Leaf& x = p.leaves[i];
    leaves += visitor_of(x);
    matrices += fmt::format("  const Matrix x{} = matrix(launch, workspace, {}, sizeof({}));\n",
                            i + 1, 20 + 4 * i, cutlass_type(x.matrix.dtype));
    arguments += arguments_of(x, static_cast<int>(i), p.leaves.size() + 2 <= 4);
    if (x.kind == Leaf::Kind::full || x.kind == Leaf::Kind::row)
      pointers += fmt::format(", x{}.data", i + 1);
  }
  const std::vector<std::string> ints = product_ints(p, "");
  const Json describe = {{"abi", 1}, {"name", "cutlass_gemm_sm80"}, {"arch", arch}, {"ints", ints}};
  const Matrix& d = p.outputs.front();
  return fill(
      text,
      {{"PRELUDE", pointwise::prelude(pointwise::Target::cuda)},
       {"FUNCTOR", fused_functor(p.epilogue, static_cast<int>(p.leaves.size()), d.dtype)},
       {"TYPE_AB", cutlass_type(p.a.dtype)},
       {"TYPE_D", cutlass_type(d.dtype)},
       {"LAYOUT_A", p.a.columns_contiguous ? "RowMajor" : "ColumnMajor"},
       {"LAYOUT_B", p.b.columns_contiguous ? "ColumnMajor" : "RowMajor"},
       {"TILE", fmt::format("{}, {}, {}", c.tile_m, c.tile_n, c.tile_k)},
       {"WARP", fmt::format("{}, {}, {}", c.warp_m, c.warp_n, c.tile_k)},
       {"INSTRUCTION", bytes == 4 ? "16, 8, 8" : "16, 8, 16"},
       {"ALIGN_A", fmt::format("{}", access(p.a, p.a.columns_contiguous ? p.k : p.m))},
       {"ALIGN_B", fmt::format("{}", access(p.b, p.b.columns_contiguous ? p.k : p.n))},
       {"ALIGN_D", fmt::format("{}", access_of_result(p))},
       {"STAGES", fmt::format("{}", c.stages)},
       {"OPERATOR", p.precision == Precision::fp32 ? "OpMultiplyAddFastF32" : "OpMultiplyAdd"},
       {"LEAVES", leaves},
       {"LEAF_MATRICES", matrices},
       {"LEAF_ARGUMENTS", arguments},
       {"FULL_POINTERS", pointers},
       {"INT_COUNT", fmt::format("{}", ints.size())},
       {"DESCRIBE", describe.dump()}});
}

std::vector<Config> configs(const GemmProblem& p, const arch::Arch& arch,
                            std::map<std::string, int>& pruned) {
  const int unit = 64 / size_of(p.a.dtype);  // 64 bytes of k: 32 of 16 bits, 16 of tf32
  std::vector<Config> all;
  for (const auto& [m, n, wm, wn] : {std::array{128, 128, 64, 64},
                                     {128, 256, 64, 64},
                                     {256, 128, 64, 64},
                                     {128, 64, 64, 32},
                                     {64, 128, 32, 64},
                                     {64, 64, 32, 32}})
    for (const int k : {unit, 2 * unit})
      for (const int stages : {3, 4, 5}) {
        const int64_t shared = static_cast<int64_t>(m + n) * k * size_of(p.a.dtype) * stages;
        if (shared > std::min<int64_t>(arch.shared_memory_per_block, 163 << 10)) {
          ++pruned["shared memory"];
        } else if (static_cast<int64_t>(m) * n > 4 * std::max(p.m * p.n, int64_t{64} * 64)) {
          ++pruned["tile wastes most of its work"];
        } else {
          all.push_back({m, n, k, wm, wn, stages});
        }
      }
  return all;
}

double predict(const Config& c, const GemmProblem& p, const arch::Arch& arch) {
  const double tiles = std::ceil(static_cast<double>(p.m) / c.tile_m) *
                       std::ceil(static_cast<double>(p.n) / c.tile_n) * static_cast<double>(p.l);
  // mma.sync reaches about two fifths of the machine's peak on Hopper, four fifths where it is the
  // native form; small tiles read shared memory more.
  double rate =
      arch.peak_tflops(p.precision) * (arch.has("wgmma") ? 0.4 : 0.8) / arch.multiprocessors;
  rate *= c.tile_m * c.tile_n >= 128 * 128 ? 1.0 : c.tile_m * c.tile_n >= 64 * 128 ? 0.85 : 0.65;
  const double tile_ms = 2.0 * c.tile_m * c.tile_n * static_cast<double>(p.k) / (rate * 1e9);
  const double ms = std::ceil(tiles / arch.multiprocessors) * tile_ms;
  return std::max(ms, p.bytes() / (arch.achievable_bandwidth_gbs * 1e6)) + 0.005 +
         0.0002 * c.stages;
}

Status check(const GemmProblem& p, const arch::Arch& arch) {
  if (!arch.has("mma_sync") || !arch.has("cp_async")) {
    return error(fail(unsupported_gemm, "{} has no mma.sync and cp.async", arch.name));
  }
  if (p.outputs.size() != 1)
    return error(fail(unsupported_gemm, "{} results", p.outputs.size()).expect("one"));
  if (size_of(p.a.dtype) == 1) return error(fail(unsupported_gemm, "fp8 has no mma.sync here"));
  const Matrix& d = p.outputs.front();
  for (const Leaf& x : p.leaves) {
    if (x.kind == Leaf::Kind::full && x.matrix.columns_contiguous != d.columns_contiguous) {
      return error(fail(unsupported_gemm,
                        "an operand of the epilogue lies in the other order than the result"));
    }
  }
  for (const auto& [m, extent] : {std::pair{&p.a, p.a.columns_contiguous ? p.k : p.m},
                                  std::pair{&p.b, p.b.columns_contiguous ? p.k : p.n}}) {
    if (access(*m, extent) * size_of(m->dtype) < 4) {
      return error(fail(unsupported_gemm, "rows start at odd 16-bit elements")
                       .expect("4-byte steps for cp.async"));
    }
  }
  return {};
}

bool fits_tma(const GemmProblem& p) {
  return p.a.aligned() && p.b.aligned() && p.outputs.front().aligned();
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  TESSERA_TRY(p, gemm_problem(*body, pattern.precision));
  if (!p.outputs.front().columns_contiguous) p = exchange(p);
  TESSERA_CHECK(check(p, arch));
  if (arch.has("wgmma") && fits_tma(p)) {
    return error(fail(unsupported_gemm,
                      "mma.sync reaches two fifths of wgmma, which can take this product"));
  }
  Space space;
  std::map<std::string, int> pruned;
  for (const Config& c : configs(p, arch, pruned)) {
    Candidate out;
    out.realizer = "cutlass_gemm_sm80";
    out.config = {{"tile", {c.tile_m, c.tile_n, c.tile_k}},
                  {"warp", {c.warp_m, c.warp_n}},
                  {"stages", c.stages},
                  {"transposed", p.exchanged}};
    out.predicted_ms = predict(c, p, arch);
    toolchain::Source source;
    source.name = "cutlass_gemm_sm80";
    source.text = source_text(p, c, arch.name);
    source.arch = arch.name;
    source.flags = cutlass_flags();
    source.cutlass = true;
    out.source = std::move(source);
    out.launches.push_back({Json::object(), product_values(p, Knobs{})});
    space.candidates.push_back(std::move(out));
  }
  space.pruned.assign(pruned.begin(), pruned.end());
  std::stable_sort(
      space.candidates.begin(), space.candidates.end(),
      [](const Candidate& x, const Candidate& y) { return x.predicted_ms < y.predicted_ms; });
  return space;
}

}  // namespace

extern const Realizer cutlass_gemm_sm80{"cutlass_gemm_sm80",
                                        "CUTLASS 2.x multistage with a fused epilogue visitor",
                                        Kind::synthesized, "gemm", realize};

}  // namespace tessera::realize
