#include <algorithm>

#include "evaluate/evaluate.h"
#include "evaluate/gates.h"
#include "evaluate/journey.h"

namespace tessera::evaluate {
namespace {

using Clock = std::chrono::steady_clock;

inline constexpr Code not_right{"TS0520", "evaluate.not_right"};

}  // namespace

Evaluator::Evaluator(Options options, const graph::Graph& g, const arch::Arch& arch)
    : state_(std::make_unique<State>(std::move(options), g, arch)) {}

Evaluator::~Evaluator() = default;

Result<Json> Evaluator::hello() {
  return state_->session.hello();
}

Status Evaluator::wake() {
  return state_->session.start();
}

Status Evaluator::start(const std::vector<const toolchain::Source*>& sources, double seconds_left) {
  TESSERA_CHECK(state_->session.start());
  expect(sources, seconds_left);
  const auto hello = state_->session.hello();
  if (!builds_ahead()) state_->farm.drain();
  return hello ? Status{} : Status(error(hello.error()));
}

bool Evaluator::builds_ahead() const {
  return state_->builds_ahead();
}

void Evaluator::expect(const std::vector<const toolchain::Source*>& sources, double seconds_left) {
  state_->farm.slow_at_once(slow_builds_at_once(state_->compilers(), seconds_left));
  state_->farm.expect(sources);
}

int Evaluator::ended(const std::vector<const toolchain::Source*>& sources) {
  BuildFarm& farm = state_->farm;
  return static_cast<int>(std::count_if(
      sources.begin(), sources.end(),
      [&](const toolchain::Source* source) { return farm.ended(farm.key_of(*source)); }));
}

void Evaluator::wait(double seconds) {
  state_->farm.wait(seconds);
}

void Evaluator::end_builds() {
  state_->farm.cancel();
}

Result<Tuned> Evaluator::tune(const rules::Pattern& pattern,
                              const std::vector<kernel::Candidate>& candidates, const Json& known,
                              double seconds, const std::atomic<bool>& stop,
                              const Progress& progress) {
  const auto begun = Clock::now();
  TESSERA_TRY(journey, begin(pattern, candidates, known, stop, progress));
  TESSERA_CHECK(journey->open());
  const auto left = [&] {
    const double spent = std::chrono::duration<double>(Clock::now() - begun).count();
    return seconds > 0 ? seconds - spent - journey->finals_seconds() : 0;
  };
  while (seconds <= 0 || left() > 0) {
    auto step = journey->next(0, left());
    if (!step) break;
    if (step->waiting) {
      std::vector<const toolchain::Source*> sources;
      for (const auto& w : journey->to_build(0, left(), candidates.size()))
        sources.push_back(w.source);
      expect(sources);
      constexpr double look = 0.25;
      wait(look);
      if (stop.load()) break;
      continue;
    }
    // Before there is anything, a kernel that comes late is better than none.
    journey->advance(*step, journey->best_ms() > 0 ? left() : 0);
  }
  if (seconds > 0 && left() <= 0) journey->cut(fmt::format("budget of {:g} s", seconds));
  end_builds();
  journey->finals();
  return journey->so_far(true);
}

Result<kernel::Winner> Evaluator::revive(const rules::Pattern& pattern,
                                         const kernel::Candidate& candidate, int launch,
                                         bool verify) {
  kernel::Winner w{.candidate = candidate, .launch = launch, .built = {}, .evidence = {}};
  if (candidate.source) {
    TESSERA_TRY(built, toolchain::build(state_->options.tools, *candidate.source,
                                        state_->options.cache, state_->options.build_limit));
    w.evidence.resources = built.resources;
    w.built = std::move(built);
  }
  if (!verify) return w;
  TESSERA_CHECK(state_->session.open(pattern));
  Gates gates{.shared = *state_, .pattern = pattern, .candidates = {candidate}, .built = {w.built}};
  const auto [verdict, reply] = gates.verify({0, launch}, "quick");
  if (verdict.outcome != tune::Outcome::measured) {
    return error(
        fail(not_right, "`{}` no longer passes: {}", candidate.label(), verdict.reason)
            .with("outcome", tune::name_of(verdict.outcome))
            .help("`tessera registry prune` drops the entry; the pattern is then tuned anew"));
  }
  take_errors(w.evidence, reply);
  return w;
}

void Evaluator::limit(std::chrono::seconds each) {
  state_->options.measure_limit = each;
}

Result<std::pair<tune::Trial, Json>> Evaluator::examine(
    const rules::Pattern& pattern, const kernel::Candidate& candidate,
    const std::optional<toolchain::Built>& built) {
  TESSERA_CHECK(state_->session.open(pattern));
  Gates gates{.shared = *state_, .pattern = pattern, .candidates = {candidate}, .built = {built}};
  return gates.verify({0, 0}, "full");
}

}  // namespace tessera::evaluate
