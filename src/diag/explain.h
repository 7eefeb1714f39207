// What a diagnostic's code means, beyond the message of one case: why it comes up and what to do.
// One record a code, a family a file (explain_*.cpp); `tessera explain` prints them and
// docs/errors.md is made of them. python/tests/test_codes.py holds them to the declared codes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diag/result.h"

namespace tessera {

/// Texts are paragraphs: a single line break counts as a blank. `example` is taken as it stands,
/// without its first line break.
struct Explanation {
  std::string_view code;     // "TS0202"
  std::string_view name;     // "graph.untraceable"
  std::string_view means;    // what is the case
  std::string_view arises;   // why it comes up
  std::string_view remedy;   // what to do
  std::string_view example;  // an input or a message, and what helps there
};

/// The codes that start with `prefix`, which has four letters.
struct CodeFamily {
  std::string_view prefix;  // "TS02"
  std::string_view title;
};

std::span<const CodeFamily> code_families();
/// All of them, by code.
const std::vector<Explanation>& explanations();

/// The records that `what` names: a code ("TS0202", in any case), a code's name
/// ("graph.untraceable"), or the first letters of a code ("TS02", "TS0"). Error: TS0048, which
/// names the nearest.
Result<std::vector<Explanation>> explanations_of(std::string_view what);

/// A text of a record in one line a paragraph.
std::string paragraph(std::string_view text);
/// The example without the line break that it begins with and white space at its end.
std::string example_text(const Explanation& e);
/// The record for a terminal: a heading a field, its text broken at 78 columns.
std::string to_text(const Explanation& e);

}  // namespace tessera
