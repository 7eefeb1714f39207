#include "pipeline/by_hand_promote.h"

#include <algorithm>
#include <fmt/format.h>

#include "pipeline/settle.h"

namespace tessera::pipeline {
namespace {

/// Why a time does not take the place of what is held; "" where it does.
std::string why_not_stored(const kernel::Evidence& now, const Held& held) {
  if (!now.unreliable && !disturbed(now.ms, now.ci95)) return "";
  const kernel::Evidence& before = held.winner.evidence;
  const bool no_figure = before.unreliable || !(before.ms > 0) || disturbed(before.ms, before.ci95);
  if (!held.beside && no_figure) return "";
  if (before.ms > now.ms + now.ci95) return "";
  return fmt::format("{}, {} {:.4g} ms, is not slower within what this time can tell: not stored",
                     held.winner.candidate.label(),
                     held.beside ? "timed beside it with" : "stored with", before.ms);
}

/// "tile_gemm 64x64 is faster (1.5 ms a call, 1.4 ms back to back)".
std::string is_faster(const kernel::Winner& w) {
  const kernel::Evidence& e = w.evidence;
  const std::string sustained =
      e.sustained_ms > 0 ? fmt::format(", {:.4g} ms back to back", e.sustained_ms) : "";
  return fmt::format("{} is faster ({:.4g} ms a call{})", w.candidate.label(), e.ms, sustained);
}

}  // namespace

bool disturbed(double ms, double ci95) {
  return ci95 > most_noise * ms;
}

Promotion promote(const evaluate::Tuned& tuned, const std::vector<kernel::Candidate>& variants,
                  const std::optional<Held>& held, bool registry, int turns) {
  if (tuned.winners.empty()) return {.why = "nothing passed in full"};
  const kernel::Winner& first = tuned.winners.front();
  if (held && first.is_of(held->winner.candidate))
    return {.why = is_faster(first) + ", and the registry has it: not stored"};
  if (first.evidence.unreliable) {
    return {.why = fmt::format("in {} measurements the times of {} differed by more than a factor "
                               "of two: not stored; run it again when the machine is quiet",
                               turns, first.candidate.label())};
  }
  if (held) {
    if (std::string why = why_not_stored(first.evidence, *held); !why.empty())
      return {.why = std::move(why)};
  }
  const bool won = std::any_of(variants.begin(), variants.end(),
                               [&](const kernel::Candidate& c) { return first.is_of(c); });
  if (won) {
    return {.stored = registry,
            .won = true,
            .why = registry ? "the fastest there is: stored in the registry"
                            : "the fastest there is; the registry is not used"};
  }
  return {.stored = registry,
          .why = is_faster(first) +
                 (registry ? ": that is stored in the registry" : "; the registry is not used")};
}

}  // namespace tessera::pipeline
