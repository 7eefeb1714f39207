// A configuration held to the nearest one that is known to be good, field by field, before anything
// is built.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/configurations.h"

namespace tessera::examples {

/// What is asked about. Empty fields are not compared.
struct Asked {
  std::string rule;
  std::string precision;
  std::string arch;
  std::string realizer;
  Json config = Json::object();
  Json extents = Json::object();
};

/// How far `k` is from it, in doublings of extents and fields that differ; nothing where its rule
/// or architecture is another. Another realizer counts as eight (its fields mean other things), a
/// precision of another size as four, one of the same size as one half.
std::optional<double> distance(const Asked& asked, const Known& k);

/// The nearest first; of equals the faster. What is no relative is left out.
std::vector<const Known*> nearest(const Asked& asked, const std::vector<Known>& known);

struct Difference {
  std::string field;
  Json given;
  Json known;              // of the nearest
  bool elsewhere = false;  // the given value is another known one's, of this realizer and precision
};

struct Grounding {
  enum class Verdict : uint8_t {
    known,   // the nearest has the same values in all fields that both state
    mixed,   // each value is known to be good somewhere, not all of them together
    unseen,  // a value of it is in no configuration that is known to be good
    gap,     // nothing is known of this realizer, precision and architecture
  } verdict = Verdict::gap;
  const Known* nearest = nullptr;
  std::vector<Difference> differences;
  std::vector<std::string> not_compared;  // fields that the nearest does not state
};
std::string_view name_of(Grounding::Verdict v);

Grounding ground(const Asked& asked, const std::vector<Known>& known);

}  // namespace tessera::examples
