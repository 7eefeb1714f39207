// A refutation's witness, run by the interpreter.
//
// The checker says at which numbers of turns a kernel fails, and how. The interpreter, which shares
// nothing with it but the effects of instructions, runs small launches with these numbers of turns
// under seeded schedules, until it sees a fault of the same kind. What it saw, with the launch and
// the schedule, is added to the refutation; where it saw nothing the refutation says so.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "check/check.h"
#include "replay/launches.h"
#include "replay/reference.h"

namespace tessera::replay {

/// Work, not time: what is replayed does not depend on the machine.
struct Effort {
  int launches = 16;  // of a refutation
  int schedules = 3;  // of a launch
  int of_roles = 4;   // of a launch that shows another fault: all warps of a role go ahead
  // Runs by other schedules, where those show nothing: a fault may want one that is rare.
  int more = 384;
};

enum class Shown : uint8_t {
  same,       // the interpreter sees a fault of this kind
  other,      // it sees a fault, of another kind
  nothing,    // it sees none in all runs
  not_run,    // no launch that is small enough has these numbers of turns, or none can be run
  no_events,  // the kind is about the kernel's text, which no run shows
};
std::string_view name_of(Shown s);

class Replayer {
 public:
  Replayer(const core::Kernel& kernel, const std::optional<check::Means>& means,
           const Effort& effort = {})
      : kernel_(kernel), means_(means), effort_(effort) {}

  /// Adds to every refutation a note, and its data: "replayed" (a name of Shown), and where
  /// something was seen "launch", "multiprocessors", "seed" and "seen" (a code of the
  /// interpreter's, or TS0847 for a value that is not what is meant).
  void replay(check::Report& report);
  /// The same of one diagnostic of a kind.
  Shown replay(const check::Report& report, std::string_view kind, Diagnostic& d);

 private:
  struct Fault {
    std::string code, message;
  };
  /// A launch with what its schedules showed so far.
  struct Runs {
    Small small;
    std::optional<simulate::Simulator> simulator;
    std::optional<Reference> reference;
    std::string why_not;
    std::vector<std::vector<Fault>> by_seed;
  };
  /// `by`: what inputs of floats are multiplied by.
  std::vector<Runs*> runs_of(const check::Report& report, const std::vector<int64_t>& turns,
                             double by);
  /// Whether the launch can be run.
  bool made(Runs& runs);
  const std::vector<Fault>& faults(Runs& runs, int seed);

  const core::Kernel& kernel_;
  const std::optional<check::Means>& means_;
  Effort effort_;
  std::optional<Launches> launches_;
  std::map<std::string, std::unique_ptr<Runs>> runs_;  // by the launch's text
};

}  // namespace tessera::replay
