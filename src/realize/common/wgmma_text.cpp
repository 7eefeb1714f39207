#include "realize/common/wgmma_text.h"

#include <algorithm>

#include "base/text.h"
#include "realize/common/cutlass_parts_text.h"
#include "realize/common/sliced.h"
#include "realize/common/wgmma_instruction_text.h"
#include "realize/common/wgmma_parts_text.h"

#include "pointwise/pointwise.h"

namespace tessera::realize {
namespace {

/// Integers before the matrices': m, n, k, l, raster, band.
constexpr int first_matrix = 6;

/// All matrices in the order of their integers: A, B, results, operands of the epilogue.
std::vector<const Matrix*> matrices_of(const GemmProblem& p) {
  std::vector<const Matrix*> all = {&p.a, &p.b};
  for (const Matrix& d : p.outputs) all.push_back(&d);
  for (const Leaf& x : p.leaves) all.push_back(&x.matrix);
  return all;
}

std::string map_type(DType t) {
  if (t == DType::bfloat16) return "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
  return t == DType::float16 ? "CU_TENSOR_MAP_DATA_TYPE_FLOAT16"
                             : "CU_TENSOR_MAP_DATA_TYPE_FLOAT32";
}

/// TMA rounds to tf32 on the way, to the nearest; the tensor core by itself would cut.
std::string operand_map_type(const GemmProblem& p) {
  return p.precision == Precision::tf32 ? "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32" : map_type(p.a.dtype);
}

/// One wgmma of 64 rows and all columns.
std::string instruction(const GemmProblem& p, const WgmmaConfig& c) {
  const bool tf32 = c.split || c.tf32;
  return "struct Mma {\n" +
         wgmma_instruction("issue", {.element = tf32                           ? "tf32"
                                                : p.a.dtype == DType::bfloat16 ? "bf16"
                                                                               : "f16",
                                     .columns = c.columns,
                                     .a_in_registers = c.split,
                                     .a_k_major = p.a.columns_contiguous,
                                     .b_k_major = p.b.columns_contiguous}) +
         "};\n";
}

/// The reader of an operand of elements: its values at two neighbouring columns.
std::string element_of(const Leaf& leaf, int index) {
  const Matrix& x = leaf.matrix;
  const std::string type = cuda_type(x.dtype);
  if (!x.columns_contiguous) {
    return fmt::format(
        "tessera_wgmma::apart<{0}>(p.x[{1}], batch, column * p.x[{1}].ld + row, "
        "p.x[{1}].ld, inside)",
        type, index);
  }
  if (x.alignment() < 2) {
    return fmt::format(
        "tessera_wgmma::apart<{0}>(p.x[{1}], batch, row * p.x[{1}].ld + column, 1, inside)", type,
        index);
  }
  return fmt::format(
      "tessera_wgmma::adjacent<{0}>(p.x[{1}], batch, row * p.x[{1}].ld + column, inside)", type,
      index);
}

std::string column_of(const Leaf& leaf, int index) {
  const std::string type = cuda_type(leaf.matrix.dtype);
  if (leaf.matrix.alignment() < 2) {
    return fmt::format("tessera_wgmma::apart<{}>(p.x[{}], batch, column, 1, inside)", type, index);
  }
  return fmt::format("tessera_wgmma::adjacent<{}>(p.x[{}], batch, column, inside)", type, index);
}

struct Readers {
  std::string row, column, element;                 // members
  std::string read_row, read_column, read_element;  // statements
};

Readers readers(const GemmProblem& p) {
  Readers r;
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const Leaf& leaf = p.leaves[i];
    const int at = static_cast<int>(i);
    switch (leaf.kind) {
      case Leaf::Kind::product:
        break;
      case Leaf::Kind::row:
        r.column += fmt::format("    float2 x{};\n", at);
        r.read_column += fmt::format("    v.x{} = {};\n", at, column_of(leaf, at));
        break;
      case Leaf::Kind::full:
        r.element += fmt::format("    float2 x{};\n", at);
        r.read_element += fmt::format("    v.x{} = {};\n", at, element_of(leaf, at));
        break;
      case Leaf::Kind::column:
      case Leaf::Kind::scalar:
        r.row += fmt::format("    float x{};\n", at);
        r.read_row += fmt::format(
            "    v.x{0} = tessera_wgmma::one<{1}>(p.x[{0}], batch, {2}, inside);\n", at,
            cuda_type(leaf.matrix.dtype), leaf.kind == Leaf::Kind::scalar ? "0" : "row");
        break;
    }
  }
  return r;
}

/// The pointwise function of one element, and its use on two neighbouring columns.
std::string function_of(const GemmProblem& p) {
  const int products = products_of(p);
  std::vector<std::string> operands, parameters, first, second;
  const auto operand = [&](std::string from_first, std::string from_second) {
    operands.push_back(fmt::format("x{}", operands.size()));
    parameters.push_back("float " + operands.back());
    first.push_back(std::move(from_first));
    second.push_back(std::move(from_second));
  };
  for (int s = 0; s < products; ++s)
    operand(fmt::format("sums[{}].x", s), fmt::format("sums[{}].y", s));
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    switch (p.leaves[i].kind) {
      case Leaf::Kind::product:
        break;
      case Leaf::Kind::row:
        operand(fmt::format("column.x{}.x", i), fmt::format("column.x{}.y", i));
        break;
      case Leaf::Kind::full:
        operand(fmt::format("element.x{}.x", i), fmt::format("element.x{}.y", i));
        break;
      case Leaf::Kind::column:
      case Leaf::Kind::scalar:
        operand(fmt::format("row.x{}", i), fmt::format("row.x{}", i));
        break;
    }
  }
  DType finest = p.outputs.front().dtype;
  for (const Matrix& d : p.outputs)
    if (size_of(d.dtype) > size_of(finest)) finest = d.dtype;
  std::vector<std::string> results;
  const std::string statements =
      approximated(pointwise::emit(p.epilogue, operands, "t", &results), finest);
  std::string text =
      fmt::format("  static __device__ __forceinline__ void one({}, float (&y)[{}]) {{\n",
                  join(parameters, ", "), results.size());
  for (const std::string& line : split(statements, '\n'))
    if (!line.empty()) text += "    " + line + "\n";
  for (std::size_t r = 0; r < results.size(); ++r)
    text += fmt::format("    y[{}] = {};\n", r, results[r]);
  text += "  }\n";
  text += fmt::format(
      R"(  static __device__ __forceinline__ void apply(const float2 (&sums)[{0}], [[maybe_unused]] const Row& row,
                                               [[maybe_unused]] const Column& column,
                                               [[maybe_unused]] const Element& element, float2 (&y)[{1}]) {{
    float a[{1}], b[{1}];
    one({2}, a);
    one({3}, b);
    for (int i = 0; i < {1}; ++i) y[i] = {{a[i], b[i]}};
  }}
)",
      products, results.size(), join(first, ", "), join(second, ", "));
  return text;
}

