// `tessera check FILE.py`: whether a kernel is one that the machine can run, and what is proved of
// it for all sizes.
#include "commands/common/kernel_file.h"
#include "commands/common/kernel_verdict.h"

#include "replay/repair.h"

namespace tessera::commands {
namespace {

Result<Outcome> run(const Json& arguments, Context&) {
  TESSERA_TRY(kernel, load_kernel(arguments));
  TESSERA_TRY(judged, judge(kernel, arguments.at("equivalence").get<bool>()));
  Outcome out;
  out.exit = exit_of(judged.verdict());
  out.diagnostics = judged.diagnostics;
  out.data = {{"schema", "tessera.checked/1"},
              {"kernel", kernel.name},
              {"verdict", std::string(name_of(judged.verdict()))}};
  if (!judged.runs) {
    out.text = fmt::format("{}: the machine cannot run it\n", kernel.name);
    return out;
  }
  if (judged.verdict() == tessera::check::Verdict::refuted) {
    TESSERA_TRY(means, tessera::check::means_of(kernel));
    if (const auto found = replay::repair(kernel, means, judged.report))
      replay::show(*found, kernel, judged.report);
  }
  out.data["findings"] = findings_of(judged.report);
  out.data["coverage"] = coverage_of(judged.report);
  out.text = fmt::format("{}: {}\n{}", kernel.name, name_of(judged.verdict()),
                         tessera::check::to_text(judged.report));
  if (judged.equal) {
    out.data["equivalence"] = to_json(*judged.equal);
    out.text += to_text(*judged.equal) + "\n";
  }
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
    .parameters = kernel_parameters(
        {{.type = Parameter::Type::flag,
          .name = "equivalence",
          .doc = "run it beside its meaning on random residues too: docs/checker.md"}}),
    .run = run,
    .schemas = {"tessera.checked/1"},
};

}  // namespace tessera::commands
