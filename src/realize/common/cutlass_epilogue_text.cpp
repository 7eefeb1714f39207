#include "realize/common/cutlass_epilogue_text.h"

#include "base/text.h"
#include "realize/common/cutlass_templates.h"

#include "pointwise/approximate.h"
#include "pointwise/pointwise.h"

namespace tessera::realize {

using namespace templates;

std::string layout_name(bool row_major) {
  return row_major ? "RowMajor" : "ColumnMajor";
}

std::string result_name(std::string_view prefix, std::size_t which) {
  return which == 0 ? std::string(prefix) : fmt::format("{}{}", prefix, which);
}

int first_outer(const GemmProblem& p) {
  return 16 + 4 * static_cast<int>(p.leaves.size() + p.outputs.size()) + 1;
}

std::string approximated(std::string statements, DType element) {
  const int bits = size_of(element) > 2 ? 24 : element == DType::float16 ? 11 : 8;
  return pointwise::approximated(std::move(statements), bits);
}

std::string fused_functor(const pointwise::Dag& dag, int leaves, DType element, std::size_t which) {
  std::vector<std::string> parameters, operands, results;
  for (int i = 0; i <= leaves; ++i) {
    parameters.push_back(fmt::format("Fragment const& x{}", i));
    operands.push_back(fmt::format("x{}[i]", i));
  }
  const std::string statements =
      approximated(pointwise::emit(dag, operands, "t", &results), element);
  const std::string result = results.at(which);
  std::string indented;
  for (const std::string& line : split(statements, '\n')) {
    if (!line.empty()) indented += "      " + line + "\n";
  }
  return fill(functor_template, {{"NAME", result_name("Fused", which)},
                                 {"PARAMETERS", join(parameters, ", ")},
                                 {"STATEMENTS", indented},
                                 {"RESULT", result}});
}

namespace {

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
      return "tessera::AccumulatorFetch<1>";
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
    return fused_functor(p.epilogue, inputs - 1, p.outputs[r].dtype, r);
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

/// The places of the template that depend on the epilogue's operands.
void fill_leaves(const GemmProblem& p, bool pointers_of_batches, int first_int, Values& values) {
  const int source = p.source_leaf();
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
  values.insert(values.end(), {{"ARRAYS", source >= 0 ? "4" : "3"},
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

}  // namespace

void fill_epilogue(const GemmProblem& p, bool pointers, int first_int, Values& values) {
  fill_leaves(p, pointers, first_int, values);
  fill_results(p, first_int, values);
}

}  // namespace tessera::realize
