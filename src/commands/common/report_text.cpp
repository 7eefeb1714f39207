// The report for people, in at most 80 columns: figures in tables, long words wrapped below their
// row.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/elsewhere.h"
#include "base/text.h"
#include "commands/common/optimizing.h"

namespace tessera::commands {
namespace {

constexpr std::size_t page_width = 80;

// Characters, not bytes: continuation bytes of UTF-8 take no column.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Lines of at most 80 columns, broken at blanks; the first is indented by `first`, the others by
// `rest`. A word that is longer than a line keeps one of its own.
std::string wrap(const std::string& text, std::size_t first, std::size_t rest) {
  std::string out;
  std::string line(first, ' ');
  bool empty = true;
  for (const std::string& word : split(replace_all(text, "\n", " "), ' ')) {
    if (word.empty()) continue;
    if (!empty && columns(line) + 1 + columns(word) > page_width) {
      out += line + "\n";
      line = std::string(rest, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return empty ? out : out + line + "\n";
}

std::string figure(const Json& j, const char* key) {
  if (!j.contains(key) || !j.at(key).is_number() || j.at(key).get<double>() <= 0) return "";
  return fmt::format("{:.4g}", j.at(key).get<double>());
}

std::string ratio(double a, double b) {
  return a > 0 && b > 0 ? fmt::format("{:.2f}x", a / b) : "";
}

/// As `ratio` of `a` to `b`, where the report says of `of` that it may be compared.
std::string known_ratio(const Json& of, double a, double b) {
  return of.value("comparable", true) ? ratio(a, b) : "not reliable";
}

std::string nodes_text(const Json& nodes) {
  constexpr std::size_t most = 6;
  std::vector<std::string> names;
  for (const Json& n : nodes) {
    if (names.size() == most) {
      names.push_back(fmt::format("... ({} ops)", nodes.size()));
      break;
    }
    names.push_back(n.get<std::string>());
  }
  return join(names, ", ");
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string line =
      fmt::format("{:<4} {:<10} {:<6} {:<11} {:>10} {:>10} {:>10} {:>7}", cells[0], cells[1],
                  cells[2], cells[3], cells[4], cells[5], cells[6], cells[7]);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + "\n";
}

std::string settled_why(const Json& report) {
  return report.value("settled", Json::object()).value("why", "");
}

// A line of figures for each pattern; what it is, and which kernel or why none, below it.
std::string patterns_text(const Json& report) {
  const std::string settled = settled_why(report);
  std::string out =
      table_row({"id", "rule", "active", "kind", "kernel ms", "eager ms", "floor ms", "gain"}) +
      std::string(page_width - 5, '-') + "\n";
  for (const Json& p : report.at("patterns")) {
    const bool has_winner = p.contains("winners") && !p.at("winners").empty();
    const Json best = has_winner ? p.at("winners").front() : Json::object();
    const Json evidence = best.value("evidence", Json::object());
    out += table_row(
        {p.at("id"), p.at("rule"), p.value("active", false) ? "yes" : "no", best.value("kind", ""),
         figure(evidence, "ms"), figure(p, "eager_ms"), figure(p, "floor_ms"),
         !has_winner                   ? ""
         : p.value("comparable", true) ? ratio(p.value("eager_ms", 0.0), evidence.value("ms", 0.0))
                                       : "noisy"});
    out += wrap(p.value("summary", ""), 5, 7);
    if (has_winner) out += wrap("by " + best.at("label").get<std::string>(), 5, 7);
    std::string why_not = p.value("inactive_because", "");
    // Said once, below.
    if (!settled.empty()) why_not = replace_all(why_not, settled, "as `settled` says");
    if (!why_not.empty()) out += wrap("not active: " + why_not, 5, 7);
    for (const Json& passed : p.value("passed_over", Json::array()))
      out += wrap(fmt::format("stored before and passed over: {}: {}",
                              passed.at("label").get<std::string>(),
                              passed.at("reason").get<std::string>()),
                  5, 7);
  }
  return out;
}

// How the way that runs the module was chosen, and which kernels were exchanged in it.
std::string decisions_text(const Json& report) {
  std::string out;
  for (const Json& r : report.value("refinements", Json::array()))
    out +=
        wrap(fmt::format("{}: in the module's own run {} is faster than {}: {:.4g} ms against "
                         "{:.4g} ms",
                         r.at("pattern").get<std::string>(), r.at("to").get<std::string>(),
                         r.at("from").get<std::string>(), r.value("ms", 0.0), r.value("than", 0.0)),
             0, 2);
  const std::string why = settled_why(report);
  return why.empty() ? out : out + wrap("settled: " + why, 0, 2);
}

// The same reason for many places is said once.
std::string grouped(const Json& rows, const std::string& head, const char* what,
                    const char* where) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> places;
  for (const Json& r : rows) {
    const std::string key =
        r.at(what).get<std::string>() + "\n" + r.at("reason").get<std::string>();
    if (!places.contains(key)) order.push_back(key);
    const Json& place = r.at(where);
    places[key].push_back(place.is_array() ? nodes_text(place) : place.get<std::string>());
  }
  std::string out;
  for (const std::string& key : order) {
    const std::vector<std::string> parts = split(key, '\n');
    const std::vector<std::string>& at = places[key];
    const std::string count = at.size() > 1 ? fmt::format(", {} places", at.size()) : "";
    out += wrap(fmt::format("{}: {} ({}{}): {}", head, parts[0], at.front(), count,
                            join({parts.begin() + 1, parts.end()}, " ")),
                0, 2);
  }
  return out;
}

// "Inductor": who of PyTorch runs a module, for people.
std::string runner_name(const std::string& runner) {
  return runner == "inductor" ? "Inductor" : runner == "eager" ? "PyTorch, eagerly," : runner;
}

bool places_kernels(const Json& report) {
  const Json& patterns = report.at("patterns");
  return std::any_of(patterns.begin(), patterns.end(),
                     [](const Json& p) { return p.value("active", false); });
}

// Without this the times of PyTorch's own way look like tessera's.
std::string headline(const Json& report) {
  if (report.value("verification", Json::object()).empty() && report.at("module").empty())
    return "";  // a search alone places nothing
  if (places_kernels(report)) return "";
  const std::string runner = report.value("runner", "kernels");
  const std::string who = runner == "kernels" ? report.value("leftover_runner", "eager") : runner;
  return wrap(fmt::format("no kernel placed: {} runs the module", runner_name(who)), 0, 2);
}

std::string verification_text(const Json& check) {
  if (!check.contains("ok")) return "";
  if (check.value("form", "").starts_with("none"))
    return "\n" + wrap("nothing to verify: no kernel of tessera runs in the module", 0, 2);
  std::string out = "\n" + wrap(fmt::format("verified against fp64: {}; relative RMS error {:.3g} "
                                            "(the original: {:.3g})",
                                            check.at("ok").get<bool>() ? "right" : "WRONG",
                                            check.value("rms_error", 0.0),
                                            check.value("baseline_rms_error", 0.0)),
                                0, 2);
  const Json resizes = check.value("resizes", Json::array());
  for (const Json& r : resizes) {
    const bool unknown = !r.at("ok").is_boolean();
    std::string line = "  at another size, " + r.value("size", "") + ": ";
    line += unknown ? "not verified" : r.at("ok").get<bool>() ? "right" : "WRONG";
    if (!unknown) {
      line += fmt::format(
          "; kernels: {}, as traced {}; relative RMS error {:.3g} (the original: {:.3g})",
          r.value("kernels", 0), r.value("of", 0), r.value("rms_error", 0.0),
          r.value("baseline_rms_error", 0.0));
    }
    const std::string reason = r.value("reason", "");
    out += wrap(line + (reason.empty() ? "" : ": " + reason), 2, 4);
  }
  return out;
}

// Names of the times that no comparison can rest on: noisy ones, and what is too near to ours.
std::string unreliable_names(const Json& times) {
  const bool ours = times.value("tessera", Json::object()).value("reliable", true);
  std::vector<std::string> names;
  for (const auto& [name, t] : times.items()) {
    if (!t.value("reliable", true) || (ours && !t.value("comparable", true))) names.push_back(name);
  }
  return join(names, ", ");
}

std::string module_text(const Json& report) {
  const Json& module = report.at("module");
  if (!module.contains("times")) return "";
  const std::string runner = report.value("runner", "kernels");
  const std::string own = runner == "kernels" ? "tessera" : fmt::format("tessera: {}", runner);
  const Json& times = module.at("times");
  const double ours = times.contains("tessera") ? times.at("tessera").value("ms", 0.0) : 0.0;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, t] : times.items()) {
    const double ms = t.value("ms", 0.0);
    rows.push_back({name == "tessera" ? own : name, fmt::format("{:.4g}", ms),
                    fmt::format("±{:.2g}", t.value("ci95", 0.0)),
                    name == "tessera" ? "" : known_ratio(t, ms, ours)});
  }
  std::string out = "\n" + render_table({"module", "ms", "ci95", "tessera is faster by"}, rows);
  if (const std::string noisy = unreliable_names(times); !noisy.empty()) {
    out += wrap(fmt::format("not reliable: {}: other work ran on this machine while they were "
                            "timed, so by how much tessera is faster is not known; run it again "
                            "when the machine is quiet",
                            noisy),
                0, 2);
  }
  if (const double elsewhere = module.value("elsewhere", 0.0); Elsewhere::disturbs(elsewhere)) {
    out +=
        wrap(fmt::format("other processes kept {:.1f} processors busy while the module was timed: "
                         "all times may be too long",
                         elsewhere),
             0, 2);
  }
  if (module.contains("measured")) {
    out += wrap(fmt::format("measured at {} with the same plan; --retune measures again",
                            module.at("measured").get<std::string>()),
                0, 2);
  }
  const Json absent = module.value("absent", Json::object());
  for (const auto& [peer, reason] : absent.items()) {
    out += wrap(fmt::format("{}: not measured: {}", peer, reason.get<std::string>()), 0, 2);
  }
  return out;
}

std::string ablation_text(const Json& module) {
  const Json ablation = module.value("ablation", Json::array());
  if (ablation.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Json& a : ablation) {
    rows.push_back(
        {a.value("name", ""), figure(a, "ms"), known_ratio(a, a.value("speedup", 0.0), 1)});
  }
  return "\n" + render_table({"ablation", "ms", "over eager"}, rows);
}

// A limit of seconds bounds the search; what it took in all surprises who sees that alone.
std::string seconds_text(const Json& seconds) {
  static const std::map<std::string, const char*> names = {
      {"check_rewrites", "checking rewrites"},
      {"baseline", "PyTorch's own ways"},
      {"refine", "exchanging kernels in the module"},
      {"settle", "every way beside the others"},
      {"verify_module", "verifying the module"},
      {"measure_module", "measuring the module"},
      {"resizes", "other sizes"}};
  double all = 0;
  std::vector<std::pair<double, std::string>> rest;
  for (const auto& [stage, took] : seconds.items()) {
    all += took.get<double>();
    if (stage == "evaluate") continue;
    const auto name = names.find(stage);
    rest.emplace_back(took.get<double>(), name == names.end() ? stage : name->second);
  }
  if (!seconds.contains("evaluate")) return "";
  std::sort(rest.rbegin(), rest.rend());
  std::vector<std::string> parts;
  for (const auto& [took, name] : rest) {
    constexpr double least = 0.01;
    if (took >= least * all) parts.push_back(fmt::format("{} {:.1f} s", name, took));
  }
  const std::string others =
      parts.empty() ? "" : "; the rest, which --seconds does not limit: " + join(parts, ", ");
  return "\n" + wrap(fmt::format("{:.1f} s: search {:.1f} s{}", all,
                                 seconds.at("evaluate").get<double>(), others),
                     0, 2);
}

}  // namespace

std::string report_text(const Json& report) {
  std::string out =
      wrap(fmt::format("{} on {} ({}), {}", report.value("name", ""), report.value("device", ""),
                       report.value("arch", ""), report.value("precision", "")),
           0, 2) +
      headline(report) + "\n";
  for (const Json& r : report.at("rewrites")) {
    out += wrap(fmt::format("recognized: {} ({} ops)", r.at("what").get<std::string>(),
                            r.at("nodes").size()),
                0, 2);
  }
  out += "\n" + patterns_text(report) + "\n" + decisions_text(report);
  out += grouped(report.at("leftover"), "left to PyTorch", "op", "node");
  out += grouped(report.at("rejections"), "not taken", "rule", "nodes");
  const Json& module = report.at("module");
  out += verification_text(report.at("verification")) + module_text(report) + ablation_text(module);
  out += seconds_text(report.value("stage_seconds", Json::object()));
  if (report.value("stopped", false))
    out += "\nstopped before the end: the best so far is kept; run again to go on\n";
  return out;
}

}  // namespace tessera::commands
