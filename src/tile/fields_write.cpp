// Values of fields as Python expressions.
#include <cmath>

#include "tile/fields.h"
#include "tile/program.h"

namespace tessera::tile {
namespace {

std::string number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return fmt::format("{}", v);
}

/// A node as a Python expression; nodes used more than once are named by := at their first use.
struct DagText {
  const pointwise::Dag& dag;
  std::vector<int> uses = std::vector<int>(dag.nodes.size());
  std::vector<bool> named = std::vector<bool>(dag.nodes.size());

  std::string operator()(int i) {
    const pointwise::Dag::Node& n = dag.nodes[i];
    if (n.kind == pointwise::Dag::Node::Kind::operand) return fmt::format("x{}", n.operand);
    if (n.kind == pointwise::Dag::Node::Kind::constant) return number(n.constant);
    if (named[i]) return fmt::format("t{}", i);
    std::string s = std::string(n.function->name) + "(";
    for (std::size_t a = 0; a < n.arguments.size(); ++a)
      s += (a > 0 ? ", " : "") + (*this)(n.arguments[a]);
    s += ")";
    if (uses[i] < 2) return s;
    named[i] = true;
    return fmt::format("(t{} := {})", i, s);
  }
};

}  // namespace

void FieldWriter::tensor(int index) {
  first = program->tensors.at(index).name;
}

void FieldWriter::subscript(std::size_t operand, const std::vector<Index>& indices) {
  std::string s;
  for (const Index& i : indices) {
    s += s.empty() ? "" : ", ";
    s += i.kind == Index::Kind::all    ? ":"
         : i.kind == Index::Kind::tile ? text(i.var)
                                       : "pick(" + text(i.var) + ")";
  }
  subscripts[operand] = s;
}

std::string FieldWriter::span(VarId id) const {
  const TileVar& v = kernel->vars.at(id.index);
  std::string s = fmt::format("span({}, {}", v.total, v.step);
  if (v.until_var.valid())
    s += fmt::format(", until={}, offset={}", text(v.until_var), v.until_offset);
  if (v.reversed) s += ", reversed=True";
  return s + ")";
}

void FieldWriter::walks(const std::vector<VarId>& vars) {
  for (VarId v : vars) {
    const std::string& name = kernel->vars.at(v.index).name;
    walked.push_back(name);
    const bool known = declared != nullptr && declared->count(v) > 0;
    first += (first.empty() ? "" : ", ") + (known ? name : span(v));
  }
}

std::string FieldWriter::text(double v) const {
  return number(v);
}
std::string FieldWriter::text(const std::vector<int64_t>& v) const {
  return fmt::format("[{}]", fmt::join(v, ", "));
}
std::string FieldWriter::text(VarId v) const {
  named.push_back(v);
  return kernel->vars.at(v.index).name;
}

std::string FieldWriter::text(const Type& t) const {
  std::string axes;
  std::vector<int64_t> extents;
  for (const Axis& a : t.axes) {
    axes += (axes.empty() ? "" : ", ") + (a.var.valid()
                                              ? fmt::format("cut({}, {})", a.extent, text(a.var))
                                              : std::to_string(a.extent));
    extents.push_back(a.extent);
  }
  return fmt::format("tile({}, [{}]{}, layout={}{})", text(t.element), axes,
                     t.cover == extents ? "" : ", cover=" + text(t.cover), text(t.layout),
                     t.space == Space::shared ? ", space=shared" : "");
}
std::string FieldWriter::text(const std::optional<Type>& v) const {
  return v ? text(*v) : "None";
}

std::string FieldWriter::text(const std::shared_ptr<const pointwise::Dag>& dag) const {
  DagText node{*dag};
  int operands = dag->operand_count();
  for (const auto& n : dag->nodes)
    for (int a : n.arguments) ++node.uses[a];
  for (int r : dag->results) ++node.uses[r];
  std::string results;
  for (int r : dag->results) results += (results.empty() ? "" : ", ") + node(r);
  if (dag->results.size() > 1) results = "(" + results + ")";
  std::string parameters;
  for (int i = 0; i < operands; ++i) parameters += fmt::format("{} x{}", i > 0 ? "," : "", i);
  return "lambda" + parameters + ": " + results;
}

std::string FieldWriter::text(const arch::Mma* v) const {
  return v == nullptr ? "None" : fmt::format("\"{}\"", v->name);
}

}  // namespace tessera::tile
