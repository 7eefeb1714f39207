#include "realize/common/cutlass_text.h"

#include <fmt/ranges.h>

#include "base/text.h"
#include "graph/pointwise.h"
#include "realize/common/cutlass_templates.h"

namespace tessera::realize {
namespace {

using namespace templates;

std::string layout_name(bool row_major) {
  return row_major ? "RowMajor" : "ColumnMajor";
}

/// The leaf that TMA loads as C: the first full one with 16-byte strides; -1 without one.
int source_leaf(const GemmProblem& p) {
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    if (p.leaves[i].kind == Leaf::Kind::full && p.leaves[i].matrix.aligned())
      return static_cast<int>(i);
  }
  return -1;
}

std::string visitor_of(const Leaf& leaf, bool is_source) {
  const std::string type = cutlass_type(leaf.matrix.dtype);
  switch (leaf.kind) {
    case Leaf::Kind::row:
      return fmt::format("fusion::Sm90RowBroadcast<0, Tile, {}, float, Stride<_0, _1, int64_t>>",
                         type);
    case Leaf::Kind::column:
      return fmt::format("fusion::Sm90ColBroadcast<0, Tile, {}, float, Stride<_1, _0, int64_t>>",
                         type);
    case Leaf::Kind::scalar:
      return fmt::format("fusion::Sm90ScalarBroadcast<{}, Stride<_0, _0, int64_t>>", type);
    case Leaf::Kind::product:
      return "tessera::AccumulatorFetch";
    case Leaf::Kind::full:
      break;
  }
  if (is_source) return "fusion::Sm90SrcFetch<ElementC>";
  return fmt::format("fusion::Sm90AuxLoad<0, void, {}, cutlass::layout::{}, void, void, {}, false>",
                     type, layout_name(leaf.matrix.columns_contiguous), leaf.matrix.alignment());
}

/// The arguments of the visitor's operation i, of so many.
std::string operation(int i, int operations) {
  return operations <= 4 ? fmt::format("r.epilogue.thread.op_{}", i)
                         : fmt::format("get<{}>(r.epilogue.thread)", i);
}

/// Statements that fill the visitor's arguments of leaf i.
std::string leaf_arguments(const Leaf& leaf, int i, int operations) {
  const std::string type = cutlass_type(leaf.matrix.dtype);
  const std::string node = operation(i + 1, operations);
  const std::string pointer = fmt::format("x{}.as<{}>()", i + 1, type);
  switch (leaf.kind) {
    case Leaf::Kind::row:
      return fmt::format("  {0}.ptr_row = {1};\n  get<2>({0}.dRow) = x{2}.batch;\n", node, pointer,
                         i + 1);
    case Leaf::Kind::column:
      return fmt::format("  {0}.ptr_col = {1};\n  get<2>({0}.dCol) = x{2}.batch;\n", node, pointer,
                         i + 1);
    case Leaf::Kind::scalar:
      return fmt::format("  {0}.scalar_ptrs[0] = {1};\n  get<2>({0}.dScalar[0]) = x{2}.batch;\n",
                         node, pointer, i + 1);
    case Leaf::Kind::product:
      return "";  // its statements belong to the mainloop's
    case Leaf::Kind::full:
      break;
  }
  return fmt::format(
      "  {0}.ptr_aux = {1};\n  {0}.dAux = stride<decltype({0}.dAux)>(x{2}.ld, x{2}.batch);\n", node,
      pointer, i + 1);
}

std::string schedule_name(const Sm90Config& c) {
  return fmt::format("Kernel{}TmaWarpSpecialized{}{}", c.pointers ? "PtrArray" : "",
                     c.schedule == Schedule::cooperative ? "Cooperative" : "Pingpong",
                     c.fast_accum ? "FP8FastAccum" : "");
}

std::string epilogue_schedule(const Sm90Config& c) {
  if (c.schedule == Schedule::cooperative) {
    return c.pointers ? "PtrArrayTmaWarpSpecializedCooperative" : "TmaWarpSpecializedCooperative";
  }
  return c.pointers ? "PtrArrayTmaWarpSpecializedPingpong" : "TmaWarpSpecialized";
}

std::string stage_count(const Sm90Config& c) {
  if (c.stages > 0) return fmt::format("cutlass::gemm::collective::StageCount<{}>", c.stages);
  return "cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename "
         "BuiltEpilogue::SharedStorage))>";
}

std::string stream_k_arguments(const Sm90Config& c) {
  if (c.scheduler != Scheduler::stream_k) return "";
  return R"(  using Decomposition = decltype(r.scheduler.decomposition_mode);
  r.scheduler.splits = static_cast<int>(v[6]);
  r.scheduler.decomposition_mode = v[7] == 1   ? Decomposition::DataParallel
                                   : v[7] == 2 ? Decomposition::SplitK
                                   : v[7] == 3 ? Decomposition::StreamK
                                               : Decomposition::Heuristic;
)";
}

