// A verdict for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/elsewhere.h"

#include "attempt/verdict.h"

namespace tessera::attempt {
namespace {

std::string gates_of(const Verdict& v) {
  std::string out;
  for (const GateResult& g : v.gates) {
    out += fmt::format("  {:9} {:8}{}\n", name_of(g.gate), name_of(g.passage),
                       g.note.empty() ? "" : g.note);
  }
  return out;
}

std::string wrong_of(const Wrong& w) {
  std::string out = fmt::format("first wrong: {}[{}] expected {}, found {} ({})\n", w.output,
                                fmt::join(w.index, ", "), w.expected, w.found, w.inputs);
  out += fmt::format("{} of {} are wrong: {}\n", w.count, w.of, w.details);
  if (!w.relation.empty()) out += w.relation_details + "\n";
  for (const Json& d : w.depends) out += fmt::format("it {}\n", d.at("text").get<std::string>());
  return out;
}

/// Relative, against the meaning in fp64.
std::string errors_of(const Json& errors) {
  const auto of = [&](const char* key) {
    const Json value = errors.value(key, Json());
    return value.is_number() ? fmt::format("{:.3g}", value.get<double>()) : std::string("unknown");
  };
  if (!errors.contains("rms_error")) return "";
  const Json budget = errors.value("budget", Json::object());
  const auto allowed = [&](const char* key) {
    return budget.contains(key) && budget.at(key).is_number()
               ? fmt::format(", {:.3g} is allowed", budget.at(key).get<double>())
               : std::string();
  };
  return fmt::format("errors: rms {} (eager {}{}), greatest {} (eager {}{})\n", of("rms_error"),
                     of("baseline_rms_error"), allowed("rms"), of("max_error"),
                     of("baseline_max_error"), allowed("max"));
}

std::string times_of(const Measured& m) {
  std::string out = fmt::format("time: {:.4g} ms +- {:.2g}\n", m.ms, m.ci95);
  if (m.unreliable)
    out +=
        "not reliable: other work ran on this machine while it was timed, so how it compares is "
        "not known; run it again when the machine is quiet\n";
  if (Elsewhere::disturbs(m.elsewhere))
    out += fmt::format(
        "other processes kept {:.1f} processors busy meanwhile{}{}: all times may be too long, "
        "those of many threads most\n",
        m.elsewhere, m.busy.empty() ? "" : ", most of all ", fmt::join(m.busy, ", "));
  for (const Peer& p : m.peers) {
    if (p.ms <= 0)
      out += fmt::format("  {}: no time, {}\n", p.name, p.reason);
    else if (comparable(m, p))
      out +=
          fmt::format("  {:.2f}x of {} ({:.4g} ms +- {:.2g})\n", p.ms / m.ms, p.name, p.ms, p.ci95);
    else
      out += fmt::format("  {}: {:.4g} ms +- {:.2g}; how it compares is not reliable\n", p.name,
                         p.ms, p.ci95);
  }
  if (m.floor_ms > 0)
    out += fmt::format("  {:.0f} % of the roofline ({:.4g} ms at peak rates), which {} bounds\n",
                       100 * m.floor_ms / m.ms, m.floor_ms, m.bound);
  return out;
}

std::string variants_of(const Verdict& v) {
  if (v.variants.size() < 2) return "";
  std::string out = "tunables:\n";
  for (const Variant& t : v.variants) {
    out += fmt::format("  {}: {}\n", t.tunables.dump(),
                       t.ms > 0 ? fmt::format("{:.4g} ms", t.ms) : t.outcome + ", " + t.reason);
  }
  return out;
}

}  // namespace

std::string to_text(const Verdict& v) {
  std::string out =
      fmt::format("{} for {} {}: {}, on {}{}\n", v.source, v.pattern, v.rule, v.summary, v.arch,
                  v.known ? " (judged before, as it stood then; --again judges it anew)" : "");
  out += gates_of(v);
  if (!v.passed()) {
    const std::string line =
        v.place.line > 0 ? fmt::format("{}:{}: ", v.place.file, v.place.line) : "";
    out += fmt::format("{}: {}{}\n", name_of(v.failure), line, v.cause);
  }
  for (const Diagnostic& d : v.diagnostics) out += tessera::to_text(d);
  if (v.wrong) out += wrong_of(*v.wrong);
  out += errors_of(v.errors);
  if (v.measured) out += times_of(*v.measured);
  out += variants_of(v);
  for (const std::string& w : v.warnings) out += fmt::format("compiler: {}\n", w);
  if (!v.standing.empty()) out += v.standing + "\n";
  for (const Advice& a : v.advice)
    out +=
        fmt::format("next, {}: {}\n  where: {}\n  do: {}\n", a.symptom, a.cause, a.where, a.remedy);
  return out;
}

}  // namespace tessera::attempt
