// An evaluator process that comes back: spawned on demand, restarted after it died, its open
// pattern opened again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bridge/bridge.h"
#include "evaluate/evaluate.h"

namespace tessera::evaluate {

/// What a request to the evaluator came to. When it did not answer, `outcome` says how it ended.
struct Answer {
  std::optional<Json> reply;
  tune::Outcome outcome = tune::Outcome::crashed;  // crashed or timed_out, when there is no reply
  std::string reason;
};

class Session {
 public:
  Session(const Options& options, const graph::Graph& g, const arch::Arch& arch);
  ~Session();
  Result<Json> hello();
  /// Makes `pattern` the one that verify and measure work on. An error when even its references
  /// cannot be made.
  Status open(const rules::Pattern& pattern);
  /// `params` get the handle. Restarts the process before and after, when needed.
  Answer ask(const std::string& method, Json params, std::chrono::seconds limit);

 private:
  Status start();
  Status reopen();
  void drop();

  const Options& options_;
  const graph::Graph& graph_;
  const arch::Arch& arch_;
  Json graph_json_;
  Json pattern_json_;
  std::unique_ptr<bridge::Peer> peer_;
  std::optional<int64_t> handle_;
};

}  // namespace tessera::evaluate
