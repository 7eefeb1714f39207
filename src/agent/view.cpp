#include "agent/view.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"

#include "agent/fit.h"

namespace tessera::agent {
namespace {

std::string machine_of(const View& v) {
  return fmt::format("{} on {}, {} accuracy\n", v.arch, v.device, v.precision);
}

std::string table_of(const View& v) {
  std::vector<std::vector<std::string>> rows;
  for (const Subject& s : v.patterns) {
    rows.push_back({s.id, s.rule, fmt::format("{:.4g}", s.unfused_ms),
                    fmt::format("{:.4g}", s.floor_ms), fmt::format("{:.4g}", s.gain_ms),
                    s.skeleton.empty() ? "no" : "yes", s.summary});
  }
  return render_table(
      {"id", "rule", "op by op ms", "roofline ms", "gain ms", "skeleton", "what it computes"},
      rows);
}

std::string tried_of(const View& v) {
  std::string out;
  for (const Tried& t : v.tried) {
    out += fmt::format("{}. {}", t.number, t.outcome);
    if (t.ms > 0) out += fmt::format(", {:.4g} ms", t.ms);
    if (!t.cause.empty()) out += ": " + without_folders(t.cause);
    if (!t.note.empty()) out += fmt::format(" (you: {})", t.note);
    out += "\n";
  }
  return out;
}

std::string times_of(const View& v) {
  std::string out;
  for (const Best& b : v.times) out += fmt::format("{:.4g} ms  {}\n", b.ms, b.what);
  return out;
}

std::string fenced(const std::string& text) {
  return "```\n" + text + (text.ends_with('\n') ? "" : "\n") + "```\n";
}

}  // namespace

std::string render_proposals(const View& v, int64_t tokens) {
  return fit({{.title = "machine", .text = machine_of(v), .keep = 9},
              {.title = "patterns that the rules found", .text = table_of(v), .keep = 4},
              {.title = "nodes", .text = v.nodes, .keep = 5},
              {.title = "said about your last reply", .text = v.said, .keep = 8}},
             tokens);
}

std::string render_plan(const View& v, int64_t tokens) {
  return fit({{.title = "machine", .text = machine_of(v), .keep = 9},
              {.title = "patterns, by expected gain", .text = table_of(v), .keep = 5},
              {.title = "said about your last reply", .text = v.said, .keep = 8}},
             tokens);
}

std::string render(const View& v, int64_t tokens) {
  const Subject& s = v.patterns.front();
  std::vector<Section> out = {
      {.title = "machine", .text = machine_of(v), .keep = 9},
      {.title = "pattern",
       .text = fmt::format("{} {}: {}\nroofline {:.4g} ms, op by op {:.4g} ms (estimates)\n", s.id,
                           s.rule, s.summary, s.floor_ms, s.unfused_ms),
       .keep = 9},
      {.title = "facts", .text = s.facts, .keep = 7}};
  const bool first = v.source.empty();
  const bool whole = s.skeleton.find("\n#error") == std::string::npos;
  if (first && !s.skeleton.empty())
    out.push_back({.title = whole ? "skeleton (correct and slow)"
                                  : "skeleton (slow; what an #error names is missing)",
                   .text = fenced(s.skeleton),
                   .keep = 4});
  if (!first) out.push_back({.title = "source", .text = fenced(v.source), .keep = 6});
  if (v.verdict)
    out.push_back(
        {.title = "verdict on it", .text = verdict_text(*v.verdict, v.source), .keep = 8});
  out.push_back({.title = "times of this pattern", .text = times_of(v), .keep = 5});
  out.push_back({.title = "tried so far", .text = tried_of(v), .keep = 3});
  out.push_back({.title = "said about it", .text = v.said, .keep = 8});
  out.push_back(
      {.title = "attempts left", .text = fmt::format("{}\n", v.attempts_left), .keep = 9});
  return fit(std::move(out), tokens);
}

}  // namespace tessera::agent
