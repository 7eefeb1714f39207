// A verdict in the words that a model needs.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

#include "agent/view.h"

namespace tessera::agent {
namespace {

using attempt::Verdict;

constexpr std::size_t most_notes = 12;       // lines of a compiler or a checker
constexpr std::size_t most_findings = 1500;  // bytes of a counterexample
constexpr std::size_t most_warnings = 4;

bool in_path(char c) {
  return (std::isalnum(static_cast<unsigned char>(c)) != 0) ||
         std::string_view("._-+/").find(c) != std::string_view::npos;
}

std::string gates_of(const Verdict& v) {
  std::vector<std::string> parts;
  for (const attempt::GateResult& g : v.gates)
    parts.push_back(fmt::format("{} {}", attempt::name_of(g.gate), attempt::name_of(g.passage)));
  return join(parts, ", ") + "\n";
}

std::string stopped_by(const Verdict& v, const std::string& source) {
  if (v.passed()) return "passed all gates\n";
  std::string out = fmt::format("{}: {}\n", attempt::name_of(v.failure), v.cause);
  const std::vector<std::string> lines = split(source, '\n');
  const int line = v.place.line;
  if (line > 0 && line <= static_cast<int>(lines.size()))
    out += fmt::format("at line {}: {}\n", line, trim(lines[static_cast<std::size_t>(line) - 1]));
  return out;
}

std::string notes_of(const Verdict& v) {
  std::string out;
  std::size_t left = most_notes;
  for (const Diagnostic& d : v.diagnostics) {
    if (left == 0) break;
    if (d.message != v.cause) out += d.code + ": " + d.message + "\n", --left;
    for (const std::string& n : d.notes) {
      if (left == 0) break;
      out += "  " + n + "\n", --left;
    }
  }
  for (std::size_t i = 0; i < std::min(most_warnings, v.warnings.size()); ++i)
    out += "warning: " + v.warnings[i] + "\n";
  return out;
}

std::string wrong_of(const attempt::Wrong& w) {
  std::string out =
      fmt::format("first wrong: {}[{}] of ({}): expected {}, found {} (inputs: {})\n", w.output,
                  fmt::join(w.index, ","), fmt::join(w.shape, ","), w.expected, w.found, w.inputs);
  out += fmt::format("{} of {} are wrong: {}: {}\n", w.count, w.of, w.lies, w.details);
  if (!w.relation.empty()) out += w.relation_details + "\n";
  for (const Json& d : w.depends) out += "it " + d.value("text", "") + "\n";
  return out;
}

std::string measured_of(const Verdict& v) {
  const attempt::Measured& m = *v.measured;
  std::string out =
      fmt::format("{:.4g} ms +- {:.2g}, {:.0f} % of the roofline ({:.4g} ms), bound by {}\n", m.ms,
                  m.ci95, m.ms > 0 ? 100 * m.floor_ms / m.ms : 0, m.floor_ms, m.bound);
  for (const attempt::Peer& p : m.peers)
    out += p.ms > 0 ? fmt::format("{:.4g} ms  {}\n", p.ms, p.name) : "";
  return out + v.standing + "\n";
}

std::string variants_of(const Verdict& v) {
  if (v.variants.size() < 2) return "";
  std::string out;
  for (const attempt::Variant& t : v.variants)
    out += fmt::format("{}: {}\n", t.tunables.dump(),
                       t.ms > 0 ? fmt::format("{:.4g} ms", t.ms) : t.outcome + " " + t.reason);
  return out;
}

}  // namespace

std::string without_folders(const std::string& text) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    const bool begins =
        text[i] == '/' && (i == 0 || !in_path(text[i - 1])) && i + 1 < text.size() &&
        (std::isalnum(static_cast<unsigned char>(text[i + 1])) != 0 || text[i + 1] == '.');
    if (!begins) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && in_path(text[end])) ++end;
    std::string path = text.substr(i, end - i);
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    out += path.substr(path.rfind('/') == 0 ? 0 : path.rfind('/') + 1);
    i = end;
  }
  return out;
}

std::string verdict_text(const Verdict& v, const std::string& source) {
  std::string out = gates_of(v) + stopped_by(v, source) + notes_of(v);
  if (v.wrong) out += wrong_of(*v.wrong);
  if (!v.counterexample.is_null() && !v.counterexample.empty())
    out += "counterexample: " + v.counterexample.dump().substr(0, most_findings) + "\n";
  if (!v.resources.empty()) out += "resources: " + v.resources.dump() + "\n";
  if (v.measured) out += measured_of(v);
  out += variants_of(v);
  for (const attempt::Advice& a : v.advice)
    out +=
        fmt::format("symptom, {}: {} Look at: {}. Do: {}\n", a.symptom, a.cause, a.where, a.remedy);
  return without_folders(out);
}

}  // namespace tessera::agent
