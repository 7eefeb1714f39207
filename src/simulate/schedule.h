// Who goes next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulate/simulate.h"

namespace tessera::simulate {

/// Someone who can take a step.
struct Actor {
  uint64_t key = 0;  // the same in every run that has come the same way
  int strand = -1;   // one of them
  int flight = -1;
  uint64_t role = 0;  // the same for all warps of a block's role; 0: it is of none
  static constexpr int64_t nothing = -1, everything = -2;
  int64_t object = nothing;  // what the step communicates through
  bool waits = false;        // it only reads the object
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// A place in `actors`, which has at least one; nothing: the run is of no more interest. Where
  /// there is one alone, a schedule does not record it.
  virtual std::optional<uint32_t> choose(std::span<const Actor> actors) = 0;
  /// Whether operations that signal nobody complete when they are awaited, not earlier.
  [[nodiscard]] virtual bool lazy() const { return false; }
};

/// The schedule's choices, then choices by its seed: a third of the seeds choose evenly; the others
/// let some go far ahead of the rest, and change their minds seldom. Every sixth seed lets all
/// warps of a role go ahead: that a role of eight warps stays behind is too rare by chance.
class Seeded : public Scheduler {
 public:
  explicit Seeded(Schedule schedule);
  std::optional<uint32_t> choose(std::span<const Actor> actors) override;

 private:
  uint64_t draw();
  Schedule schedule_;
  std::size_t next_ = 0;
  uint64_t state_;
  uint64_t favour_ = 0;
  uint64_t patience_ = 1;  // steps, on average, until the favourites change
  bool by_role_ = false;
};

/// Depth first through all choices, run by run. Two steps of different actors that do not
/// communicate through the same object, or both only wait, are taken in one order alone (sleep
/// sets: Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems").
class Exhaustive : public Scheduler {
 public:
  std::optional<uint32_t> choose(std::span<const Actor> actors) override;
  [[nodiscard]] bool lazy() const override { return true; }
  /// To the next run; false when there is none.
  bool advance();

 private:
  struct Node {
    std::vector<Actor> actors;
    std::vector<Actor> asleep;
    uint32_t chosen = 0;
  };
  static bool sleeps(const Node& node, const Actor& a);
  static bool independent(const Actor& a, const Actor& b);
  static std::optional<uint32_t> first_awake(const Node& node, uint32_t from);

  std::vector<Node> path_;
  std::size_t depth_ = 0;
};

}  // namespace tessera::simulate
