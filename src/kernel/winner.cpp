#include "kernel/winner.h"

#include <algorithm>

namespace tessera::kernel {
namespace {

/// What is left of a candidate that cannot be used as it was stored.
Candidate named(const Json& j) {
  Candidate c;
  c.realizer = j.at("realizer");
  c.kind = j.value("kind", "") == name_of(Kind::library) ? Kind::library : Kind::synthesized;
  c.config = j.value("config", Json::object());
  return c;
}

}  // namespace

Launch Winner::launched() const {
  return candidate.launches.empty() ? Launch{}
                                    : candidate.launches.at(static_cast<std::size_t>(launch));
}

bool Winner::is_of(const Candidate& c) const {
  return candidate.realizer == c.realizer && same(candidate.config, c.config);
}

Json to_json(const Winner& w) {
  const Launch launch = w.launched();
  return {{"candidate", to_json(w.candidate)},
          {"launch", {{"knobs", launch.knobs}, {"ints", launch.ints}}},
          {"evidence", to_json(w.evidence)},
          {"binary", w.built ? w.built->hash : w.binary}};
}

Result<Winner> winner_from_json(const Json& j) {
  try {
    Winner w;
    const Json& stored = j.at("candidate");
    auto candidate = candidate_from_json(stored);
    w.candidate = candidate ? std::move(*candidate) : named(stored);
    const Json launch = j.value("launch", Json::object());
    w.candidate.launches = {Launch{.knobs = launch.value("knobs", Json::object()),
                                   .ints = launch.value("ints", std::vector<int64_t>())}};
    w.evidence = evidence_from_json(j.value("evidence", Json::object()));
    w.binary = j.value("binary", "");
    return w;
  } catch (const Json::exception& e) {
    return error(fail(bad_candidate, "a stored winner cannot be read")
                     .but_found("{}", e.what())
                     .help("remove it with `tessera registry prune` and optimize again"));
  }
}

Json portable(const Winner& w) {
  return {{"realizer", w.candidate.realizer},
          {"kind", name_of(w.candidate.kind)},
          {"config", w.candidate.config},
          {"knobs", w.launched().knobs},
          {"evidence", to_json(w.evidence)}};
}

Winner winner_from_portable(const Json& j) {
  Winner w{.candidate = named(j), .built = {}, .binary = {}, .evidence = {}};
  w.candidate.launches = {Launch{.knobs = j.value("knobs", Json::object()), .ints = {}}};
  w.evidence = evidence_from_json(j.value("evidence", Json::object()));
  return w;
}

Json wire_form(const Candidate& c, int launch, const std::optional<toolchain::Built>& built) {
  Json j = {{"label", c.label()},
            {"realizer", c.realizer},
            {"kind", name_of(c.kind)},
            {"config", c.config}};
  if (built) {
    j["library"] = built->library.string();
    j["sha"] = built->hash;
  }
  if (c.source && launch < static_cast<int>(c.launches.size())) {
    const Launch& l = c.launches[static_cast<std::size_t>(launch)];
    j["launch"] = {{"ints", l.ints}, {"knobs", l.knobs}};
  }
  if (c.call) j["call"] = {{"function", c.call->function}, {"arguments", c.call->arguments}};
  return j;
}

Json wire_form(const Winner& w) {
  return wire_form(w.candidate, w.launch, w.built);
}

Json report_row(const Winner& w) {
  Json j = {{"label", w.candidate.label()},
            {"realizer", w.candidate.realizer},
            {"kind", name_of(w.candidate.kind)},
            {"config", w.candidate.config},
            {"evidence", to_json(w.evidence)}};
  if (!w.candidate.launches.empty()) j["knobs"] = w.launched().knobs;
  if (w.built) {
    j["binary"] = w.built->hash;
    j["resources"] = w.built->resources;
  }
  return j;
}

bool same(const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) return a == b;
  return a.size() == b.size() &&
         std::all_of(a.items().begin(), a.items().end(), [&](const auto& item) {
           return b.contains(item.key()) && same(item.value(), b.at(item.key()));
         });
}

}  // namespace tessera::kernel
