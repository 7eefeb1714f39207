// The searches of a session's works as the schedule advances them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "evaluate/journey.h"
#include "pipeline/gains.h"
#include "pipeline/stages.h"
#include "tune/schedule.h"

namespace tessera::pipeline {

class Searches {
 public:
  /// One for each of these. `now`: seconds of the search.
  Searches(Session& s, std::vector<Realized> realized, std::function<double()> now);
  ~Searches();
  [[nodiscard]] const std::vector<tune::Journey*>& journeys() const { return journeys_; }

  /// Tells the compilers what is wanted next, of all searches, by gain a second.
  void build_ahead(double seconds_left);
  /// Every Work::tuned as it stands, for a checkpoint; and undone.
  void crown_so_far();
  void uncrown();
  /// Every Work::tuned verified in full, or why there is none; stores what was learned.
  Status end();

 private:
  class One;
  friend class One;
  [[nodiscard]] std::vector<Price> prices() const;
  /// By what is measured; and if every search came to what is expected of it.
  [[nodiscard]] const Standing& standing();
  [[nodiscard]] const Standing& anticipated();
  void forget();
  void improved(std::size_t work);
  /// Of the patterns so far: making its references, and all candidates that need no compiler.
  [[nodiscard]] double seconds_to_open() const;
  [[nodiscard]] std::vector<const toolchain::Source*> wanted(double seconds_left);

  Session& s_;
  const std::function<double()> now_;
  std::vector<std::unique_ptr<One>> all_;
  std::vector<tune::Journey*> journeys_;
  std::optional<Standing> standing_;  // until the next step
  std::optional<Standing> anticipated_;
  double opening_ = 0;  // seconds, of `opened_` patterns
  int opened_ = 0;
  bool told_ = false;  // the compilers know of what was measured last
};

}  // namespace tessera::pipeline
