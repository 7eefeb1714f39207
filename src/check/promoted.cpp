#include "check/promoted.h"

#include <algorithm>
#include <set>

#include "check/footprint.h"
#include "check/formula.h"
#include "check/launch.h"
#include "core/site.h"
#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

/// An op of the loop's body, with the conditions on its way there.
struct Met {
  const core::Op* op;
  std::vector<Term> conditions;
  bool plain = true;  // all that stands around it in the loop are branches
};

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void meet(const core::Body& body, const Met& around, std::vector<Met>& out) {
  for (const core::Op& op : body) {
    Met here = around;
    here.op = &op;
    if (const auto* branch = op.as<core::If>()) {
      here.conditions.push_back(branch->condition);
      meet(branch->body, here, out);
      here.conditions.back() = logical_not(branch->condition);
      meet(branch->otherwise, here, out);
    } else if (const auto* loop = op.as<core::For>()) {
      here.plain = false;
      meet(loop->body, here, out);
    } else if (const auto* elected = op.as<core::Elected>()) {
      here.plain = false;
      meet(elected->body, here, out);
    } else {
      out.push_back(here);
    }
  }
}

bool reads(const core::Op& op, core::RegistersId id) {
  if (const auto* c = op.as<core::Compute>())
    return std::any_of(c->inputs.begin(), c->inputs.end(), [&](const auto& in) {
      const auto* run = std::get_if<core::Run>(&in);
      return run != nullptr && run->registers == id;
    });
  const auto* issue = op.as<core::Issue>();
  return issue != nullptr && std::any_of(issue->arguments.begin(), issue->arguments.end(),
                                         [&](const core::Argument& a) {
                                           const auto* slice = std::get_if<core::Slice>(&a);
                                           return slice != nullptr && slice->registers == id;
                                         });
}

bool writes(const core::Op& op, core::RegistersId id) {
  if (const auto* c = op.as<core::Compute>())
    return std::any_of(c->results.begin(), c->results.end(),
                       [&](const core::Run& r) { return r.registers == id; });
  const auto* issue = op.as<core::Issue>();
  if (issue == nullptr) return false;
  for (std::size_t i = 0; i < issue->arguments.size(); ++i)
    if (const auto* slice = std::get_if<core::Slice>(&issue->arguments[i]);
        slice != nullptr && slice->registers == id &&
        issue->form->operands[i].direction != arch::Direction::in)
      return true;
  return false;
}

class Promotions {
 public:
  Promotions(const core::Kernel& kernel, const std::vector<Place>& all, const Place& product,
             const core::For& loop)
      : kernel_(kernel),
        all_(all),
        product_(product),
        loop_(loop),
        sums_(argument<core::Slice>(product.issue(), "d")->registers) {}

  Promoted find() {
    meet(loop_.body, {}, met_);
    std::vector<const Met*> additions;
    for (const Met& m : met_)
      if (adds(m)) additions.push_back(&m);
    if (additions.empty()) return {};
    out_.addition = additions.front()->op;
    if (!additions.front()->plain) return unknown("sums are added up within another loop");
    Promotion to;
    if (!(element_by_element(*out_.addition, to) && alone(to.total, additions) &&
          ahead_of_products(to.total) && each_once(*additions.front())))
      return std::move(out_);
    out_.to = to;
    return std::move(out_);
  }

 private:
  Promoted unknown(std::string why) {
    out_.why = std::move(why);
    return std::move(out_);
  }
  bool give_up(std::string why) {
    out_.why = std::move(why);
    return false;
  }
  bool refute(std::string fault, std::string expected, std::string found) {
    out_.fault = std::move(fault);
    out_.expected = std::move(expected);
    out_.found = std::move(found);
    return false;
  }

  /// Reads the accumulators, and registers that it writes.
  [[nodiscard]] bool adds(const Met& m) const {
    const auto* c = m.op->as<core::Compute>();
    return c != nullptr && reads(*m.op, sums_) &&
           std::any_of(c->results.begin(), c->results.end(), [&](const core::Run& r) {
             return r.registers != sums_ && reads(*m.op, r.registers);
           });
  }

  /// total[slot + off] = total[slot + off] + sums[slot] for all slots of the accumulators.
  bool element_by_element(const core::Op& op, Promotion& to) {
    const auto& c = *op.as<core::Compute>();
    constexpr const char* form = "sums are added up otherwise than element by element";
    if (c.results.size() != 1 || c.inputs.size() != 2) return give_up(form);
    const core::Run& result = c.results[0];
    const core::Run* inputs[] = {std::get_if<core::Run>(c.inputs.data()),
                                 std::get_if<core::Run>(&c.inputs[1])};
    if (inputs[0] == nullptr || inputs[1] == nullptr) return give_up(form);
    if (inputs[0]->registers == sums_) std::swap(inputs[0], inputs[1]);
    const core::Run &before = *inputs[0], &sums = *inputs[1];
    if (before.registers != result.registers || sums.registers != sums_) return give_up(form);
    Formulas formulas;
    const Formulas::Id x = formulas.elements({.tensor = 0}), y = formulas.elements({.tensor = 1});
    if (formulas.results(*c.dag, {x, y}).front() !=
        formulas.call(*pointwise::find("add"), {x, y}))
      return give_up(form);
    if (kernel_[result.registers].element != DType::float32)
      return give_up("sums are added up in another type than f32");
    const auto into = value_of(result.first, {}), old = value_of(before.first, {}),
               from = value_of(sums.first, {}),
               first = value_of(argument<core::Slice>(product_.issue(), "d")->first, {});
    if (!into || !old || !from || !first) return give_up(form);
    std::set<int64_t> slots;
    to = {result.registers, *into + result.steps(0) - *from - sums.steps(0)};
    for (int64_t e = 0; e < c.count; ++e) {
      const int64_t slot = *from + sums.steps(e);
      if (*into + result.steps(e) != slot + to.off || *old + before.steps(e) != slot + to.off ||
          !slots.insert(slot).second)
        return give_up(form);
    }
    const int64_t all = wgmma_of(product_.issue())->c_layout().mode(1).size();
    if (static_cast<int64_t>(slots.size()) == all && *slots.begin() == *first &&
        *slots.rbegin() == *first + all - 1)
      return true;
    return give_up("a part of the accumulators is added up");
  }

