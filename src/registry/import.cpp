#include "registry/import.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

namespace tessera::registry {
namespace {

inline constexpr Code bad_import{"TS0637", "registry.bad_import"};
inline constexpr Code bad_field{"TS0639", "registry.bad_field"};

constexpr std::size_t most_entries = 100'000;
constexpr std::size_t most_winners = 16;
constexpr std::size_t most_failed_trials = 100'000;
constexpr std::size_t most_signature = 1 << 20;  // bytes: the text of a large fused subgraph
constexpr std::size_t most_text = 1000;
constexpr std::size_t most_config = 4000;  // bytes of JSON
constexpr int most_depth = 4;              // of a configuration
constexpr double most_number = 1e12;       // of a time, an error, a count
constexpr std::size_t most_extents = 4000;

/// Caught where the entry is known; says which field.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(std::string_view field, std::string_view what) {
  throw Refused(fmt::format("`{}` {}", field, what));
}

const Json& field(const Json& j, const char* name) {
  if (!j.is_object() || !j.contains(name)) refuse(name, "is missing");
  return j.at(name);
}

/// An absent field is an empty object.
const Json& object(const Json& j, const char* name) {
  static const Json none = Json::object();
  if (!j.is_object() || !j.contains(name)) return none;
  if (!j.at(name).is_object()) refuse(name, "is not an object");
  return j.at(name);
}

const Json& array(const Json& j, const char* name, std::size_t most) {
  static const Json none = Json::array();
  if (!j.is_object() || !j.contains(name)) return none;
  if (!j.at(name).is_array()) refuse(name, "is not a list");
  if (j.at(name).size() > most) refuse(name, fmt::format("has more than {} elements", most));
  return j.at(name);
}

/// Text without control characters: it is printed to terminals.
std::string text(const Json& value, const char* name, std::size_t most) {
  if (!value.is_string()) refuse(name, "is not text");
  std::string out = value.get<std::string>();
  if (out.size() > most) refuse(name, fmt::format("is longer than {} bytes", most));
  const bool plain = std::all_of(out.begin(), out.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  });
  if (!plain) refuse(name, "has control characters");
  return out;
}

/// A name of ours: a rule, an architecture, a realizer, a knob.
bool is_word(const std::string& s) {
  return !s.empty() && s.size() <= 64 && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '+';
  });
}

std::string word(const Json& value, const char* name) {
  std::string out = text(value, name, 64);
  if (!is_word(out)) refuse(name, "is no name");
  return out;
}

double number(const Json& value, const char* name) {
  if (!value.is_number()) refuse(name, "is not a number");
  const double x = value.get<double>();
  if (!std::isfinite(x) || x < 0 || x > most_number) refuse(name, "is out of bounds");
  return x;
}

/// The words of a configuration's values may be several.
bool are_words(std::string s) {
  std::replace_if(s.begin(), s.end(), [](char c) { return c == ' ' || c == ':' || c == ','; }, '_');
  return s.empty() || is_word(s);
}

/// Words, numbers, switches and lists of these: what a realizer writes into a configuration.
void check_config(const Json& value, const char* name, int depth) {
  if (depth > most_depth) refuse(name, "is nested too deep");
  if (value.is_string() && !are_words(value.get<std::string>()))
    refuse(name, "has text that is no name");
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    refuse(name, "has a number that is out of bounds");
  if (!value.is_structured()) return;
  for (const auto& [key, element] : value.items()) {
    if (value.is_object() && !is_word(key)) refuse(name, "has a key that is no name");
    check_config(element, name, depth + 1);
  }
}

Json config(const Json& holder, const char* name) {
  const Json& value = object(holder, name);
  check_config(value, name, 0);
  if (value.dump(-1, ' ', false, Json::error_handler_t::replace).size() > most_config)
    refuse(name, fmt::format("is longer than {} bytes", most_config));
  return value;
}

/// Times and errors; what else another machine wrote of its kernel is left out.
Json evidence(const Json& holder) {
  const Json& given = object(holder, "evidence");
  Json out = Json::object();
  for (const char* name : {"ms", "ci95", "sustained_ms", "max_error", "rms_error",
                           "baseline_max_error", "baseline_rms_error"}) {
    if (given.contains(name)) out[name] = number(given.at(name), name);
  }
  if (given.contains("unreliable") && given.at("unreliable") == true) out["unreliable"] = true;
  if (out.value("ms", 0.0) <= 0) refuse("ms", "is missing or 0");
  return out;
}

/// `c` holds realizer, kind and config, `knobs` and the evidence lie in `holder`.
kernel::Winner winner(const Json& c, const Json& holder, const Json& launch) {
  const std::string kind = word(field(c, "kind"), "kind");
  if (kind != "synthesized" && kind != "library")
    refuse("kind", "is neither synthesized nor library");
  return kernel::winner_from_portable({{"realizer", word(field(c, "realizer"), "realizer")},
                                       {"kind", kind},
                                       {"config", config(c, "config")},
                                       {"knobs", config(launch, "knobs")},
                                       {"evidence", evidence(holder)}});
}

