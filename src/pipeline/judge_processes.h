// The processes of a judgement: the reference's and the judged module's, each in a sandbox with a
// folder of its own, and the judge's, which runs nothing that was given.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "bridge/bridge.h"
#include "diag/result.h"

namespace tessera::pipeline {

struct Room {
  bool confined = true;
  bool gpu = false;
  std::string log;                    // "judged.log" in the folder of logs
  std::vector<std::string> readable;  // beside the system, Python and this package
};

/// A Python process of ours. `own`: the folder that it may write.
class Occupant {
 public:
  static Result<std::unique_ptr<Occupant>> start(const std::string& module, const Room& room);

  Result<Json> call(const std::string& method, const Json& params, std::chrono::seconds limit) {
    return peer_->call(method, params, limit);
  }
  [[nodiscard]] std::filesystem::path own() const { return folder_.path() / "own"; }
  /// What it tried beyond its sandbox since `begin` (CLOCK_MONOTONIC), or the limit that ended it.
  [[nodiscard]] std::string forbidden(double begin) const;

 private:
  Occupant() : folder_("tessera-judge") {}

  TemporaryFolder folder_;
  std::unique_ptr<bridge::Peer> peer_;
};

/// Seconds of the clock by which the sandbox tells when something was tried.
double seconds_of_machine();

}  // namespace tessera::pipeline
