// map, cast: element by element.
#include <cmath>

#include "numeric/round.h"
#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"
#include "tile/print.h"

namespace tessera::tile::ops {
namespace {

Result<std::vector<Type>> infer_map(const Program&, const Kernel& k, const Op& op) {
  const pointwise::Dag& dag = *std::any_cast<const MapOf&>(op.payload).dag;
  if (dag.operand_count() > static_cast<int>(op.operands.size()) || op.operands.empty())
    return error(fail(bad_program, "a map of {} operands uses operand {}", op.operands.size(),
                      dag.operand_count() - 1));
  Type t = k.values.at(op.operands[0].index).type;
  for (ValueId v : op.operands) {
    const Type& other = k.values.at(v.index).type;
    if (other.axes != t.axes || other.cover != t.cover || other.layout != t.layout) {
      return error(fail(bad_program, "the operands of a map lie in different slots: {} and {}",
                        to_string(t), to_string(other))
                       .help("broadcast the smaller one"));
    }
  }
  t.element = DType::float32;
  return std::vector<Type>(dag.results.size(), t);
}

/// A node as a Python expression; nodes used more than once are named by := at their first use.
struct DagText {
  const pointwise::Dag& dag;
  const std::vector<std::string>& parameters;
  std::vector<int> uses = std::vector<int>(dag.nodes.size());
  std::vector<bool> named = std::vector<bool>(dag.nodes.size());

  std::string operator()(int i) {
    const pointwise::Dag::Node& n = dag.nodes[i];
    if (n.kind == pointwise::Dag::Node::Kind::operand) return parameters[n.operand];
    if (n.kind == pointwise::Dag::Node::Kind::constant) {
      if (std::isfinite(n.constant)) return fmt::format("{}", n.constant);
      return std::isnan(n.constant) ? "nan" : n.constant > 0 ? "inf" : "-inf";
    }
    if (named[i]) return fmt::format("t{}", i);
    std::string s = std::string(n.function->name) + "(";
    for (std::size_t a = 0; a < n.arguments.size(); ++a)
      s += (a ? ", " : "") + (*this)(n.arguments[a]);
    s += ")";
    if (uses[i] < 2) return s;
    named[i] = true;
    return fmt::format("(t{} := {})", i, s);
  }
};

void print_map(Printer& p, const Op& op) {
  const pointwise::Dag& dag = *std::any_cast<const MapOf&>(op.payload).dag;
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < op.operands.size(); ++i) parameters.push_back(fmt::format("x{}", i));
  DagText text{dag, parameters};
  for (const auto& n : dag.nodes)
    for (int a : n.arguments) ++text.uses[a];
  for (int r : dag.results) ++text.uses[r];
  std::string results;
  for (int r : dag.results) results += (results.empty() ? "" : ", ") + text(r);
  if (dag.results.size() > 1) results = "(" + results + ")";
  p.out += fmt::format("map(lambda {}: {}, {})", fmt::join(parameters, ", "), results,
                       p.names(op.operands));
}

Status interpret_map(Interpreter& in, const Op& op) {
  const pointwise::Dag& dag = *std::any_cast<const MapOf&>(op.payload).dag;
  std::size_t n = in.slots(op.operands[0]).size();
  std::vector<Interpreter::Slots> results(op.results.size(), Interpreter::Slots(n));
  std::vector<double> x(op.operands.size());
  for (std::size_t s = 0; s < n; ++s) {
    bool live = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::optional<double>& v = in.slots(op.operands[i])[s];
      live = live && v.has_value();
      x[i] = v.value_or(0);
    }
    if (!live) continue;
    std::vector<double> y = dag.eval(x);
    for (std::size_t r = 0; r < y.size(); ++r) results[r][s] = round_to(DType::float32, y[r]);
  }
  for (std::size_t r = 0; r < results.size(); ++r) in.set(op.results[r], std::move(results[r]));
  return {};
}

Status emit_map(Emitter& e, const Op& op) {
  const pointwise::Dag& dag = *std::any_cast<const MapOf&>(op.payload).dag;
  std::vector<std::string> operands;
  for (ValueId v : op.operands) operands.push_back(e.scalar(v));
  std::vector<std::string> results;
  std::string statements = pointwise::emit(dag, operands, e.name(op.results[0]) + "t", &results);
  std::size_t start = 0;
  while (start < statements.size()) {
    std::size_t end = std::min(statements.find('\n', start), statements.size());
    e.line(statements.substr(start, end - start));
    start = end + 1;
  }
  for (std::size_t r = 0; r < results.size(); ++r) e.define(op.results[r], results[r]);
  return {};
}

Result<std::vector<Type>> infer_cast(const Program&, const Kernel& k, const Op& op) {
  Type t = k.values.at(op.operands.at(0).index).type;
  t.element = std::any_cast<const CastTo&>(op.payload).element;
  return std::vector<Type>{t};
}

void print_cast(Printer& p, const Op& op) {
  p.out += fmt::format("cast({}, {})", p.name(op.operands[0]),
                       short_name(std::any_cast<const CastTo&>(op.payload).element));
}

Status interpret_cast(Interpreter& in, const Op& op) {
  DType to = std::any_cast<const CastTo&>(op.payload).element;
  Interpreter::Slots slots = in.slots(op.operands[0]);
  for (auto& s : slots)
    if (s) s = round_to(to, *s);
  in.set(op.results[0], std::move(slots));
  return {};
}

Status emit_cast(Emitter& e, const Op& op) {
  DType from = e.type(op.operands[0]).element;
  DType to = std::any_cast<const CastTo&>(op.payload).element;
  std::string x = e.scalar(op.operands[0]);
  if (to != DType::float32 && to != from) x = fmt::format("tst_round_{}({})", short_name(to), x);
  e.define(op.results[0], x);
  return {};
}

const OpRecord records[] = {
    {"map", Shape::element, infer_map, print_map, interpret_map, emit_map},
    {"cast", Shape::element, infer_cast, print_cast, interpret_cast, emit_cast},
};

}  // namespace

extern const OpFamily map{"map", records};

}  // namespace tessera::tile::ops
