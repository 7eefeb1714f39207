// Keys, extents and the JSON form of entries.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/files.h"
#include "base/hash.h"
#include "registry/registry.h"

namespace tessera::registry {
namespace {

inline constexpr Code bad_entry{"TS0631", "registry.bad_entry"};

Json to_json(const Key& key) {
  return {{"signature", key.signature},
          {"precision", key.precision},
          {"device", key.device},
          {"policy", key.policy}};
}

bool is_integers(const Json& j) {
  if (!j.is_array() || j.empty()) return false;
  for (const Json& e : j) {
    if (!e.is_number_integer()) return false;
  }
  return true;
}

void add_all(Json& out, const std::string& name, const Json& values) {
  for (std::size_t i = 0; i < values.size(); ++i) out[fmt::format("{}[{}]", name, i)] = values[i];
}

}  // namespace

std::string Key::hash() const {
  return content_hash(to_json(*this).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string measuring_policy() {
  return "3: interleaved with an anchor, L2 emptied by reads, median with 95% interval; finalists "
         "under load as well";
}

std::filesystem::path default_place() {
  return data_home() / "registry.sqlite";
}

Json extents(const Json& body) {
  Json out = Json::object();
  if (!body.is_object()) return out;
  for (const auto& [name, value] : body.items()) {
    if (value.is_number_integer()) {
      out[name] = value;
    } else if (is_integers(value)) {
      add_all(out, name, value);
    } else if (value.is_array()) {
      // Groups of loops have a shape of their own; views (with strides) are operands, not extents.
      for (std::size_t i = 0; i < value.size(); ++i) {
        const Json& e = value[i];
        if (!e.is_object() || e.contains("strides") || !e.contains("shape") ||
            !is_integers(e.at("shape")))
          continue;
        add_all(out, fmt::format("{}[{}].shape", name, i), e.at("shape"));
      }
    }
  }
  return out;
}

std::string Entry::realizer() const {
  return accepted() ? winners.front().candidate.realizer : "";
}

std::string_view Entry::kind() const {
  return accepted() ? name_of(winners.front().candidate.kind) : "";
}

double Entry::alone_ms() const {
  double least = INFINITY;
  for (const kernel::Winner& w : winners) {
    if (w.evidence.ms > 0) least = std::min(least, w.evidence.ms);
  }
  return least;
}

bool Entry::unreliable() const {
  return std::any_of(winners.begin(), winners.end(),
                     [](const kernel::Winner& w) { return w.evidence.unreliable; });
}

namespace {

/// What stands beside the winners: of the first of them, and of the whole entry. What another
/// machine took eager for counts nothing here.
Json in_short(const Entry& e) {
  Json out = {{"realizer", ""},
              {"kind", ""},
              {"config", Json::object()},
              {"launch", Json::object()},
              {"candidate", Json::object()},
              {"evidence", Json::object()},
              {"binary", ""}};
  if (!e.accepted()) return out;
  Json all = Json::array();
  for (const kernel::Winner& w : e.winners) all.push_back(to_json(w));
  const Json& first = all.front();
  out["realizer"] = first.at("candidate").at("realizer");
  out["kind"] = first.at("candidate").at("kind");
  out["config"] = first.at("candidate").at("config");
  out["launch"] = first.at("launch");
  out["binary"] = first.at("binary");
  out["evidence"] = first.at("evidence");
  if (!e.provenance.imported) {
    out["evidence"]["eager_ms"] = e.eager_ms;
    out["evidence"]["refined"] = e.refined;
  }
  if (const double alone = e.alone_ms(); std::isfinite(alone)) out["evidence"]["alone_ms"] = alone;
  out["candidate"]["winners"] = std::move(all);
  if (!e.provenance.imported || e.eager_ms > 0) out["candidate"]["eager_ms"] = e.eager_ms;
  return out;
}

}  // namespace

Json to_json(const Entry& e) {
  const Json first = in_short(e);
  return {{"hash", e.key.hash()},
          {"key", to_json(e.key)},
          {"rule", e.rule},
          {"arch", e.arch},
          {"status", e.status()},
          {"realizer", first.at("realizer")},
          {"kind", first.at("kind")},
          {"config", first.at("config")},
          {"launch", first.at("launch")},
          {"candidate", first.at("candidate")},
          {"evidence", first.at("evidence")},
          {"negative", e.negative},
          {"toolchain", e.toolchain},
          {"created", e.created},
          {"binary_hash", first.at("binary")},
          {"shape", e.shape},
          {"search", to_json(e.search)},
          {"libraries", e.libraries},
          {"provenance",
           {{"origin", e.provenance.imported ? "imported" : "own"},
            {"file", e.provenance.file},
            {"when", e.provenance.when}}},
          {"replaces", e.replaces},
          {"run", e.run}};
}

Json portable(const Entry& e) {
  Json winners = Json::array();
  for (const kernel::Winner& w : e.winners) winners.push_back(kernel::portable(w));
  return {{"key", to_json(e.key)},
          {"rule", e.rule},
          {"arch", e.arch},
          {"status", e.status()},
          {"winners", winners},
          {"eager_ms", e.eager_ms},
          {"negative", e.negative},
          {"toolchain", e.toolchain},
          {"created", e.created},
          {"shape", extents(e.shape)},
          {"search", to_json(e.search)},
          {"libraries", e.libraries}};
}

namespace {

Status take_winners(Entry& e, const Json& j) {
  const Json candidate = j.value("candidate", Json::object());
  for (const Json& stored : candidate.value("winners", Json::array())) {
    TESSERA_TRY(winner, kernel::winner_from_json(stored));
    e.winners.push_back(std::move(winner));
  }
  e.eager_ms = candidate.value("eager_ms", 0.0);
  e.refined = j.value("evidence", Json::object()).value("refined", false);
  return {};
}

}  // namespace

Result<Entry> entry_from_json(const Json& j) {
  Entry e;
  std::string status;
  try {
    const Json& key = j.at("key");
    e.key = {.signature = key.at("signature"),
             .precision = key.at("precision"),
             .device = key.at("device"),
             .policy = key.at("policy")};
    e.rule = j.at("rule");
    e.arch = j.at("arch");
    status = j.at("status");
    TESSERA_CHECK(take_winners(e, j));
    e.negative = j.value("negative", Json::array());
    e.toolchain = j.at("toolchain");
    e.created = j.value("created", "");
    e.shape = j.value("shape", Json::object());
    e.search = thoroughness_from_json(j.value("search", Json::object()));
    e.libraries = j.value("libraries", Json::object());
    const Json from = j.value("provenance", Json::object());
    e.provenance = {.imported = from.value("origin", "own") == "imported",
                    .file = from.value("file", ""),
                    .when = from.value("when", "")};
    e.replaces = j.value("replaces", "");
    e.run = j.value("run", "");
  } catch (const Json::exception& x) {
    return error(fail(bad_entry, "a registry entry cannot be read")
                     .but_found("{}", x.what())
                     .help("export it again with this version of tessera"));
  }
  if (status != "accepted" && status != "failed") {
    return error(fail(bad_entry, "a registry entry has the status `{}`", status)
                     .expect("accepted or failed"));
  }
  if (e.key.signature.empty()) return error(fail(bad_entry, "a registry entry has no signature"));
  return e;
}

}  // namespace tessera::registry
