// One pattern's candidates on their way through the gates, advanced step by step.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "evaluate/evaluate.h"
#include "tune/search.h"

namespace tessera::evaluate {

class Journey {
 public:
  ~Journey();
  Journey(const Journey&) = delete;
  Journey& operator=(const Journey&) = delete;

  /// Makes the inputs and references, before anything else. An error when they cannot be made.
  Status open();
  /// What it would do next (tune::Search::next); nothing when the search is over. `bar_ms`: what
  /// the pattern's ops take now; `seconds_left`: for all searches, 0: no limit.
  std::optional<tune::Step> next(double bar_ms, double seconds_left);
  void advance(const tune::Step& step, double seconds);
  /// What compilers may begin with, in order, with what each promises.
  struct Wanted {
    tune::Step step;
    const toolchain::Source* source = nullptr;
  };
  std::vector<Wanted> to_build(double bar_ms, double seconds_left, std::size_t most);

  /// Whether what was measured awaits the finals, and what they would take.
  [[nodiscard]] bool finals_due() const;
  [[nodiscard]] double finals_seconds() const;
  /// Times the leaders side by side and verifies the winners in full: a few, and the best of each
  /// kind.
  void finals();
  /// What settle() takes; 0 when the best so far is verified in full, or there is none.
  [[nodiscard]] double settle_seconds() const;
  /// Verifies the best so far in full, or the next if it fails, and so on for about `seconds`; 0:
  /// no limit.
  void settle(double seconds);

  /// Of the candidates that may be placed and are more than the pattern's own ops; 0: none.
  [[nodiscard]] double best_ms() const;
  [[nodiscard]] double eager_ms() const;
  /// What the best may come to, by what is known of the candidates to come; 0: unknown.
  [[nodiscard]] double expected_ms();
  /// The winners by what is known now. `whole`: only those verified in full.
  [[nodiscard]] Tuned so_far(bool whole) const;
  /// Notes why it ends before its time.
  void cut(const std::string& why);

  struct State;

 private:
  friend class Evaluator;
  explicit Journey(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera::evaluate
