#include "check/tile.h"

#include <algorithm>

#include "check/footprint.h"
#include "term/rules.h"

namespace tessera::check {

Tile::Tile(const core::Kernel& kernel, const std::vector<Place>& all, const Place& product,
           const Runs& runs, const Means& means)
    : kernel_(kernel),
      means_(means),
      role_(crew_of(kernel, product.role)),
      product_(product),
      turns_(runs.steady + runs.period) {
  for (const Place& p : all) places_.emplace(p.op, &p);
  if (means.sums() && product.loops.size() == 2) {
    turn_ = product.loops[0];
    sums_ = product.loops[1];
  }
  if (!means.sums() && product.loops.size() == 1) turn_ = product.loops[0];
  if (!means.multiplies()) return;
  const arch::Wgmma w = *wgmma_of(product.issue());
  const Layout c = w.c_layout();
  const int64_t slots = c.mode(1).size();
  place_.resize(static_cast<std::size_t>(arch::Wgmma::threads * slots));
  for (std::size_t i = 0; i < place_.size(); ++i) place_[i] = c(static_cast<int64_t>(i));
}

Tile::Crew Tile::crew_of(const core::Kernel& kernel, const core::Role* role) {
  if (role == nullptr) return {nullptr, 0, kernel.threads / 32, kernel.at.warp, &kernel.body};
  return {role, role->first_warp, role->warps, role->warp, &role->body};
}

const Expression& Tile::compiled(Term t) {
  auto found = compiled_.find(t.node());
  if (found == compiled_.end()) found = compiled_.emplace(t.node(), Expression(t)).first;
  return found->second;
}

int64_t Tile::eval(Term t) {
  const Expression& e = compiled(t);
  for (int s : e.symbols())
    if (static_cast<std::size_t>(s) >= values_.size() || values_[static_cast<std::size_t>(s)] < 0) {
      if (why.empty()) why = fmt::format("`{}` is not known there", to_string(t));
      return 0;
    }
  const std::optional<int64_t> out = e(values_);
  if (!out && why.empty()) why = fmt::format("`{}` has no value", to_string(t));
  return out.value_or(0);
}

/// Of a term that the runs know to repeat from turn to turn.
int64_t Tile::in_turn(Term t) {
  auto found = simple_.find(t.node());
  if (found == simple_.end()) found = simple_.emplace(t.node(), term::simplify(t)).first;
  if (turn_ == nullptr) return eval(found->second);
  const Term counter = turn_->counter;
  by_turn_ |= term::any_node(found->second, [&](Term n) { return n == counter; });
  value_of_symbol(counter) = turn_number_;
  const int64_t out = eval(found->second);
  value_of_symbol(counter) = -1;
  return out;
}

Tile::Id& Tile::slot(int warp, core::RegistersId registers, int64_t slot) {
  static Id outside;
  auto& slots =
      registers_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(registers.index)];
  if (slots.empty()) slots.assign(static_cast<std::size_t>(kernel_[registers].slots()), -1);
  if (slot >= 0 && slot < static_cast<int64_t>(slots.size()))
    return slots[static_cast<std::size_t>(slot)];
  if (why.empty()) why = "an index leaves its registers";
  return outside = Formulas::none;
}

void Tile::run() {
  if (turn_ == nullptr && means_.sums()) {
    why = "products do not stand in two loops";
    return;
  }
  values_.assign(4096, -1);
  bases_[absolute] = kernel_.pool->constant(0);
  !means_.sums()        ? corners_of_functions()
  : means_.multiplies() ? corners_of_products()
                        : corners_of_elements();
  if (stopped()) return;
  count_bases();
  last_stores_.assign(means_.outputs.size(), nullptr);
  find_remainders();
  do {
    split_ = false;
    walk_parts();
  } while (split_);
  if (!stopped()) taken_.resize(static_cast<std::size_t>(turns_), taken_.front());
  for (const auto& [op, place] : places_) {
    if (stopped() || place->role != role_.role || op->as<core::Issue>() == nullptr ||
        walked_.contains(op))
      continue;
    for (const arch::Access& a : place->issue().form->effects.accesses)
      if (a.space == arch::Space::global && a.action != arch::Action::read)
        why = "a store stands elsewhere than behind the products of a turn";
  }
}

