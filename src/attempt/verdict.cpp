// The codec of a verdict.
#include "attempt/verdict.h"

#include <array>
#include <stdexcept>

#include "base/elsewhere.h"

namespace tessera::attempt {
namespace {

constexpr std::array<std::string_view, 6> gates = {"parse",  "check",    "build",
                                                   "verify", "sanitize", "measure"};
constexpr std::array<std::string_view, 3> passages = {"passed", "failed", "skipped"};
constexpr std::array<std::string_view, 18> failures = {"none",
                                                       "bad_source",
                                                       "refuted",
                                                       "not_the_pattern",
                                                       "does_not_compile",
                                                       "compiler_hangs",
                                                       "not_loadable",
                                                       "crash",
                                                       "hang",
                                                       "wrong_result",
                                                       "non_finite",
                                                       "incomplete",
                                                       "out_of_bounds",
                                                       "input_modified",
                                                       "invalid_access",
                                                       "out_of_memory",
                                                       "forbidden",
                                                       "unsupported"};

template <class E, std::size_t N>
E read(const std::array<std::string_view, N>& names, const std::string& word) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == word) return static_cast<E>(i);
  }
  throw std::invalid_argument("no such word in a verdict: " + word);
}

Json json_of(const Wrong& w) {
  return {{"output", w.output},
          {"shape", w.shape},
          {"index", w.index},
          {"expected", w.expected},
          {"found", w.found},
          {"count", w.count},
          {"of", w.of},
          {"lies", w.lies},
          {"box", w.box},
          {"details", w.details},
          {"relation", w.relation},
          {"relation_details", w.relation_details},
          {"depends", w.depends},
          {"inputs", w.inputs}};
}

Json json_of(const Measured& m) {
  Json j = {{"ms", m.ms},
            {"ci95", m.ci95},
            {"sustained_ms", m.sustained_ms},
            {"floor_ms", m.floor_ms},
            {"bound", m.bound},
            {"unreliable", m.unreliable},
            {"elsewhere", m.elsewhere},
            {"busy", m.busy},
            {"peers", Json::array()}};
  if (m.ms > 0) j["share_of_roofline"] = m.floor_ms / m.ms;
  for (const Peer& p : m.peers)
    j["peers"].push_back({{"name", p.name},
                          {"ms", p.ms},
                          {"ci95", p.ci95},
                          {"reason", p.reason},
                          {"unreliable", p.unreliable}});
  return j;
}

Measured measured_of(const Json& j) {
  Measured m{.ms = j.at("ms"),
             .ci95 = j.at("ci95"),
             .sustained_ms = j.at("sustained_ms"),
             .floor_ms = j.at("floor_ms"),
             .bound = j.at("bound"),
             .unreliable = j.at("unreliable"),
             .elsewhere = j.value("elsewhere", 0.0),
             .busy = j.value("busy", std::vector<std::string>{})};
  for (const Json& p : j.at("peers"))
    m.peers.push_back({.name = p.at("name"),
                       .ms = p.at("ms"),
                       .ci95 = p.at("ci95"),
                       .reason = p.at("reason"),
                       .unreliable = p.value("unreliable", false)});
  return m;
}

void write_lists(const Verdict& v, Json& j) {
  for (const char* list : {"gates", "diagnostics", "variants", "advice"}) j[list] = Json::array();
  for (const GateResult& g : v.gates)
    j["gates"].push_back({{"gate", name_of(g.gate)},
                          {"passage", name_of(g.passage)},
                          {"note", g.note},
                          {"seconds", g.seconds}});
  for (const Diagnostic& d : v.diagnostics) j["diagnostics"].push_back(tessera::to_json(d));
  for (const Variant& t : v.variants)
    j["variants"].push_back(
        {{"tunables", t.tunables}, {"outcome", t.outcome}, {"ms", t.ms}, {"reason", t.reason}});
  for (const Advice& a : v.advice)
    j["advice"].push_back(
        {{"symptom", a.symptom}, {"cause", a.cause}, {"where", a.where}, {"remedy", a.remedy}});
}

