#include "term/testing/agreement.h"

#include <fmt/format.h>

#include "base/text.h"

#include "term/rules.h"

namespace tessera::term::testing {
namespace {

std::vector<Term> symbolic_bounds(Term leaf) {
  std::vector<Term> out;
  const Bounds& b = leaf->symbol->bounds;
  if (b.lower && b.lower->op != Op::constant) out.push_back(less_equal(b.lower, leaf));
  if (b.upper && b.upper->op != Op::constant) out.push_back(less(leaf, b.upper));
  return out;
}

}  // namespace

std::string disagreement(Term t, Term normal, int64_t& compared) {
  constexpr int64_t most_points = 512;
  const std::vector<Axis> axes = trial_axes({t, normal});
  std::vector<Term> outputs{t, normal};
  for (const Axis& a : axes)
    for (Term condition : symbolic_bounds(a.leaf)) outputs.push_back(condition);
  Program program(outputs, 7);
  std::string fault;
  walk(program, axes, [&](int64_t begin, int count) {
    for (int i = 0; i < count; ++i) {
      bool admissible = true;
      for (std::size_t k = 2; k < outputs.size(); ++k)
        admissible = admissible && program.output(k)[i] != 0;
      if (!admissible) continue;
      ++compared;
      const int64_t value = program.output(0)[i], simplified = program.output(1)[i];
      if (value == simplified &&
          (t->predicate() || (t->facts.holds(value) && normal->facts.holds(value))))
        continue;
      std::string at;
      const std::vector<int64_t> values = point(axes, begin + i);
      for (std::size_t a = 0; a < axes.size(); ++a)
        at += fmt::format(" {} = {}", axes[a].leaf->symbol->name, values[a]);
      fault =
          fmt::format("{} is {} at{}; {} is {}; facts {} and {}", to_string(t), value, at,
                      to_string(normal), simplified, to_string(t->facts), to_string(normal->facts));
      return false;
    }
    return begin + count < most_points;
  });
  return fault;
}

Agreement agreement(Term t) {
  Agreement out;
  const Term normal = simplify(t);
  if (normal.pool().gave_up > 0) return {"simplify does not end on " + to_string(t), 0};
  if (simplify(normal) != normal) return {"simplify is not idempotent on " + to_string(t), 0};
  out.fault = disagreement(t, normal, out.points);
  return out;
}

}  // namespace tessera::term::testing
