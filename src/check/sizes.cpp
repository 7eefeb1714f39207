#include "check/sizes.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

#include "check/steady.h"
#include "term/query.h"
#include "term/rules.h"
#include "term/sum.h"

namespace tessera::check {
namespace {

using term::Op;

/// Depends on parameters, and on what changes within a launch's block on counters of loops of sizes
/// alone.
bool of_parameters(Term t, const std::set<const term::Node*>& counters) {
  bool some = false;
  const bool other = term::any_node(t, [&](Term n) {
    some |= n->op == Op::parameter;
    return n->op == Op::coordinate || n->op == Op::read ||
           (n->op == Op::counter && counters.count(n.node()) == 0);
  });
  return some && !other;
}

bool has(Term t, Term leaf) {
  return term::any_node(t, [&](Term n) { return n == leaf; });
}

}  // namespace

Sizes::Sizes(const core::Kernel& kernel) : pool_(*kernel.pool) {
  if (kernel.cluster > 1) {
    // The grid has whole clusters, and one at least.
    const Term clusters =
        pool_.must(Op::max, {term::floor_div(kernel.at.blocks, kernel.cluster), pool_.constant(1)});
    const Result<Term> cluster =
        pool_.derive("cluster", Op::parameter, {.lower = pool_.constant(0), .upper = clusters});
    if (cluster) {
      block_ = kernel.at.block;
      in_cluster_ = *cluster * kernel.cluster + kernel.at.rank;
    }
  }
  find(kernel.body, {});
}

Term Sizes::turns(const core::For& loop) {
  Term n = loop.upper - loop.lower;
  if (loop.step->op != Op::constant || loop.step->value != 1)
    n = term::floor_div(n + loop.step - 1, loop.step);
  return term::simplify(by_cluster(n));
}

Term Sizes::by_cluster(Term t) {
  if (!block_ || !has(t, block_)) return t;
  return term::simplify(replace(t, {{block_.node(), in_cluster_}}));
}

bool Sizes::of_sizes(Term t) const {
  return !term::any_node(t, [&](Term n) {
    if (n->op == Op::read) return true;
    return n->op == Op::parameter && std::none_of(all_.begin(), all_.end(), [&](const Size& s) {
             return n == s.symbol || (s.sum && n == s.sum);
           });
  });
}

std::string Sizes::why_not_exact(Term t, Term rewritten) const {
  if (term::any_node(rewritten, [&](Term n) { return carried_.count(n.node()) != 0; }))
    return fmt::format("`{}` adds up over turns what is no number of turns of a loop",
                       to_string(t));
  if (!of_sizes(rewritten))
    return fmt::format("`{}` depends on parameters by more than numbers of turns", to_string(t));
  return "";
}

Term Sizes::alike(Term t) {
  std::map<const term::Node*, Term> by;
  for (const Size& s : all_)
    if (s.sum) by[s.sum.node()] = s.alike;
  return by.empty() ? t : replace(t, by);
}

/// False only where no launch gives the term less than 0.
bool Sizes::may_be_negative(Term t) {
  // Where the quotient is simplified, what it divides may be no number from 0 on.
  if (t->op == Op::divide && t->args[1]->facts.at_least(1)) return may_be_negative(t->args[0]);
  const Term n = term::simplify(by_cluster(t));
  return !n->facts.at_least(0) && !term::always(term::less_equal(pool_.constant(0), n)).proved();
}

void Sizes::add(Term turns, bool negative) {
  if (!of_parameters(turns, outer_) || rewrite(turns) != turns) return;
  Size s;
  s.turns = turns;
  s.least = std::max<int64_t>(turns->facts.lower.value_or(0), 0);
  s.negative = negative;
  const std::string number = std::to_string(all_.size());
  const auto symbol = [&](const std::string& name, int64_t least) {
    return pool_.derive(name, Op::parameter, {.lower = pool_.constant(least)});
  };
  const Result<Term> size = symbol("size_" + number + "_from_" + std::to_string(s.least), s.least);
  const Result<Term> count = symbol("finished_" + number, 0);
  if (!size || !count) return;
  s.symbol = *size;
  s.count = *count;
  s.first = turns;
  for (const term::Node* counter : outer_) {
    const Term c(counter);
    if (!has(turns, c)) continue;
    s.first = term::simplify(replace(s.first, {{counter, pool_.constant(0)}}));
    const Result<Term> sum = symbol("sum_" + number, 0);
    if (!sum || s.sum) return;  // of two loops around: no size
    s.sum = *sum;
    s.alike = c * s.symbol;
  }
  all_.push_back(s);
  rewritten_.clear();
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void Sizes::find(const core::Body& body, const std::vector<int>& around) {
  for (const core::Op& op : body) {
    if (const auto* loop = op.as<core::For>()) {
      std::vector<int> within = around;
      if (!loop->unroll) {
        const bool from_0 = loop->lower->op == Op::constant && loop->lower->value == 0 &&
                            loop->step->op == Op::constant && loop->step->value == 1;
        add(turns(*loop), may_be_negative(from_0 ? loop->upper : turns(*loop)));
        const int size = size_of(*loop);
        if (size >= 0) {
          for (int outer : around) all_[static_cast<std::size_t>(outer)].outer |= outer != size;
          within.push_back(size);
          outer_.insert(loop->counter.node());
        }
        for (const core::Carried& c : loop->carried) carried_[c.symbol.node()] = c;
      }
      find(loop->body, within);
    } else if (const auto* branch = op.as<core::If>()) {
      find(branch->body, around);
      find(branch->otherwise, around);
    } else if (const auto* elected = op.as<core::Elected>()) {
      find(elected->body, around);
    } else if (const auto* role = op.as<core::Role>()) {
      find(role->body, around);
    }
  }
}

int Sizes::size_of(const core::For& loop) {
  const Term n = rewrite(turns(loop));
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (n == all_[i].symbol) return static_cast<int>(i);
  return -1;
}

Term Sizes::rewrite(Term t) {
  // Sizes first: what is simplified may have them no more, as (n - 1) // d * k + k has not n turns.
  return rewrite_within(by_cluster(rewrite_within(t)));
}

// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term Sizes::rewrite_within(Term t) {
  if (const auto carried = carried_.find(t.node()); carried != carried_.end()) {
    const Term amount = rewrite(term::simplify(carried->second.amount));
    for (const Size& s : all_)
      if (s.symbol == amount && s.sum) return s.sum;
    return t;
  }
  if (t->args.empty() && t->op != Op::parameter) return t;
  const auto known = rewritten_.find(t.node());
  if (known != rewritten_.end()) return known->second;
  Term out = t;
  bool is_size = false;
  if (const Term of_cluster = t->predicate() ? Term() : by_cluster(t);
      of_cluster && of_parameters(of_cluster, outer_)) {
    for (const Size& s : all_) {
      const term::Sum rest = term::sum_of(term::simplify(of_cluster - s.turns));
      if (is_size || !rest.is_constant()) continue;
      out = rest.constant == 0 ? s.symbol : s.symbol + rest.constant;
      is_size = true;
    }
  }
  if (!is_size && t->op != Op::read && !t->args.empty()) {
    std::vector<Term> args;
    for (Term a : t->args) args.push_back(rewrite_within(a));
    if (args != t->args) {
      Result<Term> made = pool_.make(t->op, args);
      out = made ? *made : t;
    }
  }
  rewritten_.emplace(t.node(), out);
  return out;
}

// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term Sizes::replace(Term t, const std::map<const term::Node*, Term>& by) {
  const auto found = by.find(t.node());
  if (found != by.end()) return found->second;
  if (t->args.empty() || t->op == Op::read) return t;
  std::vector<Term> args;
  for (Term a : t->args) args.push_back(replace(a, by));
  if (args == t->args) return t;
  return pool_.must(t->op, args);
}

