// `tessera build FILE.py`: a kernel file to a library that can be launched
// (include/tessera/kernel.h), after it has been checked.
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
constexpr Code not_writable{"TS0033", "input.output_not_writable"};

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

/// DIR/<kernel>.so, .cu and .json.
Status export_to(const fs::path& folder, const std::string& name, const std::string& text,
                 Json& data) {
  try {
    fs::create_directories(folder);
    const fs::path library = fs::absolute(folder / (name + ".so"));
    write_file_atomically(library, read_file(data.at("library").get<std::string>()));
    write_file_atomically(folder / (name + ".cu"), text);
    data["library"] = library.string();
    data["source"] = fs::absolute(folder / (name + ".cu")).string();
    write_file_atomically(folder / (name + ".json"), data.dump(1));
    return {};
  } catch (const fs::filesystem_error& e) {
    return error(fail(not_writable, "the output folder {} cannot be written", folder.string())
                     .expect("a folder that can be made and written")
                     .but_found("{}", e.code().message())
                     .help("give another one with -o DIR"));
  }
}

std::string summary(const core::Kernel& kernel, const Judged& judged, const Json& data) {
  const Json& r = data.at("resources");
  const auto count = [&](const char* name) {
    return r.contains(name) ? std::to_string(r.at(name).get<int64_t>()) : std::string("unknown");
  };
  std::string out = fmt::format("{}: {}, {} kinds of invariants, {}\n", kernel.name,
                                name_of(judged.verdict()), judged.report.findings.size(),
                                kernel.means.empty() ? "no meaning to hold it to" : kernel.means);
  for (const tessera::check::Finding& f : judged.report.findings)
    if (f.verdict != Verdict::proved)
      out += fmt::format("  {} {}: {}\n", name_of(f.verdict), f.kind->name, f.reason);
  out += fmt::format("{}\n", data.at("library").get<std::string>());
  out += fmt::format("{} registers, {} bytes spilled, {} bytes of shared memory, {} threads\n",
                     count("registers"), count("spill_bytes"),
                     data.at("shared_bytes").get<int64_t>(), kernel.threads);
  out += fmt::format("built in {:.1f} s{}\n", data.at("seconds").get<double>(),
                     data.at("cached").get<bool>() ? ", before: from the cache" : "");
  return out;
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

Result<Outcome> run(const Json& arguments, Context& context) {
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
  TESSERA_TRY(built, library_of(lowered, text, verdict, context));
  out.data.update({{"library", built.library.string()},
                   {"source", (built.library.parent_path() / "source.cu").string()},
                   {"hash", built.hash},
                   {"cached", built.cached},
                   {"seconds", built.seconds},
                   {"shared_bytes", lowered.shared_bytes},
                   {"resources", built.resources}});
  if (const std::string folder = arguments.value("output", ""); !folder.empty())
    TESSERA_CHECK(export_to(folder, kernel.name, text, out.data));
  out.text = summary(kernel, judged, out.data);
  return out;
}

}  // namespace

extern const Command build;
const Command build = {
    .name = "build",
    .doc = "check a kernel file and compile it to a library that can be launched",
    .details =
        "tessera build kernels/gemm.py --set BN=128 -o out\nA kernel that is refuted is not built: "
        "exit code 1. One that the checker could not decide needs --unproved: else exit code 2. "
        "Libraries are kept in the cache of kernels; -o copies one, with its source and its "
        "interface, as DIR/KERNEL.so, .cu and .json.",
    .parameters = kernel_parameters({{.type = Parameter::Type::flag,
                                      .name = "unproved",
                                      .doc = "also build what the checker could not decide"},
                                     {.type = Parameter::Type::text,
                                      .name = "output",
                                      .doc = "a folder that gets a copy of the library"}}),
    .run = run,
};

}  // namespace tessera::commands
