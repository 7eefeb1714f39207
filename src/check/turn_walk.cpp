#include "check/turn_walk.h"

#include <fmt/format.h>

namespace tessera::check {

TurnWalk::TurnWalk(const core::Kernel& kernel, const core::Role& role)
    : kernel_(kernel), role_(role) {
  values_.assign(4096, -1);
}

void TurnWalk::turn(const core::For& loop) {
  std::vector<int> warps;
  for (int w = 0; w < role_.warps; ++w) warps.push_back(w);
  body(loop.body, warps);
}

std::optional<int64_t> TurnWalk::value(Term t) {
  auto found = compiled_.find(t.node());
  if (found == compiled_.end()) found = compiled_.emplace(t.node(), Expression(t)).first;
  for (int s : found->second.symbols())
    if (static_cast<std::size_t>(s) >= values_.size() || values_[static_cast<std::size_t>(s)] < 0)
      return std::nullopt;
  return found->second(values_);
}

int64_t TurnWalk::number(Term t) {
  const std::optional<int64_t> v = value(t);
  if (!v) fail(fmt::format("`{}` is not known there", to_string(t)));
  return v.value_or(0);
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void TurnWalk::body(const core::Body& b, const std::vector<int>& warps) {
  for (const core::Op& op : b) {
    if (!why.empty()) return;
    if (const auto* loop = op.as<core::For>()) {
      if (!loop->unroll) return void(fail("another loop stands in the one that is walked"));
      unrolled_.push_back(loop);
      for (int64_t at = loop->lower->value; at < loop->upper->value; at += loop->step->value) {
        symbol(loop->counter) = at;
        body(loop->body, warps);
      }
      symbol(loop->counter) = -1;
      unrolled_.pop_back();
    } else if (const auto* choice = op.as<core::If>()) {
      branch(*choice, warps);
    } else if (const auto* elected = op.as<core::Elected>()) {
      forget(elected->body);
    } else {
      for (int w : warps) {
        symbol(role_.warp) = w;
        if (const auto* c = op.as<core::Compute>()) compute(*c, w);
        if (op.as<core::Issue>() != nullptr) issue(op, w);
      }
    }
  }
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void TurnWalk::branch(const core::If& branch, const std::vector<int>& warps) {
  std::vector<int> yes, no;
  for (int w : warps) {
    symbol(role_.warp) = w;
    const std::optional<int64_t> holds = value(branch.condition);
    if (!holds) {
      forget(branch.body);
      forget(branch.otherwise);
      return;
    }
    (*holds != 0 ? yes : no).push_back(w);
  }
  if (!yes.empty()) body(branch.body, yes);
  if (!no.empty()) body(branch.otherwise, no);
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void TurnWalk::forget(const core::Body& b) {
  for (const core::Op& op : b) {
    if (const auto* c = op.as<core::Compute>()) {
      for (const core::Run& r : c->results)
        for (int w = 0; w < role_.warps; ++w) lose(r.registers, w);
    } else if (const auto* i = op.as<core::Issue>()) {
      for (int w = 0; w < role_.warps; ++w) lose_results(*i, w);
      if (std::string reason = needed(*i); !reason.empty()) fail(std::move(reason));
    } else if (const auto* loop = op.as<core::For>()) {
      forget(loop->body);
    } else if (const auto* branch = op.as<core::If>()) {
      forget(branch->body);
      forget(branch->otherwise);
    } else if (const auto* elected = op.as<core::Elected>()) {
      forget(elected->body);
    }
  }
}

void TurnWalk::lose_results(const core::Issue& issue, int warp) {
  for (std::size_t n = 0; n < issue.arguments.size(); ++n)
    if (const auto* s = std::get_if<core::Slice>(&issue.arguments[n]);
        s != nullptr && issue.form->operands[n].direction != arch::Direction::in)
      lose(s->registers, warp);
}

}  // namespace tessera::check
