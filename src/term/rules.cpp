#include "term/rules.h"

#include <fmt/format.h>
#include <set>

namespace tessera::term {
namespace {

std::span<const Rule> rules_for(Op op) {
  switch (op) {
    case Op::add:
    case Op::subtract:
    case Op::multiply:
      return sum_rules();
    case Op::divide:
      return division_rules();
    case Op::remainder:
      return remainder_rules();
    case Op::bit_xor:
    case Op::bit_and:
    case Op::bit_or:
    case Op::shift_left:
    case Op::shift_right:
      return bit_rules();
    case Op::min:
    case Op::max:
    case Op::select:
      return choice_rules();
    default:
      return op >= Op::equal ? logic_rules() : std::span<const Rule>{};
  }
}

class Simplifier {
 public:
  Term normal(Term t) {
    Pool& pool = t.pool();
    if (Term known = pool.step(t).normal) return known;
    if (--left_ < 0) {
      if (left_ == -1) ++pool.gave_up;
      return t;
    }
    const Term before = with_normal_arguments(t);
    Pool::Step step{before, nullptr, before, before};
    for (const Rule& rule : rules_for(before->op)) {
      const Term after = rule.apply(pool, before);
      if (after == before) continue;
      step.rule = &rule;
      step.next = after;
      step.normal = normal(after);
      break;
    }
    if (left_ < 0) return step.normal;  // not known to be normal
    pool.step(t) = step;
    pool.step(before) = step;
    return step.normal;
  }

 private:
  Term with_normal_arguments(Term t) {
    if (t->args.empty()) return t;
    std::vector<Term> args;
    args.reserve(t->args.size());
    for (Term a : t->args) args.push_back(normal(a));
    if (args == t->args) return t;
    Pool& pool = t.pool();
    if (t->op == Op::read) return *pool.read(t->symbol, std::move(args));
    // The facts of a simplified divisor may be weaker than those of the one that was accepted.
    Result<Term> made = pool.make(t->op, std::move(args));
    return made ? *made : t;
  }

  int left_ = most_steps;
};

void gather(Term t, std::set<const Node*>& seen, Trace& out) {
  if (!seen.insert(t.node()).second) return;
  for (Term a : t->args) gather(a, seen, out);
  const Pool::Step step = t.pool().step(t);
  if (!step.next) return;
  if (step.rule == nullptr) {
    if (step.before != t) gather(step.before, seen, out);
    return;
  }
  seen.insert(step.before.node());
  out.push_back({step.rule, step.before, step.next});
  gather(step.next, seen, out);
}

}  // namespace

Term simplify(Term t, Trace* trace) {
  const Term out = Simplifier().normal(t);
  if (trace != nullptr) {
    std::set<const Node*> seen;
    gather(t, seen, *trace);
  }
  return out;
}

std::span<const RuleFamily> rule_families() {
  static const RuleFamily families[] = {
      {"sums", sum_rules()}, {"division", division_rules()}, {"remainders", remainder_rules()},
      {"bits", bit_rules()}, {"choices", choice_rules()},    {"logic", logic_rules()}};
  return families;
}

const Rule* find_rule(std::string_view name) {
  for (const RuleFamily& family : rule_families())
    for (const Rule& rule : family.rules)
      if (rule.name == name) return &rule;
  return nullptr;
}

namespace {

// A bar ends a cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

std::string rules_as_markdown() {
  std::string out;
  for (const RuleFamily& family : rule_families()) {
    out += fmt::format("\n### {}\n\n| rule | law | applies where |\n|---|---|---|\n", family.name);
    for (const Rule& r : family.rules)
      out += fmt::format("| `{}` | `{}` | {} |\n", r.name, cell(r.law),
                         r.condition.empty() ? "always" : cell(r.condition));
  }
  return out;
}

}  // namespace tessera::term