std::string epilogue_text(const GemmProblem& p) {
  const Readers r = readers(p);
  const WgmmaParts parts = wgmma_parts(p);
  std::vector<std::string> types;
  for (const Matrix& d : p.outputs) types.push_back(cuda_type(d.dtype));
  const auto reader = [](const char* name, const char* type, const char* place, const char* inside,
                         const std::string& statements) {
    return fmt::format(
        "  static __device__ __forceinline__ {1} {0}([[maybe_unused]] const Params& p, "
        "[[maybe_unused]] int batch, {2}) {{\n    {1} v;\n    [[maybe_unused]] const bool inside = "
        "{3};\n{4}    return v;\n  }}\n",
        name, type, place, inside, statements);
  };
  return parts.structs +
         fmt::format(
             "struct Epilogue {{\n  template <int Result>\n  using Type = typename "
             "tessera_wgmma::Nth<Result, {}>::Type;\n"
             "  struct Row {{\n{}  }};\n  struct Column {{\n{}  }};\n  struct Element {{\n{}  "
             "}};\n",
             join(types, ", "), r.row, r.column, r.element) +
         reader("row", "Row", "int row", "row < p.m", r.read_row) +
         reader("column", "Column", "int column", "column < p.n", r.read_column) +
         reader("element", "Element", "int row, int column", "row < p.m && column < p.n",
                r.read_element) +
         function_of(p) + parts.function + "};\n";
}

