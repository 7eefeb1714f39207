#include "check/runs.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <unordered_set>

namespace tessera::check {
namespace {

class Runner {
 public:
  Runner(const core::Kernel& kernel, const Limits& limits)
      : limits_(limits),
        sizes_(kernel),
        program_(compile(kernel, sizes_)),
        machine_(kernel, program_, sizes_, footprints_) {
    for (const core::Barriers& b : kernel.barriers) most_slots_ = std::max(most_slots_, b.count);
  }

  Runs go() {
    Runs out;
    for (const Size& s : sizes_.all()) out.sizes.push_back(s.first);
    if (!program_.unsupported.empty()) {
      out.unsupported = true;
      out.why_not = program_.unsupported;
      out.at = program_.unsupported_at;
      return out;
    }
    footprints_.divide();
    if (!program_.not_exact.empty()) {
      out.why_not = program_.not_exact;
      return out;
    }
    refute(false);
    if (clean() && program_.not_shifted.empty()) all();
    if (why_.empty()) why_ = !machine_.failed.empty() ? machine_.failed : program_.not_shifted;
    if (why_.empty()) why_ = machine_.doubt;
    out.proved = clean() && why_.empty();
    // Where there is no proof, more sizes are tried.
    if (clean() && !out.proved) refute(true);
    out.violations = machine_.violations;
    out.why_not = why_;
    out.reads_from = machine_.reads_from;
    out.seen = machine_.seen;
    out.states = states_;
    for (std::size_t s = 0; s < sizes_.all().size(); ++s)
      if (sizes_.all()[s].outer) out.period = std::lcm(out.period, program_.periods[s]);
    out.steady = program_.steady;
    out.events = machine_.events;
    return out;
  }

 private:
  [[nodiscard]] bool clean() const {
    return machine_.violations.empty() && machine_.failed.empty();
  }

  void refute(bool more) {
    for (const std::vector<int64_t>& sizes : instances(more)) {
      exact(sizes);
      if (!clean() || machine_.events > limits_.events) return;
    }
  }

