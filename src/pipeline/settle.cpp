#include "pipeline/settle.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace tessera::pipeline {
namespace {

/// PyTorch's ways this near to one another are equals.
constexpr double alike = 0.99;
/// This near in both measures they are told apart by the device's time, if that differs by so much.
constexpr double near = 0.9;
constexpr double less = 0.97;
/// What a way that needs more memory than it may counts for where none is fast enough.
constexpr double too_large = 0.9;

struct Best {
  double call_ms = 0;
  double back_ms = 0;
  double noise = 0;  // relative, of the better times
  int64_t peak_bytes = 0;
};

bool runs(const Way& w) {
  return w.reason.empty() && w.call_ms > 0 && w.back_ms > 0;
}

std::optional<Best> best_of_torch(const std::vector<Way>& ways) {
  std::optional<Best> best;
  for (const Way& w : ways) {
    if (w.plan || !runs(w)) continue;
    if (!best) {
      best = Best{w.call_ms, w.back_ms, noise_of(w), w.peak_bytes};
      continue;
    }
    best->call_ms = std::min(best->call_ms, w.call_ms);
    best->back_ms = std::min(best->back_ms, w.back_ms);
    best->noise = std::max(best->noise, noise_of(w));
    if (w.runner == "inductor") best->peak_bytes = w.peak_bytes;
  }
  return best;
}

/// How many times as fast as PyTorch's best: in the worse measure, and in the geometric mean.
struct Speed {
  double worse = 0;
  double mean = 0;
};

Speed speed_of(const Way& w, const Best& best) {
  const double call = best.call_ms / w.call_ms;
  const double back = best.back_ms / w.back_ms;
  return {std::min(call, back), std::sqrt(call * back)};
}

std::string figures(const Way& w) {
  std::string text =
      fmt::format("{}: {:.4g} ms a call, {:.4g} ms back to back", name_of(w), w.call_ms, w.back_ms);
  return w.device_ms > 0 ? text + fmt::format(", {:.4g} ms on the device", w.device_ms) : text;
}

bool memory_fits(const Way& w, const Best& best, int64_t resident_bytes) {
  return w.peak_bytes <= allowed_bytes(best.peak_bytes, resident_bytes);
}

/// Of two ways' times, beside each other.
double noise_beside(const Way& w, const Best& best) {
  return std::min(most_noise, std::max(best.noise, noise_of(w)));
}

bool fast_enough(const Way& w, const Best& best) {
  const Speed speed = speed_of(w, best);
  const double unsure = noise_beside(w, best) / 2;
  return speed.worse >= least ||
         (speed.worse + unsure >= promised && speed.mean >= clear_win + unsure);
}

bool gains(const Way& w, const Best& best) {
  return speed_of(w, best).mean >= std::max(least_win, 1 + noise_beside(w, best));
}

/// Which bound a way misses; "" when it keeps both.
std::string missed(const Way& w, const Best& best, int64_t resident_bytes) {
  if (!memory_fits(w, best, resident_bytes)) {
    return fmt::format("needs {:.1f} MB of memory, PyTorch {:.1f} MB",
                       static_cast<double>(w.peak_bytes + resident_bytes) * 1e-6,
                       static_cast<double>(best.peak_bytes + resident_bytes) * 1e-6);
  }
  if (!fast_enough(w, best))
    return fmt::format("is at {:.3f} of PyTorch's best way", speed_of(w, best).worse);
  return "";
}

/// Why a way that was timed was not taken; "" where nothing is against it.
std::string against(const Way& w, const Best& best, int64_t resident_bytes) {
  if (!runs(w)) return "cannot run: " + w.reason;
  if (std::string no = missed(w, best, resident_bytes); !no.empty()) return no;
  if (w.plan && !gains(w, best)) {
    return fmt::format(
        "is at {:.3f} of PyTorch's best way, which is no more than the clock's noise",
        speed_of(w, best).mean);
  }
  return "";
}

/// Why the ways other than the chosen one were not taken, each reason once: sets of kernels often
/// share it. What is refused for its memory alone is said with its speed.
std::string reasons_against_others(const std::vector<Way>& ways, int chosen, const Best& best,
                                   int64_t resident_bytes) {
  struct Reason {
    std::string text;
    int ways = 0;
    double fastest = 0;
  };
  std::vector<Reason> reasons;
  const bool plan = ways[static_cast<std::size_t>(chosen)].plan.has_value();
  for (int i = 0; i < static_cast<int>(ways.size()); ++i) {
    const Way& w = ways[static_cast<std::size_t>(i)];
    if (i == chosen || (plan && w.plan)) continue;  // of plans the faster one needs no reason
    const std::string no = against(w, best, resident_bytes);
    if (no.empty()) continue;
    const std::string text = fmt::format("{} {}", name_of(w), no);
    auto at = std::find_if(reasons.begin(), reasons.end(),
                           [&](const Reason& r) { return r.text == text; });
    if (at == reasons.end()) at = reasons.insert(at, {.text = text});
    ++at->ways;
    if (runs(w) && !memory_fits(w, best, resident_bytes))
      at->fastest = std::max(at->fastest, speed_of(w, best).worse);
  }
  std::string out;
  for (const Reason& r : reasons) {
    out += "; " + r.text;
    if (r.ways > 1) out += fmt::format(" ({} such ways)", r.ways);
    if (r.fastest > 1) out += fmt::format(", at {:.3f} of PyTorch's best way", r.fastest);
  }
  return out;
}

/// The index of the way that `worth` is the largest of, if above zero; -1 for none.
template <class F>
int most(const std::vector<Way>& ways, F worth) {
  int chosen = -1;
  double largest = 0;
  for (int i = 0; i < static_cast<int>(ways.size()); ++i) {
    const Way& w = ways[static_cast<std::size_t>(i)];
    const double value = runs(w) ? worth(w) : 0.0;
    if (value > largest) {
      largest = value;
      chosen = i;
    }
  }
  return chosen;
}

/// Of PyTorch's two ways the one that keeps the device busy for less; -1 where the clock tells them
/// apart, or the device does not.
int less_on_the_device(const std::vector<Way>& ways) {
  std::vector<int> torch;
  for (int i = 0; i < static_cast<int>(ways.size()); ++i) {
    const Way& w = ways[static_cast<std::size_t>(i)];
    if (!w.plan && runs(w)) torch.push_back(i);
  }
  if (torch.size() != 2) return -1;
  const Way& a = ways[static_cast<std::size_t>(torch[0])];
  const Way& b = ways[static_cast<std::size_t>(torch[1])];
  const auto apart = [](double x, double y) { return std::min(x, y) < near * std::max(x, y); };
  if (apart(a.call_ms, b.call_ms) || apart(a.back_ms, b.back_ms)) return -1;
  if (a.device_ms <= 0 || b.device_ms <= 0) return -1;
  if (a.device_ms < less * b.device_ms) return torch[0];
  return b.device_ms < less * a.device_ms ? torch[1] : -1;
}

int choose(const std::vector<Way>& ways, const Best& best, int64_t resident_bytes) {
  const auto keeps_both = [&](const Way& w) { return missed(w, best, resident_bytes).empty(); };
  const auto mean = [&](const Way& w) { return speed_of(w, best).mean; };
  const auto nearness = [&](const Way& w) {
    const double worse = speed_of(w, best).worse;
    return w.runner == "eager" && worse >= alike ? 2.0 : worse;
  };
  int chosen = most(
      ways, [&](const Way& w) { return w.plan && keeps_both(w) && gains(w, best) ? mean(w) : 0; });
  if (chosen < 0) {
    const int way = less_on_the_device(ways);
    if (way >= 0 && memory_fits(ways[static_cast<std::size_t>(way)], best, resident_bytes))
      return way;
    chosen = most(ways, [&](const Way& w) { return !w.plan && keeps_both(w) ? nearness(w) : 0; });
  }
  if (chosen < 0)
    chosen = most(ways, [&](const Way& w) { return w.plan && keeps_both(w) ? mean(w) : 0; });
  if (chosen < 0) {
    chosen = most(ways, [&](const Way& w) {
      const bool counts = !w.plan && fast_enough(w, best);
      return counts ? 1.0 / static_cast<double>(w.peak_bytes + 1) : 0;
    });
  }
  if (chosen >= 0) return chosen;
  return most(ways, [&](const Way& w) {
    const bool fits = memory_fits(w, best, resident_bytes);
    if (w.plan && !(fits && gains(w, best))) return 0.0;
    return speed_of(w, best).worse * (fits ? 1 : too_large);
  });
}

}  // namespace

