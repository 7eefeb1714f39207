// An evaluator process that comes back: spawned on demand, restarted after it died, the patterns
// that are wanted again opened again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "bridge/bridge.h"
#include "evaluate/evaluate.h"

namespace tessera::evaluate {

/// What a request to the evaluator came to. When it did not answer, `outcome` says how it ended.
struct Answer {
  std::optional<Json> reply;
  tune::Outcome outcome = tune::Outcome::crashed;  // crashed or timed_out, when there is no reply
  std::string reason;
  std::string forbidden;  // what was tried meanwhile that the sandbox does not allow
};

class Session {
 public:
  Session(const Options& options, const graph::Graph& g, const arch::Arch& arch);
  ~Session();
  /// Spawns the process, if it does not run, and does not wait for it.
  Status start();
  Result<Json> hello();
  /// Makes the inputs and references of `pattern`, if they are not there. An error when they cannot
  /// be made.
  Status open(const rules::Pattern& pattern);
  /// Of a pattern that was opened; `params` get its handle. Restarts the process before and after,
  /// when needed.
  Answer ask(const rules::Pattern& pattern, const std::string& method, Json params,
             std::chrono::seconds limit);
  /// Forgets what it holds of a pattern.
  void close(const rules::Pattern& pattern);

 private:
  Result<int64_t> handle_of(const rules::Pattern& pattern);
  void make_room();
  void drop();
  Result<Command> confined(const Command& command);
  std::string forbidden(double since) const;

  const Options& options_;
  const graph::Graph& graph_;
  const arch::Arch& arch_;
  Json graph_json_;
  bool graph_sent_ = false;
  /// Of a confined process: what it may write, and the report on it. It outlives the process.
  std::unique_ptr<TemporaryFolder> room_;
  std::unique_ptr<bridge::Peer> peer_;
  struct Open {
    const rules::Pattern* pattern = nullptr;
    int64_t handle = 0;
  };
  std::vector<Open> open_;  // used last comes last
};

}  // namespace tessera::evaluate
