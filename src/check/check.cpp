#include "check/check.h"

#include <algorithm>

#include "check/kind.h"

namespace tessera::check {
namespace {

/// Each op counts once, by what it mostly does.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void count(const core::Body& body, const Runs& runs, Coverage& out) {
  for (const core::Op& op : body) {
    if (const auto* loop = op.as<core::For>()) {
      count(loop->body, runs, out);
    } else if (const auto* branch = op.as<core::If>()) {
      count(branch->body, runs, out);
      count(branch->otherwise, runs, out);
    } else if (const auto* elected = op.as<core::Elected>()) {
      count(elected->body, runs, out);
    } else if (const auto* role = op.as<core::Role>()) {
      count(role->body, runs, out);
    } else if (const auto* issue = op.as<core::Issue>()) {
      const int before = out.all();
      const arch::Effects& e = issue->form->effects;
      const auto writes = [](const arch::Access& a) { return a.action != arch::Action::read; };
      // Fetching a tensor map, or lines into a cache, is a hint.
      const bool hint = issue->form->name.find("prefetch") != std::string::npos;
      if (wgmma_of(*issue)) {
        ++out.products;
      } else if (std::any_of(e.events.begin(), e.events.end(),
                             [](const auto& x) { return x.verb == arch::Verb::awaits; })) {
        ++out.waits;
      } else if (!e.accesses.empty() && !hint && !issue->form->name.starts_with("mbarrier")) {
        const bool loads = issue->form->name.find("load") != std::string::npos ||
                           std::none_of(e.accesses.begin(), e.accesses.end(), writes);
        ++(loads ? out.loads : out.stores);
      }
      if (out.all() > before && runs.seen.contains(&op)) ++out.reached;
    }
  }
}

}  // namespace

std::string_view name_of(Verdict v) {
  switch (v) {
    case Verdict::proved:
      return "proved";
    case Verdict::refuted:
      return "refuted";
    case Verdict::unknown:
      return "unknown";
    case Verdict::unsupported:
      return "unsupported";
  }
  return "";
}

Verdict Report::verdict() const {
  for (Verdict v : {Verdict::refuted, Verdict::unsupported, Verdict::unknown})
    if (std::any_of(findings.begin(), findings.end(),
                    [&](const Finding& f) { return f.verdict == v; }))
      return v;
  return Verdict::proved;
}

const Finding* Report::find(std::string_view kind) const {
  for (const Finding& f : findings)
    if (f.kind->name == kind) return &f;
  return nullptr;
}

Report check(const core::Kernel& kernel, const Effort& effort, const std::optional<Means>& means) {
  Report out;
  const Runs runs = run(kernel, {effort.events, effort.states});
  std::optional<Flow> traced;
  if (means && runs.proved) traced = flow(kernel, runs, *means);
  const Subject subject{kernel, runs, means, traced};
  for (const Kind* k : kinds::all()) {
    Finding f = k->judge(subject, *k);
    f.kind = k;
    out.findings.push_back(std::move(f));
  }
  count(kernel.body, runs, out.coverage);
  out.sizes = runs.sizes;
  return out;
}

std::string to_text(const Report& r) {
  std::string out;
  for (const Finding& f : r.findings)
    out += fmt::format("{:<12} {}{}{}\n", name_of(f.verdict), f.kind->name,
                       f.reason.empty() ? "" : ": ", f.reason);
  const Coverage& c = r.coverage;
  out += fmt::format("{} stores, {} loads, {} products, {} waits; {} of {} were executed\n",
                     c.stores, c.loads, c.products, c.waits, c.reached, c.all());
  for (const Finding& f : r.findings)
    for (const Diagnostic& d : f.diagnostics) out += to_text(d);
  return out;
}

}  // namespace tessera::check
