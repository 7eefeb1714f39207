// map, cast: element by element.
#include <cmath>

#include "numeric/round.h"
#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile::ops {
namespace {

Result<std::vector<Type>> infer_map(const Program&, const Kernel& k, const Op& op) {
  const pointwise::Dag& dag = *op.payload.get<MapOf>().dag;
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

Status interpret_map(Interpreter& in, const Op& op) {
  const pointwise::Dag& dag = *op.payload.get<MapOf>().dag;
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
  const pointwise::Dag& dag = *op.payload.get<MapOf>().dag;
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
  t.element = op.payload.get<CastTo>().element;
  return std::vector<Type>{t};
}

Status interpret_cast(Interpreter& in, const Op& op) {
  DType to = op.payload.get<CastTo>().element;
  Interpreter::Slots slots = in.slots(op.operands[0]);
  for (auto& s : slots)
    if (s) s = round_to(to, *s);
  in.set(op.results[0], std::move(slots));
  return {};
}

Status emit_cast(Emitter& e, const Op& op) {
  DType from = e.type(op.operands[0]).element;
  DType to = op.payload.get<CastTo>().element;
  std::string x = e.scalar(op.operands[0]);
  if (to != DType::float32 && to != from) x = fmt::format("tst_round_{}({})", short_name(to), x);
  e.define(op.results[0], x);
  return {};
}

const OpRecord records[] = {
    {.name = "map",
     .shape = Shape::element,
     .infer = infer_map,
     .interpret = interpret_map,
     .emit = emit_map},
    {.name = "cast",
     .shape = Shape::element,
     .infer = infer_cast,
     .interpret = interpret_cast,
     .emit = emit_cast},
};

}  // namespace

extern const OpFamily map{"map", records};

}  // namespace tessera::tile::ops