/// The winners of schema /2, or of /1, where sources and calls are counted.
std::vector<kernel::Winner> winners(const Json& j, Imported& counts) {
  std::vector<kernel::Winner> out;
  for (const Json& w : array(j, "winners", most_winners)) out.push_back(winner(w, w, w));
  for (const Json& w : array(object(j, "candidate"), "winners", most_winners)) {
    const Json& c = object(w, "candidate");
    counts.sources += (c.contains("source") ? 1 : 0) + (c.contains("call") ? 1 : 0);
    out.push_back(winner(c, w, object(w, "launch")));
  }
  return out;
}

Json shape(const Json& j) {
  const Json& given = object(j, "shape");
  Json out = extents(given);
  if (out.size() > most_extents) refuse("shape", "has too many extents");
  for (const auto& [name, value] : out.items()) {
    if (name.size() > most_text) refuse("shape", "has a name that is too long");
    if (number(value, "shape") > most_number) refuse("shape", "is out of bounds");
  }
  return out;
}

Json libraries(const Json& j) {
  Json out = Json::object();
  const Json& given = object(j, "libraries");
  if (given.size() > 32) refuse("libraries", "has too many names");
  for (const auto& [name, version] : given.items()) {
    if (!is_word(name)) refuse("libraries", "has a key that is no name");
    out[name] = text(version, "libraries", 100);
  }
  return out;
}

/// Compilers' words have several lines: they become one, and are cut.
std::string one_line(const Json& value, const char* name) {
  if (!value.is_string()) refuse(name, "is not text");
  std::string out = value.get<std::string>().substr(0, most_text);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return out;
}

/// They have no force here: what failed elsewhere may pass.
Json negative(const Json& j) {
  Json out = Json::array();
  for (const Json& t : array(j, "negative", most_failed_trials)) {
    const auto part = [&](const char* name) {
      return t.is_object() && t.contains(name) ? one_line(t.at(name), name) : "";
    };
    out.push_back(
        {{"label", part("label")}, {"outcome", part("outcome")}, {"reason", part("reason")}});
  }
  return out;
}

Thoroughness search(const Json& j) {
  Thoroughness t = thoroughness_from_json(object(j, "search"));
  for (Pass& p : t.passes) p.because = one_line(p.because, "because");
  return t;
}

Entry entry(const Json& j, Imported& counts) {
  const Json& key = object(j, "key");
  Entry e;
  e.key = {.signature = text(field(key, "signature"), "signature", most_signature),
           .precision = word(field(key, "precision"), "precision"),
           .device = text(field(key, "device"), "device", most_text),
           .policy = text(field(key, "policy"), "policy", most_text)};
  if (e.key.signature.empty()) refuse("signature", "is empty");
  e.rule = word(field(j, "rule"), "rule");
  e.arch = word(field(j, "arch"), "arch");
  const std::string status = word(field(j, "status"), "status");
  if (status != "accepted" && status != "failed")
    refuse("status", "is neither accepted nor failed");
  e.toolchain = text(field(j, "toolchain"), "toolchain", most_text);
  e.created = text(j.value("created", Json("")), "created", 40);
  e.shape = shape(j);
  e.search = search(j);
  e.libraries = libraries(j);
  e.negative = negative(j);
  std::vector<kernel::Winner> found = winners(j, counts);
  if (status == "failed") return e;
  if (found.empty()) refuse("winners", "is missing or empty, and the status is accepted");
  e.winners = std::move(found);
  if (j.contains("eager_ms")) e.eager_ms = number(j.at("eager_ms"), "eager_ms");
  return e;
}

}  // namespace

Result<Sanitized> sanitize(const Json& exported, const std::string& file, const std::string& now) {
  const Json* schema =
      exported.is_object() && exported.contains("schema") ? &exported.at("schema") : nullptr;
  const bool known = schema != nullptr && schema->is_string() &&
                     (*schema == "tessera.registry/1" || *schema == "tessera.registry/2");
  if (!known || !exported.contains("entries") || !exported.at("entries").is_array() ||
      exported.at("entries").size() > most_entries) {
    return error(
        fail(bad_import, "this is not a registry export")
            .expect("a JSON object with the schema tessera.registry/2 and at most {} entries",
                    most_entries)
            .help("make one with `tessera registry export -o FILE.json`"));
  }
  Sanitized out;
  for (const Json& j : exported.at("entries")) {
    try {
      Entry e = entry(j, out.counts);
      ++out.counts.read;
      if (!e.accepted()) {
        ++out.counts.failed;
        continue;
      }
      e.provenance = {.imported = true, .file = file, .when = now};
      out.entries.push_back(std::move(e));
    } catch (const Refused& refused) {
      return error(
          fail(bad_field, "entry {} of the file is not one that tessera wrote", out.counts.read + 1)
              .but_found("{}", refused.what())
              .help("nothing was imported; export it again with `tessera registry export`"));
    }
  }
  return out;
}

}  // namespace tessera::registry
