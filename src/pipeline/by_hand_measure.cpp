#include "pipeline/by_hand_measure.h"

#include <algorithm>

#include "base/elsewhere.h"
#include "pipeline/by_hand_promote.h"

namespace tessera::pipeline {
namespace {

using attempt::Verdict;
using kernel::Candidate;
using kernel::Kind;

/// A noisy machine may be quiet a moment later. Builds are in the cache by then.
constexpr int most_measurements = 3;

/// The sweep's seconds: what was asked for, and at least what one build may take (by_hand.h).
double seconds_of(const Session& s, const ByHand& given) {
  return std::max(s.options.seconds, 10.0 * static_cast<double>(given.limit.count()));
}

/// What is timed, and under which name a peer is reported; "" for the variants.
struct Field {
  std::vector<Candidate> candidates;
  std::vector<std::string> names;
};

bool asked(const ByHand& given, std::string_view peer) {
  return std::find(given.peers.begin(), given.peers.end(), peer) != given.peers.end();
}

Candidate inductor() {
  Candidate c{.realizer = "inductor", .kind = Kind::library, .peer = true};
  c.config = {{"backend", "inductor"}};
  c.call = kernel::LibraryCall{.function = "inductor"};
  return c;
}

Field field_of(const Session& s, Work& w, const ByHand& given,
               const std::vector<Candidate>& variants) {
  Field f{.candidates = variants, .names = std::vector<std::string>(variants.size())};
  const auto add = [&](Candidate c, const std::string& name) {
    const bool there =
        std::any_of(f.candidates.begin(), f.candidates.end(), [&](const Candidate& o) {
          return o.realizer == c.realizer && kernel::same(o.config, c.config);
        });
    if (there) return false;
    f.candidates.push_back(std::move(c));
    f.names.push_back(name);
    return true;
  };
  for (const Candidate& c : offers_of(s, w).candidates) {
    if (c.is_eager()) add(c, "eager");  // the anchor of every measurement
  }
  if (w.own) {
    for (const kernel::Winner& stored : w.own->winners) {
      auto c = own_candidate(s, w, stored);
      if (!c || c->is_eager()) continue;
      const bool first = stored.is_of(w.own->winners.front().candidate);
      add(std::move(*c), (first ? "best so far: " : "before: ") + stored.candidate.label());
    }
  }
  if (asked(given, "library")) {
    for (const Candidate& c : offers_of(s, w).candidates) {
      if (c.kind == Kind::library) add(c, "library: " + c.label());
    }
  }
  if (asked(given, "inductor")) add(inductor(), "inductor");
  return f;
}

/// The last word on every candidate.
std::vector<tune::Trial> last_words(const Field& f, const evaluate::Tuned& tuned) {
  std::vector<tune::Trial> out(f.candidates.size());
  for (const tune::Trial& t : tuned.trials) {
    const auto at = static_cast<std::size_t>(t.point.candidate);
    if (at < out.size()) out[at] = t;
  }
  return out;
}

double time_of(const tune::Trial& t) {
  return t.outcome == tune::Outcome::measured ? t.ms : 0;
}

std::string bound_of(const rules::Pattern& p, const arch::Arch& arch) {
  const double rate = arch.bandwidth_of(p.min_bytes, arch.achievable_bandwidth_gbs);
  const double bytes = rate > 0 ? p.min_bytes / rate * 1e-6 : 0;
  const double tflops = arch.peak_tflops != nullptr ? arch.peak_tflops(p.precision) : 0;
  const double flops = tflops > 0 ? p.flops / tflops * 1e-9 : 0;
  if (arch.launch_us * 1e-3 > std::max(bytes, flops)) return "launch";
  return bytes >= flops ? "memory" : "arithmetic";
}

/// The variant that is first among the winners; of those that did not come so far, the fastest.
const tune::Trial* best_variant(const Field& f, const std::vector<tune::Trial>& words,
                                const evaluate::Tuned& tuned) {
  const tune::Trial* best = nullptr;
  for (const kernel::Winner& w : tuned.winners) {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (f.names[i].empty() && w.is_of(f.candidates[i]) && time_of(words[i]) > 0) return &words[i];
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!f.names[i].empty() || time_of(words[i]) <= 0) continue;
    if (best == nullptr || words[i].ms < best->ms) best = &words[i];
  }
  return best;
}

/// Of the best variant.
void take_times(const Session& s, const rules::Pattern& p, const Field& f,
                const std::vector<tune::Trial>& words, const evaluate::Tuned& tuned, Verdict& v) {
  const auto reason = [&](const tune::Trial& t) {
    const bool left = t.outcome == tune::Outcome::skipped && t.reason.empty();
    return left ? "not tried: " + tuned.stopped_because : t.reason;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!f.names[i].empty()) continue;
    const tune::Trial& t = words[i];
    v.variants.push_back({.tunables = f.candidates[i].config.at("tunables"),
                          .outcome = std::string(tune::name_of(t.outcome)),
                          .ms = time_of(t),
                          .reason = reason(t)});
  }
  const tune::Trial* best = best_variant(f, words, tuned);
  if (best == nullptr) return;
  attempt::Measured m{
      .ms = best->ms,
      .ci95 = best->ci95,
      .sustained_ms = best->detail.value("sustained_ms", 0.0),
      .floor_ms = p.floor_ms,
      .bound = bound_of(p, *s.found.arch),
      .unreliable = best->detail.value("unreliable", false) || disturbed(best->ms, best->ci95)};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (f.names[i].empty()) continue;
    const double ms = f.candidates[i].is_eager() ? tuned.eager_ms : time_of(words[i]);
    m.peers.push_back({.name = f.names[i],
                       .ms = ms,
                       .ci95 = words[i].ci95,
                       .reason = ms > 0 ? "" : reason(words[i]),
                       .unreliable = ms > 0 && disturbed(ms, words[i].ci95)});
  }
  v.measured = std::move(m);
}

