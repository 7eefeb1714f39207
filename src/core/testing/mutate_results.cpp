#include <functional>

#include "core/testing/mutate.h"
#include "core/testing/ops.h"

namespace tessera::core::testing {
namespace {

template <class T>
T* argument(Op& op, std::string_view operand) {
  auto* issue = std::get_if<Issue>(&op.node);
  if (issue == nullptr) return nullptr;
  for (std::size_t i = 0; i < issue->form->operands.size(); ++i)
    if (issue->form->operands[i].name == operand) return std::get_if<T>(&issue->arguments[i]);
  return nullptr;
}

std::string name_of(const Op& op) {
  const auto* issue = op.as<Issue>();
  return issue == nullptr ? "" : issue->form->name;
}

/// Addresses of loads and of stores of single threads.
GlobalAt* address(Op& op) {
  const std::string name = name_of(op);
  if (name.starts_with("load.global")) return argument<GlobalAt>(op, "from");
  return name.starts_with("store.global") ? argument<GlobalAt>(op, "to") : nullptr;
}

// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term replaced(Term t, Term what, Term by) {
  if (t == what) return by;
  std::vector<Term> args;
  for (Term a : t->args) args.push_back(replaced(a, what, by));
  return args == t->args ? t : t.pool().must(t->op, std::move(args));
}

/// What was done, or nothing where the edit does not apply.
using Edit = std::function<std::optional<std::string>(Kernel&, Op&)>;

/// Index `d` of an address from the end, moved; the bound with it or not.
Edit moved_index(std::size_t d, int64_t by, bool with_bound) {
  return [=](Kernel&, Op& op) -> std::optional<std::string> {
    GlobalAt* at = address(op);
    if (at == nullptr || d >= at->at.size()) return std::nullopt;
    Term& t = at->at[at->at.size() - 1 - d];
    const Term before = t;
    t = t + by;
    auto* inside = argument<Integers>(op, "inside");
    if (with_bound && inside != nullptr) inside->values[0] = replaced(inside->values[0], before, t);
    return fmt::format("index {} from the end of `{}` moved by {}", d, name_of(op), by);
  };
}

std::optional<std::string> unbounded(Kernel& k, Op& op) {
  auto* inside = argument<Integers>(op, "inside");
  if (inside == nullptr) return std::nullopt;
  inside->values[0] = k.pool->constant(1);
  return fmt::format("`{}` happens everywhere", name_of(op));
}

std::optional<std::string> exchanged_indices(Kernel&, Op& op) {
  GlobalAt* at = address(op);
  if (at == nullptr || at->at.size() < 2) return std::nullopt;
  std::swap(at->at[at->at.size() - 1], at->at[at->at.size() - 2]);
  return fmt::format("`{}` takes rows for columns", name_of(op));
}

std::optional<std::string> first_slot(Kernel&, Op& op) {
  if (address(op) == nullptr) return std::nullopt;
  for (std::string_view operand : {"from", "to"})
    if (auto* slice = argument<Slice>(op, operand)) slice->first = slice->first * 0;
  return fmt::format("`{}` has always the first registers", name_of(op));
}

/// A function with one node changed.
Edit function(const std::string& how,
              const std::function<bool(pointwise::Dag& dag, Compute& c)>& change) {
  return [=](Kernel&, Op& op) -> std::optional<std::string> {
    auto* c = std::get_if<Compute>(&op.node);
    if (c == nullptr || c->inputs.empty()) return std::nullopt;
    auto dag = std::make_shared<pointwise::Dag>(*c->dag);
    if (!change(*dag, *c)) return std::nullopt;
    c->dag = dag;
    return how;
  };
}

/// `t` with its first comparison that there is changed: < for <=, or <= for <.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term other_comparison(Term t) {
  if (t->op == term::Op::less || t->op == term::Op::less_equal)
    return t.pool().must(t->op == term::Op::less ? term::Op::less_equal : term::Op::less, t->args);
  std::vector<Term> args = t->args;
  for (Term& a : args) {
    const Term before = a;
    a = other_comparison(a);
    if (a != before) return t.pool().must(t->op, std::move(args));
  }
  return t;
}

/// What is compared with places of registers, as a mask of scores is, is off by one.
std::optional<std::string> other_mask(Kernel&, Op& op) {
  auto* c = std::get_if<Compute>(&op.node);
  if (c == nullptr) return std::nullopt;
  for (auto& in : c->inputs)
    if (auto* t = std::get_if<Term>(&in)) {
      const Term changed = other_comparison(*t);
      if (changed == *t) continue;
      *t = changed;
      return "a mask has <= for <, or < for <=";
    }
  return std::nullopt;
}

