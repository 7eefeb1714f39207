#include "registry/rank.h"

#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "registry/wrong.h"

namespace tessera::registry {
namespace {

inline constexpr Code bad_filter{"TS0632", "registry.bad_filter"};

/// The newest failed trials that an entry keeps; what was wrong in a module always stays.
constexpr std::size_t most_negative = 300;

Json both(const Json& held, const Json& incoming) {
  std::vector<Json> all;
  std::set<std::string> seen;
  for (const Json* list : {&held, &incoming}) {
    for (const Json& trial : *list) {
      if (seen.insert(trial.dump(-1, ' ', false, Json::error_handler_t::replace)).second)
        all.push_back(trial);
    }
  }
  std::size_t surplus = all.size() > most_negative ? all.size() - most_negative : 0;
  Json out = Json::array();
  for (Json& trial : all) {
    if (surplus > 0 && !is_wrong_trial(trial)) {
      --surplus;
      continue;
    }
    out.push_back(std::move(trial));
  }
  return out;
}

}  // namespace

bool better(const Entry& a, const Entry& than) {
  if (a.accepted() != than.accepted()) return a.accepted();
  if (!a.accepted()) return a.created > than.created;
  if (a.unreliable() != than.unreliable()) return than.unreliable();
  const double mine = a.alone_ms();
  const double other = than.alone_ms();
  return mine != other ? mine < other : a.refined && !than.refined;
}

namespace {

std::map<std::string, std::string> fields(const Entry& e) {
  return {{"rule", e.rule},
          {"arch", e.arch},
          {"device", e.key.device},
          {"precision", e.key.precision},
          {"status", std::string(e.status())},
          {"kind", std::string(e.kind())},
          {"realizer", e.realizer()},
          {"toolchain", e.toolchain},
          {"hash", e.key.hash()}};
}

}  // namespace

Entry merge(const Entry& held, const Entry& incoming) {
  Entry old = held;
  Entry fresh = incoming;
  old.negative = fresh.negative = both(held.negative, incoming.negative);
  drop_wrong(old);
  drop_wrong(fresh);
  const bool takes_its_place =
      fresh.accepted() && ((!fresh.replaces.empty() && fresh.replaces == old.created) ||
                           (!fresh.run.empty() && fresh.run == old.run) ||
                           (fresh.libraries != old.libraries && fresh.created >= old.created));
  Entry out = takes_its_place || better(fresh, old) ? fresh : old;
  out.search = together(held.search, incoming.search, false);
  return out;
}

std::optional<double> distance(const Json& a, const Json& b) {
  if (a.empty() || a.size() != b.size()) return std::nullopt;
  double sum = 0;
  for (const auto& [name, value] : a.items()) {
    if (!b.contains(name)) return std::nullopt;
    const double x = value.get<double>();
    const double y = b.at(name).get<double>();
    if (x == y) continue;
    if (x <= 0 || y <= 0 || x > 2 * y || y > 2 * x) return std::nullopt;
    sum += std::abs(std::log2(x / y));
  }
  return sum;
}

Result<bool> matches(const Entry& e, const std::string& filter) {
  const auto known = fields(e);
  for (const std::string& raw : split(filter, ' ')) {
    const std::string term = trim(raw);
    if (term.empty()) continue;
    const std::size_t equals = term.find('=');
    // Signatures contain `=` too; a term is a field only when its left side is a word.
    if (equals != std::string::npos && term.find_first_of("(:[") > equals) {
      const auto it = known.find(term.substr(0, equals));
      if (it == known.end()) {
        std::vector<std::string> names;
        for (const auto& [name, unused] : known) names.push_back(name);
        return error(fail(bad_filter, "entries have no field `{}`", term.substr(0, equals))
                         .expect("one of {}", join(names, ", "))
                         .but_found("{}", term));
      }
      const std::string wanted = term.substr(equals + 1);
      const bool same = it->first == "hash"     ? it->second.starts_with(wanted)
                        : it->first == "device" ? it->second.find(wanted) != std::string::npos
                                                : it->second == wanted;
      if (!same) return false;
      continue;
    }
    bool found = e.key.signature.find(term) != std::string::npos;
    for (const auto& [name, value] : known) found = found || value.find(term) != std::string::npos;
    if (!found) return false;
  }
  return true;
}

}  // namespace tessera::registry
