#include "mutations/study.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "arch/arch.h"

#include "check/kind.h"
#include "core/parse.h"
#include "core/print.h"
#include "core/verify.h"
#include "equivalence/decide.h"
#include "replay/replay.h"

namespace tessera::mutations {
namespace {

using check::Verdict;

/// Seconds that this thread has computed.
double core_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

bool is_error(const Diagnostic& d) {
  return d.level == Level::error;
}

std::vector<Diagnostic> verified(const core::Kernel& k) {
  const auto arch = arch::find("sm_90a");
  std::vector<Diagnostic> out = core::verify(k, **arch);
  std::erase_if(out, [](const Diagnostic& d) { return !is_error(d); });
  return out;
}

std::optional<check::Means> means_of(const core::Kernel& k) {
  const Result<std::optional<check::Means>> means = check::means_of(k);
  return means ? *means : std::nullopt;
}

/// The reason of the first kind that is not proved.
/// What was found, or why nothing was: a kind's own reason rather than that it needs another one.
std::string reason(const check::Report& r) {
  std::string out;
  for (const check::Finding& f : r.findings) {
    if (f.verdict == Verdict::refuted)
      return fmt::format("{}: {}", f.kind->name, f.diagnostics.front().message);
    if (f.verdict == Verdict::proved || r.verdict() == Verdict::refuted) continue;
    if (out.empty() || !f.reason.starts_with("not decided"))
      out = fmt::format("{}: {}", f.kind->name, f.reason);
  }
  return out;
}

/// The first place in which two runs' results differ; NaN, which nothing wrote, is like NaN.
std::string difference(const std::map<std::string, std::vector<double>>& a,
                       const std::map<std::string, std::vector<double>>& b) {
  for (const auto& [name, values] : a)
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double other = b.at(name).at(i);
      if (values[i] != other && !(std::isnan(values[i]) && std::isnan(other)))
        return fmt::format("element {} of {} is {}, not {}", i, name, other, values[i]);
    }
  return "";
}

/// All vectors of numbers of turns for `sizes` loops.
std::vector<std::vector<int64_t>> trips(std::size_t sizes, int64_t slots) {
  std::set<int64_t> some = {0, 1, 2, 3, slots, slots + 1, 2 * slots + 1};
  std::vector<std::vector<int64_t>> out = {{}};
  for (std::size_t s = 0; s < sizes; ++s) {
    std::vector<std::vector<int64_t>> longer;
    for (const auto& v : out)
      for (const int64_t n : some) {
        longer.push_back(v);
        longer.back().push_back(n);
      }
    out = std::move(longer);
  }
  return out;
}

}  // namespace

Json to_json(const MutantRow& row) {
  return {{"operator", row.name},     {"site", row.site},
          {"edit", row.edit},         {"synchronization", row.synchronization},
          {"verdict", row.verdict},   {"seconds", row.seconds},
          {"replayed", row.replayed}, {"named", row.named},
          {"oracle", row.oracle},     {"detail", row.detail},
          {"complete", row.complete}, {"runs", row.runs}};
}

Oracle::Oracle(const core::Kernel& original, const std::vector<core::Term>& sizes, Effort effort)
    : effort_(effort) {
  int64_t slots = 1;
  for (const core::Barriers& b : original.barriers) slots = std::max(slots, b.count);
  std::set<std::string> known;
  const replay::Launches launches(original, sizes);
  for (const std::vector<int64_t>& turns : trips(sizes.size(), slots)) {
    for (replay::Small& s : launches.near(turns, 2)) {
      if (!s.exact || !known.insert(replay::to_string(original, s.launch)).second) continue;
      const Result<simulate::Outcome> o = simulate::simulate(original, s.launch);
      if (o && o->findings.empty()) cases_.push_back({std::move(s.launch), o->outputs, o->steps});
    }
  }
  std::stable_sort(cases_.begin(), cases_.end(),
                   [](const Case& a, const Case& b) { return a.steps < b.steps; });
  if (static_cast<int>(cases_.size()) > effort_.launches)
    cases_.erase(cases_.begin() + effort_.launches, cases_.end());
}

Oracle::Answer Oracle::ask(const core::Kernel& mutant, bool synchronization) const {
  Answer out;
  std::vector<simulate::Simulator> simulators;
  for (const Case& c : cases_) {
    Result<simulate::Simulator> s = simulate::Simulator::make(mutant, c.launch);
    if (!s) {
      out.fault = s.error().message;
      return out;
    }
    simulators.push_back(std::move(*s));
  }
  // All launches a few times: most faults show at once, at the right sizes. Then other schedules of
  // the quarter that has the fewest steps.
  constexpr uint64_t few = 4;
  const std::size_t all = cases_.size(), quarter = std::max<std::size_t>(all / 4, 1);
  for (uint64_t seed = 0; all > 0 && (seed < few || out.runs < effort_.schedules); ++seed)
    for (std::size_t i = 0; i < (seed < few ? all : quarter); ++i) {
      const simulate::Outcome o = simulators[i].run(simulate::Schedule::seeded(seed));
      ++out.runs;
      out.fault = o.findings.empty() ? difference(cases_[i].outputs, o.outputs)
                                     : o.findings.front().code + " " + o.findings.front().message;
      if (!out.fault.empty()) {
        out.fault += " (at " + replay::to_string(mutant, cases_[i].launch) + ")";
        return out;
      }
    }
  if (!synchronization || simulators.empty()) return out;
  const simulate::Exploration e = simulators.front().explore(effort_.explored);
  out.complete = e.complete;
  out.runs += e.runs;
  if (!e.last.findings.empty()) out.fault = e.last.findings.front().message;
  return out;
}

