// Opening what the stages need.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <unistd.h>

#include "base/files.h"
#include "pipeline/stages.h"
#include "toolchain/ready.h"

namespace tessera::pipeline {
std::string name_run() {
  static std::atomic<int> runs{0};
  return fmt::format("{}-{}-{}", std::chrono::system_clock::now().time_since_epoch().count(),
                     ::getpid(), ++runs);
}

void Session::say(const std::string& stage, const std::string& message, Json more) const {
  Json event = {{"stage", stage}, {"message", message}};
  for (auto& [k, v] : more.items()) event[k] = v;
  context.progress(event);
}

std::string Session::place_of(std::size_t work_at) const {
  const rules::Pattern& p = pattern(work[work_at].patterns.front());
  return fmt::format("[{}/{}] {} {}: {}", work_at + 1, work.size(), p.id, p.rule, p.summary);
}

const Work* Session::work_of(int pattern) const {
  const auto at = std::find_if(work.begin(), work.end(), [&](const Work& w) {
    return std::find(w.patterns.begin(), w.patterns.end(), pattern) != w.patterns.end();
  });
  return at == work.end() ? nullptr : &*at;
}

std::filesystem::path registry_file(const Options& options) {
  return options.registry.empty() ? registry::default_place() : options.registry;
}

Result<Tools> open_tools(Session& s, bool every_candidate) {
  Tools out;
  const std::filesystem::path cache = s.options.cache.empty() ? cache_home() : s.options.cache;
  out.evaluation.python = bridge::find_python();
  out.evaluation.tools = toolchain::locate(out.evaluation.python);
  out.toolchain = out.evaluation.tools.fingerprint();
  if (s.found.arch->device == "cuda" && out.evaluation.tools.cutlass.empty()) {
    Diagnostic d = fail(Code{"TS0325", "build.cutlass_missing"},
                        "there are no CUTLASS headers: products in fp8, and in tf32 of operands "
                        "that do not lie along K, get kernels of libraries only");
    d.level = Level::warning;
    d.helps.emplace_back("pip install nvidia-cutlass, or set TESSERA_CUTLASS_DIR");
    s.diagnostics.push_back(std::move(d));
  }
  out.evaluation.cache = cache / "kernels";
  out.evaluation.log_folder = cache / "logs";
  out.evaluation.effort = s.options.effort;
  out.evaluation.every_candidate = every_candidate;
  out.evaluation.parallel_builds = s.options.parallel_builds;
  out.evaluation.only_kind = s.options.only_kind;
  out.evaluation.confined = out.evaluation.tools.confined = s.options.confined;
  TESSERA_CHECK(toolchain::ready_cache(out.evaluation.cache));
  TESSERA_CHECK(toolchain::ready_cache(out.evaluation.log_folder));
  out.evaluator =
      std::make_unique<evaluate::Evaluator>(out.evaluation, s.found.graph, *s.found.arch);
  out.device_name = s.found.graph.meta.value("device_name", s.found.graph.device);
  if (s.options.use_registry) {
    TESSERA_TRY(opened, registry::Registry::open(registry_file(s.options)));
    out.registry = std::move(opened);
    if (const std::string mended = out.registry->mended(); !mended.empty()) {
      Diagnostic d =
          fail(Code{"TS0638", "registry.mended"}, "the registry was damaged and has been mended");
      d.level = Level::warning;
      d.notes.push_back(mended);
      s.diagnostics.push_back(std::move(d));
    }
  }
  return out;
}

namespace {

/// Whether nothing is to be searched.
bool all_stored(const Session& s) {
  return !s.options.retune && std::all_of(s.work.begin(), s.work.end(), [](const Work& w) {
    return w.reuse == rules::Reuse::reuse;
  });
}

}  // namespace

Status wake_evaluator(Session& s) {
  return all_stored(s) ? Status{} : s.tools.evaluator->wake();
}

Status check_builders(const Session& s) {
  if (all_stored(s) || s.options.only_kind == "library") return {};
  return toolchain::ready_to_build(s.tools.evaluation.tools, s.found.arch->device == "cuda"
                                                                 ? toolchain::Language::cuda
                                                                 : toolchain::Language::cxx);
}

}  // namespace tessera::pipeline
