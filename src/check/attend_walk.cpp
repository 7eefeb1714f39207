#include "check/attend_walk.h"

#include <algorithm>
#include <numbers>

#include "check/launch.h"
#include "check/steady.h"
#include "core/walk.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

constexpr int turns = 4;  // that are walked: one after those that two others stand for

}  // namespace

AttendWalk::AttendWalk(const core::Kernel& kernel, AttendProducts& products, SeenKeys& seen,
                       Online& online, const Attention& means)
    : kernel_(kernel),
      products_(products),
      seen_(seen),
      online_(online),
      scale_((means.adds ? 1 : means.scale) * std::numbers::log2e),
      inner_(means.inner),
      means_(means),
      whole_depth_((uint64_t{1} << (products.depth / 16)) - 1) {
  values_.assign(4096, -1);
  state_.registers.assign(static_cast<std::size_t>(products.role->warps),
                          std::vector<std::vector<Cell>>(kernel.registers.size()));
  state_.shared.assign(static_cast<std::size_t>(kernel.shared_bytes() / 2 + 1), {});
}

bool AttendWalk::give_up(std::string why) {
  failed_ = true;
  if (!varying_.empty())
    why += fmt::format("; `{}` is not known to be the same from the third turn on", varying_);
  return products_.give_up("reduction", std::move(why));
}

bool AttendWalk::known(const Expression& e) const {
  return std::all_of(e.symbols().begin(), e.symbols().end(), [&](int s) {
    return static_cast<std::size_t>(s) < values_.size() &&
           values_[static_cast<std::size_t>(s)] >= 0;
  });
}

/// The value of the term where it is known. In the loop over keys one that varies after the third
/// turn is not: the turns that are walked do not stand for those that follow.
std::optional<int64_t> AttendWalk::eval(Term t) {
  auto found = compiled_.find(t.node());
  if (found == compiled_.end()) found = compiled_.emplace(t.node(), Compiled{Expression(t)}).first;
  Compiled& c = found->second;
  return known(c.expression) && keeps(t, c) ? c.expression(values_) : std::nullopt;
}

/// Whether the term has one value from the third turn on.
bool AttendWalk::keeps(Term t, Compiled& of) {
  if (of.turn == Compiled::Turn::not_asked) {
    const Term counter = products_.loop->counter, simple = term::simplify(t);
    const bool by_turn = term::any_node(simple, [&](Term n) { return n == counter; });
    of.turn = !by_turn || steady_from(simple, counter, 2) ? Compiled::Turn::keeps
                                                          : Compiled::Turn::varies;
  }
  if (of.turn == Compiled::Turn::keeps) return true;
  if (varying_.empty()) varying_ = to_string(t);
  return false;
}

/// Whether a value was asked of the term that it does not keep.
bool AttendWalk::varies(Term t) const {
  const auto found = compiled_.find(t.node());
  return found != compiled_.end() && found->second.turn == Compiled::Turn::varies;
}

std::vector<AttendWalk::Cell>& AttendWalk::slots(int warp, core::RegistersId registers) {
  auto& out =
      state_.registers[static_cast<std::size_t>(warp)][static_cast<std::size_t>(registers.index)];
  if (out.empty()) out.assign(static_cast<std::size_t>(lanes * kernel_[registers].slots()), {});
  return out;
}

AttendWalk::Cell& AttendWalk::slot(int warp, int lane, core::RegistersId registers, int64_t at) {
  static Cell outside;
  std::vector<Cell>& all = slots(warp, registers);
  const auto i = static_cast<std::size_t>(lane + lanes * at);
  if (at >= 0 && i < all.size()) return all[i];
  give_up("an index leaves its registers");
  return outside = {};
}

/// Tells what the last operation found wrong.
bool AttendWalk::told(const core::Op& op, int warp, int lane) {
  if (online_.needs_a_key && needing_ == nullptr) needing_ = &op;
  if (online_.fault.kind.empty()) return true;
  const Online::Fault f = std::move(online_.fault);
  online_.fault = {};
  failed_ = true;
  if (f.kind == "mask" && online_.masked_score != Online::none) {
    // The texts differ; whether what they hide does, small launches say.
    const Online::Value& s = online_[online_.masked_score];
    const auto found = mask_fails(s);
    if (!found)
      return products_.give_up(
          "mask", fmt::format("it is not known that keys are hidden where {}, and not where {}",
                              seen_.text(s.row, s.column), seen_.text(s.mask)));
    return products_.refute(f.kind, &op, products_.role->first_warp + warp, f.message, f.expected,
                            f.found + ", as at " + *found, f.help);
  }
  return products_.refute(f.kind, &op, products_.role->first_warp + warp,
                          fmt::format("{}", f.message), f.expected,
                          fmt::format("{} (lane {}, turn {})", f.found, lane, turn_), f.help);
}

/// A small launch in which the mask hides another key of a row than the meaning.
std::optional<std::string> AttendWalk::mask_fails(const Online::Value& s) {
  const Term outside = term::less_equal(products_.queries(), products_.row_corner + s.row);
  return fails_at_lengths(kernel_, products_.loops(),
                          term::logical_or(outside, seen_.claim(s.mask, s.row, s.column)),
                          products_.lengths());
}

