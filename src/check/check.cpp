#include "check/check.h"

#include <algorithm>

#include "check/count.h"
#include "check/kind.h"

namespace tessera::check {
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
  std::optional<Assertions> asserted;
  if (runs.proved) asserted = assertions(kernel, runs);
  const Subject subject{kernel, runs, means, traced, asserted};
  for (const Kind* k : kinds::all()) {
    Finding f = k->judge(subject, *k);
    f.kind = k;
    out.findings.push_back(std::move(f));
  }
  const auto is_proved = [&](std::string_view kind) {
    const Finding* f = out.find(kind);
    return f != nullptr && f->verdict == Verdict::proved;
  };
  out.coverage = coverage_of(kernel, runs, means, asserted,
                             is_proved("placement") && is_proved("output_once"));
  out.sizes = runs.sizes;
  return out;
}

std::string to_text(const Report& r) {
  std::string out;
  for (const Finding& f : r.findings)
    out += fmt::format("{:<12} {}{}{}\n", name_of(f.verdict), f.kind->name,
                       f.reason.empty() ? "" : ": ", f.reason);
  out += to_text(r.coverage);
  for (const Finding& f : r.findings)
    for (const Diagnostic& d : f.diagnostics) out += to_text(d);
  return out;
}

}  // namespace tessera::check
