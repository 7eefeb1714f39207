#include "pipeline/by_hand_measure.h"

#include <algorithm>

#include "base/elsewhere.h"
#include "pipeline/by_hand_facts.h"

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
  bool own_best = false;  // the best that the registry has is among them
};

bool asked(const ByHand& given, std::string_view peer) {
  return std::find(given.peers.begin(), given.peers.end(), peer) != given.peers.end();
}

bool is_inductor(const Candidate& c) {
  return c.call && c.call->function == "inductor";
}

Candidate inductor() {
  Candidate c{.realizer = "inductor", .kind = Kind::library};
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
      if (!stored.candidate.can_run() || stored.candidate.is_eager()) continue;
      Candidate c = stored.candidate;
      c.launches = {stored.launched()};
      const bool first = stored.is_of(w.own->winners.front().candidate);
      add(std::move(c), (first ? "best so far: " : "before: ") + stored.candidate.label());
      f.own_best = f.own_best || first;
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

/// Of the fastest variant.
void take_times(const Session& s, const rules::Pattern& p, const Field& f,
                const std::vector<tune::Trial>& words, const evaluate::Tuned& tuned, Verdict& v) {
  const auto reason = [&](const tune::Trial& t) {
    const bool left = t.outcome == tune::Outcome::skipped && t.reason.empty();
    return left ? "not tried: " + tuned.stopped_because : t.reason;
  };
  const tune::Trial* best = nullptr;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!f.names[i].empty()) continue;
    const tune::Trial& t = words[i];
    v.variants.push_back({.tunables = f.candidates[i].config.at("tunables"),
                          .outcome = std::string(tune::name_of(t.outcome)),
                          .ms = time_of(t),
                          .reason = reason(t)});
    if (time_of(t) > 0 && (best == nullptr || t.ms < best->ms)) best = &t;
  }
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

/// Whether it is the fastest of all that may be placed, and verified in full. What is stored is by
/// hand, too: the first has to be one of this source's variants.
void settle(const Session& s, const Work& w, const std::vector<Candidate>& variants, Verdict& v,
            const evaluate::Tuned& tuned) {
  if (tuned.winners.empty()) {
    v.standing = "nothing passed in full";
    return;
  }
  const kernel::Winner& first = tuned.winners.front();
  if (std::none_of(variants.begin(), variants.end(),
                   [&](const Candidate& c) { return first.is_of(c); })) {
    v.standing = fmt::format("{} is faster: not stored", first.candidate.label());
    return;
  }
  if (first.evidence.unreliable) {
    v.standing = fmt::format(
        "in {} measurements its times differed by more than a factor of two: not stored; run it "
        "again when the machine is quiet",
        most_measurements);
    return;
  }
  const bool any = w.own && !w.own->winners.empty();
  v.standing =
      v.measured ? why_not_stored(*v.measured, any ? &w.own->winners.front() : nullptr) : "";
  if (!v.standing.empty()) return;
  v.won = true;
  v.standing = s.tools.registry ? "the fastest there is: stored in the registry"
                                : "the fastest there is; the registry is not used";
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
  settle(s, work, variants, v, tuned);
  if (!v.won || !s.tools.registry || s.stopped()) return {};
  // torch.compile is a peer, which no plan places.
  std::erase_if(tuned.winners, [](const kernel::Winner& w) { return is_inductor(w.candidate); });
  work.tuned = std::move(tuned);
  work.by_hand = given.source.file;
  work.rechecked = true;  // no search is behind it: what was searched before counts as it did
  work.beside_own = f.own_best;
  return remember(s, work);
}

}  // namespace tessera::pipeline
