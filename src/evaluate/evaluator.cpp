#include <algorithm>
#include <set>
#include <thread>

#include "evaluate/builds.h"
#include "evaluate/evaluate.h"
#include "evaluate/session.h"

namespace tessera::evaluate {
namespace {

using Clock = std::chrono::steady_clock;
using tune::Outcome;
using tune::Trial;

inline constexpr Code not_right{"TS0520", "evaluate.not_right"};

constexpr int most_winners = 4;
constexpr double measure_ms = 30;         // running time of one candidate in the search
constexpr double final_measure_ms = 150;  // and among the finalists

// No run can be faster. The stated rates are halved: work may be counted that a kernel rightly
// skips (masked scores, unread parts of an input), and a floor that is too high would throw out
// honest kernels.
double hard_floor_ms(const rules::Pattern& p, const arch::Arch& arch) {
  const double bytes_ms = arch.bandwidth_gbs > 0 ? p.min_bytes / arch.bandwidth_gbs * 1e-6 : 0;
  const double tflops = arch.peak_tflops != nullptr ? arch.peak_tflops(p.precision) : 0;
  const double flops_ms = tflops > 0 ? p.flops / tflops * 1e-9 : 0;
  return 0.5 * std::max(bytes_ms, flops_ms);
}

// The outcome of a reply that says no: by the evaluator's `kind`.
Outcome outcome_of(const Json& reply) {
  const std::string kind = reply.value("kind", "");
  if (kind == "unsupported" || kind == "launch_failed" || kind == "out_of_memory")
    return Outcome::unsupported;
  return Outcome::wrong_result;
}

Trial refused(const Json& reply) {
  return {.outcome = outcome_of(reply),
          .reason = reply.value("reason", ""),
          .detail = {{"kind", reply.value("kind", "")}}};
}

// Inf and nan travel as strings.
double number(const Json& j, const char* key) {
  const auto it = j.find(key);
  if (it == j.end()) return 0;
  if (it->is_number()) return it->get<double>();
  return it->is_string() ? std::strtod(it->get<std::string>().c_str(), nullptr) : 0;
}

int compilers(const Options& options) {
  if (options.parallel_builds > 0) return options.parallel_builds;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::vector<const toolchain::Source*> sources_of(const std::vector<realize::Candidate>& candidates,
                                                 const std::vector<int>& which) {
  std::vector<const toolchain::Source*> out;
  for (const int c : which) {
    const auto& source = candidates[static_cast<std::size_t>(c)].source;
    if (source) out.push_back(&*source);
  }
  return out;
}

void take_errors(Evidence& e, const Json& reply) {
  e.max_error = number(reply, "max_error");
  e.rms_error = number(reply, "rms_error");
  e.baseline_max_error = number(reply, "baseline_max_error");
  e.baseline_rms_error = number(reply, "baseline_rms_error");
}

}  // namespace

struct Evaluator::State {
  State(Options o, const graph::Graph& g, const arch::Arch& a)
      : options(std::move(o)),
        graph(g),
        arch(a),
        session(options, g, a),
        farm(options.tools, options.cache, options.build_limit, compilers(options)) {}
  Options options;
  const graph::Graph& graph;
  const arch::Arch& arch;
  Session session;
  BuildFarm farm;

  // Compilers on the host would disturb the host's own clock.
  [[nodiscard]] bool builds_ahead() const { return arch.device == "cuda"; }

  // One journey.
  struct Journey {
    const rules::Pattern& pattern;
    const std::vector<realize::Candidate>& candidates;
    std::vector<std::optional<toolchain::Built>> built;
    double eager_ms = 0;
    double floor_ms = 0;
  };

  Json wire(const Journey& j, tune::Point p) const {
    const auto c = static_cast<std::size_t>(p.candidate);
    return evaluate::to_json(j.candidates[c], p.launch, j.built[c]);
  }

  std::pair<Trial, Json> verify(const Journey& j, tune::Point p, const char* level) {
    const Answer a =
        session.ask("verify", {{"candidate", wire(j, p)}, {"level", level}}, options.measure_limit);
    if (!a.reply)
      return {Trial{.point = p, .outcome = a.outcome, .reason = a.reason}, Json::object()};
    if (!a.reply->value("ok", false)) {
      Trial t = refused(*a.reply);
      t.point = p;
      return {t, *a.reply};
    }
    return {Trial{.point = p, .outcome = Outcome::measured}, *a.reply};
  }