  /// Nothing else in the loop changes the total, no accumulators of a product are it.
  bool alone(core::RegistersId total, const std::vector<const Met*>& additions) {
    for (const Met& m : met_) {
      if (m.op == out_.addition || !writes(*m.op, total)) continue;
      const auto again = std::find_if(additions.begin(), additions.end(),
                                      [&](const Met* a) { return a->op == m.op; });
      if (again == additions.end())
        return give_up("what sums are added to is changed otherwise");
      const Term both = logical_and(all_of(*additions.front()), all_of(m));
      if (const auto found = fails(kernel_, product_.loops, logical_not(both)))
        return refute("a sum is added up twice", "once when the accumulators begin anew", *found);
      return give_up("sums are added up in several places");
    }
    if (additions.size() > 1) return give_up("sums are added up in several places");
    return true;
  }

  /// The addition stands before the turn's first product, in the text.
  bool ahead_of_products(core::RegistersId total) {
    for (const Met& m : met_) {
      if (m.op == out_.addition) return true;
      if (const auto* issue = m.op->as<core::Issue>();
          issue != nullptr && wgmma_of(*issue) && writes(*m.op, sums_))
        break;
    }
    return give_up(fmt::format("sums are added to `{}` behind products of the turn",
                               kernel_[total].name));
  }

  Term all_of(const Met& m) {
    Term out = kernel_.pool->truth(true);
    for (Term c : m.conditions) out = logical_and(out, c);
    return out;
  }

  [[nodiscard]] bool read_later(core::RegistersId total) const {
    return std::any_of(all_.begin(), all_.end(), [&](const Place& p) {
      const bool in_loop = std::find(p.loops.begin(), p.loops.end(), &loop_) != p.loops.end();
      return p.role == product_.role && !in_loop && reads(*p.op, total);
    });
  }

  /// O holds in the first turn; P is O in the others. `accumulate` is 0 where O holds, else 1.
  bool each_once(const Met& addition) {
    term::Pool& pool = *kernel_.pool;
    const auto* keeps = argument<core::Integers>(product_.issue(), "accumulate");
    if (keeps == nullptr) return give_up("a wgmma without an accumulate operand");
    const Term begins = keeps->values[0], added = all_of(addition);
    for (Term t : {begins, added})
      if (term::any_node(t, [](Term n) {
            return n->op == term::Op::coordinate || n->op == term::Op::read;
          }))
        return give_up(fmt::format("`{}` depends on the thread or on memory", to_string(t)));
    if (!read_later(out_.addition->as<core::Compute>()->results[0].registers))
      return give_up("sums are added up and never read");
    if (loop_.lower->op != term::Op::constant) return give_up("a loop over k with a varying begin");
    const Result<Term> later =
        pool.derive(fmt::format("turn_from_{}", loop_.lower->value + 1), term::Op::parameter,
                    {.lower = pool.constant(loop_.lower->value + 1)});
    if (!later) return give_up("no name for later turns");
    const auto number = [&](Term p) {
      return pool.must(term::Op::select, {p, pool.constant(1), pool.constant(0)});
    };
    const Term zero = pool.constant(0), one = pool.constant(1), adds = number(added);
    return same(loop_.lower, begins, zero, "the first product of a tile does not overwrite") &&
           same(loop_.lower, adds, zero, "accumulators are added up before they have a sum") &&
           same(*later, adds, one - begins,
                "accumulators are not added up exactly when they begin anew");
  }

  /// In the turn `at`: of the loop's first, or of any later one.
  bool same(Term at, Term left, Term right, const char* fault) {
    const auto there = [&](Term t) { return core::replaced(t, loop_.counter, at); };
    const term::Verdict v = term::equal(there(left), there(right));
    if (v.proved()) return true;
    const Term first = equals(loop_.counter, loop_.lower);
    const Term here = at == loop_.lower ? first : logical_not(first);
    const auto found =
        fails(kernel_, product_.loops, logical_or(logical_not(here), equals(left, right)));
    if (!found) return give_up(v.reason);
    return refute(fault, to_string(term::simplify(right)),
                  fmt::format("{}, at {}", to_string(term::simplify(left)), *found));
  }

  const core::Kernel& kernel_;
  const std::vector<Place>& all_;
  const Place& product_;
  const core::For& loop_;
  core::RegistersId sums_;
  std::vector<Met> met_;
  Promoted out_;
};

}  // namespace

Promoted promoted(const core::Kernel& kernel, const std::vector<Place>& all, const Place& product,
                  const core::For& loop) {
  return Promotions(kernel, all, product, loop).find();
}

}  // namespace tessera::check
