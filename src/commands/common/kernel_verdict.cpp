#include "commands/common/kernel_verdict.h"

#include <algorithm>

#include "arch/arch.h"

#include "check/kind.h"
#include "core/verify.h"
#include "equivalence/decide.h"
#include "replay/replay.h"

namespace tessera::commands {

using check::Verdict;

Verdict Judged::verdict() const {
  if (!runs) return Verdict::refuted;
  const Verdict v = report.verdict();
  if (!equal || equal->verdict == equivalence::Verdict::equal || v == Verdict::refuted) return v;
  const bool differs = equal->verdict == equivalence::Verdict::different && equal->numbers_differ;
  return differs ? Verdict::refuted : Verdict::unknown;
}

Result<Judged> judge(const core::Kernel& kernel, bool compare) {
  TESSERA_TRY(arch, arch::find("sm_90a"));
  Judged out;
  out.diagnostics = core::verify(kernel, *arch);
  // What the verifier could not decide is a warning.
  out.runs = std::none_of(out.diagnostics.begin(), out.diagnostics.end(),
                          [](const Diagnostic& d) { return d.level == Level::error; });
  if (!out.runs) return out;
  TESSERA_TRY(means, check::means_of(kernel));
  out.report = check::check(kernel, {}, means);
  replay::Replayer(kernel, means).replay(out.report);
  const Verdict v = out.report.verdict();
  if (means && (compare || (v != Verdict::proved && v != Verdict::refuted)))
    out.equal = equivalence::decide(kernel, *means, out.report);
  return out;
}

Json to_json(const equivalence::Answer& a) {
  return {{"verdict", std::string(name_of(a.verdict))},
          {"launches", a.launches},
          {"elements", a.elements},
          {"error", a.error},
          {"reason", a.reason},
          {"element", a.element},
          {"numbers_differ", a.numbers_differ}};
}

Exit exit_of(Verdict v) {
  if (v == Verdict::proved) return Exit::ok;
  return v == Verdict::refuted ? Exit::refuted : Exit::undecided;
}

Json findings_of(const check::Report& r) {
  Json findings = Json::array();
  for (const check::Finding& f : r.findings) {
    findings.push_back({{"kind", std::string(f.kind->name)},
                        {"verdict", std::string(name_of(f.verdict))},
                        {"reason", f.reason},
                        {"diagnostics", Json::array()}});
    for (const Diagnostic& d : f.diagnostics)
      findings.back()["diagnostics"].push_back(tessera::to_json(d));
  }
  return findings;
}

Json coverage_of(const check::Report& r) {
  const check::Coverage& c = r.coverage;
  return {{"stores", {{"all", c.outputs}, {"proved", c.outputs_proved}}},
          {"loads", {{"all", c.inputs}, {"untagged", c.untagged}}},
          {"assertions", {{"all", c.assertions}, {"proved", c.assertions_proved}}}};
}

}  // namespace tessera::commands
