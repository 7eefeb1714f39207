// An assertion that does not hold, in words: which element it is, what it carries, and where it
// comes from.
#include <algorithm>

#include "base/text.h"

#include "check/tag_walk.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

bool uses(const core::Tagged& at, Term symbol) {
  const auto has = [&](Term t) { return term::any_node(t, [&](Term n) { return n == symbol; }); };
  if (const auto* s = std::get_if<core::SharedAt>(&at))
    return std::any_of(s->at.begin(), s->at.end(), has);
  const auto* r = std::get_if<core::Slice>(&at);
  return r != nullptr;
}

/// Whether lanes differ in what it says.
bool by_lane(const core::AssertTag& a, Term lane) {
  const auto* other = std::get_if<core::Tagged>(&a.to);
  return uses(a.at, lane) || (other != nullptr && uses(*other, lane));
}

}  // namespace

std::string TagWalk::text(Scalar s) const {
  if (s == Carried::none) return "nothing";
  if (s == Carried::several) return "several values that met in it";
  if (s == Carried::unknown) return "what is not followed";
  return to_string(term::simplify(tagging_.carried.term(s)));
}

/// `acc` of the element [3, 8], or `a[0, 3, 8]`.
std::string TagWalk::place_text(const core::AssertTag& a, const core::Tagged& at, const Side& s,
                                int warp, int lane) {
  for (std::size_t i = 0; i < a.over.size() && i < s.numbers.size(); ++i)
    number(a.over[i]) = s.numbers[i];
  number(warp_) = warp;
  number(kernel_.at.lane) = lane;
  std::vector<std::string> index;
  if (const auto* r = std::get_if<core::Slice>(&at)) {
    const core::Registers& registers = kernel_[r->registers];
    const int64_t thread = 32 * warp + lane, place = value(r->first).value_or(0);
    int64_t element = registers.layout(thread + registers.layout.mode(0).size() * place);
    for (const int64_t extent : registers.tile) {
      index.push_back(std::to_string(element % extent));
      element /= extent;
    }
    return fmt::format("`{}[{}]`", registers.name, join(index, ", "));
  }
  const auto& shared = std::get<core::SharedAt>(at);
  for (const Term t : shared.at) {
    const auto v = value(t);
    index.push_back(v ? std::to_string(*v) : to_string(t));
  }
  return fmt::format("`{}[{}]`", kernel_[shared.shared].name, join(index, ", "));
}

/// Where an element comes from, op by op: who computed it of what, who loaded that, and where its
/// tensor was tagged.
// NOLINTNEXTLINE(misc-no-recursion): as deep as `depth`
void TagWalk::explain(const core::Op* op, int name, int depth, Violation& v) {
  const std::string& under = tagging_.names[static_cast<std::size_t>(name)];
  const auto add = [&](const core::Op* at, std::string text) {
    for (const auto& [other, said] : v.chain)
      if (other == at) return false;
    v.chain.emplace_back(at, std::move(text));
    return true;
  };
  const auto tensor = [&](core::TensorId t, const core::Op* loaded) {
    const std::string& of = kernel_[t].name;
    bool tagged = false;
    if (const auto tags = tagging_.tensors.find(t.index); tags != tagging_.tensors.end())
      for (const TagOfTensor& tag : tags->second)
        if (tag.name == name) {
          add(loaded, fmt::format("`{}` is loaded here", of));
          add(tag.op, fmt::format("`{}` of `{}` is said here", under, of));
          tagged = true;
        }
    if (!tagged) add(loaded, fmt::format("`{}`, which has no `{}`, is loaded here", of, under));
  };
  const auto registers = [&](core::RegistersId r) {
    const auto by = writers_.find(r.index);
    if (by == writers_.end()) return;
    for (const core::Op* w : by->second)
      if (w != nullptr) return explain(w, name, depth - 1, v);
  };
  if (op == nullptr || depth == 0) return;
  if (const auto* c = op->as<core::Compute>()) {
    if (!add(op, "computed here")) return;
    for (const auto& in : c->inputs)
      if (const auto* run = std::get_if<core::Run>(&in)) registers(run->registers);
    return;
  }
  const auto* issue = op->as<core::Issue>();
  if (issue == nullptr) return;
  if (const auto* at = argument<core::GlobalAt>(*issue, "from")) return tensor(at->tensor, op);
  if (const auto* map = argument<core::MapRef>(*issue, "map"))
    return tensor(kernel_[map->map].tensor, op);
  if (wgmma_of(*issue) && !add(op, "summed up here")) return;
  for (std::size_t n = 0; n < issue->arguments.size() && n < issue->form->operands.size(); ++n) {
    if (const auto* s = std::get_if<core::SharedAt>(&issue->arguments[n])) {
      for (const ReadsFrom& r : tagging_.runs.reads_from) {
        const auto* by = r.read == op ? r.write->as<core::Issue>() : nullptr;
        const auto* to = by != nullptr ? argument<core::SharedAt>(*by, "to") : nullptr;
        if (to != nullptr && to->shared == s->shared) explain(r.write, name, depth - 1, v);
      }
    } else if (const auto* r = std::get_if<core::Slice>(&issue->arguments[n]);
               r != nullptr && issue->form->operands[n].direction == arch::Direction::in) {
      registers(r->registers);
    }
  }
}