core::Kernel Study::printed(const core::Kernel& k) {
  Result<core::Kernel> again = core::parse(k.name, core::to_string(k));
  return again ? *again : k;
}

Study::Study(const core::Kernel& original, Oracle::Effort effort)
    : original_(printed(original)), means_(means_of(original_)) {
  if (const auto wrong = verified(original_); !wrong.empty()) {
    why_not_ = to_text(wrong.front());
    return;
  }
  const check::Report r = check::check(original_, {}, means_);
  oracle_.emplace(original_, r.sizes, effort);
  for (const check::Finding& f : r.findings)
    if (f.verdict != Verdict::proved && (means_ || f.verdict != Verdict::unknown ||
                                         f.reason != "the kernel's meaning is not stated"))
      why_not_ = fmt::format("{}: {}", f.kind->name, f.reason);
  if (const Oracle::Answer a = oracle_->ask(original_, false); !a.fault.empty() || a.runs == 0)
    why_not_ = a.runs == 0 ? "the oracle has no launches" : a.fault;
}

std::string Study::named(const core::Kernel& mutant, const std::vector<Diagnostic>& all) const {
  const Edited e = edited(original_, mutant);
  std::set<int> pointed;
  for (const Diagnostic& d : all) {
    if (d.place.line > 0) pointed.insert(d.place.line);
    for (const Label& l : d.labels) pointed.insert(l.from.line);
  }
  for (const int line : pointed)
    if (e.lines.contains(line)) return "line";
  for (const int line : pointed) {
    const std::string text(mutant.source ? mutant.source->line(line) : "");
    for (const std::string& s : e.storages)
      if (text.find(s + "[") != std::string::npos || text.find(s + ",") != std::string::npos)
        return "pair";
  }
  return "";
}

MutantRow judge_correct(const std::string& name, const core::Kernel& kernel) {
  MutantRow out{.name = name};
  const std::optional<check::Means> means = means_of(kernel);
  const double begin = core_seconds();
  const std::vector<Diagnostic> wrong = verified(kernel);
  check::Report r;
  if (wrong.empty()) r = check::check(kernel, {}, means);
  out.seconds = core_seconds() - begin;
  out.verdict = wrong.empty() ? check::name_of(r.verdict()) : "refused";
  out.detail = wrong.empty() ? reason(r) : wrong.front().message;
  return out;
}

MutantRow Study::judge(const core::testing::Mutant& mutant) const {
  MutantRow out{.name = mutant.name, .site = mutant.site, .edit = mutant.edit};
  out.synchronization = mutant.breaks != core::testing::Breaks::data;
  const core::Kernel k = printed(mutant.kernel);
  if (core::to_string(k) == core::to_string(original_)) {
    out.verdict = "same text";
    out.oracle = "equivalent";
    return out;
  }
  const double begin = core_seconds();
  std::vector<Diagnostic> told = verified(k);
  check::Report r;
  if (told.empty()) r = check::check(k, {}, means_);
  if (means_ && (r.verdict() == Verdict::unknown || r.verdict() == Verdict::unsupported))
    equivalence::decide(k, *means_, r);
  out.seconds = core_seconds() - begin;
  if (!told.empty()) {
    out.verdict = "refused";
    out.detail = told.front().message;
    out.named = named(k, told);
    return out;
  }
  Verdict v = r.verdict();
  // Without a meaning, kinds that compare with it say nothing of the others.
  if (v == Verdict::unknown && !means_ &&
      std::all_of(r.findings.begin(), r.findings.end(), [](const check::Finding& f) {
        return f.verdict == Verdict::proved || f.reason == "the kernel's meaning is not stated";
      }))
    v = Verdict::proved;
  out.verdict = check::name_of(v);
  out.detail = reason(r);
  if (v == Verdict::refuted) {
    replay::Replayer replayer(k, means_);
    auto best = replay::Shown::no_events;
    for (check::Finding& f : r.findings)
      for (Diagnostic& d : f.diagnostics) {
        const bool by_a_run = d.data.contains("replayed");
        best = std::min(best, by_a_run ? replay::Shown::same : replayer.replay(r, f.kind->name, d));
        told.push_back(d);
      }
    out.replayed = replay::name_of(best);
    out.named = named(k, told);
    if (best == replay::Shown::same || best == replay::Shown::other) return out;
  }
  const Oracle::Answer a = oracle_->ask(k, out.synchronization);
  out.oracle = a.fault.empty() ? "equivalent" : v == Verdict::refuted ? "broken" : "missed";
  if (!a.fault.empty()) out.detail += (out.detail.empty() ? "" : "; ") + a.fault;
  out.complete = a.complete;
  out.runs = a.runs;
  return out;
}

}  // namespace tessera::mutations