/// Whether the term has the same value at count and count + period, whatever the other counts are.
bool Sizes::repeats(Term t, Term count, int64_t period) {
  const Term zero = pool_.constant(0), one = pool_.constant(1);
  const auto number = [&](Term x) {
    return x->predicate() ? pool_.must(Op::select, {x, one, zero}) : x;
  };
  return term::equal(number(replace(t, {{count.node(), count + period}})), number(t)).proved();
}

Sizes::Shifted Sizes::periodic(Term t) {
  Shifted out{t, std::vector<int64_t>(all_.size(), 1), 0, ""};
  int64_t quotients = 1, remainders = 1;
  term::any_node(t, [&](Term n) {
    if ((n->op == Op::divide || n->op == Op::remainder) && n->args[1]->op == Op::constant) {
      int64_t& into = n->op == Op::divide ? quotients : remainders;
      into = std::lcm(into, n->args[1]->value);
    }
    return false;
  });
  const int64_t period = quotients * remainders;
  if (period > 4096) return {{}, {}, 0, fmt::format("`{}` has a long period", to_string(t))};
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!has(t, all_[i].count)) continue;
    if (!repeats(t, all_[i].count, period))
      return {{}, {}, 0, fmt::format("`{}` does not repeat", to_string(t))};
    out.periods[i] = period;
  }
  return out;
}

