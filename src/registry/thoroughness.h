// How thorough the search behind an entry was, and whether that is enough for what is asked now.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tessera::registry {

/// Why a search ended. `unknown`: in words that are none of ours, or nobody wrote it down.
enum class Stop : uint8_t { exhausted, no_gain, budget, interrupted, unknown };
std::string_view name_of(Stop stop);
/// Of the words in tune::Outcomes::stopped_because.
Stop stop_of(std::string_view because);

/// What is asked of a search for one pattern.
struct Asked {
  std::string effort = "default";  // quick, default, max
  double seconds = 0;              // 0: all that the effort allows
  /// The most bytes of scratch memory that a kernel may take, infinite for any; none: not known
  /// yet, and then no search is refused for what it left out.
  std::optional<double> scratch;
};

/// All searches at one effort that left out the same, together: each went on from the trials of the
/// one before.
struct Pass {
  std::string effort;
  double left_out_from = 0;  // candidates of so many bytes of scratch memory and more; 0: none
  double seconds_spent = 0;
  double seconds_allowed = 0;  // the most that one was allowed, or all have spent
  Stop stop = Stop::unknown;   // of the last
  std::string because;         // in its words
  bool complete = false;       // more seconds at this effort would have changed nothing
};

struct Thoroughness {
  std::vector<Pass> passes;  // none: unknown
  int candidates = 0;        // built or tried
  int measurements = 0;
};

/// How one search went.
struct Ended {
  Asked asked;
  double seconds = 0;
  std::string because;       // tune::Outcomes::stopped_because
  bool untried = false;      // candidates are left that it did not get to
  double left_out_from = 0;  // see Pass
  int candidates = 0;        // with a trial
  int measurements = 0;
};

/// A search is complete when it ended by itself or by the effort's own budget: of builds, of
/// measurements, or of seconds. One that had only some seconds is not, whatever it says, while
/// there are candidates that it did not get to. One that was interrupted was allowed what it spent.
Thoroughness thoroughness_of(const Ended& search);

/// Of both: per kind of pass the seconds spent are those of `later` where it goes on from `earlier`
/// (`added` true: the sum), the larger where they are two records of one search.
Thoroughness together(const Thoroughness& earlier, const Thoroughness& later, bool added);

/// Whether a pass at this effort or a higher one, which left out nothing that may be used now, is
/// complete, or was allowed the seconds.
bool satisfies(const Thoroughness& had, const Asked& asked);

/// "complete at default (space exhausted; 12 candidates, 40 measurements, 31 s)", "cut at 6 s of
/// default (…)", "unknown".
std::string to_text(const Thoroughness& t);

Json to_json(const Thoroughness& t);
/// Reads what to_json wrote; what is missing or of another type stays unknown.
Thoroughness thoroughness_from_json(const Json& j);

}  // namespace tessera::registry
