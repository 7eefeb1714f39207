#include "evaluate/journey.h"

#include <algorithm>

#include "base/clock.h"
#include "evaluate/journey_state.h"

namespace tessera::evaluate {
namespace {

using Clock = std::chrono::steady_clock;
using tune::Outcome;
using tune::Point;
using tune::Trial;

/// ", best 1.5 ms"; "" before anything was measured.
std::string known(std::string_view what, double ms) {
  return ms > 0 ? fmt::format(", {} {:.4g} ms", what, ms) : "";
}

constexpr std::size_t looked_up = 48;  // candidates whose builds are looked for in the cache
constexpr double settle_guess = 0.5;   // seconds, before anything is known
/// Full verification of the best, in openings of the pattern (three further datasets where opening
/// makes two) and quick verifications.
constexpr double openings_to_settle = 1.5;
constexpr double checks_to_settle = 3;

}  // namespace

// Where compilers run ahead, a small batch is judged early and none of them waits for it.
void Journey::State::prepare(const Json& known) {
  items = items_of(gates.candidates);
  std::size_t looked = 0;
  for (const int c : tune::search_order(items)) {
    const auto i = static_cast<std::size_t>(c);
    const auto& source = gates.candidates[i].source;
    if (!source) continue;
    if (looked++ >= looked_up) break;
    gates.built[i] =
        toolchain::find_built(gates.shared.options.tools, *source, gates.shared.options.cache);
  }
  estimate_builds();
  listen();
  const Evaluator::State& shared = gates.shared;
  const int compilers = shared.compilers();
  const int batch = std::max(4, compilers / (shared.builds_ahead() ? 2 : 1));
  tune::Budget budget;
  if (auto by_effort = tune::budget_for(shared.options.effort)) budget = *by_effort;
  if (shared.options.every_candidate) {
    budget.builds = budget.measurements = 0;
    budget.gives_up = false;
  }
  const std::vector<Trial> trials = trials_from_json(known, gates.candidates);
  for (const Trial& t : trials) {
    if (t.outcome == Outcome::measured) gates.eager_ms = t.detail.value("eager_ms", 0.0);
  }
  search.emplace(items, budget, calls, trials, stop, batch, gates.pattern.floor_ms);
}

void Journey::State::listen() {
  calls.build = [this](const std::vector<int>& which, double seconds) {
    return gates.build(which, seconds, stop);
  };
  calls.verify = [this](int c) {
    // Its errors are those that every other is held to.
    if (gates.is_eager(c)) return Trial{.point = {c, 0}, .outcome = Outcome::measured};
    const auto begin = Clock::now();
    auto [trial, reply] = gates.verify({c, 0}, "quick");
    checking += seconds_since(begin);
    quick[c] = std::move(reply);
    return trial;
  };
  calls.measure = [this](const std::vector<Point>& points, tune::Round round) {
    return gates.measure(points, round == tune::Round::finals);
  };
  if (!progress) return;
  const std::string id = gates.pattern.id;
  calls.progress = [this, id](const std::string& stage, int done, int total, double best_ms) {
    progress({{"pattern", id},
              {"stage", stage},
              {"done", done},
              {"total", total},
              {"best_ms", best_ms},
              {"eager_ms", gates.eager_ms},
              {"message", fmt::format("{}: {} {}{}{}", id, stage, done, known("best", best_ms),
                                      known("eager", gates.eager_ms))}});
  };
  calls.record = [this, id](const Trial& t) {
    Json trial = trial_to_json(t, gates.candidates);
    const std::string what =
        t.outcome == Outcome::measured ? fmt::format("{:.4g} ms", t.ms) : t.reason;
    progress({{"pattern", id},
              {"stage", "trial"},
              {"trial", trial},
              {"message", fmt::format("{}: {} {}: {}", id, trial.at("label").get<std::string>(),
                                      tune::name_of(t.outcome), what)}});
  };
}

void Journey::State::estimate_builds() {
  for (std::size_t c = 0; c < items.size(); ++c) {
    items[c].build_seconds = gates.built[c] ? 0 : gates.shared.build_seconds(gates.candidates[c]);
  }
}

const std::string& Journey::State::key(int c) {
  auto [at, fresh] = keys.try_emplace(c);
  if (fresh) at->second = gates.shared.farm.key_of(*candidate(c).source);
  return at->second;
}

bool Journey::State::ready(int c) {
  return gates.built[static_cast<std::size_t>(c)] || gates.shared.farm.ended(key(c));
}

tune::Outlook Journey::State::outlook(double bar_ms, double seconds_left) {
  estimate_builds();
  tune::Outlook o{.bar_ms = bar_ms, .seconds_left = seconds_left};
  if (!gates.shared.builds_ahead()) return o;
  o.ready = [this](int c) { return ready(c); };
  o.running = [this](int c) { return gates.shared.farm.running(key(c)); };
  return o;
}

Journey::Journey(std::unique_ptr<State> state) : state_(std::move(state)) {}

Journey::~Journey() = default;

Result<std::unique_ptr<Journey>> Evaluator::begin(const rules::Pattern& pattern,
                                                  std::vector<kernel::Candidate> candidates,
                                                  const Json& known, const std::atomic<bool>& stop,
                                                  const Progress& progress) {
  TESSERA_CHECK(tune::budget_for(state_->options.effort));
  Gates gates{.shared = *state_, .pattern = pattern, .candidates = std::move(candidates)};
  gates.built.resize(gates.candidates.size());
  std::unique_ptr<Journey::State> state(
      new Journey::State{.gates = std::move(gates), .stop = stop, .progress = progress});
  state->prepare(known);
  return std::unique_ptr<Journey>(new Journey(std::move(state)));
}

Status Journey::open() {
  const auto begin = Clock::now();
  TESSERA_CHECK(state_->gates.shared.session.open(state_->gates.pattern));
  state_->rounds["open"] += seconds_since(begin);
  return {};
}

std::optional<tune::Step> Journey::next(double bar_ms, double seconds_left) {
  return state_->search->next(state_->outlook(bar_ms, seconds_left));
}

void Journey::advance(const tune::Step& step, double seconds) {
  const auto begin = Clock::now();
  state_->search->advance(step, seconds);
  state_->rounds[std::string(tune::name_of(step.round))] += seconds_since(begin);
}

std::vector<Journey::Wanted> Journey::to_build(double bar_ms, double seconds_left,
                                               std::size_t most) {
  std::vector<Wanted> out;
  for (tune::Step& step : state_->search->to_build(state_->outlook(bar_ms, seconds_left))) {
    if (out.size() >= most) break;
    const int c = step.points.front().candidate;
    if (state_->gates.built[static_cast<std::size_t>(c)]) continue;
    const toolchain::Source* source = &*state_->candidate(c).source;
    out.push_back({.step = std::move(step), .source = source});
  }
  return out;
}

bool Journey::finals_due() const {
  return state_->search->finals_due();
}

double Journey::finals_seconds() const {
  return finals_due() ? state_->search->finals_seconds() : 0;
}

void Journey::finals() {
  const auto begin = Clock::now();
  if (finals_due()) state_->search->finals();
  state_->rounds["finals"] += seconds_since(begin);
  state_->crown();
}

double Journey::settle_seconds() const {
  const Trial* best = state_->leader();
  if (best == nullptr || state_->is_whole(*best)) return 0;
  if (static_cast<int>(state_->refused.size()) >= most_refusals) return 0;
  const double checks = state_->quick.empty()
                            ? settle_guess / checks_to_settle
                            : state_->checking / static_cast<double>(state_->quick.size());
  return openings_to_settle * state_->rounds["open"] + checks_to_settle * checks;
}

void Journey::settle(double seconds) {
  const auto begin = Clock::now();
  while (settle_seconds() > 0 && (seconds <= 0 || seconds_since(begin) < seconds))
    state_->verify_whole(Trial(*state_->leader()));
}

double Journey::best_ms() const {
  for (const Trial& t : state_->ranked()) {
    const int c = t.point.candidate;
    if (state_->may_be_placed(c) && !state_->candidate(c).is_eager()) return t.ms;
  }
  return 0;
}

double Journey::expected_ms() {
  double least = best_ms();
  for (const tune::Step& step : state_->search->to_build(state_->outlook(0, 0))) {
    if (step.expected_ms > 0 && (least == 0 || step.expected_ms < least)) least = step.expected_ms;
  }
  return least;
}

double Journey::eager_ms() const {
  return state_->gates.eager_ms;
}

Tuned Journey::so_far(bool whole) const {
  Tuned tuned;
  for (const kernel::Candidate& c : state_->gates.candidates)
    tuned.candidates.push_back({c.label(), c.kind});
  tuned.trials = state_->search->outcomes().trials;
  tuned.trials.insert(tuned.trials.end(), state_->refused.begin(), state_->refused.end());
  tuned.stopped_because = state_->search->why_over();
  tuned.eager_ms = state_->gates.eager_ms;
  tuned.rounds = state_->rounds;
  tuned.hopeless = state_->search->hopeless();
  for (const auto& [round, seconds] : tuned.rounds) tuned.seconds += seconds;
  const auto allowed = [&](const Trial& t) {
    return whole ? state_->is_whole(t) : state_->is_built(t);
  };
  for (const Trial& t : state_->picked(allowed)) tuned.winners.push_back(state_->winner_of(t));
  return tuned;
}

void Journey::cut(const std::string& why) {
  state_->search->cut(why);
}

}  // namespace tessera::evaluate