  std::vector<Trial> measure(Journey& j, const std::vector<tune::Point>& points, bool final) {
    Json list = Json::array();
    for (const tune::Point& p : points) list.push_back(wire(j, p));
    const auto limit = options.measure_limit + std::chrono::seconds(5 * points.size());
    const Answer a = session.ask("measure",
                                 {{"candidates", list},
                                  {"anchor", true},
                                  {"milliseconds", final ? final_measure_ms : measure_ms},
                                  {"load", final},
                                  {"floor_ms", j.floor_ms}},
                                 limit);
    std::vector<Trial> out;
    if (!a.reply) {
      if (points.size() == 1)
        return {Trial{.point = points[0], .outcome = a.outcome, .reason = a.reason}};
      // One of them took the process with it: each alone tells which.
      for (const tune::Point& p : points) out.push_back(measure(j, {p}, final).front());
      return out;
    }
    const double eager = number(*a.reply, "eager_ms");
    if (eager > 0) j.eager_ms = eager;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Json& row = a.reply->at("times").at(i);
      Trial t = refused(row);
      if (row.value("ok", false)) {
        t = {.outcome = Outcome::measured, .ms = number(row, "ms"), .ci95 = number(row, "ci95")};
        t.detail = {{"samples", row.value("samples", 0)}, {"eager_ms", eager}};
        if (row.contains("sustained_ms")) t.detail["sustained_ms"] = row.at("sustained_ms");
      }
      t.point = points[i];
      out.push_back(std::move(t));
    }
    return out;
  }

  tune::Outcomes search(Journey& j, const tune::Budget& budget, const std::vector<Trial>& known,
                        const std::atomic<bool>& stop,
                        const std::function<void(const Json&)>& progress) {
    tune::Callbacks calls;
    if (builds_ahead()) {
      calls.ahead = [&](const std::vector<int>& which) {
        farm.expect(sources_of(j.candidates, which));
      };
    }
    calls.build = [&](const std::vector<int>& which, double seconds) {
      const auto deadline = seconds > 0
                                ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(seconds))
                                : BuildFarm::Deadline::max();
      return build_all(j.candidates, which, farm, stop, deadline, j.built);
    };
    calls.verify = [&](int c) { return verify(j, {c, 0}, "quick").first; };
    // The finals name points that were measured before; they get more time on the clock.
    std::set<std::pair<int, int>> seen;
    for (const Trial& t : known) seen.insert({t.point.candidate, t.point.launch});
    calls.measure = [&, seen](const std::vector<tune::Point>& points) mutable {
      bool again = true;
      for (const tune::Point& p : points)
        again = !seen.insert({p.candidate, p.launch}).second && again;
      return measure(j, points, again);
    };
    if (progress) {
      const std::string id = j.pattern.id;
      calls.progress = [&, id](const std::string& stage, int done, int total, double best_ms) {
        progress({{"pattern", id},
                  {"stage", stage},
                  {"done", done},
                  {"total", total},
                  {"best_ms", best_ms},
                  {"eager_ms", j.eager_ms},
                  {"message", fmt::format("{}: {} {}, best {:.4g} ms, eager {:.4g} ms", id, stage,
                                          done, best_ms, j.eager_ms)}});
      };
      calls.record = [&, id](const Trial& t) {
        Json trial = trial_to_json(t, j.candidates);
        const std::string what =
            t.outcome == Outcome::measured ? fmt::format("{:.4g} ms", t.ms) : t.reason;
        progress({{"pattern", id},
                  {"stage", "trial"},
                  {"trial", trial},
                  {"message", fmt::format("{}: {} {}: {}", id, trial.at("label").get<std::string>(),
                                          tune::name_of(t.outcome), what)}});
      };
    }
    // Where compilers run ahead, a small batch is judged early and none of them waits for it.
    const int batch = std::max(4, compilers(options) / (builds_ahead() ? 2 : 1));
    return tune::search(items_of(j.candidates), budget, calls, known, stop, batch);
  }

  // The measured points, finals first (by their final times), then the rest.
  static std::vector<Trial> ranked(const std::vector<Trial>& trials) {
    std::vector<Trial> out;
    for (const Trial& t : trials) {
      if (t.outcome == Outcome::measured) out.push_back(t);
    }
    std::stable_sort(out.begin(), out.end(), [](const Trial& a, const Trial& b) {
      const bool fa = a.detail.contains("final");
      const bool fb = b.detail.contains("final");
      return fa != fb ? fa : a.judged_ms() < b.judged_ms();
    });
    std::set<std::pair<int, int>> seen;
    std::erase_if(out, [&](const Trial& t) {
      return !seen.insert({t.point.candidate, t.point.launch}).second;
    });
    return out;
  }