/// A term of the box's corner, from the end, changed.
Edit corner(std::string_view form, std::size_t d, const std::string& how,
            const std::function<std::optional<Term>(Term)>& change) {
  return [=](Kernel&, Op& op) -> std::optional<std::string> {
    auto* at = name_of(op).starts_with(form) ? argument<Integers>(op, "at") : nullptr;
    if (at == nullptr || d >= at->values.size()) return std::nullopt;
    const std::optional<Term> changed = change(at->values[d]);
    if (!changed) return std::nullopt;
    at->values[d] = *changed;
    return fmt::format("`{}`: {}", name_of(op), how);
  };
}

std::optional<std::string> dropped(Kernel& k, Op& op) {
  auto* c = std::get_if<Compute>(&op.node);
  if (c == nullptr) return std::nullopt;
  op.node = If{k.pool->truth(false), {}, {}};
  return "a computation is gone";
}

std::optional<std::string> turned(Kernel& k, Op& op, std::string_view operand) {
  auto* flag = argument<Integers>(op, operand);
  if (flag == nullptr) return std::nullopt;
  flag->values[0] = k.pool->constant(1) - flag->values[0];
  return fmt::format("{} is the other way round", operand);
}

/// The rank in an argument of a copy is that of the other block, or of the first.
Edit other_rank(std::string_view operand, bool first) {
  return [=](Kernel& k, Op& op) -> std::optional<std::string> {
    if (!name_of(op).starts_with("tma.")) return std::nullopt;
    const Term by = first ? k.pool->constant(0) : k.pool->constant(1) - k.at.rank;
    auto* at = argument<Integers>(op, operand);
    auto* to = argument<SharedAt>(op, operand);
    if (at == nullptr && to == nullptr) return std::nullopt;
    bool any = false;
    for (Term& t : at != nullptr ? at->values : to->at) {
      const Term changed = replaced(t, k.at.rank, by);
      any |= changed != t;
      t = changed;
    }
    if (!any) return std::nullopt;
    return fmt::format("`{}` has in `{}` the rank of {}", name_of(op), operand,
                       first ? "the first block" : "the other block");
  };
}

std::vector<std::pair<std::string, Edit>> edits() {
  using Kind = pointwise::Dag::Node::Kind;
  const auto more = [](Term t) { return std::optional(t + 1); };
  const auto first_panel = [](Term t) {
    return t->op == term::Op::add && t->args[1]->op == term::Op::constant
               ? std::optional(t->args[0])
               : std::nullopt;
  };
  return {
      {"moved_index", moved_index(0, 2, false)},
      {"moved_index", moved_index(0, 2, true)},
      {"moved_index", moved_index(1, 1, false)},
      {"moved_index", moved_index(1, 1, true)},
      {"moved_index", moved_index(2, 1, false)},
      {"unbounded", unbounded},
      {"exchanged_indices", exchanged_indices},
      {"first_slot", first_slot},
      {"other_constant", function("a constant is another",
                                  [](pointwise::Dag& dag, Compute&) {
                                    for (auto& n : dag.nodes)
                                      if (n.kind == Kind::constant) return n.constant += 1, true;
                                    return false;
                                  })},
      {"dropped_function", function("a function is left out",
                                    [](pointwise::Dag& dag, Compute&) {
                                      int& result = dag.results[0];
                                      const auto& n = dag.nodes[static_cast<std::size_t>(result)];
                                      if (n.kind != Kind::call) return false;
                                      return result = n.arguments[0], true;
                                    })},
      {"exchanged_inputs", function("two inputs are exchanged",
                                    [](pointwise::Dag&, Compute& c) {
                                      if (c.inputs.size() < 3) return false;
                                      return std::swap(c.inputs[1], c.inputs[2]), true;
                                    })},
      {"dropped_computation", dropped},
      {"other_mask", other_mask},
      {"next_batch", corner("tma.", 2, "the next batch", more)},
      {"panel_twice", corner("tma.load", 0, "the first panel again", first_panel)},
      {"other_rank", other_rank("at", false)},
      {"first_rank", other_rank("at", true)},
      {"other_rank_in_shared", other_rank("to", false)},
      {"first_rank_in_shared", other_rank("to", true)},
      {"turned_a", [](Kernel& k, Op& op) { return turned(k, op, "transpose_a"); }},
      {"turned_b", [](Kernel& k, Op& op) { return turned(k, op, "transpose_b"); }},
  };
}

}  // namespace

std::vector<Mutant> result_mutants(const Kernel& kernel) {
  std::vector<Mutant> out;
  Kernel original = kernel;
  const std::vector<Op*> all = ops_of(original.body);
  for (const auto& [name, edit] : edits()) {
    int found = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Kernel copy = kernel;
      const std::vector<Op*> ops = ops_of(copy.body);
      if (const std::optional<std::string> what = edit(copy, *ops[i]))
        out.push_back({name, Breaks::data, found++, *what, std::move(copy)});
    }
  }
  return out;
}

}  // namespace tessera::core::testing