/// What follows the loop, had it ended with this turn.
bool AttendWalk::ended(core::Body::const_iterator from, core::Body::const_iterator to,
                       const std::vector<int>& warps) {
  const State kept = state_;
  const int turn = turn_++;
  behind_ = true;
  stored_.assign(static_cast<std::size_t>(products_.rows * products_.columns), 0);
  for (; from != to; ++from)
    if (!one(*from, warps)) return false;
  if (failed_ || !covered(turn_)) return false;
  behind_ = false;
  turn_ = turn;
  state_ = kept;
  return true;
}

bool AttendWalk::run() {
  std::vector<int> warps;
  for (int w = 0; w < products_.role->warps; ++w) warps.push_back(w);
  // Nothing is known of what the tile before left.
  const core::Body& all = products_.body();
  const auto at = std::find_if(all.begin(), all.end(), [&](const core::Op& op) {
    return op.as<core::For>() == products_.loop;
  });
  const auto outside = [&](auto from, auto to) {
    for (; from != to; ++from)
      if (!one(*from, warps)) return false;
    return !failed_;
  };
  if (!outside(all.begin(), at)) return false;
  Registers before;
  for (turn_ = 0; turn_ < turns; ++turn_) {
    value_of_symbol(products_.loop->counter) = turn_;
    if (!body(products_.loop->body, warps)) return false;
    value_of_symbol(products_.loop->counter) = -1;
    if (turn_ + 1 < turns && !ended(at + 1, all.end(), warps)) return false;
    Registers like;
    if (turn_ >= 2) {
      if (!settled(like, turn_)) return false;
      if (turn_ == turns - 1 && like != before)
        return give_up("what a turn leaves in registers is not known to repeat");
      before = std::move(like);
    }
  }
  return true;
}

/// The state with turns before the last as one.
bool AttendWalk::settled(Registers& out, int turn) {
  out = state_.registers;
  std::unordered_map<Id, Id> done;
  for (auto& of_warp : out)
    for (auto& slots : of_warp)
      for (Cell& cell : slots) {
        Id& value = cell.value;
        const auto [found, is_new] = done.try_emplace(value, Online::none);
        if (is_new) found->second = online_.as_of(value, turn);
        value = found->second;
      }
  if (!online_.irregular) return true;
  return give_up("the keys that a turn takes in are not known to be the same in each turn");
}

