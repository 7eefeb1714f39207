#include "tune/schedule.h"

#include <algorithm>

namespace tessera::tune {
namespace {

constexpr double least_seconds = 0.02;  // of a step
constexpr double longest_wait = 0.25;   // while a signal may come
/// Of all seconds: what is kept at most for settling.
constexpr double most_kept = 0.25;

/// What a search begins with: the candidates that need no compiler, and the first of every family
/// that builds in seconds.
bool begins(const Offer& o) {
  return o.round == Round::free || (o.round == Round::quick && o.first);
}

double rate(const Offer& o) {
  return o.gain_ms / std::max(least_seconds, o.seconds);
}

class Schedule {
 public:
  Schedule(const std::vector<Journey*>& journeys, const Scheduling& how)
      : journeys_(journeys), how_(how) {}

  void run() {
    while (!over()) {
      const double left = how_.seconds > 0 ? how_.seconds - how_.now() - kept() : 0;
      if (how_.between) how_.between(left);
      if (over()) break;
      if (!step(left)) break;
    }
    if (how_.ending) how_.ending();
    settle_all();
  }

 private:
  [[nodiscard]] bool stopped() const { return how_.stop != nullptr && how_.stop->load(); }

  [[nodiscard]] bool over() const {
    if (stopped()) return true;
    return how_.seconds > 0 && how_.now() + kept() >= how_.seconds;
  }

  /// Seconds that settling all takes, as far as they are kept for it.
  [[nodiscard]] double kept() const {
    double sum = 0;
    for (const Journey* j : journeys_) sum += j->settle_seconds();
    return std::min(sum, most_kept * how_.seconds);
  }

  /// Whether there was anything to do, or to wait for.
  bool step(double left) {
    Journey* next = nullptr;
    Offer best;
    for (Journey* j : journeys_) {
      const std::optional<Offer> o = j->offer(left);
      if (!o || (next != nullptr && !before(*o, best))) continue;
      next = j;
      best = *o;
    }
    if (next == nullptr) return false;
    if (!best.waiting) {
      next->advance(left);
    } else if (!settle_one()) {
      how_.wait(left > 0 ? std::min(left, longest_wait) : longest_wait);
    }
    return true;
  }

  /// Those not settled, by falling savings.
  [[nodiscard]] std::vector<Journey*> unsettled() const {
    std::vector<Journey*> out;
    for (Journey* j : journeys_) {
      if (j->settle_seconds() > 0) out.push_back(j);
    }
    std::stable_sort(out.begin(), out.end(),
                     [](Journey* a, Journey* b) { return a->saved_ms() > b->saved_ms(); });
    return out;
  }

  /// While there is nothing else to do.
  bool settle_one() {
    const std::vector<Journey*> open = unsettled();
    if (open.empty()) return false;
    open.front()->settle(0);
    return true;
  }

  void settle_all() {
    const bool limited = how_.seconds > 0 || stopped();
    const double begin = how_.now();
    const double end = std::max(begin, stopped() ? 0.0 : how_.seconds) + how_.overrun;
    for (Journey* j : unsettled()) {
      const double left = end - how_.now();
      if (limited && left <= 0) break;
      j->settle(limited ? left : 0);
    }
  }

  const std::vector<Journey*>& journeys_;
  const Scheduling& how_;
};

}  // namespace

bool before(const Offer& a, const Offer& b) {
  if (a.waiting != b.waiting) return !a.waiting;
  if (begins(a) != begins(b)) return begins(a);
  return rate(a) > rate(b);
}

void run(const std::vector<Journey*>& journeys, const Scheduling& scheduling) {
  Schedule(journeys, scheduling).run();
}

}  // namespace tessera::tune