double noise_of(const Way& w) {
  return runs(w) ? 0.5 * (w.call_ci95 / w.call_ms + w.back_ci95 / w.back_ms) : 0;
}

bool one_is_surely_first(const std::vector<Way>& ways) {
  const auto surely = [](double ms, double ci95, double other_ms, double other_ci95) {
    return (ms + ci95) * (1 + most_noise) < other_ms - other_ci95;
  };
  const auto before = [&](const Way& a, const Way& b) {
    return surely(a.call_ms, a.call_ci95, b.call_ms, b.call_ci95) &&
           surely(a.back_ms, a.back_ci95, b.back_ms, b.back_ci95);
  };
  return std::any_of(ways.begin(), ways.end(), [&](const Way& first) {
    return runs(first) && std::all_of(ways.begin(), ways.end(), [&](const Way& w) {
             return &w == &first || !runs(w) || before(first, w);
           });
  });
}

std::vector<Way> ways_from(const Json& rows) {
  std::vector<Way> out;
  for (const Json& row : rows) {
    Way w{.runner = row.at("runner"), .leftover = row.value("leftover", "")};
    if (row.contains("plan") && !row.at("plan").is_null()) w.plan = row.at("plan").get<int>();
    w.call_ms = row.value("call_ms", 0.0);
    w.call_ci95 = row.value("call_ci95", 0.0);
    w.back_ms = row.value("back_ms", 0.0);
    w.back_ci95 = row.value("back_ci95", 0.0);
    w.device_ms = row.value("device_ms", 0.0);
    w.peak_bytes = row.value("peak_bytes", int64_t{0});
    w.seconds = row.value("seconds", 0.0);
    w.reason = row.value("reason", "");
    w.no_time = row.value("no_time", false);
    out.push_back(std::move(w));
  }
  return out;
}