  /// Values of the sizes, those with fewer turns first.
  [[nodiscard]] std::vector<std::vector<int64_t>> instances(bool more) const {
    std::vector<std::vector<int64_t>> out = {{}};
    for (std::size_t at = 0; at < sizes_.all().size(); ++at) {
      const Size& s = sizes_.all()[at];
      std::vector<int64_t> values = {s.least, s.least + 1, std::max<int64_t>(s.least, 2)};
      if (!s.outer) values.push_back(std::max(s.least, most_slots_));
      if (more) values.push_back(s.outer ? 3 : std::max(s.least, most_slots_ + 1));
      // Conditions on the turn may fail first in the last of those that differ.
      const int64_t differ = program_.steady + program_.periods[at];
      if (more && s.outer && differ > 3) values.push_back(std::min<int64_t>(differ, 8));
      if (more && !s.outer) values.push_back(std::max(s.least, 2 * most_slots_ + 1));
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      std::vector<std::vector<int64_t>> longer;
      for (const auto& v : out)
        for (int64_t n : values) {
          longer.push_back(v);
          longer.back().push_back(n);
        }
      out = std::move(longer);
      if (out.size() > 4096) break;
    }
    for (auto& v : out) v.resize(sizes_.all().size(), 1);
    const auto weight = [](const std::vector<int64_t>& v) {
      return std::accumulate(v.begin(), v.end(), int64_t{0});
    };
    std::stable_sort(out.begin(), out.end(),
                     [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
    return out;
  }

  void end_of(Machine::Stop stop) {
    if (!machine_.failed.empty()) return;
    if (stop == Machine::Stop::stuck)
      machine_.report_stuck();
    else
      machine_.finish();
  }

  void exact(const std::vector<int64_t>& sizes) {
    for (int tries = 0; tries < 8; ++tries) {
      machine_.start(sizes);
      const Machine::Stop stop = machine_.run();
      if (machine_.events > limits_.events) {
        why_ = "its runs have more events than the effort allows";
        return;
      }
      if (footprints_.grown()) {
        footprints_.divide();
        continue;
      }
      end_of(stop);
      return;
    }
  }

  /// How often each loop of a size may turn. Few turns are run as such, in every turn of the outer
  /// loop alike; of many the number may differ from turn to turn. Of a size that varies the number
  /// may always differ.
  struct Range {
    int64_t least = 0;
    std::optional<int64_t> most;
  };
  using Case = std::vector<Range>;
  /// So many turns that what is known of one outer turn is settled in the next but one.
  [[nodiscard]] int64_t few() const { return most_slots_ + 3; }

  [[nodiscard]] std::vector<Case> cases() const {
    std::vector<Case> out = {{}};
    for (const Size& s : sizes_.all()) {
      std::vector<Range> ranges = {{s.least, std::nullopt}};
      if (!s.outer && !s.sum && sizes_.all().size() > 1) {
        ranges.clear();
        for (int64_t n = s.least; n < few(); ++n) ranges.push_back({n, n});
        ranges.push_back({std::max(s.least, few()), std::nullopt});
      }
      std::vector<Case> longer;
      for (const Case& c : out)
        for (const Range& r : ranges) {
          longer.push_back(c);
          longer.back().push_back(r);
        }
      out = std::move(longer);
    }
    return out;
  }

  /// False where footprints came that the cells do not have yet.
  bool close(const Case& ranges) {
    std::vector<State> open;
    std::unordered_set<std::string> known;
    machine_.start(std::nullopt);
    machine_.least.clear();
    for (const Range& r : ranges) machine_.least.push_back(r.most.value_or(r.least));
    open.push_back(machine_.state);
    while (!open.empty()) {
      machine_.state = std::move(open.back());
      open.pop_back();
      const Machine::Stop stop = machine_.run();
      if (footprints_.grown()) return false;
      if (!machine_.failed.empty()) return true;
      if (stop != Machine::Stop::undecided) end_of(stop);
      if (!machine_.violations.empty()) return true;
      if (stop != Machine::Stop::undecided) continue;
      if (static_cast<int64_t>(known.size()) >= limits_.states ||
          machine_.events > limits_.events) {
        why_ = "its states do not repeat within the effort";
        return true;
      }
      if (!known.insert(machine_.key()).second) continue;
      const int size = machine_.undecided_size();
      const auto s = static_cast<std::size_t>(size);
      const int64_t turns = machine_.state.turns[s];
      const bool may_end = turns >= ranges[s].least;
      const bool may_go_on = !ranges[s].most || turns < *ranges[s].most;
      if (may_end && may_go_on) open.push_back(machine_.state);
      machine_.decide(size, may_go_on);
      if (may_end && may_go_on) {
        std::swap(machine_.state, open.back());
        machine_.decide(size, false);
      }
      open.push_back(std::move(machine_.state));
    }
    states_ += static_cast<int64_t>(known.size());
    return true;
  }

  void all() {
    machine_.reads_from.clear();
    for (const Case& c : cases()) {
      for (int tries = 0; tries < 8 && !close(c); ++tries) footprints_.divide();
      if (!machine_.failed.empty() || !why_.empty() || !machine_.violations.empty()) break;
    }
    // What stands for all sizes may know less than every one of them: it does not refute.
    if (!machine_.violations.empty())
      why_ = "for all sizes: " + machine_.violations.front().message;
    machine_.drop_reports();
  }

  Limits limits_;
  Sizes sizes_;
  Program program_;
  Footprints footprints_;
  Machine machine_;
  int64_t most_slots_ = 1;
  int64_t states_ = 0;
  std::string why_;
};

}  // namespace

Runs run(const core::Kernel& kernel, const Limits& limits) {
  return Runner(kernel, limits).go();
}

}  // namespace tessera::check
