// Kernels built before the search begins: while PyTorch compiles the module, which takes from a
// second to half a minute, most processors are idle and no clock runs.
#pragma once

#include <future>
#include <vector>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// What searches would have built first, by falling worth, at most `most` of it: of every work that
/// the registry has no verdict on, the candidates that build in seconds, in the order of its
/// search. The worth of a work is what the roofline leaves to gain of its ops' estimated time,
/// divided by how many of its candidates come before; nothing is timed yet. Makes the offers of
/// these works (Work::offers), which own the sources.
std::vector<const toolchain::Source*> first_builds(Session& s, std::size_t most);

/// Compilers at work from the beginning of its life to end(), where they may run beside the clock
/// (Evaluator::builds_ahead). The session's works are its own meanwhile. What it built is in the
/// cache, where the search finds it.
class BuildsAhead {
 public:
  explicit BuildsAhead(Session& s);
  ~BuildsAhead();
  BuildsAhead(const BuildsAhead&) = delete;
  BuildsAhead& operator=(const BuildsAhead&) = delete;

  /// No compiler of it runs on return: those that do are killed. How many kernels were built.
  int end();

 private:
  void stop();

  Session& s_;
  std::future<std::vector<const toolchain::Source*>> told_;
};

}  // namespace tessera::pipeline