bool AttendWalk::body(const core::Body& b, const std::vector<int>& warps) {
  for (const core::Op& op : b)
    if (failed_ || !one(op, warps)) return false;
  return !failed_;
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool AttendWalk::one(const core::Op& op, const std::vector<int>& warps) {
  if (const auto* loop = op.as<core::For>()) {
    if (!loop->unroll) return give_up("another loop stands beside that over keys");
    int64_t& counter = value_of_symbol(loop->counter);
    for (int64_t n = loop->lower->value; n < loop->upper->value; n += loop->step->value) {
      counter = n;
      if (!body(loop->body, warps)) return false;
    }
    counter = -1;
    return true;
  }
  if (op.as<core::If>() != nullptr) return branch(op, warps);
  if (const auto* elected = op.as<core::Elected>()) {
    const bool outside = std::exchange(one_lane_, true);
    const bool fine = body(elected->body, warps);
    one_lane_ = outside;
    return fine;
  }
  if (op.as<core::Compute>() != nullptr) return compute(op, warps);
  if (const auto* declared = op.as<core::Declare>()) {
    for (int w : warps)
      std::fill(slots(w, declared->registers).begin(), slots(w, declared->registers).end(), Cell{});
    return true;
  }
  if (op.as<core::Issue>() != nullptr) return issue(op, warps);
  if (core::is_tags(op)) return true;
  return give_up("a role stands in a role");
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool AttendWalk::branch(const core::Op& op, const std::vector<int>& warps) {
  const auto& branch = *op.as<core::If>();
  const Term condition = term::simplify(branch.condition);
  std::vector<int> yes, no;
  for (int w : warps) {
    value_of_symbol(products_.role->warp) = w;
    const std::optional<int64_t> v = eval(condition);
    if (!v && leaves_alone(branch.body) && leaves_alone(branch.otherwise)) return true;
    if (!v) return guarded(branch, warps);
    (*v != 0 ? yes : no).push_back(w);
  }
  return (yes.empty() || body(branch.body, yes)) && (no.empty() || body(branch.otherwise, no));
}

/// A branch that depends on the launch may mask scores, and do nothing else.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool AttendWalk::guarded(const core::If& branch, const std::vector<int>& warps) {
  const std::optional<Condition> compiled = seen_.compile(term::simplify(branch.condition));
  std::map<int, Any> guards;
  for (int w : warps) {
    value_of_symbol(products_.role->warp) = w;
    const std::optional<Any> guard = compiled ? seen_.at(*compiled, false, values_) : std::nullopt;
    if (guard && !guard->empty()) guards.emplace(w, *guard);
  }
  const bool masks = std::all_of(branch.body.begin(), branch.body.end(), [](const core::Op& op) {
    return op.as<core::Compute>() != nullptr || op.as<core::Declare>() != nullptr ||
           core::is_tags(op);
  });
  if (guards.size() != warps.size() || !masks || !branch.otherwise.empty() || masking_ || one_lane_)
    return give_up(
        fmt::format("what stands under `{}` is not followed", to_string(branch.condition)));
  const auto before = state_.registers;
  masking_ = true;
  const bool fine = body(branch.body, warps);
  masking_ = false;
  if (!fine) return false;
  for (const auto& [warp, guard] : guards) {
    const auto w = static_cast<std::size_t>(warp);
    for (std::size_t r = 0; r < before[w].size(); ++r)
      for (std::size_t i = 0; i < before[w][r].size(); ++i) {
        Cell& now = state_.registers[w][r][i];
        const Cell old = before[w][r][i];
        if (now == old) continue;
        now.value = online_.under(now.value, old.value, guard);
        if (now.value == Online::none && old.value != Online::none)
          return give_up(fmt::format("registers `{}` depend on `{}`", kernel_.registers[r].name,
                                     to_string(branch.condition)));
      }
  }
  return true;
}

AttendWalk::Cell AttendWalk::operand(const std::variant<core::Run, Term>& in, int64_t step,
                                     int warp, int lane) {
  if (const auto* run = std::get_if<core::Run>(&in)) {
    const std::optional<int64_t> first = eval(run->first);
    if (!first) return give_up("the registers of a computation are not known"), Cell{};
    return slot(warp, lane, run->registers, *first + step);
  }
  const Term t = std::get<Term>(in);
  if (const std::optional<int64_t> v = eval(t))
    return {online_.number(static_cast<double>(*v)), -1, 0};
  auto found = conditions_.find(t.node());
  if (found == conditions_.end()) found = conditions_.emplace(t.node(), seen_.compile(t)).first;
  if (!found->second) {
    give_up(fmt::format("`{}` is no condition that is followed", to_string(t)));
    return {};
  }
  const std::optional<Any> yes = seen_.at(*found->second, false, values_),
                           no = seen_.at(*found->second, true, values_);
  return {online_.condition(seen_.condition({yes, no})), -1, 0};
}

/// Scores are read when they are sums over the whole depth.
bool AttendWalk::whole(const std::vector<Cell>& operands) {
  for (const Cell& c : operands) {
    if (c.value == Online::none || online_[c.value].kind != Online::Kind::score ||
        c.depth == whole_depth_)
      continue;
    online_.fault = {"reduction", "a score leaves out a part of the depth", "the sum over each d",
                     online_.text(c.value) + fmt::format(", of sixteenths {:#x} of d", c.depth),
                     "let the steps of the products cover the depth"};
    return false;
  }
  return true;
}

/// The one column of all operands that have one.
bool AttendWalk::column_of(const std::vector<Cell>& operands, int& column) {
  column = -1;
  for (const Cell& c : operands) {
    if (c.column < 0) continue;
    if (column >= 0 && column != c.column)
      return give_up("sums of different columns of the values come together");
    column = c.column;
  }
  return true;
}

bool AttendWalk::compute(const core::Op& op, const std::vector<int>& warps) {
  const auto& c = *op.as<core::Compute>();
  if (one_lane_) return give_up("one lane computes alone");
  std::vector<Cell> cells(c.inputs.size());
  std::vector<Id> operands(c.inputs.size());
  int column = -1;
  int64_t& lane_value = value_of_symbol(kernel_.at.lane);
  for (int w : warps) {
    value_of_symbol(products_.role->warp) = w;
    for (int lane = 0; lane < lanes; ++lane) {
      lane_value = lane;
      for (int64_t e = 0; e < c.count; ++e) {
        if (c.element) value_of_symbol(c.element) = e;
        for (std::size_t i = 0; i < c.inputs.size(); ++i) {
          const auto* run = std::get_if<core::Run>(&c.inputs[i]);
          cells[i] = operand(c.inputs[i], run != nullptr ? run->steps(e) : 0, w, lane);
          operands[i] = cells[i].value;
        }
        if (!column_of(cells, column)) return false;
        if (!whole(cells)) return told(op, w, lane);
        const std::vector<Id> made = online_.results(*c.dag, operands);
        if (failed_ || !told(op, w, lane)) return lane_value = -1, false;
        for (std::size_t r = 0; r < made.size(); ++r)
          slot(w, lane, c.results[r].registers,
               eval(c.results[r].first).value_or(-1) + c.results[r].steps(e)) = {
              made[r], online_.of_values(made[r]) ? column : -1,
              made[r] != Online::none && online_[made[r]].kind == Online::Kind::score ? whole_depth_
                                                                                      : 0};
      }
    }
  }
  if (c.element) value_of_symbol(c.element) = -1;
  lane_value = -1;
  return !failed_;
}

}  // namespace tessera::check
