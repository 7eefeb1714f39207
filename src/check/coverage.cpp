#include "check/coverage.h"

#include <algorithm>
#include <set>

#include "check/count.h"
#include "check/kind.h"
#include "core/walk.h"

namespace tessera::check {
namespace {

bool writes(const arch::Access& a) {
  return a.action != arch::Action::read;
}

/// Each op counts once, by what it mostly does.
bool count_once(const core::Issue& issue, Coverage& out) {
  const int before = out.all();
  const arch::Effects& e = issue.form->effects;
  // Fetching a tensor map, or lines into a cache, is a hint.
  const bool hint = issue.form->name.find("prefetch") != std::string::npos;
  if (wgmma_of(issue)) {
    ++out.products;
  } else if (std::any_of(e.events.begin(), e.events.end(),
                         [](const auto& x) { return x.verb == arch::Verb::awaits; })) {
    ++out.waits;
  } else if (!e.accesses.empty() && !hint && !issue.form->name.starts_with("mbarrier")) {
    const bool loads = issue.form->name.find("load") != std::string::npos ||
                       std::none_of(e.accesses.begin(), e.accesses.end(), writes);
    ++(loads ? out.loads : out.stores);
  }
  return out.all() > before;
}

/// The tensor of the launch that the instruction reads or writes; -1: none.
int tensor_of(const core::Kernel& kernel, const core::Issue& issue, bool* stores) {
  const arch::Form& form = *issue.form;
  if (form.name.find("prefetch") != std::string::npos) return -1;
  for (std::size_t i = 0; i < issue.arguments.size() && i < form.operands.size(); ++i) {
    int tensor = -1;
    if (const auto* m = std::get_if<core::MapRef>(&issue.arguments[i]))
      tensor = kernel[m->map].tensor.index;
    if (const auto* g = std::get_if<core::GlobalAt>(&issue.arguments[i])) tensor = g->tensor.index;
    for (const arch::Access& a : form.effects.accesses)
      if (tensor >= 0 && a.operand == form.operands[i].name && a.space == arch::Space::global &&
          a.proxy != arch::Proxy::tensormap &&
          kernel.tensors[static_cast<std::size_t>(tensor)].access != core::Access::workspace) {
        *stores = writes(a);
        return tensor;
      }
  }
  return -1;
}

/// Tensors that a meaning speaks of.
std::set<int> meant(const Means& m) {
  std::set<int> out;
  if (m.attention) {
    out = {m.attention->q.tensor.index, m.attention->k.tensor.index, m.attention->v.tensor.index};
    if (m.attention->mask) out.insert(m.attention->mask->tensor.index);
    return out;
  }
  out = {m.a.tensor.index};
  for (const ElementAt& b : m.b) out.insert(b.tensor.index);
  for (const Output& o : m.outputs)
    for (const Case& c : o.cases)
      for (const Read& r : c.reads) out.insert(r.element.tensor.index);
  return out;
}

}  // namespace

Coverage coverage_of(const core::Kernel& kernel, const Runs& runs,
                     const std::optional<Means>& means, const std::optional<Assertions>& asserted,
                     bool meaning_proved) {
  Coverage out;
  std::set<int> told;
  if (means && meaning_proved) told = meant(*means);
  core::for_each_op(kernel.body, [&](const core::Op& op) {
    const auto* tag = op.as<core::Tag>();
    const auto* tensor = tag != nullptr ? std::get_if<core::GlobalAt>(&tag->at) : nullptr;
    if (tensor != nullptr) told.insert(tensor->tensor.index);
    if (op.as<core::AssertTag>() != nullptr) ++out.assertions;
  });
  core::for_each_op(kernel.body, [&](const core::Op& op) {
    const auto* issue = op.as<core::Issue>();
    if (issue == nullptr) return;
    if (count_once(*issue, out) && runs.seen.contains(&op)) ++out.reached;
    bool stores = false;
    const int tensor = tensor_of(kernel, *issue, &stores);
    if (tensor < 0) return;
    if (stores) {
      ++out.outputs;
      out.outputs_proved += means && meaning_proved ? 1 : 0;
    } else {
      ++out.inputs;
      out.untagged += told.contains(tensor) ? 0 : 1;
    }
  });
  if (asserted) out.assertions_proved = asserted->proved;
  return out;
}

std::string to_text(const Coverage& c) {
  std::string out =
      fmt::format("{} stores, {} loads, {} products, {} waits; {} of {} were executed\n", c.stores,
                  c.loads, c.products, c.waits, c.reached, c.all());
  out += fmt::format(
      "covered: {} of {} stores to tensors proved, {} of {} loads from tensors untagged, {} of {} "
      "assertions proved\n",
      c.outputs_proved, c.outputs, c.untagged, c.inputs, c.assertions_proved, c.assertions);
  return out;
}

}  // namespace tessera::check