using Values = std::vector<std::pair<std::string, std::string>>;

/// `Fused`, `Fused1`, ...: what belongs to the first and to further results.
std::string result_name(std::string_view prefix, std::size_t which) {
  return which == 0 ? std::string(prefix) : fmt::format("{}{}", prefix, which);
}

/// How many operations the visitor has: accumulator and leaves, then a computation a result and a
/// store for all but the first.
int operations_of(const GemmProblem& p) {
  return static_cast<int>(p.leaves.size() + 2 * p.outputs.size());
}

/// The places for results beyond D, in the visitor and in its arguments.
void fill_results(const GemmProblem& p, int first_int, Values& values) {
  const int inputs = static_cast<int>(p.leaves.size()) + 1;
  std::string all, edges, stores, matrices, arguments, pointers;
  for (int i = 0; i < inputs; ++i) {
    all += fmt::format("{}{}", i ? ", " : "", i);
    edges += "cute::seq<>, ";
  }
  const auto functor = [&](std::size_t r) {
    return fused_functor(p.epilogue, inputs - 1, size_of(p.outputs[r].dtype) <= 2, r);
  };
  std::string functors = functor(0);
  for (std::size_t r = 1; r < p.outputs.size(); ++r) {
    const Matrix& d = p.outputs[r];
    const std::string type = cutlass_type(d.dtype);
    const int at = inputs + 2 * static_cast<int>(r - 1);
    const std::string node = operation(at + 1, operations_of(p));
    functors += functor(r);
    edges += fmt::format("cute::seq<{}>, cute::seq<{}>, ", all, at);
    stores += fmt::format("    Compute<Fused{0}, {1}>, Store<{1}, cutlass::layout::{2}>,\n", r,
                          type, layout_name(d.columns_contiguous));
    matrices +=
        fmt::format("  const Matrix d{} = matrix(launch, workspace, {} + {}, sizeof({}));\n", r,
                    first_int, 16 + 4 * (inputs + static_cast<int>(r) - 1), type);
    arguments += fmt::format(
        "  {0}.ptr_aux = d{1}.as<{2}>();\n  {0}.dAux = stride<decltype({0}.dAux)>(d{1}.ld, "
        "d{1}.batch);\n",
        node, r, type);
    pointers += fmt::format(", d{}.data", r);
  }
  values.insert(values.begin(), {{"VISITOR", p.outputs.size() == 1 ? one_result : several_results},
                                 {"STORES", stores},
                                 {"EDGES", edges + "cute::seq<" + all + ">"}});
  values.insert(values.end(), {{"FUNCTOR", functors},
                               {"RESULT_MATRICES", matrices},
                               {"RESULT_POINTERS", pointers},
                               {"STORE_ARGUMENTS", arguments}});
}

/// Where the outer strides of A, B, D and the source operand stand among a product's integers,
/// behind the number of inner batches.
int first_outer(const GemmProblem& p) {
  return 16 + 4 * static_cast<int>(p.leaves.size() + p.outputs.size()) + 1;
}

