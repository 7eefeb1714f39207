#include "check/kind.h"

#include <algorithm>
#include <array>
#include <set>

#include "term/query.h"

namespace tessera::check {
namespace {

std::string name_of(const core::Op& op) {
  if (const auto* issue = op.as<core::Issue>()) return issue->form->name;
  if (op.as<core::Compute>() != nullptr) return "compute";
  if (op.as<core::AssertTag>() != nullptr) return "assert_tag";
  if (op.as<core::Tag>() != nullptr) return "tag";
  return "declare";
}

std::string thread(const core::Kernel& kernel, const Violation& v) {
  const std::string block = kernel.cluster == 1 ? "" : fmt::format("block {}, ", v.rank);
  for (const core::Op& op : kernel.body)
    if (const auto* role = op.as<core::Role>())
      if (v.warp >= role->first_warp && v.warp < role->first_warp + role->warps)
        return fmt::format("{}warp {} ({} of role `{}`), {}", block, v.warp,
                           v.warp - role->first_warp, role->name, v.lanes);
  return fmt::format("{}warp {}, {}", block, v.warp, v.lanes);
}

/// Parameters at which the loops have these numbers of turns, or the numbers themselves.
std::string witness(const Subject& s, const Violation& v) {
  std::vector<std::string> numbers;
  Term claim = s.kernel.pool->truth(true);
  for (std::size_t i = 0; i < v.sizes.size() && i < s.runs.sizes.size(); ++i) {
    const Term turns = s.runs.sizes[i];
    numbers.push_back(fmt::format("{} = {}", to_string(turns), v.sizes[i]));
    claim = term::logical_and(claim, term::equals(turns, s.kernel.pool->constant(v.sizes[i])));
  }
  if (numbers.empty()) return "any sizes";
  std::string out;
  for (const std::string& n : numbers) out += (out.empty() ? "" : ", ") + n;
  const term::Verdict found = term::always(term::logical_not(claim), {.operations = 1 << 16});
  if (found.refuted()) out += "; so at " + term::to_string(found.witness, *s.kernel.pool);
  return out;
}

}  // namespace

Finding proved(std::string how) {
  return {nullptr, Verdict::proved, std::move(how), {}};
}

Finding unknown(std::string why) {
  return {nullptr, Verdict::unknown, std::move(why), {}};
}

Diagnostic refutation(const Subject& s, const Kind& k, const Violation& v) {
  Diagnostic d = fail(k.code, "{}", v.message);
  d.expected = v.expected;
  d.found = v.found;
  d.notes.push_back(fmt::format("thread: {}", thread(s.kernel, v)));
  const std::string point =
      fmt::format("`{}`{}{}", name_of(*v.op), v.at.empty() ? "" : " at ", v.at);
  d.notes.push_back("point: " + point);
  if (v.other != nullptr)
    d.notes.push_back(fmt::format("against: `{}`, {}", name_of(*v.other), v.other_text));
  d.notes.push_back("sizes: " + witness(s, v));
  d.helps.push_back(v.help);
  if (s.kernel.source != nullptr) {
    d.labels.push_back(s.kernel.source->label(v.op->span, v.message));
    d.place = d.labels.front().from;
    if (v.other != nullptr) d.labels.push_back(s.kernel.source->label(v.other->span, v.other_text));
    for (const auto& [op, text] : v.chain)
      d.labels.push_back(s.kernel.source->label(op->span, text));
  }
  return std::move(d)
      .with("kind", k.name)
      .with("rank", v.rank)
      .with("warp", v.warp)
      .with("op", name_of(*v.op))
      .with("at", v.at)
      .with("turns", v.sizes);
}

Finding judge_by_runs(const Subject& s, const Kind& k) {
  Finding out;
  // The same two ops at other bytes or by other warps say nothing more.
  std::set<std::pair<const core::Op*, const core::Op*>> told;
  for (const Violation& v : s.runs.violations)
    if (v.kind == k.name && told.emplace(v.op, v.other).second) {
      out.diagnostics.push_back(refutation(s, k, v));
      out.ops.emplace_back(v.op, v.other);
    }
  if (!out.diagnostics.empty()) {
    out.verdict = Verdict::refuted;
  } else if (s.runs.proved) {
    out.verdict = Verdict::proved;
    out.reason = fmt::format("{} states stand for all sizes", s.runs.states);
  } else {
    out.verdict = s.runs.unsupported ? Verdict::unsupported : Verdict::unknown;
    out.reason =
        s.runs.violations.empty() ? s.runs.why_not : "not decided where another kind is refuted";
  }
  return out;
}

// What Flow decides, in the order in which one needs those before it.
constexpr std::array<std::string_view, 8> by_flow = {"k_agreement", "mask",       "dominance",
                                                     "rescale",     "degenerate", "reduction",
                                                     "placement",   "output_once"};

Finding judge_by_flow(const Subject& s, const Kind& k) {
  if (!s.means) return unknown("the kernel's meaning is not stated");
  if (!s.flow) return unknown("not decided where synchronization is not proved");
  Finding out;
  for (const Violation& v : s.flow->violations)
    if (v.kind == k.name) {
      out.diagnostics.push_back(refutation(s, k, v));
      out.ops.emplace_back(v.op, v.other);
    }
  if (!out.diagnostics.empty()) {
    out.verdict = Verdict::refuted;
    return out;
  }
  // What is told under a name that no kind asks for would be lost, and all would be proved.
  const auto lost = [](std::string_view kind) {
    return std::ranges::find(by_flow, kind) == by_flow.end();
  };
  for (const Violation& v : s.flow->violations)
    if (lost(v.kind)) return unknown(fmt::format("`{}`, found here, is no kind", v.kind));
  for (const auto& [kind, why] : s.flow->why)
    if (lost(kind)) return unknown(why);
  for (std::string_view kind : by_flow) {
    if (const auto why = s.flow->why.find(kind); why != s.flow->why.end())
      return unknown(kind == k.name ? why->second : fmt::format("not decided without `{}`", kind));
    for (const Violation& v : s.flow->violations)
      if (v.kind == kind && kind != k.name)
        return unknown(fmt::format("not decided where `{}` is refuted", kind));
    if (kind == k.name) break;
  }
  if (!s.flow->whole && k.name != by_flow.front())
    return unknown("not decided where the tracing ends early");
  const bool but = k.name == "reduction" && !s.flow->left_out.empty();
  return proved("all elements of a tile, for all corners" +
                (but ? ", but for " + s.flow->left_out : ""));
}

}  // namespace tessera::check