/// What the registry has first, with what it took in this run where it was among the others.
std::optional<Held> held_by(const Work& w, const Field& f, const std::vector<tune::Trial>& words) {
  if (!w.own || !w.own->accepted()) return std::nullopt;
  Held out{.winner = w.own->winners.front()};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!out.winner.is_of(f.candidates[i]) || time_of(words[i]) <= 0) continue;
    out.beside = true;
    out.winner.evidence.ms = words[i].ms;
    out.winner.evidence.ci95 = words[i].ci95;
    out.winner.evidence.unreliable = words[i].detail.value("unreliable", false);
  }
  return out;
}

bool noisy(const Verdict& v, const evaluate::Tuned& tuned) {
  return (v.measured && v.measured->unreliable) ||
         (!tuned.winners.empty() && tuned.winners.front().evidence.unreliable);
}

}  // namespace

Status measure_by_hand(Session& s, Work& work, const ByHand& given,
                       const std::vector<Candidate>& variants, Verdict& v) {
  static const std::atomic<bool> never{false};
  const std::atomic<bool>& stop = s.context.stop != nullptr ? *s.context.stop : never;
  const rules::Pattern& p = s.pattern(work.patterns.front());
  const Field f = field_of(s, work, given, variants);
  const std::vector<attempt::Variant> refused = v.variants;
  evaluate::Tuned tuned;
  for (int turn = 1; turn <= most_measurements; ++turn) {
    const Elsewhere others;
    TESSERA_TRY(measured, s.tools.evaluator->tune(
                              p, f.candidates, Json::array(), seconds_of(s, given), stop,
                              [&](const Json& e) { s.say("try", e.value("message", "")); }));
    tuned = std::move(measured);
    v.variants = refused;
    v.measured.reset();
    take_times(s, p, f, last_words(f, tuned), tuned, v);
    if (v.measured) {
      v.measured->elsewhere = others.processors();
      for (const Elsewhere::Busy& b : others.busiest())
        v.measured->busy.push_back(
            fmt::format("{} (pid {}, {:.1f} processors)", b.program, b.pid, b.processors));
    }
    if (s.stopped() || !noisy(v, tuned) || turn == most_measurements) break;
    s.say("try", "the machine was noisy: timing " + given.source.file + " once more");
  }
  const std::optional<Held> held = held_by(work, f, last_words(f, tuned));
  const Promotion promoted =
      promote(tuned, variants, held, s.tools.registry != nullptr, most_measurements);
  v.won = promoted.won;
  v.standing = promoted.why;
  if (!promoted.stored || s.stopped()) return {};
  work.tuned = std::move(tuned);
  if (v.won) work.by_hand = given.source.file;
  work.rechecked = true;  // no search is behind it: what was searched before counts as it did
  work.beside_own = held && held->beside;
  return remember(s, work);
}

}  // namespace tessera::pipeline