  // The fastest that pass the full verification: a few, and the best of each kind.
  void crown(Journey& j, Tuned& tuned) {
    std::set<realize::Kind> kinds;
    std::set<int> crowned;
    std::vector<std::pair<double, Tuned::Winner>> winners;  // with what they are ordered by
    int refusals = 0;
    for (const Trial& t : ranked(tuned.trials)) {
      const auto c = static_cast<std::size_t>(t.point.candidate);
      const realize::Candidate& candidate = j.candidates[c];
      const bool new_kind = !kinds.contains(candidate.kind);
      if (!new_kind && (!t.detail.contains("final") || winners.size() >= most_winners)) continue;
      // One launch of each: the module's own run compares kernels that differ by more.
      if (!new_kind && crowned.contains(t.point.candidate)) continue;
      if (candidate.source && !j.built[c]) {
        build_all(j.candidates, {t.point.candidate}, farm, std::atomic<bool>{false},
                  BuildFarm::Deadline::max(), j.built);
        if (!j.built[c]) continue;
      }
      auto [verdict, reply] = verify(j, t.point, "full");
      if (verdict.outcome != Outcome::measured) {
        tuned.trials.push_back(verdict);
        if (++refusals >= 8) break;  // something is wrong with all of them
        continue;
      }
      kinds.insert(candidate.kind);
      crowned.insert(t.point.candidate);
      Tuned::Winner w{
          .candidate = candidate, .launch = t.point.launch, .built = j.built[c], .evidence = {}};
      w.evidence.ms = t.ms;
      w.evidence.ci95 = t.ci95;
      w.evidence.sustained_ms = t.detail.value("sustained_ms", 0.0);
      take_errors(w.evidence, reply);
      if (w.built) w.evidence.resources = w.built->resources;
      winners.emplace_back(t.judged_ms(), std::move(w));
    }
    std::stable_sort(winners.begin(), winners.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [ms, w] : winners) tuned.winners.push_back(std::move(w));
  }
};

Evaluator::Evaluator(Options options, const graph::Graph& g, const arch::Arch& arch)
    : state_(std::make_unique<State>(std::move(options), g, arch)) {}

Evaluator::~Evaluator() = default;

Result<Json> Evaluator::hello() {
  return state_->session.hello();
}

Status Evaluator::build_later(const std::vector<std::vector<realize::Candidate>>& patterns) {
  if (!state_->builds_ahead()) return {};
  TESSERA_TRY(budget, tune::budget_for(state_->options.effort));
  std::vector<const toolchain::Source*> sources;
  for (const auto& candidates : patterns) {
    int builds = 0;
    for (const int c : tune::search_order(items_of(candidates))) {
      const auto& source = candidates[static_cast<std::size_t>(c)].source;
      if (!source || (budget.builds > 0 && builds >= budget.builds)) continue;
      sources.push_back(&*source);
      ++builds;
    }
  }
  state_->farm.expect_later(sources);
  return {};
}

Result<Tuned> Evaluator::tune(const rules::Pattern& pattern,
                              const std::vector<realize::Candidate>& candidates, const Json& known,
                              double seconds, const std::atomic<bool>& stop,
                              const std::function<void(const Json& progress)>& progress) {
  const auto begin = Clock::now();
  TESSERA_TRY(budget, tune::budget_for(state_->options.effort));
  if (seconds > 0)
    budget.seconds = budget.seconds > 0 ? std::min(budget.seconds, seconds) : seconds;
  TESSERA_CHECK(state_->session.open(pattern));
  Tuned tuned;
  for (const realize::Candidate& c : candidates) tuned.labels.push_back(c.label());
  State::Journey journey{.pattern = pattern,
                         .candidates = candidates,
                         .built = {},
                         .eager_ms = 0,
                         .floor_ms = hard_floor_ms(pattern, state_->arch)};
  journey.built.resize(candidates.size());
  tune::Outcomes outcomes =
      state_->search(journey, budget, trials_from_json(known, candidates), stop, progress);
  tuned.trials = std::move(outcomes.trials);
  tuned.stopped_because = outcomes.stopped_because;
  state_->crown(journey, tuned);
  tuned.eager_ms = journey.eager_ms;
  tuned.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return tuned;
}

Result<Tuned::Winner> Evaluator::revive(const rules::Pattern& pattern,
                                        const realize::Candidate& candidate, int launch,
                                        bool verify) {
  Tuned::Winner w{.candidate = candidate, .launch = launch, .built = {}, .evidence = {}};
  if (candidate.source) {
    TESSERA_TRY(built, toolchain::build(state_->options.tools, *candidate.source,
                                        state_->options.cache, state_->options.build_limit));
    w.evidence.resources = built.resources;
    w.built = std::move(built);
  }
  if (!verify) return w;
  TESSERA_CHECK(state_->session.open(pattern));
  const std::vector<realize::Candidate> one = {candidate};
  const State::Journey journey{
      .pattern = pattern, .candidates = one, .built = {w.built}, .eager_ms = 0, .floor_ms = 0};
  const auto [verdict, reply] = state_->verify(journey, {0, launch}, "quick");
  if (verdict.outcome != Outcome::measured) {
    return error(
        fail(not_right, "`{}` no longer passes: {}", candidate.label(), verdict.reason)
            .with("outcome", tune::name_of(verdict.outcome))
            .help("`tessera registry prune` drops the entry; the pattern is then tuned anew"));
  }
  take_errors(w.evidence, reply);
  return w;
}

}  // namespace tessera::evaluate
