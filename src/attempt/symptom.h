// Diagnosis as data: a symptom that a verdict shows, what it comes from, where to look, what to do.
// One row a file of symptoms/, and a test that brings each about (symptom_test.cpp).
#pragma once

#include <span>
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

namespace symptoms {
std::span<const Symptom* const> all();
}

/// Whether the verdict's words hold this text: cause, diagnostics, warnings, notes of gates.
bool mentions(const Verdict& v, std::string_view text);

/// Whether peak rates would take less than half of the time, and the launch alone does not bound
/// it.
bool far_from_peak(const Verdict& v);

/// The rows that fit, the most telling first, three at most.
std::vector<Advice> advice_for(const Verdict& v);

}  // namespace tessera::attempt