std::string constants(const GemmProblem& p, const WgmmaConfig& c) {
  const auto flag = [](bool x) { return x ? "true" : "false"; };
  return fmt::format(R"(struct Config {{
  static constexpr int rows = {}, columns = {}, element_bytes = {}, depth = {}, stages = {};
  static constexpr int cluster_m = {}, cluster_n = {};
  static constexpr bool pingpong = {}, split = {}, sliced = {}, two_strides = {}, a_k_major = {}, b_k_major = {};
  static constexpr int products = {}, results = {}, widest_result = {}, operands = {};
  static constexpr int parts = {}, part_operands = {};
  static constexpr int store_buffers = {};
}};
)",
                     c.rows, c.columns, size_of(p.a.dtype), wgmma_depth(c), c.stages, c.cluster_m,
                     c.cluster_n, flag(c.schedule == Schedule::pingpong), flag(c.split),
                     flag(c.sliced), flag(p.inner > 0), flag(p.a.columns_contiguous),
                     flag(p.b.columns_contiguous), products_of(p), p.outputs.size(),
                     widest_result(p), std::max<std::size_t>(1, p.leaves.size()),
                     wgmma_part_count(p), wgmma_part_operands(p), wgmma_store_buffers);
}

/// Statements that fill Params from a launch.
std::string arguments(const GemmProblem& p) {
  std::string text;
  const auto place = [](std::size_t i) { return first_matrix + 4 * static_cast<int>(i); };
  const bool runs = p.inner > 0;
  // Behind all else: the batches of a run, and each matrix' stride between runs.
  const std::size_t inner =
      static_cast<std::size_t>(place(matrices_of(p).size())) + part_values(p).size();
  if (runs) text += fmt::format("  p.inner = static_cast<int>(v[{}]);\n", inner);
  const auto matrix = [&](const std::string& name, std::size_t i, int bytes) {
    text += fmt::format("  {}Matrix {} = matrix(launch, workspace, {}, {});\n",
                        runs ? "" : "const ", name, place(i), bytes);
    if (runs) text += fmt::format("  {}.outer = v[{}];\n", name, inner + 1 + i);
  };
  const std::size_t results = p.outputs.size();
  const std::string type = operand_map_type(p);
  const int bytes = size_of(p.a.dtype);
  matrix("a", 0, bytes);
  matrix("b", 1, bytes);
  text += "  p.a_batches = a.batch != 0;\n  p.b_batches = b.batch != 0;\n";
  if (runs) text += "  p.a_runs = a.outer != 0;\n  p.b_runs = b.outer != 0;\n";
  text += fmt::format(
      "  if (encode_operand<Config, Config::a_k_major>(p.a, a, {}, p.m, p.k, p.l, p.inner, "
      "Config::rows, Config::cluster_n)) return -1;\n",
      type);
  const auto weight = [&](int which, const std::string& from) {
    text += fmt::format(
        "  if (encode_operand<Config, Config::b_k_major>(p.b[{}], {}, {}, p.n, p.k, p.l, p.inner, "
        "Config::columns / Config::products, Config::cluster_m)) return -1;\n",
        which, from, type);
  };
  weight(0, "b");
  for (std::size_t r = 0; r < results; ++r) {
    const DType t = p.outputs[r].dtype;
    matrix(fmt::format("d{}", r), 2 + r, size_of(t));
    text += fmt::format(
        "  if (encode_result<Config>(p.d[{0}], d{0}, {1}, {2}, p.m, p.n, p.l, p.inner)) "
        "return -1;\n",
        r, map_type(t), size_of(t));
  }
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const Matrix& x = p.leaves[i].matrix;
    const int element = size_of(x.dtype);
    matrix(fmt::format("x{}", i), 2 + results + i, element);
    if (p.leaves[i].kind == Leaf::Kind::product) {
      weight(1, fmt::format("x{}", i));
      continue;
    }
    text += fmt::format("  p.x[{0}] = {{x{0}.data, x{0}.ld, x{0}.batch{1}}};\n", i,
                        runs ? fmt::format(", x{}.outer, p.inner", i) : "");
    if (x.alignment() >= 2)
      text += fmt::format("  if (!aligned(x{}.data, {})) return -1;\n", i, 2 * element);
  }
  text += wgmma_part_arguments(p, place(matrices_of(p).size()));
  return text;
}

