// The report for people, in at most 80 columns: figures in tables, long words wrapped below their
// row.
#include <algorithm>
#include <fmt/format.h>
#include <map>

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

// A line of figures for each pattern; what it is, and which kernel or why none, below it.
std::string patterns_text(const Json& report) {
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
         has_winner ? ratio(p.value("eager_ms", 0.0), evidence.value("ms", 0.0)) : ""});
    out += wrap(p.value("summary", ""), 5, 7);
    if (has_winner) out += wrap("by " + best.at("label").get<std::string>(), 5, 7);
    const std::string why_not = p.value("inactive_because", "");
    if (!why_not.empty()) out += wrap("not active: " + why_not, 5, 7);
  }
  return out;
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

std::string verification_text(const Json& check) {
  if (!check.contains("ok")) return "";
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
      line += fmt::format("; {} of {} kernels; relative RMS error {:.3g} (the original: {:.3g})",
                          r.value("kernels", 0), r.value("of", 0), r.value("rms_error", 0.0),
                          r.value("baseline_rms_error", 0.0));
    }
    const std::string reason = r.value("reason", "");
    out += wrap(line + (reason.empty() ? "" : ": " + reason), 2, 4);
  }
  return out;
}

// Names of the times that no comparison can rest on.
std::string unreliable_names(const Json& times) {
  std::vector<std::string> names;
  for (const auto& [name, t] : times.items()) {
    if (!t.value("reliable", true)) names.push_back(name);
  }
  return join(names, ", ");
}

std::string module_text(const Json& module) {
  if (!module.contains("times")) return "";
  const Json& times = module.at("times");
  const double ours = times.contains("tessera") ? times.at("tessera").value("ms", 0.0) : 0.0;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, t] : times.items()) {
    const double ms = t.value("ms", 0.0);
    rows.push_back({name, fmt::format("{:.4g}", ms), fmt::format("±{:.2g}", t.value("ci95", 0.0)),
                    name == "tessera" ? "" : ratio(ms, ours)});
  }
  std::string out = "\n" + render_table({"module", "ms", "ci95", "tessera is faster by"}, rows);
  if (const std::string noisy = unreliable_names(times); !noisy.empty()) {
    out += wrap(fmt::format("not reliable: {}: other work ran on this machine while they were "
                            "timed, so by how much tessera is faster is not known; run it again "
                            "when the machine is quiet",
                            noisy),
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
    rows.push_back({a.value("name", ""), figure(a, "ms"), ratio(a.value("speedup", 0.0), 1)});
  }
  return "\n" + render_table({"ablation", "ms", "over eager"}, rows);
}

}  // namespace

std::string report_text(const Json& report) {
  std::string out =
      wrap(fmt::format("{} on {} ({}), {}", report.value("name", ""), report.value("device", ""),
                       report.value("arch", ""), report.value("precision", "")),
           0, 2) +
      "\n";
  for (const Json& r : report.at("rewrites")) {
    out += wrap(fmt::format("recognized: {} ({} ops)", r.at("what").get<std::string>(),
                            r.at("nodes").size()),
                0, 2);
  }
  out += "\n" + patterns_text(report) + "\n";
  out += grouped(report.at("leftover"), "left to PyTorch", "op", "node");
  out += grouped(report.at("rejections"), "not taken", "rule", "nodes");
  const Json& module = report.at("module");
  out += verification_text(report.at("verification")) + module_text(module) + ablation_text(module);
  if (report.value("stopped", false))
    out += "\nstopped before the end: the best so far is kept; run again to go on\n";
  return out;
}

}  // namespace tessera::commands
