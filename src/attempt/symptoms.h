// Diagnosis as data: a symptom that a verdict shows, what it comes from, where to look, what to do.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "attempt/verdict.h"

namespace tessera::attempt {

struct Symptom {
  std::string_view name;  // "a tail is missing"
  bool (*shows)(const Verdict&);
  std::string_view cause;
  std::string_view where;
  std::string_view remedy;
  /// The more it says, the earlier it is named; rows of one verdict are ordered by it.
  int weight = 1;
};

/// Every row of the table.
std::span<const Symptom> symptoms();

/// The rows that fit, the most telling first, three at most.
std::vector<Advice> advice_for(const Verdict& v);

}  // namespace tessera::attempt