void TagWalk::refute(const core::Op& op, const Sides& s, int warp, int lane, const Side& bad,
                     const Side* against, const std::string& where) {
  const auto& a = *op.as<core::AssertTag>();
  const auto* other = std::get_if<core::Tagged>(&a.to);
  const core::Tagged& at = against == nullptr && other != nullptr ? *other : a.at;
  Violation v;
  v.kind = "tags";
  v.op = &op;
  v.warp = warp + (role_ != nullptr ? role_->first_warp : 0);
  v.lanes = by_lane(a, kernel_.at.lane) ? fmt::format("lane {}", lane) : "all lanes";
  v.message = bad.value == Carried::none
                  ? fmt::format("an element carries no `{}`, of which one is asserted", a.name)
                  : fmt::format("an element carries another `{}` than is asserted", a.name);
  const std::string place = place_text(a, at, bad, warp, lane);
  if (against == nullptr) {
    v.expected = fmt::format("{} carries a value", place);
  } else if (other == nullptr) {
    v.expected = fmt::format("{} carries `{}`", place, text(against->value));
  } else {
    v.expected = fmt::format("{} carries {} {}, which has `{}`", place,
                             a.apart ? "another one than" : "the same as",
                             place_text(a, *other, *against, warp, lane), text(against->value));
  }
  v.found = bad.value < Carried::values ? text(bad.value) : fmt::format("`{}`", text(bad.value));
  if (!where.empty()) v.found += ", at " + where;
  v.help = bad.value == Carried::none
               ? "tag the tensor that it is of, or assert it where the tag is still there"
               : "follow the element to where it is loaded: another one was meant, there or here";
  number(kernel_.at.lane) = 0;
  for (const auto& [side, from] : {std::pair(&a.at, s.here_from), std::pair(other, s.there_from)}) {
    if (side == nullptr) continue;
    if (const auto* r = std::get_if<core::Slice>(side)) {
      const auto by = writers_.find(r->registers.index);
      if (by == writers_.end()) continue;
      const auto i = static_cast<std::size_t>(warp * kernel_[r->registers].slots() +
                                              value(r->first).value_or(0));
      if (i < by->second.size()) explain(by->second[i], s.name, 6, v);
    } else if (from != nullptr) {
      for (const CopiedBox& box : from->boxes) explain(box.copy, s.name, 6, v);
    }
  }
  tagging_.decided[&op].refuted = std::move(v);
}

}  // namespace tessera::check
