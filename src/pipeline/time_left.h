// What is left of a run's total seconds, and which stage may take it.
#pragma once

#include "bridge/bridge.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {

/// Seconds until the total is over, at least 0; infinite where there is no total.
double seconds_left(const Options& options);
/// The options of a run whose total is limited: the search takes no more than that, modules are
/// timed beside eager alone, and other sizes are not verified.
Options within_total(Options options);
/// Whether a peer gave a request up because the total was over (TS0460).
bool says_time_is_up(const Diagnostic& d);
/// While it lives, the peer gives up what takes longer than the total.
class Deadline {
 public:
  Deadline(bridge::Peer& peer, const Options& options);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  bridge::Peer& peer_;
};

/// `compile` of `compile_torch` (docs/protocol.md): what Inductor may take for the module as it is.
/// Null: as long as it needs.
Json compile_limit(const Options& options);
/// What deciding, verifying and measuring may take when the search is over, in seconds: a hundred
/// calls of the module in eager, which takes `eager_ms`, and a tenth of what is left.
double reserved_seconds(const Options& options, double eager_ms);
/// What is left of the total without that; infinite where there is no total.
double left_for_search(const Options& options, double eager_ms);
/// What the search may take of the seconds that it asks for (0: no limit), with as many kept for
/// Inductor as the baseline says. 0: no limit.
double search_seconds(const Session& s);

}  // namespace tessera::pipeline
