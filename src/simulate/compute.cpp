// Pointwise functions of registers, element by element.
#include <algorithm>

#include "pointwise/pointwise.h"
#include "simulate/domain.h"
#include "simulate/machine.h"

namespace tessera::simulate {
namespace {

const RunCode* run_of(const std::variant<RunCode, Expression>& input) {
  return std::get_if<RunCode>(&input);
}

}  // namespace

/// `first`: the slots where the runs begin, those of inputs before those of results.
template <class Values>
void Machine::compute_lane(Values values, Strand& s, const Call& call, const ComputeCode& code,
                           int lane, const std::vector<int64_t>& first) {
  const core::Kernel& k = program_.kernel;
  const pointwise::Dag& dag = *code.compute->dag;
  const pointwise::Dag::Node& last = dag.nodes[dag.results.front()];
  const bool copies = dag.results.size() == 1 && last.kind == pointwise::Dag::Node::Kind::operand;
  std::vector<typename Values::Value> operands(code.inputs.size());
  std::vector<typename Values::Value> results;
  Frame& frame = frame_of_lane(s, lane);
  for (int64_t e = 0; e < code.compute->count; ++e) {
    if (code.element >= 0) frame[code.element] = e;
    for (std::size_t n = 0; n < operands.size(); ++n) {
      if (const RunCode* r = run_of(code.inputs[n]))
        operands[n] = values.decode(k.registers[r->registers].element,
                                    read_slot(call, r->registers, lane, first[n] + r->steps[e]));
      else
        operands[n] = values.integer(std::get<Expression>(code.inputs[n])(frame));
    }
    if (copies)
      results.assign(1, operands[last.operand]);
    else
      results = values.evaluate(dag, operands);
    for (std::size_t n = 0; n < code.results.size(); ++n) {
      const RunCode& r = code.results[n];
      values.encode(k.registers[r.registers].element, results[n],
                    write_slot(call, r.registers, lane, first[operands.size() + n] + r.steps[e]));
    }
    if (tags_ != nullptr) compute_tags(call, code, lane, e, first);
  }
}

void Machine::compute(Strand& s, const Instruction& i) {
  const ComputeCode& code = program_.computes[i.index];
  const Call call{.machine = this,
                  .block = warps_[s.warp].block,
                  .warp = s.warp,
                  .lanes = s.mask,
                  .event = log(s)};
  std::vector<int64_t> first;
  const auto begin = [&](const RunCode& r, bool write) {
    first.push_back(r.first(s.frame));
    const auto [low, high] = std::minmax_element(r.steps.begin(), r.steps.end());
    touch_registers(call, r.registers, first.back() + *low, *high - *low + 1, write);
  };
  for (const auto& input : code.inputs) {
    if (const RunCode* r = run_of(input))
      begin(*r, false);
    else
      first.push_back(0);
  }
  for (const RunCode& r : code.results) begin(r, true);
  with_values(program_, [&](auto values) {
    for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1)
      compute_lane(values, s, call, code, first_lane(rest), first);
  });
  s.frame[program_.lane] = 0;
  if (code.element >= 0) s.frame[code.element] = 0;
}

}  // namespace tessera::simulate
