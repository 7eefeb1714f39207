// Which of several searches goes on next: the one that promises most milliseconds of the module a
// second of search. Pure: journeys are an interface, the clock is a callback.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "tune/tune.h"

namespace tessera::tune {

/// What a journey would do next.
struct Offer {
  Round round = Round::free;
  bool first = false;    // of a family of which nothing was tried
  double gain_ms = 0;    // that the module is expected to take less
  double seconds = 0;    // that it takes
  bool waiting = false;  // its compilers are at work: there is nothing to do yet
};

/// One pattern's search, resumable.
class Journey {
 public:
  virtual ~Journey() = default;
  /// Nothing when it is over, for now: another's kernels may make it worth while again.
  virtual std::optional<Offer> offer(double seconds_left) = 0;
  /// Does what it offered last, waiting for compilers at most `seconds` (0: no limit).
  virtual void advance(double seconds) = 0;
  /// What it takes until its best so far is verified in full; 0 when it is, or there is none.
  [[nodiscard]] virtual double settle_seconds() const = 0;
  /// The milliseconds of the module that its best so far saves.
  [[nodiscard]] virtual double saved_ms() const = 0;
  /// Verifies its best so far in full, or the next if that fails, within about `seconds`.
  virtual void settle(double seconds) = 0;
};

struct Scheduling {
  double seconds = 0;  // for all together, settling included; 0: no limit
  const std::atomic<bool>* stop = nullptr;
  /// Seconds since the beginning of the search.
  std::function<double()> now;
  /// Before every step, with the seconds left (0: no limit): compilers are told what comes,
  /// checkpoints are taken. May be empty.
  std::function<void(double seconds_left)> between;
  /// Until a build ends, at most so many seconds.
  std::function<void(double seconds)> wait;
  /// Before the bests are settled: nothing more is built. May be empty.
  std::function<void()> ending;
  /// What may be spent beyond `seconds`, or after a stop, on settling.
  double overrun = 2;
};

/// The order of two offers: first what searches begin with, which is all that needs no compiler and
/// the first of every family that builds in seconds, then all others; each by gain a second. What
/// has to wait comes last.
bool before(const Offer& a, const Offer& b);

/// Advances journeys until none has anything to offer, the seconds are spent (but for what settling
/// takes) or `stop` is set; then each best so far is settled, the one that saves most first.
void run(const std::vector<Journey*>& journeys, const Scheduling& scheduling);

}  // namespace tessera::tune
