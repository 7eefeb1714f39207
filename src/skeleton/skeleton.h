// A correct naive kernel for a pattern, to start from: C++ for the host or CUDA C++ behind the
// kernel contract. Plain loops over what one item computes (an element, a row); its head says what
// is computed, the tensors with their layouts, and what the roofline and the gates allow.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/arch.h"
#include "graph/graph.h"
#include "rules/rules.h"

#include "pointwise/pointwise.h"

namespace tessera::skeleton {

/// What is done for every item of a range, as the body of a function of `index item`.
struct Loop {
  std::string name;  // "elements"
  int64_t items = 0;
  std::string body;  // C++ statements, each line indented by two spaces
  /// ATen ops that no loop is known for: an #error stands in the place of each.
  std::vector<std::string> missing = {};
};

/// One rule's writer, a file a rule, by the rule's name.
struct Skeleton {
  std::string_view rule;
  Result<std::vector<Loop>> (*write)(const rules::Pattern&);
};

std::span<const Skeleton* const> all();

/// The source text and the ending of its file (".cpp", ".cu"). Error TS0053: the rule has no
/// writer, or a tensor has an element type that the skeleton does not load.
struct Written {
  std::string text;
  std::string ending;
  std::vector<std::string> missing;  // Loop::missing of all loops, each once
};
Result<Written> write(const rules::Pattern& pattern, const graph::Graph& g, const arch::Arch& arch);

inline constexpr Code no_skeleton{"TS0053", "input.no_skeleton"};

}  // namespace tessera::skeleton