/// The names of the integers before those of slices.
std::vector<std::string> ints_of(const GemmProblem& p) {
  std::vector<std::string> names = {"m", "n", "k", "l", "raster", "band"};
  std::vector<std::string> matrices = {"a", "b"};
  for (std::size_t r = 0; r < p.outputs.size(); ++r) matrices.push_back(fmt::format("d{}", r));
  for (std::size_t i = 0; i < p.leaves.size(); ++i) matrices.push_back(fmt::format("x{}", i));
  for (const std::string& m : matrices)
    for (const char* field : {"tensor", "offset", "ld", "batch"})
      names.push_back(fmt::format("{}_{}", m, field));
  for (std::string& name : part_ints(p, "")) names.push_back(std::move(name));
  if (p.inner == 0) return names;
  names.emplace_back("inner");
  for (const std::string& m : matrices) names.push_back(m + "_outer");
  return names;
}

/// The sums of slices as one product's batches. K stays whole: the kernel knows where a slice
/// begins
/// (`k_slice`), so that slices need not divide it.
GemmProblem sums_of(const GemmProblem& p, int64_t slices) {
  GemmProblem s = sliced(p, slices);
  s.k = p.k;
  s.a.batch = s.b.batch = 0;
  return s;
}

constexpr const char* file =
    R"CU(// $NAME$: generated; the same text serves every problem with these types, layouts and epilogue.
#define TESSERA_SIDES_APART 1
#include "tessera_wgmma/launch.h"
#if TESSERA_DEVICE_SIDE
#include "tessera_cutlass/functors.hpp"
#include "tessera_wgmma/$OPERANDS$.h"
#include "tessera_wgmma/product.h"
$PRELUDE$#endif

namespace tessera_generated {
$CONSTANTS$using Params = tessera_wgmma::Params<Config>;
#if TESSERA_DEVICE_SIDE
$INSTRUCTION$$EPILOGUE$#endif
$REDUCTION$}  // namespace tessera_generated

#if TESSERA_DEVICE_SIDE
TESSERA_KERNEL(tessera_wgmma::threads, 1)
void tessera_product(const __grid_constant__ tessera_generated::Params p) {
  tessera_wgmma::product<tessera_generated::Config, tessera_generated::Mma, tessera_generated::Epilogue>(p);
}
#endif

#if TESSERA_HOST_SIDE
namespace tessera_generated {
bool well_formed(const tessera_launch* launch) {
  if (launch->int_count == $INT_COUNT$) return true;
  tessera_wgmma::fail("expected $INT_COUNT$ integers, got %d", launch->int_count);
  return false;
}

int run(const tessera_launch* launch, [[maybe_unused]] void* workspace, cudaStream_t stream) {
  using namespace tessera_wgmma;
  if (!well_formed(launch)) return -1;
  const int64_t* const v = launch->ints;
  Params p{};
  p.m = static_cast<int>(v[0]);
  p.n = static_cast<int>(v[1]);
  p.k = static_cast<int>(v[2]);
  p.l = static_cast<int>(v[3]);
  p.along_n = v[4] == 2;
  p.band = static_cast<int>(v[5]);
$ARGUMENTS$  if (enqueue<Config>(p, TESSERA_ENTRY(tessera_product), stream)) return -1;
  return $LAST$;
}
}  // namespace tessera_generated

