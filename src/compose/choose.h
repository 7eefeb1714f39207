// Which tuned patterns go into the composed module: the set without overlaps and without cycles
// that saves most time.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "rules/rules.h"

namespace tessera::composer {

/// A pattern with a kernel that passed its gates.
struct Option {
  const rules::Pattern* pattern = nullptr;
  double ms = 0;           // the kernel
  double eager_ms = 0;     // the covered ops, one by one
  double ci95 = 0;         // of the kernel
  bool estimated = false;  // eager_ms is a model's: no other baseline goes by it
  [[nodiscard]] double gain() const { return eager_ms - ms; }
};

struct Choice {
  std::vector<int> chosen;                            // indices into the options
  std::vector<std::pair<int, std::string>> left_out;  // with the reason
  std::map<int, int> displaced;  // of those left out: by which of the chosen, where they overlap
  double gain_ms = 0;
};

/// A pattern's ops take at least what those of a pattern took whose ops are all among them: the two
/// were timed at different moments, and the noise between these is no gain. A kernel that was no
/// faster than its ops, timed beside them, gains nothing by it.
void raise_baselines(std::vector<Option>& options);

/// "overlaps p03": whether two options share an op that computes.
bool overlap(const Option& a, const Option& b);

/// Maximizes the summed gain over sets of options that share no computing node and whose
/// contraction leaves the graph acyclic. Exact for up to `exact_limit` options that overlap one
/// another; larger clusters are chosen greedily by gain, and the choice says so.
Choice choose(const graph::Graph& g, const std::vector<Option>& options, int exact_limit = 18);

/// True when the graph with each pattern contracted to one node has no cycle.
bool acyclic(const graph::Graph& g, const std::vector<const rules::Pattern*>& patterns);

}  // namespace tessera::composer
