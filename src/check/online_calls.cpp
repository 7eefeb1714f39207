// Functions of the kernel's text on what registers hold while a softmax is computed.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "check/online.h"

namespace tessera::check {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

/// where(condition, yes, no).
Online::Id Online::choose(Id condition, Id yes, Id no) {
  const Value c = (*this)[condition], a = (*this)[yes], b = (*this)[no];
  if (c.kind == Kind::number) return c.number != 0 ? yes : no;
  if (c.kind == Kind::is_none) return choose_none(c, yes, no);
  if (c.kind == Kind::element) return shown(condition, yes, no);
  if (c.kind != Kind::condition) return unknown("a choice by a value");
  const SeenKeys::Place& place = seen_.condition(c.mask);
  const bool hides = a.kind == Kind::number && a.number == -infinity;
  const Value& score = hides ? b : a;
  const std::optional<Any>& when = hides ? place.yes : place.no;
  const double fill = a.kind == Kind::number ? a.number : b.number;
  const Value& other = a.kind == Kind::number ? b : a;
  if (other.kind == Kind::score && std::isfinite(fill) && fill > -1e4)
    return wrong("mask", "a key that is not seen has a finite score", "-inf, whose power is 0",
                 fmt::format("{}", fill), "let scores that are masked be -inf");
  if (score.kind != Kind::score || (!hides && (b.kind != Kind::number || b.number != -infinity)))
    return unknown("a choice by place that is no mask of scores");
  if (!when) return unknown("a mask that hides where several conditions hold together");
  Value out = score;
  out.mask = seen_.masked(score.mask, *when, {});
  return intern(out);
}

Online::Id Online::under(Id now, Id before, const Any& guard) {
  if (now == none || before == none) return none;
  Value v = (*this)[now];
  const Value old = (*this)[before];
  if (v.kind != Kind::score || old.kind != Kind::score) return none;
  const int mask = std::exchange(v.mask, old.mask);
  if (v != old) return none;
  v.mask = seen_.guarded(mask, old.mask, guard);
  return intern(v);
}

Online::Id Online::call(const pointwise::Function& f, const std::vector<Id>& of) {
  for (Id i : of)
    if (i == none) return none;
  const std::string_view name = f.name;
  if (name == "add") return add(of[0], of[1]);
  if (name == "mul") return multiply(of[0], of[1]);
  if (name == "sub") {
    const Id other = scaled(of[1], -1);
    return other == none ? none : add(of[0], other);
  }
  if (name == "neg") return scaled(of[0], -1);
  if (name == "div") return divide(of[0], of[1]);
  if (name == "maximum") return greatest(of[0], of[1]);
  if (name == "minimum") return least(of[0], of[1]);
  if (name == "exp2" || name == "exp2_flushed") return power(of[0], 1);
  if (name == "exp") return power(of[0], std::numbers::log2e);
  if (name.starts_with("tanh") && (*this)[of[0]].kind != Kind::number) return capped(of[0]);
  if (name == "where") return choose(of[0], of[1], of[2]);
  bool numbers = true;
  std::vector<double> values;
  for (Id i : of) {
    numbers &= (*this)[i].kind == Kind::number;
    values.push_back((*this)[i].number);
  }
  if (numbers) return number(f.eval(values));
  if (name == "eq")
    for (int i : {0, 1}) {
      const Value x = (*this)[of[static_cast<std::size_t>(i)]],
                  y = (*this)[of[static_cast<std::size_t>(1 - i)]];
      if (x.kind == Kind::greatest && y.kind == Kind::number && y.number == -infinity)
        return intern({.kind = Kind::is_none, .of = of[static_cast<std::size_t>(i)]});
    }
  return unknown(fmt::format("`{}` of scores, or of what is made of them", name));
}

std::vector<Online::Id> Online::results(const pointwise::Dag& dag,
                                        const std::vector<Id>& operands) {
  using Node = pointwise::Dag::Node;
  nodes_.clear();
  std::vector<Id> of;
  for (const Node& n : dag.nodes) {
    if (n.kind == Node::Kind::operand) {
      nodes_.push_back(operands[static_cast<std::size_t>(n.operand)]);
    } else if (n.kind == Node::Kind::constant) {
      nodes_.push_back(number(n.constant));
    } else {
      of.clear();
      for (int a : n.arguments) of.push_back(nodes_[static_cast<std::size_t>(a)]);
      nodes_.push_back(call(*n.function, of));
    }
  }
  std::vector<Id> out;
  for (int r : dag.results) out.push_back(nodes_[static_cast<std::size_t>(r)]);
  return out;
}

/// Turns before the last one as turn 0, the last as turn 1.
// NOLINTNEXTLINE(misc-no-recursion): values nest
Online::Id Online::as_of(Id id, int last_turn) {
  if (id == none) return none;
  Value v = (*this)[id];
  if (v.kind == Kind::score || v.kind == Kind::element) {
    irregular |= v.turn != last_turn;
    v.turn = 1;
  }
  if (v.keys >= 0) {
    const Keys k = keys(v);
    for (int t = 1; t < last_turn; ++t) irregular |= k.of[static_cast<std::size_t>(t)] != k.of[0];
    Keys out;
    out.of[0] = k.of[0];
    out.of[1] = k.of[static_cast<std::size_t>(last_turn)];
    v.keys = set(out);
  }
  v.of = as_of(v.of, last_turn);
  if (v.linear >= 0) {
    Linear l = forms_[static_cast<std::size_t>(v.linear)];
    for (Part& p : l.parts) p.of = as_of(p.of, last_turn);
    gather(l.parts);
    v.linear = form(std::move(l));
  }
  return intern(v);
}

std::string Online::keys_text(const Value& v) const {
  if (v.keys < 0) return "no key";
  std::string out;
  const Keys& k = keys(v);
  for (std::size_t t = 0; t < k.of.size(); ++t) {
    const std::size_t n = k.of[t].count();
    if (n == 0) continue;
    out += fmt::format("{}{} key{} of turn {}", out.empty() ? "" : ", ", n, n == 1 ? "" : "s", t);
    if (n == 1) out += fmt::format(" (column {})", k.of[t]._Find_first());
  }
  return out.empty() ? "no key" : out;
}

std::string Online::exponents_of(const Linear& l) const {
  std::string out;
  for (const Part& p : l.parts)
    out += fmt::format("{}{:+.6g} * the greatest of {}", out.empty() ? "" : " ", p.by,
                       keys_text((*this)[p.of]));
  return out.empty() ? "nothing" : out;
}

std::string Online::exponents(const Value& sum) const {
  if (sum.linear < 0) return "nothing";
  return (sum.number == 1 ? "" : fmt::format("{} times, ", sum.number)) +
         exponents_of(forms_[static_cast<std::size_t>(sum.linear)]);
}

std::string Online::text(Id i) const {
  if (i == none) return "what is not followed";
  const Value& v = (*this)[i];
  switch (v.kind) {
    case Kind::number:
      return fmt::format("{}", v.number);
    case Kind::score:
      return fmt::format("the {}score of row {} and column {} of turn {}",
                         v.inner > 0 ? "capped " : "", v.row, v.column, v.turn);
    case Kind::element:
      return v.row < 0 ? fmt::format("the mask of column {} of turn {}", v.column, v.turn)
                       : fmt::format("the mask of row {} and column {} of turn {}", v.row, v.column,
                                     v.turn);
    case Kind::greatest:
      return fmt::format("the greatest {}score of row {} over {}", v.inner > 0 ? "capped " : "",
                         v.row, keys_text(v));
    case Kind::sum:
      return fmt::format("the sum of powers of row {} over {}{}{}", v.row, keys_text(v),
                         v.inner > 0 ? ", of capped scores" : "",
                         v.column < 0 ? "" : ", times values");
    case Kind::inverse:
      return "1 over " + text(v.of);
    case Kind::result:
      return fmt::format("the result of row {} over {}", v.row, keys_text(v));
    case Kind::linear:
      return "a difference: " + exponents_of(forms_[static_cast<std::size_t>(v.linear)]);
    default:
      return "a condition";
  }
}

}  // namespace tessera::check
