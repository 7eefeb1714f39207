#include "commands/common/optimizing.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tessera::commands {
namespace {

std::string milliseconds(const Json& j, const char* key) {
  if (!j.contains(key) || !j.at(key).is_number()) return "";
  return fmt::format("{:.4g}", j.at(key).get<double>());
}

std::string pattern_table(const Json& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& p : report.at("patterns")) {
    const bool has_winner = p.contains("winners") && !p.at("winners").empty();
    const Json none = Json::object();
    const Json& best = has_winner ? p.at("winners").front() : none;
    const double ms = has_winner ? best.at("evidence").value("ms", 0.0) : 0;
    const double eager = p.value("eager_ms", 0.0);
    rows.push_back({p.at("id"), p.at("rule"), p.value("summary", ""),
                    p.value("active", false) ? "yes" : "no",
                    has_winner ? best.at("label").get<std::string>() : "",
                    has_winner ? best.at("kind").get<std::string>() : "",
                    has_winner ? fmt::format("{:.4g}", ms) : "", milliseconds(p, "eager_ms"),
                    milliseconds(p, "floor_ms"),
                    has_winner && ms > 0 && eager > 0 ? fmt::format("{:.2f}x", eager / ms) : "",
                    p.value("inactive_because", "")});
  }
  return render_table({"id", "rule", "what", "active", "kernel", "kind", "ms", "eager ms",
                       "floor ms", "gain", "why not"},
                      rows);
}

std::string module_table(const Json& report) {
  const Json& module = report.at("module");
  if (!module.contains("times")) return "";
  std::vector<std::vector<std::string>> rows;
  const double ours = module.at("times").contains("tessera")
                          ? module.at("times").at("tessera").value("ms", 0.0)
                          : 0.0;
  for (const auto& [name, t] : module.at("times").items()) {
    const double ms = t.value("ms", 0.0);
    rows.push_back({name, fmt::format("{:.4g}", ms), fmt::format("±{:.2g}", t.value("ci95", 0.0)),
                    ours > 0 ? fmt::format("{:.2f}x", ms / ours) : ""});
  }
  std::string out = render_table({"module", "ms", "ci95", "tessera is faster by"}, rows);
  if (module.contains("absent")) {
    for (const auto& [peer, reason] : module.at("absent").items()) {
      out += fmt::format("{}: not measured: {}\n", peer, reason.get<std::string>());
    }
  }
  return out;
}

std::string ablation_table(const Json& report) {
  const Json& module = report.at("module");
  if (!module.contains("ablation") || module.at("ablation").empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Json& a : module.at("ablation")) {
    rows.push_back(
        {a.value("name", ""), milliseconds(a, "ms"),
         a.contains("speedup") ? fmt::format("{:.2f}x", a.at("speedup").get<double>()) : ""});
  }
  return render_table({"ablation", "ms", "over eager"}, rows);
}

}  // namespace

std::vector<Parameter> tuning_parameters(std::vector<Parameter> more) {
  using Type = Parameter::Type;
  std::vector<Parameter> out = {
      {.type = Type::text,
       .name = "effort",
       .doc = "how many configurations to try",
       .preset = "default",
       .choices = {"quick", "default", "max"}},
      {.type = Type::real,
       .name = "seconds",
       .doc = "stop tuning after this many seconds, best kept (0: no limit)",
       .preset = "0"},
      {.type = Type::integer,
       .name = "jobs",
       .doc = "parallel compilations (0: one a core)",
       .preset = "0"},
      {.type = Type::text,
       .name = "only",
       .doc = "what kind of kernel may be placed",
       .preset = "both",
       .choices = {"both", "synthesized", "library"}},
      {.type = Type::flag,
       .name = "place-all",
       .doc = "place the best kernels even where eager is faster, as benchmarks do"},
      {.type = Type::flag, .name = "retune", .doc = "challenge stored winners again"},
      {.type = Type::text,
       .name = "use-registry",
       .doc = "read and write the registry",
       .preset = "true",
       .choices = {"true", "false"}},
  };
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::string report_text(const Json& report) {
  std::string out =
      fmt::format("{} on {} ({}), {}\n\n", report.value("name", ""), report.value("device", ""),
                  report.value("arch", ""), report.value("precision", ""));
  for (const Json& r : report.at("rewrites")) {
    out += fmt::format("recognized: {} ({} ops)\n", r.at("what").get<std::string>(),
                       r.at("nodes").size());
  }
  out += "\n" + pattern_table(report) + "\n";
  for (const Json& l : report.at("leftover")) {
    out += fmt::format("left to PyTorch: {} ({}): {}\n", l.at("node").get<std::string>(),
                       l.at("op").get<std::string>(), l.at("reason").get<std::string>());
  }
  for (const Json& r : report.at("rejections")) {
    out += fmt::format("not taken: {} at {}: {}\n", r.at("rule").get<std::string>(),
                       r.at("nodes").dump(), r.at("reason").get<std::string>());
  }
  const Json& check = report.at("verification");
  if (check.contains("ok")) {
    out += fmt::format(
        "\nverified against fp64: {}; relative RMS error {:.3g} (the original: {:.3g})\n",
        check.at("ok").get<bool>() ? "right" : "WRONG", check.value("rms_error", 0.0),
        check.value("baseline_rms_error", 0.0));
  }
  const std::string times = module_table(report);
  if (!times.empty()) out += "\n" + times;
  const std::string ablation = ablation_table(report);
  if (!ablation.empty()) out += "\n" + ablation;
  if (report.value("stopped", false))
    out += "\nstopped before the end: the best so far is kept; run again to go on\n";
  return out;
}

pipeline::Context pipeline_context(Context& context) {
  pipeline::Context out;
  if (context.progress) out.progress = context.progress;
  out.stop = context.stop;
  return out;
}

}  // namespace tessera::commands