/// The places of the template that depend on the epilogue's operands.
void fill_leaves(const GemmProblem& p, bool pointers_of_batches, int first_int, Values& values) {
  const int source = source_leaf(p);
  const int operations = operations_of(p);
  std::string visitors, matrices, arguments, source_text, source_batches, pointers;
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const Leaf& leaf = p.leaves[i];
    const int index = static_cast<int>(i);
    visitors += ",\n    " + visitor_of(leaf, index == source);
    matrices +=
        fmt::format("  const Matrix x{} = matrix(launch, workspace, {} + {}, sizeof({}));\n", i + 1,
                    first_int, 20 + 4 * index, cutlass_type(leaf.matrix.dtype));
    if (index == source) {
      source_text = fmt::format(
          "  r.epilogue.ptr_C = {1};\n"
          "  r.epilogue.dC = stride<typename Kernel::StrideC>(x{0}.ld, x{0}.batch);\n",
          i + 1,
          pointers_of_batches ? "pointer_array<const ElementC>(area, 3, v[3])"
                              : fmt::format("x{}.as<ElementC>()", i + 1));
      source_batches =
          fmt::format(", batches({}, {}, sizeof(ElementC))", 20 + 4 * i, first_outer(p) + 3);
      pointers = fmt::format(", x{}.data", i + 1);
    } else {
      arguments += leaf_arguments(leaf, index, operations);
    }
  }
  const Matrix& d = p.outputs.front();
  const Matrix& c = source >= 0 ? p.leaves[static_cast<std::size_t>(source)].matrix : d;
  values.insert(values.end(), {{"FIRST_LEAF", operation(0, operations)},
                               {"SECOND_LEAF", operation(1, operations)},
                               {"ARRAYS", source >= 0 ? "4" : "3"},
                               {"SOURCE_BATCHES", source_batches},
                               {"INNER", fmt::format("{}", first_outer(p) - 1)},
                               {"A_OUTER", fmt::format("{}", first_outer(p))},
                               {"B_OUTER", fmt::format("{}", first_outer(p) + 1)},
                               {"D_OUTER", fmt::format("{}", first_outer(p) + 2)},
                               {"LEAVES", visitors},
                               {"LEAF_MATRICES", matrices},
                               {"LEAF_ARGUMENTS", arguments},
                               {"SOURCE", source_text},
                               {"TMA_POINTERS", pointers},
                               {"TYPE_C", source >= 0 ? cutlass_type(c.dtype) : "void"},
                               {"LAYOUT_C", layout_name(c.columns_contiguous)},
                               {"ALIGN_C", fmt::format("{}", 16 / size_of(c.dtype))}});
}

void add_matrix(const Matrix& m, std::vector<int64_t>& out) {
  out.insert(out.end(), {m.tensor, m.offset, m.ld, m.batch});
}

}  // namespace

std::string fill(std::string text, const Values& values) {
  for (const auto& [key, value] : values)
    text = replace_all(std::move(text), "$" + key + "$", value);
  return text;
}

std::string cutlass_type(DType t) {
  switch (t) {
    case DType::bfloat16:
      return "cutlass::bfloat16_t";
    case DType::float16:
      return "cutlass::half_t";
    case DType::float8_e4m3fn:
      return "cutlass::float_e4m3_t";
    case DType::float8_e5m2:
      return "cutlass::float_e5m2_t";
    default:
      return "float";
  }
}

std::string fused_functor(const graph::PointwiseDag& dag, int leaves, bool approximate,
                          std::size_t which) {
  std::vector<std::string> parameters, operands, results;
  for (int i = 0; i <= leaves; ++i) {
    parameters.push_back(fmt::format("Fragment const& x{}", i));
    operands.push_back(fmt::format("x{}[i]", i));
  }
  std::string statements = graph::emit_pointwise(dag, operands, "t", &results);
  const std::string result = results.at(which);
  if (approximate) {
    for (const char* f : {"exp(", "sigmoid(", "silu(", "tanh(", "gelu_tanh(", "gelu_erf("}) {
      statements =
          replace_all(std::move(statements), fmt::format("tsr_{}", f), fmt::format("tsf_{}", f));
    }
  }
  std::string indented;
  for (const std::string& line : split(statements, '\n')) {
    if (!line.empty()) indented += "      " + line + "\n";
  }
  return fill(functor_template, {{"NAME", result_name("Fused", which)},
                                 {"PARAMETERS", join(parameters, ", ")},
                                 {"STATEMENTS", indented},
                                 {"RESULT", result}});
}

