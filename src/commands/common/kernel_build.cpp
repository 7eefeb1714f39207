#include "commands/common/kernel_build.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "bridge/bridge.h"
#include "commands/common/kernel_file.h"
#include "commands/common/kernel_interface.h"
#include "commands/common/kernel_verdict.h"
#include "toolchain/ready.h"
#include "toolchain/toolchain.h"

#include "check/kind.h"
#include "lower/lower.h"

namespace tessera::commands {
namespace {

namespace fs = std::filesystem;
using tessera::check::Verdict;

constexpr Code unproved{"TS0890", "kernel.unproved"};

/// Why the kernel is not built, with the verdict and what it is made of; nothing where it is.
std::optional<Outcome> refused(const core::Kernel& kernel, const Judged& judged, Outcome out,
                               bool even_unproved) {
  const Verdict verdict = judged.verdict();
  if (verdict == Verdict::proved || (verdict != Verdict::refuted && even_unproved))
    return std::nullopt;
  out.exit = exit_of(verdict);
  if (!judged.runs) {
    out.text = fmt::format("{}: the machine cannot run it; not built\n", kernel.name);
    return out;
  }
  out.text = fmt::format("{}: {}; not built\n{}", kernel.name, name_of(verdict),
                         tessera::check::to_text(judged.report));
  if (verdict == Verdict::refuted) return out;  // with its witness in the text and the findings
  const auto undecided = std::find_if(judged.report.findings.begin(), judged.report.findings.end(),
                                      [](const auto& f) { return f.verdict != Verdict::proved; });
  out.diagnostics.push_back(fail(unproved, "`{}` of kernel `{}` is {}: {}", undecided->kind->name,
                                 kernel.name, name_of(undecided->verdict), undecided->reason)
                                .expect("all kinds of invariants proved")
                                .help("`--unproved` builds what is not refuted; races, deadlocks "
                                      "and wrong results are then not excluded"));
  return out;
}

/// The libraries of kernels that are proved and of those that are not have other names in the
/// cache, so that none is taken for the other.
std::string text_of(const lower::CudaSource& source, Verdict verdict) {
  return verdict == Verdict::proved ? source.text : "// unproved\n" + source.text;
}

Result<toolchain::Built> library_of(const lower::CudaSource& lowered, const std::string& text,
                                    Verdict verdict, Context& context) {
  const toolchain::Toolchain tools = toolchain::locate(bridge::find_python());
  TESSERA_CHECK(toolchain::ready_to_build(tools, toolchain::Language::cuda));
  const fs::path cache = cache_home() / "kernels";
  TESSERA_CHECK(toolchain::ready_cache(cache));
  if (context.progress)
    context.progress({{"stage", "build"}, {"message", fmt::format("compiling {}", lowered.name)}});
  toolchain::Source source;
  source.name = lowered.name;
  source.text = text;
  source.arch = "sm_90a";
  source.prove = [verdict]() -> Result<Json> {
    return Json{{"verdict", std::string(name_of(verdict))}};
  };
  return toolchain::build(tools, source, cache, std::chrono::minutes(10), context.stop);
}

}  // namespace

std::vector<Parameter> building_parameters(std::vector<Parameter> more) {
  std::vector<Parameter> own = {{.type = Parameter::Type::flag,
                                 .name = "unproved",
                                 .doc = "also build what the checker could not decide"}};
  own.insert(own.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return kernel_parameters(std::move(own));
}

Result<Outcome> built(const Json& arguments, Context& context) {
  TESSERA_TRY(kernel, load_kernel(arguments));
  TESSERA_TRY(judged, judge(kernel));
  const Verdict verdict = judged.verdict();
  Outcome out;
  out.diagnostics = judged.diagnostics;
  out.data = {{"schema", "tessera.built/1"},
              {"kernel", kernel.name},
              {"verdict", std::string(name_of(verdict))},
              {"findings", findings_of(judged.report)},
              {"constants", kernel.constants},
              {"means", kernel.means},
              {"arch", "sm_90a"},
              {"threads", kernel.threads},
              {"interface", interface_of(kernel)}};
  out.data["diagnostics"] = Json::array();
  const bool even_unproved = arguments.value("unproved", false);
  if (auto no = refused(kernel, judged, out, even_unproved)) {
    for (const Diagnostic& d : no->diagnostics) no->data["diagnostics"].push_back(to_json(d));
    return *no;
  }
  for (const Diagnostic& d : out.diagnostics) out.data["diagnostics"].push_back(to_json(d));
  TESSERA_TRY(lowered, tessera::lower::lower(kernel));
  const std::string text = text_of(lowered, verdict);
  TESSERA_TRY(library, library_of(lowered, text, verdict, context));
  out.data.update({{"library", library.library.string()},
                   {"source", (library.library.parent_path() / "source.cu").string()},
                   {"hash", library.hash},
                   {"cached", library.cached},
                   {"seconds", library.seconds},
                   {"shared_bytes", lowered.shared_bytes},
                   {"resources", library.resources}});
  return out;
}

}  // namespace tessera::commands