std::string name_of(const Way& way) {
  return way.plan ? fmt::format("kernels with {} for the rest", way.leftover) : way.runner;
}

int64_t allowed_bytes(int64_t peak_bytes, int64_t resident_bytes) {
  const auto share =
      static_cast<int64_t>((most_memory - 1) * static_cast<double>(peak_bytes + resident_bytes));
  return peak_bytes + std::max(share, memory_slack);
}

Decision decide(const std::vector<Way>& ways, int64_t resident_bytes) {
  const std::optional<Best> best = best_of_torch(ways);
  if (!best) {
    for (int i = 0; i < static_cast<int>(ways.size()); ++i) {
      if (runs(ways[static_cast<std::size_t>(i)]))
        return {i,
                "PyTorch itself could not be timed: " + name_of(ways[static_cast<std::size_t>(i)])};
    }
    return {-1, "no way to run the module could be timed"};
  }
  const int chosen = choose(ways, *best, resident_bytes);
  std::string why = figures(ways[static_cast<std::size_t>(chosen)]);
  for (int i = 0; i < static_cast<int>(ways.size()); ++i) {
    const Way& w = ways[static_cast<std::size_t>(i)];
    if (i != chosen && !w.plan && runs(w)) why += "; " + figures(w);
  }
  return {chosen, why + reasons_against_others(ways, chosen, *best, resident_bytes)};
}

double rest_seconds(double whole) {
  // Of Inductor's workers and Triton, once a process; those that run already cost nothing, so a
  // module that takes little leaves a rest that takes nearly as much.
  constexpr double start = 3, little = 2;
  // Kernels that Triton compiled for the module are in its cache: of 30 modules that took more than
  // 4 s by `optimize`, rests took 0.02 to 0.46 of that (bench/results/breadth.json, kinds.json).
  constexpr double part = 0.55;
  return std::max(std::clamp(whole, 1.0, little), std::min(whole - start, part * whole));
}

double kept_seconds(double rest, double search, double gain) {
  const double share = gain >= much_faster ? 0.75 : 0.5;
  if (rest > share * search) return 0;
  constexpr double little = 0.25;
  return 2 * rest <= little * search ? 2 * rest : rest;
}

}  // namespace tessera::pipeline