std::vector<std::string> product_ints(const GemmProblem& p, std::string_view prefix) {
  std::vector<std::string> names;
  for (const char* n : {"m", "n", "k", "l", "raster", "swizzle", "splits", "decomposition"}) {
    names.push_back(fmt::format("{}{}", prefix, n));
  }
  std::vector<std::string> matrices = {"a", "b", "d"};
  for (std::size_t i = 0; i < p.leaves.size(); ++i) matrices.push_back(fmt::format("x{}", i + 1));
  for (std::size_t r = 1; r < p.outputs.size(); ++r) matrices.push_back(result_name("d", r));
  for (const std::string& m : matrices) {
    for (const char* field : {"tensor", "offset", "ld", "batch"}) {
      names.push_back(fmt::format("{}{}_{}", prefix, m, field));
    }
  }
  if (p.inner > 0) {
    for (const char* n : {"inner", "a_outer", "b_outer", "d_outer", "source_outer"})
      names.push_back(fmt::format("{}{}", prefix, n));
  }
  return names;
}

std::vector<int64_t> product_values(const GemmProblem& p, const Knobs& knobs) {
  std::vector<int64_t> v = {p.m,          p.n,           p.k,          p.l,
                            knobs.raster, knobs.swizzle, knobs.splits, knobs.decomposition};
  add_matrix(p.a, v);
  add_matrix(p.b, v);
  add_matrix(p.outputs.front(), v);
  for (const Leaf& x : p.leaves) add_matrix(x.matrix, v);
  for (std::size_t r = 1; r < p.outputs.size(); ++r) add_matrix(p.outputs[r], v);
  if (p.inner > 0) {
    const int source = source_leaf(p);
    const int64_t source_outer =
        source >= 0 ? p.leaves[static_cast<std::size_t>(source)].matrix.outer : 0;
    v.insert(v.end(), {p.inner, p.a.outer, p.b.outer, p.outputs.front().outer, source_outer});
  }
  return v;
}

namespace {

/// The places of the template that depend on the mainloop; their texts hold places of their own, so
/// they come first.
Values mainloop_values(const GemmProblem& p, const Sm90Config& c) {
  const auto stride = [](bool k_contiguous) {
    return k_contiguous ? "KMajorStride" : "RowMajorStride";
  };
  const auto row = [](const Matrix& m, const char* name) {
    return m.columns_contiguous ? fmt::format("{}.ld", name) : std::string("1");
  };
  const auto along_k = [](const Matrix& m, const char* name) {
    return m.columns_contiguous ? std::string("1") : fmt::format("{}.ld", name);
  };
  const bool packed = c.mainloop == Mainloop::split_packed;
  return {
      {"MAINLOOP", c.paired                               ? paired_mainloop
                   : c.interleaved                        ? interleaved_mainloop
                   : packed                               ? packed_mainloop
                   : c.mainloop == Mainloop::split_inline ? inline_mainloop
                                                          : stock_mainloop},
      {"PREPARE", packed       ? prepare_packed
                  : c.pointers ? prepare_pointers
                               : nothing_to_prepare},
      {"OPERANDS", c.paired        ? paired_operands
                   : packed        ? packed_operands
                   : c.pointers    ? pointer_operands
                   : c.interleaved ? interleaved_operands
                                   : plain_operands},
      {"MODE", c.pointers ? "kArray" : "kGemm"},
      {"POINTER_D", c.pointers ? "pointer_array<ElementD>(area, 2, v[3])" : "d.as<ElementD>()"},
      {"PROBLEM", c.pointers ? "cutlass::gemm::ArrayProblemShape<Shape<int, int, int, int>>"
                             : "Shape<int, $EXTENT_N$, $EXTENT_K$, int>"},
      {"ACCUMULATOR", c.paired ? "tessera::AccumulatorFetch" : "fusion::Sm90AccFetch"},
      {"EXTENT_K", c.interleaved ? "Shape<int, int>" : "int"},
      {"K", c.interleaved ? fmt::format("make_shape({0}, static_cast<int>(v[2] / {0}))", c.tile_k)
                          : "static_cast<int>(v[2])"},
      {"EXTENT_N", c.paired ? "Shape<int, int>" : "int"},
      {"N", c.paired ? "make_shape(static_cast<int>(v[1]), 2)" : "static_cast<int>(v[1])"},
      {"STRIDE_A", stride(p.a.columns_contiguous)},
      {"STRIDE_B", stride(p.b.columns_contiguous)},
      {"A_ROW", row(p.a, "a")},
      {"A_K", along_k(p.a, "a")},
      {"B_ROW", row(p.b, "b")},
      {"B_K", along_k(p.b, "b")},
      {"EPILOGUE_TILE",
       c.epilogue_n == 0
           ? "cutlass::epilogue::collective::EpilogueTileAuto"
           : fmt::format("Shape<_{}, _{}>", c.schedule == Schedule::cooperative ? 128 : 64,
                         c.epilogue_n)}};
}

}  // namespace