#define TESSERA_EXPORT extern "C" __attribute__((visibility("default")))
TESSERA_EXPORT const char* tessera_describe(void) {
  return R"json($DESCRIBE$)json";
}
TESSERA_EXPORT const char* tessera_last_error(void) { return tessera_wgmma::last_error(); }
TESSERA_EXPORT int64_t tessera_workspace_size([[maybe_unused]] const tessera_launch* launch) {
  return $WORKSPACE$;
}
TESSERA_EXPORT int tessera_run(const tessera_launch* launch, void* workspace, void* stream) {
  return tessera_generated::run(launch, workspace, static_cast<cudaStream_t>(stream));
}
#endif
)CU";

}  // namespace

std::string cuda_type(DType t) {
  if (t == DType::bfloat16) return "__nv_bfloat16";
  return t == DType::float16 ? "__half" : "float";
}

std::vector<int64_t> wgmma_values(const GemmProblem& p, const Knobs& knobs) {
  std::vector<int64_t> v = {p.m, p.n, p.k, p.l, knobs.raster, knobs.swizzle};
  for (const Matrix* m : matrices_of(p)) v.insert(v.end(), {m->tensor, m->offset, m->ld, m->batch});
  for (const int64_t value : part_values(p)) v.push_back(value);
  if (p.inner == 0) return v;
  v.push_back(p.inner);
  for (const Matrix* m : matrices_of(p)) v.push_back(m->outer);
  return v;
}

std::vector<int64_t> wgmma_sliced_values(const GemmProblem& p, const WgmmaConfig& c, int slices,
                                         bool interleaved) {
  std::vector<int64_t> v = wgmma_values(sums_of(p, slices), {1, 8});
  const int64_t depth = wgmma_depth(c);
  const int64_t steps = (p.k + depth * slices - 1) / (depth * slices);
  v.push_back(interleaved ? depth : depth * steps);
  v.push_back(interleaved ? depth * slices : depth);
  v.push_back(sliced_scratch_bytes(p, slices));
  for (const int64_t value : reduction_values(p, slices)) v.push_back(value);
  return v;
}

std::string wgmma_library(const GemmProblem& stated, const WgmmaConfig& c,
                          std::string_view realizer, std::string_view arch) {
  const GemmProblem p = c.sliced ? sums_of(stated, 1) : stated;
  std::vector<std::string> ints = ints_of(p);
  const std::size_t own = ints.size();
  if (c.sliced) {
    for (const char* name : {"k_slice", "k_step", "scratch"}) ints.emplace_back(name);
    for (std::string& name : reduction_ints(stated)) ints.push_back("sum_" + std::move(name));
  }
  const int reduction = static_cast<int>(own) + 3;
  const Json describe = {{"abi", 1}, {"name", realizer}, {"arch", arch}, {"ints", ints}};
  std::string filled = arguments(p);
  if (c.sliced)
    filled += fmt::format(
        "  p.k_slice = static_cast<int>(v[{}]);\n  p.k_step = static_cast<int>(v[{}]);\n", own,
        own + 1);
  return fill(
      file,
      {{"NAME", std::string(realizer)},
       {"PRELUDE", pointwise::prelude(pointwise::Target::cuda)},
       {"OPERANDS", p.parts.empty() ? "operands" : "parts"},
       {"CONSTANTS", constants(p, c)},
       {"INSTRUCTION", instruction(p, c)},
       {"EPILOGUE", epilogue_text(p)},
       {"REDUCTION",
        c.sliced ? reduction_text(stated, reduction, {"tessera_wgmma", cuda_type}) : ""},
       {"ARGUMENTS", filled},
       {"LAST", c.sliced ? "reduction::reduce(launch, workspace, stream)" : "0"},
       {"WORKSPACE",
        c.sliced
            ? fmt::format("tessera_generated::well_formed(launch) ? launch->ints[{}] : -1", own + 2)
            : "0"},
       {"INT_COUNT", fmt::format("{}", ints.size())},
       {"DESCRIBE", describe.dump()}});
}

}  // namespace tessera::realize