void read_lists(const Json& j, Verdict& v) {
  for (const Json& g : j.at("gates"))
    v.gates.push_back({.gate = read<Gate>(gates, g.at("gate")),
                       .passage = read<Passage>(passages, g.at("passage")),
                       .note = g.at("note"),
                       .seconds = g.at("seconds")});
  for (const Json& d : j.at("diagnostics")) v.diagnostics.push_back(diagnostic_from_json(d));
  for (const Json& t : j.at("variants"))
    v.variants.push_back({.tunables = t.at("tunables"),
                          .outcome = t.at("outcome"),
                          .ms = t.at("ms"),
                          .reason = t.at("reason")});
  for (const Json& a : j.at("advice"))
    v.advice.push_back({.symptom = a.at("symptom"),
                        .cause = a.at("cause"),
                        .where = a.at("where"),
                        .remedy = a.at("remedy")});
}

}  // namespace

Wrong wrong_from_json(const Json& j) {
  Wrong w;
  w.output = j.at("output");
  w.shape = j.at("shape").get<std::vector<int64_t>>();
  w.index = j.at("index").get<std::vector<int64_t>>();
  w.expected = j.at("expected");
  w.found = j.at("found");
  w.count = j.at("count");
  w.of = j.at("of");
  w.lies = j.at("lies");
  w.box = j.at("box").get<std::vector<std::vector<int64_t>>>();
  w.details = j.at("details");
  w.relation = j.at("relation");
  w.relation_details = j.at("relation_details");
  w.depends = j.at("depends");
  w.inputs = j.at("inputs");
  return w;
}

std::string_view name_of(Gate gate) {
  return gates.at(static_cast<std::size_t>(gate));
}

std::string_view name_of(Passage passage) {
  return passages.at(static_cast<std::size_t>(passage));
}

std::string_view name_of(Failure failure) {
  return failures.at(static_cast<std::size_t>(failure));
}

Gate Verdict::reached() const {
  return gates.empty() ? Gate::parse : gates.back().gate;
}

const GateResult* Verdict::find(Gate gate) const {
  for (const GateResult& g : gates) {
    if (g.gate == gate) return &g;
  }
  return nullptr;
}

bool comparable(const Measured& m, const Peer& p) {
  return p.ms > 0 && m.ms > 0 && !m.unreliable && !p.unreliable &&
         !near_tie_under_load({m.ms, m.ci95}, {p.ms, p.ci95}, m.elsewhere);
}

Json to_json(const Verdict& v) {
  Json j = {{"schema", "tessera.verdict/1"},
            {"source", v.source},
            {"hash", v.hash},
            {"language", v.language},
            {"pattern", v.pattern},
            {"rule", v.rule},
            {"summary", v.summary},
            {"arch", v.arch},
            {"device", v.device},
            {"precision", v.precision},
            {"passed", v.passed()},
            {"reached", name_of(v.reached())},
            {"failure", name_of(v.failure)},
            {"cause", v.cause},
            {"place", {{"file", v.place.file}, {"line", v.place.line}, {"column", v.place.column}}},
            {"wrong", v.wrong ? json_of(*v.wrong) : Json()},
            {"counterexample", v.counterexample},
            {"resources", v.resources},
            {"warnings", v.warnings},
            {"errors", v.errors},
            {"measured", v.measured ? json_of(*v.measured) : Json()},
            {"won", v.won},
            {"standing", v.standing},
            {"reliable", v.reliable},
            {"known", v.known}};
  write_lists(v, j);
  return j;
}

Verdict verdict_from_json(const Json& j) {
  if (j.at("schema") != "tessera.verdict/1") throw std::invalid_argument("not a verdict");
  Verdict v;
  v.source = j.at("source");
  v.hash = j.at("hash");
  v.language = j.at("language");
  v.pattern = j.at("pattern");
  v.rule = j.at("rule");
  v.summary = j.at("summary");
  v.arch = j.at("arch");
  v.device = j.at("device");
  v.precision = j.at("precision");
  v.failure = read<Failure>(failures, j.at("failure"));
  v.cause = j.at("cause");
  v.place = {.file = j.at("place").at("file"),
             .line = j.at("place").at("line"),
             .column = j.at("place").at("column")};
  if (!j.at("wrong").is_null()) v.wrong = wrong_from_json(j.at("wrong"));
  v.counterexample = j.at("counterexample");
  v.resources = j.at("resources");
  v.warnings = j.at("warnings").get<std::vector<std::string>>();
  v.errors = j.at("errors");
  if (!j.at("measured").is_null()) v.measured = measured_of(j.at("measured"));
  v.won = j.at("won");
  v.standing = j.at("standing");
  v.reliable = j.at("reliable");
  v.known = j.at("known");
  read_lists(j, v);
  return v;
}

}  // namespace tessera::attempt
