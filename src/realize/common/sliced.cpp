#include "realize/common/sliced.h"

#include <algorithm>
#include <cmath>

#include "base/integers.h"
#include "base/text.h"
#include "realize/common/cutlass_epilogue_text.h"

#include "pointwise/pointwise.h"

namespace tessera::realize {
namespace {

/// 32 lanes of four neighbouring results each, 8 groups of slices: enough loads in flight for a
/// small result.
constexpr const char* text = R"CU(
namespace reduction {
struct Operand {
  const void* data;
  int64_t row, column;
};

#if TESSERA_DEVICE_SIDE
using ElementD = $TYPE_D$;
struct alignas(4 * sizeof(ElementD)) Quad {
  ElementD at[4];
};

__device__ __forceinline__ float fused($VALUES$) {
$STATEMENTS$  return $RESULT$;
}

__global__ void __launch_bounds__(256)
reduce_slices(const float4* partial, int slices, int64_t slice_quads, int64_t quads_per_line, int inner,
              int64_t quads, ElementD* d, int64_t d_line$PARAMETERS$) {
  const int lane = threadIdx.x % 32;
  const int group = threadIdx.x / 32;
  const int64_t at = int64_t{blockIdx.x} * 32 + lane;
  tessera::after_previous(partial, d);
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  if (at < quads) {
#pragma unroll 8
    for (int s = group; s < slices; s += 8) {
      const float4 x = __ldcs(partial + s * slice_quads + at);
      sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
    }
  }
  __shared__ float4 parts[8][32];
  parts[group][lane] = sum;
  __syncthreads();
  if (group != 0 || at >= quads) return;
  for (int g = 1; g < 8; ++g) {
    const float4 x = parts[g][lane];
    sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
  }
  const int64_t outer = at / quads_per_line;
  const int first = static_cast<int>(at % quads_per_line) * 4;
  const float x0[4] = {sum.x, sum.y, sum.z, sum.w};
$LOADS$  Quad y;
#pragma unroll
  for (int i = 0; i < 4; ++i) y.at[i] = static_cast<ElementD>(fused($ARGUMENTS$));
  ElementD* const to = d + outer * d_line + first;
  if (first + 4 <= inner && reinterpret_cast<uintptr_t>(to) % sizeof(Quad) == 0) {
    *reinterpret_cast<Quad*>(to) = y;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first + i < inner) to[i] = y.at[i];
  }
}

#endif

#if TESSERA_HOST_SIDE
int reduce(const tessera_launch* launch, void* workspace, cudaStream_t stream) {
  using namespace $HOST$;
  const int64_t* v = launch->ints + $FIRST$;
  const Matrix d = matrix(launch, workspace, $FIRST$ + 5, $BYTES_D$);
$MATRICES$  const int64_t quads = v[3] * v[4];
  return check(tessera::launch(TESSERA_ENTRY_OF("reduce_slices", reduce_slices), static_cast<unsigned>((quads + 31) / 32), 256, 0, stream,
                               static_cast<const float4*>(workspace), static_cast<int>(v[0]), v[1], v[3],
                               static_cast<int>(v[2]), quads, static_cast<void*>(d.data), d.ld$CALL$),
               "reduce_slices");
}
#endif
}  // namespace reduction
)CU";

/// Extent along the contiguous direction of D, and across it.
std::pair<int64_t, int64_t> inner_outer(const GemmProblem& p) {
  return p.outputs.front().columns_contiguous ? std::pair{p.n, p.m} : std::pair{p.m, p.n};
}

}  // namespace

GemmProblem sliced(const GemmProblem& p, int64_t slices) {
  GemmProblem s = p;
  s.k = p.k / slices;
  s.l = slices;
  s.a.batch = p.a.columns_contiguous ? s.k : s.k * p.a.ld;
  s.b.batch = p.b.columns_contiguous ? s.k : s.k * p.b.ld;
  const auto [inner, outer] = inner_outer(p);
  Matrix d;
  d.tensor = -1;
  d.dtype = DType::float32;
  d.columns_contiguous = p.outputs.front().columns_contiguous;
  d.ld = round_up(inner, 4);
  d.batch = d.ld * outer;
  s.outputs = {d};
  s.leaves.clear();
  s.epilogue = {};
  s.epilogue.results = {s.epilogue.add_operand(0)};
  return s;
}

int64_t sliced_scratch_bytes(const GemmProblem& p, int64_t slices) {
  const auto [inner, outer] = inner_outer(p);
  return slices * round_up(inner, 4) * outer * 4;
}

