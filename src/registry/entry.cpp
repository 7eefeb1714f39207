// Keys, extents and the JSON form of entries.
#include <fmt/format.h>

#include "base/files.h"
#include "base/hash.h"
#include "registry/registry.h"
#include "registry/winners.h"

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
  return "2: interleaved with an anchor, cold L2, median with 95% interval; finalists under load "
         "as well";
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

Json to_json(const Entry& e) {
  return {{"hash", e.key.hash()},
          {"key", to_json(e.key)},
          {"rule", e.rule},
          {"arch", e.arch},
          {"status", e.status},
          {"realizer", e.realizer},
          {"kind", e.kind},
          {"config", e.config},
          {"launch", e.launch},
          {"candidate", e.candidate},
          {"evidence", e.evidence},
          {"negative", e.negative},
          {"toolchain", e.toolchain},
          {"created", e.created},
          {"binary_hash", e.binary_hash},
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
  for (const Json& w : winners_of(e)) {
    const Json& c = w.at("candidate");
    const Json launch = w.value("launch", Json::object());
    winners.push_back({{"realizer", c.value("realizer", "")},
                       {"kind", c.value("kind", "")},
                       {"config", c.value("config", Json::object())},
                       {"knobs", launch.value("knobs", Json::object())},
                       {"evidence", w.value("evidence", Json::object())}});
  }
  return {{"key", to_json(e.key)},
          {"rule", e.rule},
          {"arch", e.arch},
          {"status", e.status},
          {"winners", winners},
          {"eager_ms", e.candidate.value("eager_ms", 0.0)},
          {"negative", e.negative},
          {"toolchain", e.toolchain},
          {"created", e.created},
          {"shape", extents(e.shape)},
          {"search", to_json(e.search)},
          {"libraries", e.libraries}};
}

Result<Entry> entry_from_json(const Json& j) {
  Entry e;
  try {
    const Json& key = j.at("key");
    e.key = {.signature = key.at("signature"),
             .precision = key.at("precision"),
             .device = key.at("device"),
             .policy = key.at("policy")};
    e.rule = j.at("rule");
    e.arch = j.at("arch");
    e.status = j.at("status");
    e.realizer = j.value("realizer", "");
    e.kind = j.value("kind", "");
    e.config = j.value("config", Json::object());
    e.launch = j.value("launch", Json::object());
    e.candidate = j.value("candidate", Json::object());
    e.evidence = j.value("evidence", Json::object());
    e.negative = j.value("negative", Json::array());
    e.toolchain = j.at("toolchain");
    e.created = j.value("created", "");
    e.binary_hash = j.value("binary_hash", "");
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
  if (e.status != "accepted" && e.status != "failed") {
    return error(fail(bad_entry, "a registry entry has the status `{}`", e.status)
                     .expect("accepted or failed"));
  }
  if (e.key.signature.empty()) return error(fail(bad_entry, "a registry entry has no signature"));
  return e;
}

}  // namespace tessera::registry