std::string sm90_product(const GemmProblem& p, const Sm90Config& c, std::string_view name,
                         int first_int) {
  const Matrix& d = p.outputs.front();
  Values values = mainloop_values(p, c);
  const Values rest = {
      {"TYPE_A", cutlass_type(p.a.dtype)},
      {"TYPE_B", cutlass_type(p.b.dtype)},
      {"TYPE_D", cutlass_type(d.dtype)},
      {"LAYOUT_A", layout_name(p.a.columns_contiguous)},
      // B is stored as [n, k]: contiguous in k is a column-major k x n matrix.
      {"LAYOUT_B", layout_name(!p.b.columns_contiguous)},
      {"LAYOUT_D", layout_name(d.columns_contiguous)},
      {"ALIGN_AB", fmt::format("{}", 16 / size_of(p.a.dtype))},
      {"ALIGN_D", fmt::format("{}", 16 / size_of(d.dtype))},
      {"TILE_M", fmt::format("{}", c.tile_m)},
      {"TILE_N", fmt::format("{}", c.output_n())},
      {"TILES_N", fmt::format("{}", c.tile_n)},
      {"TILE_K", fmt::format("{}", c.tile_k)},
      {"CLUSTER_M", fmt::format("{}", c.cluster_m)},
      {"CLUSTER_N", fmt::format("{}", c.cluster_n)},
      {"EPILOGUE_SCHEDULE", epilogue_schedule(c)},
      {"SCHEDULE", schedule_name(c)},
      {"STAGES", stage_count(c)},
      {"SCHEDULER", c.pointers                           ? "void"
                    : c.scheduler == Scheduler::stream_k ? "cutlass::gemm::StreamKScheduler"
                                                         : "cutlass::gemm::PersistentScheduler"},
      {"STREAM_K", stream_k_arguments(c)},
      {"FIRST", fmt::format("{}", first_int)},
      {"NAME", std::string(name)}};
  values.insert(values.end(), rest.begin(), rest.end());
  fill_leaves(p, c.pointers, first_int, values);
  fill_results(p, first_int, values);
  return fill(product_template, values);
}

std::string library(const LibraryText& t) {
  std::string workspaces, runs, prepared;
  for (const std::string& name : t.products) {
    workspaces += fill(workspace_of_product, {{"NAME", name}});
    prepared += fill(prepared_of_product, {{"NAME", name}});
    runs += fill(run_of_product, {{"NAME", name}});
  }
  const Json describe = {{"abi", 1}, {"name", t.name}, {"arch", t.arch}, {"ints", t.ints}};
  return fill(library_template,
              {{"TITLE", t.name},
               {"INCLUDES", t.includes},
               {"PRELUDE", graph::pointwise_prelude(graph::Target::cuda)},
               {"BODY", t.body},
               {"INT_COUNT", fmt::format("{}", t.ints.size())},
               {"WORKSPACES", workspaces},
               {"RUNS", prepared + "  void* const rest = area + prepared;\n" + runs},
               {"TAIL", t.tail},
               {"DESCRIBE", describe.dump()}});
}

std::vector<std::string> cutlass_flags() {
  return {"-DNDEBUG", "--expt-relaxed-constexpr", "-diag-suppress=20012"};
}

}  // namespace tessera::realize
