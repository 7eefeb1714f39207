// `tessera check FILE.py`: whether a kernel is one that the machine can run, and what is proved of
// it for all sizes.
#include "check/check.h"

#include <algorithm>

#include "arch/arch.h"
#include "commands/common/kernel_file.h"

#include "check/kind.h"
#include "core/verify.h"

namespace tessera::commands {
namespace {

Exit exit_of(tessera::check::Verdict v) {
  using tessera::check::Verdict;
  if (v == Verdict::proved) return Exit::ok;
  return v == Verdict::refuted ? Exit::refuted : Exit::undecided;
}

Json to_json(const tessera::check::Report& r) {
  Json findings = Json::array();
  for (const tessera::check::Finding& f : r.findings) {
    findings.push_back({{"kind", std::string(f.kind->name)},
                        {"verdict", std::string(name_of(f.verdict))},
                        {"reason", f.reason},
                        {"diagnostics", Json::array()}});
    for (const Diagnostic& d : f.diagnostics)
      findings.back()["diagnostics"].push_back(tessera::to_json(d));
  }
  return findings;
}

/// A fault that the verifier found; what it could not decide is a warning.
bool is_error(const Diagnostic& d) {
  return d.level == Level::error;
}

Result<Outcome> run(const Json& arguments, Context&) {
  TESSERA_TRY(kernel, load_kernel(arguments));
  TESSERA_TRY(arch, arch::find("sm_90a"));
  Outcome out;
  out.data = {{"schema", "tessera.checked/1"}, {"kernel", kernel.name}};
  out.diagnostics = core::verify(kernel, *arch);
  if (std::any_of(out.diagnostics.begin(), out.diagnostics.end(), is_error)) {
    out.exit = Exit::refuted;
    out.data["verdict"] = "refuted";
    out.text = fmt::format("{}: the machine cannot run it\n", kernel.name);
    return out;
  }
  TESSERA_TRY(means, tessera::check::means_of(kernel));
  const tessera::check::Report report = tessera::check::check(kernel, {}, means);
  out.exit = exit_of(report.verdict());
  out.data["verdict"] = std::string(name_of(report.verdict()));
  out.data["findings"] = to_json(report);
  out.text = fmt::format("{}: {}\n{}", kernel.name, name_of(report.verdict()), to_text(report));
  return out;
}

}  // namespace

extern const Command check;
const Command check = {
    .name = "check",
    .doc = "prove of a kernel file, for all sizes, that its data arrive: or show where they do not",
    .details =
        "tessera check kernels/gemm.py --set BN=128\nExit code 0: proved. 1: refuted, with a "
        "witness. 2: something could not be decided.",
    .parameters = kernel_parameters(),
    .run = run,
};

}  // namespace tessera::commands
