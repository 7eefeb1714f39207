// What a journey consists of: its files share it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "evaluate/gates.h"
#include "evaluate/journey.h"

namespace tessera::evaluate {

using Place = std::pair<int, int>;  // candidate, launch

inline Place place_of(const tune::Point& p) {
  return {p.candidate, p.launch};
}

inline constexpr int most_refusals = 8;  // then something is wrong with all of them

struct Journey::State {
  Gates gates;
  const std::atomic<bool>& stop;
  Progress progress;
  std::vector<tune::Item> items;
  tune::Callbacks calls;
  std::optional<tune::Search> search;
  std::map<int, std::string> keys;   // of builds, by candidate
  std::map<int, Json> quick;         // replies of quick verifications, by candidate
  std::map<Place, Json> whole;       // and of full ones
  std::vector<tune::Trial> refused;  // by full verification
  std::set<Place> out;               // the same
  std::map<std::string, double> rounds;
  double checking = 0;  // seconds of quick verifications, for `quick.size()` candidates

  const kernel::Candidate& candidate(int c) const {
    return gates.candidates[static_cast<std::size_t>(c)];
  }
  bool may_be_placed(int c) const {
    const std::string& only = gates.shared.options.only_kind;
    if (candidate(c).peer) return false;
    return only.empty() || only == kernel::name_of(candidate(c).kind);
  }
  void prepare(const Json& known);
  void listen();
  const std::string& key(int c);
  bool ready(int c);
  void estimate_builds();
  [[nodiscard]] tune::Outlook outlook(double bar_ms, double seconds_left);
  [[nodiscard]] const std::vector<tune::Trial>& ranked() const;
  [[nodiscard]] std::vector<tune::Trial> rank() const;
  [[nodiscard]] const tune::Trial* leader() const;
  [[nodiscard]] bool is_built(const tune::Trial& t) const;
  [[nodiscard]] bool is_whole(const tune::Trial& t) const;
  bool verify_whole(const tune::Trial& t);
  void crown();
  [[nodiscard]] kernel::Winner winner_of(const tune::Trial& t) const;
  [[nodiscard]] std::vector<tune::Trial> picked(
      const std::function<bool(const tune::Trial&)>& allowed) const;
  // The ranking of so many trials and refusals, before or after finals.
  mutable std::vector<tune::Trial> ranked_;
  mutable std::tuple<std::size_t, std::size_t, bool> ranked_of_{0, 0, false};
};

}  // namespace tessera::evaluate