std::vector<int64_t> slice_counts(const GemmProblem& p, const Sm90Config& c,
                                  const arch::Arch& arch) {
  const int64_t tiles = ceil_div(p.m, c.tile_m) * ceil_div(p.n, c.tile_n);
  const int64_t granule = 16 / size_of(p.a.dtype);
  std::vector<std::pair<double, int64_t>> found;
  for (int64_t s = 2;
       s * tiles <= int64_t{4} * arch.multiprocessors && p.k / s >= int64_t{8} * c.tile_k; ++s) {
    const int64_t k = p.k / s;
    if (p.k % s != 0 || k % granule != 0) continue;
    if (c.interleaved && k % c.tile_k != 0) continue;  // whole rounds
    const double waves = std::ceil(static_cast<double>(s * tiles) / arch.multiprocessors);
    const double reduction =
        static_cast<double>(s * p.m * p.n) * 8 / (arch.achievable_bandwidth_gbs * 1e6);
    const double product = waves * static_cast<double>(k) * c.tile_m * c.tile_n *
                           size_of(p.a.dtype) / 2.0 / 2048 / 1.45e6;
    found.emplace_back(product + reduction, s);
  }
  std::sort(found.begin(), found.end());
  std::vector<int64_t> counts;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 4); ++i)
    counts.push_back(found[i].second);
  return counts;
}

std::string reduction_text(const GemmProblem& p, int first_int, const ReductionNames& names) {
  const Matrix& d = p.outputs.front();
  std::string parameters, loads, matrices, call, values = "float x0", arguments = "x0[i]";
  std::vector<std::string> operands = {"x0"};
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const Leaf& leaf = p.leaves[i];
    const std::string x = fmt::format("x{}", i + 1);
    const std::string type = names.type(leaf.matrix.dtype);
    const char* along_line = d.columns_contiguous ? "row" : "column";
    const char* along_inner = d.columns_contiguous ? "column" : "row";
    parameters += fmt::format(", Operand {}_at", x);
    loads += fmt::format(
        "  float {0}[4];\n#pragma unroll\n  for (int i = 0; i < 4; ++i) {{\n"
        "    {0}[i] = first + i < inner ? static_cast<float>(static_cast<const "
        "{1}*>({0}_at.data)[outer * {0}_at.{2} + "
        "(first + i) * {0}_at.{3}]) : 0.f;\n  }}\n",
        x, type, along_line, along_inner);
    matrices += fmt::format("  const Matrix {0} = matrix(launch, workspace, {1} + {2}, {3});\n", x,
                            first_int, 9 + 4 * i, size_of(leaf.matrix.dtype));
    const bool row_major = leaf.matrix.columns_contiguous;
    const bool full = leaf.kind == Leaf::Kind::full;
    const std::string ld = x + ".ld";
    const std::string row = full                              ? (row_major ? ld : "1")
                            : leaf.kind == Leaf::Kind::column ? "1"
                                                              : "0";
    const std::string column = full                           ? (row_major ? "1" : ld)
                               : leaf.kind == Leaf::Kind::row ? "1"
                                                              : "0";
    call += fmt::format(", Operand{{{}.data, {}, {}}}", x, row, column);
    values += ", float " + x;
    operands.push_back(x);
    arguments += ", " + x + "[i]";
  }
  std::vector<std::string> results;
  const std::string statements =
      approximated(pointwise::emit(p.epilogue, operands, "t", &results), d.dtype);
  std::string indented;
  for (const std::string& line : split(statements, '\n'))
    if (!line.empty()) indented += "  " + line + "\n";
  const std::string type = names.type(d.dtype);
  return fill(text, {{"STATEMENTS", indented},
                     {"VALUES", values},
                     {"RESULT", results.at(0)},
                     {"BYTES_D", fmt::format("{}", size_of(d.dtype))},
                     {"TYPE_D", type},
                     {"PARAMETERS", parameters},
                     {"LOADS", loads},
                     {"ARGUMENTS", arguments},
                     {"MATRICES", matrices},
                     {"CALL", call},
                     {"HOST", names.host},
                     {"FIRST", fmt::format("{}", first_int)}});
}

std::vector<std::string> reduction_ints(const GemmProblem& p) {
  std::vector<std::string> names = {"slices", "slice_quads", "inner", "quads_per_line", "outer"};
  std::vector<std::string> matrices = {"d"};
  for (std::size_t i = 0; i < p.leaves.size(); ++i) matrices.push_back(fmt::format("x{}", i + 1));
  for (const std::string& m : matrices) {
    for (const char* field : {"tensor", "offset", "ld", "batch"})
      names.push_back(fmt::format("{}_{}", m, field));
  }
  return names;
}

std::vector<int64_t> reduction_values(const GemmProblem& p, int64_t slices) {
  const auto [inner, outer] = inner_outer(p);
  const int64_t line = round_up(inner, 4) / 4;
  std::vector<int64_t> v = {slices, line * outer, inner, line, outer};
  const auto add = [&](const Matrix& m) { v.insert(v.end(), {m.tensor, m.offset, m.ld, m.batch}); };
  add(p.outputs.front());
  for (const Leaf& x : p.leaves) add(x.matrix);
  return v;
}

}  // namespace tessera::realize
