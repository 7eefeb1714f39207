#include "realize/common/tile_gemm_kernel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/integers.h"
#include "base/text.h"
#include "realize/common/kernel_files.h"
#include "realize/common/tile_parts_text.h"

#include "core/verify.h"
#include "language/language.h"

namespace tessera::realize {
namespace {

using pointwise::Dag;
using LeafKind = Leaf::Kind;

/// The type of a leaf's tensor, its integers of the launch, and the box that goes with a part.
struct LeafText {
  std::vector<std::string> parameters;
  std::string box;
};

/// `l`: the extent of batches, or None where there is one. `access`: "" or ", out".
LeafText leaf_text(const std::string& name, const Leaf& leaf, std::string_view l,
                   std::string_view access) {
  const Matrix& x = leaf.matrix;
  const std::string type(short_name(x.dtype));
  LeafText t;
  // The launch's strides are multiples of what all rows begin at; one of 0 repeats.
  const auto integer = [&](std::string_view of, int bits) {
    t.parameters.push_back(fmt::format("{}_{}: index(multiple={}, at_least=0, below=1 << {})", name,
                                       of, x.alignment(), bits));
  };
  const auto tensor = [&](std::string_view m, std::string_view n, std::string_view row,
                          std::string_view column) {
    t.parameters.push_back(
        fmt::format("{0}: Tensor[{1}, {2}, {3}, {4}, strides(\"{0}_BATCH\", {5}, {6}){7}]", name,
                    type, l, m, n, row, column, access));
  };
  if (l != "None") integer("BATCH", 38);
  const std::string ld = fmt::format("\"{}_STRIDE\"", name);
  const bool rows = leaf.kind == LeafKind::full || leaf.kind == LeafKind::column;
  const bool columns = leaf.kind == LeafKind::full || leaf.kind == LeafKind::row;
  if (rows && columns) {
    integer("STRIDE", 31);
    tensor("\"M\"", "\"N\"", x.columns_contiguous ? ld : "1", x.columns_contiguous ? "1" : ld);
  } else {
    tensor(rows ? "\"M\"" : "1", columns ? "\"N\"" : "1", rows ? "1" : "16", rows ? "16" : "1");
  }
  t.box = fmt::format("{}[batch.index, {}, {}]", name, rows ? "m" : "part(0, 1)",
                      columns ? "n" : "part(0, 1)");
  return t;
}

/// A number that reads back as it is; a point makes it none of the integers.
std::string number(double v) {
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

/// `f(a, b)`, with the operators that people write.
std::string call_text(const pointwise::Function& f, const std::vector<std::string>& arguments) {
  static constexpr std::pair<std::string_view, std::string_view> operators[] = {
      {"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"div", "/"}};
  for (const auto& [name, sign] : operators)
    if (f.name == name) return fmt::format("({} {} {})", arguments[0], sign, arguments[1]);
  return fmt::format("{}({})", f.name, join(arguments, ", "));
}

std::string leaf_name(std::size_t i) {
  return fmt::format("X{}", i);
}
/// Of results beyond the first, which is C.
std::string result_name(std::size_t i) {
  return i == 0 ? "C" : fmt::format("Y{}", i);
}

}  // namespace

std::string expression_text(const Dag& dag, const std::vector<std::string>& operands, int node) {
  const Dag::Node& n = dag.nodes[static_cast<std::size_t>(node)];
  if (n.kind == Dag::Node::Kind::operand) return operands[static_cast<std::size_t>(n.operand)];
  if (n.kind == Dag::Node::Kind::constant) return number(n.constant);
  std::vector<std::string> arguments;
  for (const int a : n.arguments) arguments.push_back(expression_text(dag, operands, a));
  return call_text(*n.function, arguments);
}

Status finite_numbers(const Dag& dag) {
  for (const Dag::Node& n : dag.nodes)
    if (n.kind == Dag::Node::Kind::constant && !std::isfinite(n.constant))
      return error(fail(unsupported_gemm, "the epilogue has the number {}", n.constant)
                       .expect("finite numbers"));
  return {};
}

Result<std::string> epilogue_function(const GemmProblem& p) {
  TESSERA_CHECK(finite_numbers(p.epilogue));
  std::vector<std::string> names = {"x"}, lines;
  if (p.paired()) names = {"gate", "up"};
  std::vector<std::string> parameters = names;
  parameters.insert(parameters.end(), {"batch", "m", "n"});
  const std::string like = names.front();
  const std::string_view batches = p.l > 1 ? "\"L\"" : "None";
  for (std::size_t i = p.paired() ? 1 : 0; i < p.leaves.size(); ++i) {
    const LeafText t = leaf_text(leaf_name(i), p.leaves[i], batches, "");
    for (const std::string& parameter : t.parameters) parameters.push_back(parameter);
    names.push_back(fmt::format("x{}", i));
    lines.push_back(fmt::format("{} = load({}, like={})", names.back(), t.box, like));
  }
  std::vector<std::string> nodes;
  for (const Dag::Node& n : p.epilogue.nodes) {
    if (n.kind == Dag::Node::Kind::operand) {
      nodes.push_back(names.at(static_cast<std::size_t>(n.operand)));
    } else if (n.kind == Dag::Node::Kind::constant) {
      nodes.push_back(number(n.constant));
    } else {
      std::vector<std::string> arguments;
      for (const int a : n.arguments) arguments.push_back(nodes[static_cast<std::size_t>(a)]);
      lines.push_back(fmt::format("t{} = {}", nodes.size(), call_text(*n.function, arguments)));
      nodes.push_back(fmt::format("t{}", nodes.size()));
    }
  }
  const auto result = [&](std::size_t i) {
    return nodes[static_cast<std::size_t>(p.epilogue.results[i])];
  };
  // Results beyond the first leave from the function.
  for (std::size_t r = 1; r < p.outputs.size(); ++r) {
    const Leaf leaf{.kind = LeafKind::full, .matrix = p.outputs[r]};
    const LeafText t = leaf_text(result_name(r), leaf, batches, ", out");
    for (const std::string& parameter : t.parameters) parameters.push_back(parameter);
    lines.push_back(fmt::format("store({}, {})", result(r), t.box));
  }
  lines.push_back("return " + result(0));
  return fmt::format("\n\ndef epilogue(\n    {},\n):\n    {}\n", join(parameters, ",\n    "),
                     join(lines, "\n    "));
}

std::string meaning_of(const GemmProblem& p, const std::string& sum) {
  if (!p.parts.empty()) return parts_meaning(p);
  const std::string batch = p.l > 1 ? "b, " : "";
  const auto element = [](std::string_view name, const std::string& of, std::string_view row,
                          std::string_view column) {
    return fmt::format("{}[{}{}, {}]", name, of, row, column);
  };
  std::vector<std::string> operands = {
      fmt::format("sum({} * {}, k)", element("A", p.a.batch == 0 ? "" : batch, "i", "k"),
                  element("B", p.b.batch == 0 ? "" : batch, "j", "k"))};
  if (!sum.empty()) operands = {sum};
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const LeafKind kind = p.leaves[i].kind;
    if (kind == LeafKind::product) {
      operands.emplace_back("sum(A[i, k] * D[j, k], k)");
      continue;
    }
    const bool rows = kind == LeafKind::full || kind == LeafKind::column;
    const bool columns = kind == LeafKind::full || kind == LeafKind::row;
    operands.push_back(element(leaf_name(i), batch, rows ? "i" : "0", columns ? "j" : "0"));
  }
  std::vector<std::string> equations;
  for (std::size_t r = 0; r < p.outputs.size(); ++r)
    equations.push_back(element(result_name(r), batch, "i", "j") + " = " +
                        expression_text(p.epilogue, operands, p.epilogue.results[r]));
  return join(equations, "; ");
}

namespace {

using Constants = std::map<std::string, language::Constant>;

language::Constant integer(int64_t v) {
  return v;
}
language::Constant element(DType t) {
  return std::string(short_name(t));
}

language::Constant order(const Matrix& m) {
  return integer(m.columns_contiguous ? 1 : 2);
}

/// What all files say of a problem and its tiles.
Constants common_constants(const GemmProblem& p, const TileGemmConfig& c) {
  const Matrix& d = p.outputs.front();
  return {{"RESULT", element(d.dtype)},
          {"BN", integer(c.columns)},
          {"STAGES", integer(c.stages)},
          {"GROUP", integer(c.group)},
          {"BATCHES", integer(p.l > 1 ? 1 : 0)},
          {"A_BATCHES", integer(p.l > 1 && p.a.batch != 0 ? 1 : 0)},
          {"B_BATCHES", integer(p.l > 1 && p.b.batch != 0 ? 1 : 0)},
          {"C_ORDER", order(d)},
          {"M_MULTIPLE", integer(1)},
          // What leaves are loaded by depends on what is known of the columns.
          {"N_MULTIPLE", integer(std::gcd(p.n, int64_t{8}))},
          {"K_MULTIPLE", integer(1)},
          {"C_MULTIPLE", integer(d.alignment())}};
}

/// What kernels/gemm_fp32.py says besides.
Constants split_constants(const GemmProblem& p, const TileGemmConfig& c) {
  Constants all = common_constants(p, c);
  all.merge(
      Constants{{"A_ORDER", order(p.a)}, {"B_ORDER", order(p.b)}, {"PROMOTE", integer(c.promote)}});
  if (c.split) all["DIVIDER"] = integer(tile_gemm_divider);
  return all;
}

/// What kernels/gemm_tf32.py says besides.
Constants register_constants(const GemmProblem& p, const TileGemmConfig& c) {
  Constants all = common_constants(p, c);
  all.merge(Constants{{"BM", integer(c.rows)},
                      {"ROWS", integer(c.warpgroup_rows)},
                      {"CLUSTER", integer(c.cluster_m)},
                      {"TURNS", integer(c.turns())},
                      {"DIRECT", integer(c.direct ? 1 : 0)}});
  return all;
}

/// What kernels/gemm.py says besides.
Constants gemm_constants(const GemmProblem& p, const TileGemmConfig& c) {
  Constants all = split_constants(p, c);
  all.merge(Constants{{"ELEMENT", element(p.a.dtype)},
                      {"BM", integer(c.rows)},
                      {"ROWS", integer(c.warpgroup_rows)},
                      {"BK", integer(tile_gemm_depth(p))},
                      {"CLUSTER", integer(int64_t{c.cluster_m} * c.cluster_n)},
                      {"BESIDE", integer(c.cluster_n > 1 ? 1 : 0)},
                      {"ROUND", integer(p.a.dtype == DType::float32 ? 1 : 0)},
                      {"TURNS", integer(c.turns())},
                      {"PART", integer(tile_parts_columns(c, p))},
                      {"HALF", integer(tile_parts_half(p))},
                      {"DIRECT", integer(c.direct ? 1 : 0)}});
  return all;
}

}  // namespace

Result<core::Kernel> tile_gemm_kernel(const GemmProblem& p, const TileGemmConfig& c,
                                      const arch::Arch& arch) {
  TESSERA_TRY(epilogue, p.parts.empty() ? epilogue_function(p)
                                        : parts_function(p, int64_t{64} * c.warpgroups()));
  const std::string file = c.split               ? "gemm_fp32.py"
                           : c.through_registers ? "gemm_tf32.py"
                                                 : "gemm.py";
  const Source source("kernels/" + file, std::string(kernel_file(file)) + epilogue);
  const std::string function = tile_parts_half(p) > 0 ? "turned" : "epilogue";
  language::Options options{.constants = c.split               ? split_constants(p, c)
                                         : c.through_registers ? register_constants(p, c)
                                                               : gemm_constants(p, c),
                            .means = meaning_of(p)};
  options.constants.emplace(function, language::Constant(function));
  TESSERA_TRY(kernel, language::elaborate(source, "gemm", options));
  for (const Diagnostic& finding : core::verify(kernel, arch)) return error(finding);
  return kernel;
}

std::map<std::string, int64_t> tile_gemm_values(const GemmProblem& p) {
  std::map<std::string, int64_t> v = {{"L", p.l}, {"M", p.m}, {"N", p.n}, {"K", p.k}};
  const auto place = [&](const std::string& name, const Matrix& m) {
    v[name + "_tensor"] = m.tensor;
    v[name + "_offset"] = m.offset;
    v[name + "_BATCH"] = m.batch;
    v[name + "_STRIDE"] = m.ld;
  };
  place("A", p.a);
  place("B", p.b);
  for (std::size_t r = 0; r < p.outputs.size(); ++r) place(result_name(r), p.outputs[r]);
  for (std::size_t i = 0; i < p.leaves.size(); ++i) place(leaf_name(i), p.leaves[i].matrix);
  add_part_places(p, v);
  return v;
}

}  // namespace tessera::realize
