#include "check/masked.h"

#include <algorithm>
#include <set>

#include "core/operand.h"
#include "core/walk.h"

namespace tessera::check {
namespace {

/// Registers that are declared within the body.
using Own = std::set<core::RegistersId>;

bool from_itself(const core::Compute& c, const core::Run& to) {
  return std::any_of(c.inputs.begin(), c.inputs.end(), [&](const auto& input) {
    const auto* from = std::get_if<core::Run>(&input);
    return from != nullptr && from->registers == to.registers && from->first == to.first &&
           from->steps == to.steps;
  });
}

bool loads(const core::Issue& issue, const Own& own) {
  if (!only_global(issue)) return false;
  for (std::size_t i = 0; i < issue.arguments.size() && i < issue.form->operands.size(); ++i)
    if (const auto* slice = std::get_if<core::Slice>(&issue.arguments[i]);
        slice != nullptr && own.count(slice->registers) == 0)
      return false;
  const auto& accesses = issue.form->effects.accesses;
  return std::all_of(accesses.begin(), accesses.end(),
                     [](const auto& a) { return a.action == arch::Action::read; });
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool only_masks(const core::Body& body, Own own) {
  return std::all_of(body.begin(), body.end(), [&](const core::Op& op) {
    if (core::is_tags(op)) return true;
    if (const auto* declared = op.as<core::Declare>()) {
      own.insert(declared->registers);
      return true;
    }
    if (const auto* issue = op.as<core::Issue>()) return loads(*issue, own);
    if (const auto* loop = op.as<core::For>()) return loop->unroll && only_masks(loop->body, own);
    const auto* c = op.as<core::Compute>();
    return c != nullptr &&
           std::all_of(c->results.begin(), c->results.end(), [&](const core::Run& to) {
             return own.count(to.registers) > 0 || from_itself(*c, to);
           });
  });
}

}  // namespace

bool only_global(const core::Issue& issue) {
  const arch::Effects& e = issue.form->effects;
  return e.issuer == arch::Issuer::thread && e.events.empty() && e.fences.empty() &&
         e.needs.empty() && !e.accesses.empty() &&
         std::all_of(e.accesses.begin(), e.accesses.end(),
                     [](const auto& a) { return a.space == arch::Space::global; });
}

bool only_masks(const core::Body& body) {
  return only_masks(body, {});
}

}  // namespace tessera::check