/// From which value of the counter on the term has one value.
std::optional<int64_t> Sizes::steady_from(Term t, Term counter) {
  for (int64_t from : {1, 2, 4, 8})
    if (check::steady_from(t, counter, from)) return from;
  return std::nullopt;
}

/// What counts of finished turns stand for: sums over turns, and products of turns.
std::map<const term::Node*, Term> Sizes::counts(const std::vector<Running>& loops,
                                                const std::vector<int>& done,
                                                const std::vector<std::pair<int, int>>& within) {
  const auto is_done = [&](std::size_t size) {
    return std::find(done.begin(), done.end(), static_cast<int>(size)) != done.end();
  };
  std::map<const term::Node*, Term> by;
  if (!loops.empty()) {
    const Term turn = loops[0].counter;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Size& s = all_[i];
      const bool runs = loops.size() > 1 && loops[1].size == static_cast<int>(i);
      const Term base = runs         ? s.count - loops[1].counter
                        : is_done(i) ? s.count - s.symbol
                                     : s.count;
      if (s.sum) {
        by[s.sum.node()] = base;
        continue;
      }
      by[pool_.must(Op::multiply, {turn, s.symbol}).node()] = base;
      by[pool_.must(Op::multiply, {s.symbol, turn}).node()] = base;
    }
  }
  for (const auto& [outer, inner] : within) {
    if (!loops.empty() || !is_done(static_cast<std::size_t>(outer))) continue;
    const Size &o = all_[static_cast<std::size_t>(outer)],
               &i = all_[static_cast<std::size_t>(inner)];
    if (i.sum) continue;
    by[pool_.must(Op::multiply, {o.symbol, i.symbol}).node()] = i.count;
    by[pool_.must(Op::multiply, {i.symbol, o.symbol}).node()] = i.count;
  }
  return by;
}

Sizes::Shifted Sizes::shift(Term t, const std::vector<Running>& loops, const std::vector<int>& done,
                            const std::vector<std::pair<int, int>>& within) {
  const auto is_done = [&](std::size_t size) {
    return std::find(done.begin(), done.end(), static_cast<int>(size)) != done.end();
  };
  std::map<const term::Node*, Term> by = counts(loops, done, within);
  Term out = term::simplify(replace(term::simplify(t), by));
  const auto size_at = [&](const Running& r) { return all_[static_cast<std::size_t>(r.size)]; };
  by.clear();
  int64_t steady = 0;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (is_done(i) && loops.empty()) by[all_[i].symbol.node()] = all_[i].count;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const Term counter = loops[i].counter;
    if (!has(out, counter)) continue;
    if (const std::optional<int64_t> from = steady_from(out, counter)) {
      steady = std::max(steady, *from);
      continue;
    }
    if (i > 0)
      return {
          {}, {}, 0, fmt::format("`{}` starts anew in every turn of the outer loop", to_string(t))};
    by[counter.node()] = size_at(loops[i]).count;
  }
  out = term::simplify(replace(out, by));
  for (const Size& s : all_)
    if (has(out, s.symbol))
      return {{}, {}, 0, fmt::format("`{}` depends on how many turns are left", to_string(t))};
  bool parameter = false;
  term::any_node(out, [&](Term n) {
    if (n->op != Op::parameter && n->op != Op::read) return false;
    parameter |=
        std::none_of(all_.begin(), all_.end(), [&](const Size& s) { return n == s.count; });
    return false;
  });
  if (parameter) return {{}, {}, 0, fmt::format("`{}` depends on a parameter", to_string(t))};
  Shifted shifted = periodic(out);
  shifted.steady = steady;
  return shifted;
}

}  // namespace tessera::check
