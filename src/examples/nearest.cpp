#include "examples/nearest.h"

#include <algorithm>
#include <cmath>

#include "numeric/dtype.h"

#include "kernel/winner.h"

namespace tessera::examples {
namespace {

constexpr double of_realizer = 8;
constexpr double of_other_size = 4;
constexpr double of_same_size = 0.5;

double of_precision(const std::string& a, const std::string& b) {
  if (a.empty() || a == b) return 0;
  const auto x = parse_precision(a);
  const auto y = parse_precision(b);
  const bool alike = x && y && size_of(storage_type(*x)) == size_of(storage_type(*y)) &&
                     (*x == Precision::fp8) == (*y == Precision::fp8);
  return alike ? of_same_size : of_other_size;
}

/// Doublings between them; of extents that only one has, none.
double of_extents(const Json& a, const Json& b) {
  double sum = 0;
  for (const auto& [name, given] : a.items()) {
    const auto other = b.find(name);
    if (other == b.end()) continue;
    const double x = given.get<double>();
    const double y = other->get<double>();
    if (x > 0 && y > 0) sum += std::abs(std::log2(x / y));
  }
  return sum;
}

int differing(const Json& a, const Json& b) {
  int n = 0;
  for (const auto& [name, given] : a.items()) {
    const auto other = b.find(name);
    n += static_cast<int>(other != b.end() && !kernel::same(given, *other));
  }
  return n;
}

bool is_of(const Known& k, const Asked& asked) {
  return k.realizer == asked.realizer && k.precision == asked.precision && k.arch == asked.arch &&
         k.rule == asked.rule;
}

bool seen(const Asked& asked, const std::vector<Known>& known, const std::string& field,
          const Json& value) {
  return std::any_of(known.begin(), known.end(), [&](const Known& k) {
    const auto v = k.config.find(field);
    return is_of(k, asked) && v != k.config.end() && kernel::same(*v, value);
  });
}

}  // namespace

std::optional<double> distance(const Asked& asked, const Known& k) {
  if ((!asked.rule.empty() && k.rule != asked.rule) ||
      (!asked.arch.empty() && k.arch != asked.arch))
    return std::nullopt;
  const bool other = !asked.realizer.empty() && k.realizer != asked.realizer;
  return of_precision(asked.precision, k.precision) + of_extents(asked.extents, k.extents) +
         (other ? of_realizer : differing(asked.config, k.config));
}

std::vector<const Known*> nearest(const Asked& asked, const std::vector<Known>& known) {
  std::vector<std::pair<double, const Known*>> found;
  for (const Known& k : known)
    if (const auto d = distance(asked, k)) found.emplace_back(*d, &k);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->ms < b.second->ms;
  });
  std::vector<const Known*> out;
  out.reserve(found.size());
  for (const auto& [d, k] : found) out.push_back(k);
  return out;
}

std::string_view name_of(Grounding::Verdict v) {
  switch (v) {
    case Grounding::Verdict::known:
      return "known";
    case Grounding::Verdict::mixed:
      return "mixed";
    case Grounding::Verdict::unseen:
      return "unseen";
    case Grounding::Verdict::gap:
      break;
  }
  return "gap";
}

Grounding ground(const Asked& asked, const std::vector<Known>& known) {
  Grounding out;
  const std::vector<const Known*> found = nearest(asked, known);
  if (found.empty()) return out;
  out.nearest = found.front();
  // Another realizer's fields mean other things.
  if (out.nearest->realizer != asked.realizer) return out;
  bool all_seen = true;
  for (const auto& [field, given] : asked.config.items()) {
    const auto theirs = out.nearest->config.find(field);
    if (theirs == out.nearest->config.end()) {
      out.not_compared.push_back(field);
    } else if (!kernel::same(given, *theirs)) {
      const bool elsewhere = seen(asked, known, field, given);
      all_seen = all_seen && elsewhere;
      out.differences.push_back(
          {.field = field, .given = given, .known = *theirs, .elsewhere = elsewhere});
    }
  }
  using Verdict = Grounding::Verdict;
  // Another precision's limits are others.
  if (!is_of(*out.nearest, asked))
    out.verdict = Verdict::gap;
  else if (out.differences.empty())
    out.verdict = Verdict::known;
  else
    out.verdict = all_seen ? Verdict::mixed : Verdict::unseen;
  return out;
}

}  // namespace tessera::examples