void Tile::turn() {
  multiplied_ = false;
  stored_.assign(means_.outputs.size(),
                 std::vector<int>(static_cast<std::size_t>(rows_ * columns_), 0));
  registers_.assign(static_cast<std::size_t>(role_.warps),
                    std::vector<std::vector<Id>>(kernel_.registers.size()));
  shared_.assign(static_cast<std::size_t>(kernel_.shared_bytes() / 2 + 1), {});
  std::vector<int> warps;
  for (int w = 0; w < role_.warps; ++w) warps.push_back(w);
  if (turn_ == nullptr) {
    body(*role_.body, warps);
    if (!stopped()) multiplied_ ? covered() : left_out();
    return;
  }
  // What stands before the loop of turns may leave its values in registers.
  for (const core::Op& op : *role_.body) {
    if (op.as<core::For>() == turn_) {
      body(turn_->body, warps);
      if (!stopped()) multiplied_ ? covered() : left_out();
      return;
    }
    before_turns_ = true;
    body({op}, warps);
    before_turns_ = false;
  }
  if (why.empty()) why = "the loop of turns stands in another op";
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void Tile::body(const core::Body& b, const std::vector<int>& warps) {
  for (const core::Op& op : b) {
    if (stopped()) return;
    if (const auto* loop = op.as<core::For>()) {
      if (loop == sums_) {
        means_.multiplies() ? products(warps) : elements(warps);
        continue;
      }
      if (!loop->unroll) {
        why = "another loop stands beside that of the products";
        return;
      }
      int64_t& counter = value_of_symbol(loop->counter);
      for (counter = loop->lower->value; counter < loop->upper->value; counter += loop->step->value)
        body(loop->body, warps);
      counter = -1;
    } else if (const auto* branch = op.as<core::If>()) {
      std::vector<int> yes, no;
      for (int w : warps) {
        value_of_symbol(role_.warp) = w;
        (condition(branch->condition) != 0 ? yes : no).push_back(w);
      }
      if (!yes.empty()) body(branch->body, yes);
      if (!no.empty()) body(branch->otherwise, no);
    } else if (const auto* elected = op.as<core::Elected>()) {
      const bool outside = std::exchange(one_lane_, true);
      body(elected->body, warps);
      one_lane_ = outside;
    } else if (op.as<core::Compute>() != nullptr) {
      compute(op, warps);
    } else if (op.as<core::Issue>() != nullptr) {
      issue(op, warps);
    }
  }
}

/// What a turn leaves in registers is not followed to the next one.
bool Tile::may_write(core::RegistersId registers) {
  if (before_turns_) written_before_.insert(registers);
  if (!before_turns_ && written_before_.contains(registers))
    why = fmt::format("registers `{}` go from turn to turn", kernel_[registers].name);
  return why.empty();
}

void Tile::compute(const core::Op& op, const std::vector<int>& warps) {
  const auto& c = *op.as<core::Compute>();
  const auto steps_of = [&](const core::Run& r) {
    std::vector<int64_t> out;
    for (int64_t e = 0; e < c.count; ++e) out.push_back(r.steps(e));
    return out;
  };
  std::vector<std::vector<int64_t>> inputs, results;
  for (const auto& in : c.inputs) {
    const auto* run = std::get_if<core::Run>(&in);
    inputs.push_back(run != nullptr ? steps_of(*run) : std::vector<int64_t>());
  }
  if (one_lane_) {
    why = "one lane computes alone";
    return;
  }
  for (const core::Run& r : c.results) {
    results.push_back(steps_of(r));
    if (!may_write(r.registers)) return;
    if (!is_floating(kernel_[r.registers].element)) {
      why = "sums become integers";
      return;
    }
  }
  for (int w : warps) {
    value_of_symbol(role_.warp) = w;
    for (int64_t e = 0; e < c.count && !stopped(); ++e) {
      const auto at = static_cast<std::size_t>(e);
      if (c.element) value_of_symbol(c.element) = e;
      std::vector<Id> operands;
      for (std::size_t i = 0; i < c.inputs.size(); ++i) {
        const auto* run = std::get_if<core::Run>(&c.inputs[i]);
        operands.push_back(
            run != nullptr
                ? slot(w, run->registers, eval(run->first) + inputs[i][at])
                : formulas_.number(static_cast<double>(eval(std::get<Term>(c.inputs[i])))));
      }
      const std::vector<Id> made = formulas_.results(*c.dag, operands);
      for (std::size_t r = 0; r < made.size(); ++r)
        slot(w, c.results[r].registers, eval(c.results[r].first) + results[r][at]) = made[r];
    }
    if (c.element) value_of_symbol(c.element) = -1;
  }
}

void Tile::issue(const core::Op& op, const std::vector<int>& warps) {
  const auto& issue = *op.as<core::Issue>();
  const std::string& name = issue.form->name;
  walked_.insert(&op);
  if (one_lane_ && issue.form->effects.issuer != arch::Issuer::elected &&
      std::any_of(issue.arguments.begin(), issue.arguments.end(), [](const core::Argument& a) {
        return std::get_if<core::Slice>(&a) != nullptr;
      })) {
    why = fmt::format("`{}` is done by one lane alone", name);
    return;
  }
  for (int w : warps) {
    value_of_symbol(role_.warp) = w;
    if (name.starts_with("stmatrix"))
      matrices(op, w);
    else if (name.starts_with("store.shared") && !name.ends_with(".bounded"))
      vectors(op, w);
    else if (name == "tma.store" || name == "tma.store.hint")
      copy_out(op, w);
    else if (name.starts_with("load.global") || name.starts_with("load.constant"))
      load(op, w);
    else if (name.starts_with("store.global") || name.starts_with("store.streaming"))
      store(op, w);
    else if (!name.starts_with("cache.") &&
             (std::any_of(
                  issue.form->operands.begin(), issue.form->operands.end(),
                  [](const arch::Operand& o) { return o.direction != arch::Direction::in; }) ||
              std::any_of(issue.form->effects.accesses.begin(), issue.form->effects.accesses.end(),
                          [](const arch::Access& a) { return a.action != arch::Action::read; })))
      why = fmt::format("`{}` is not followed", name);
    if (stopped()) return;
  }
}

}  // namespace tessera::check
