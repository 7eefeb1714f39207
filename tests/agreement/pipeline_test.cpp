// The checker and the interpreter say the same of random pipelines.
//
// The checker's verdict is of all sizes and schedules by one run with clocks. The interpreter takes
// every schedule at given sizes. What one proves must be clean in the other, and what it refutes
// must fail at the witness's sizes.
#include "agreement/pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

#include "base/thorough.h"

#include "check/check.h"
#include "check/runs.h"
#include "core/print.h"
#include "simulate/simulate.h"

namespace tessera::agreement {
namespace {

struct Sizes {
  int64_t turns = 0, tiles = 1;
};

/// What all schedules of a launch show: the first finding's code, "" for none, "?" for more
/// schedules than `most`.
std::string explored(const core::Kernel& kernel, const Sizes& s, int64_t most) {
  simulate::Launch l{.parameters = {{"K", s.turns}}};
  for (const term::Term parameter : kernel.parameters)
    if (term::to_string(parameter) == "T") l.parameters["T"] = s.tiles;
  l.inputs["x"] = std::vector<double>(32, 1.0);
  const Result<simulate::Simulator> simulator = simulate::Simulator::make(kernel, l);
  if (!simulator) throw std::logic_error(to_text(simulator.error()));
  const simulate::Exploration e = simulator->explore(most);
  if (!e.last.findings.empty()) return e.last.findings.front().code;
  return e.complete ? "" : "?";
}

struct Compared {
  std::string verdict;  // of the checker
  std::string outcome;  // "agree", "undecided", "too many schedules", "missed", "false alarm"
  std::string text;
};

/// The sizes of the first violation.
Sizes witness(const check::Runs& runs) {
  Sizes s;
  for (std::size_t i = 0; i < runs.sizes.size(); ++i) {
    const std::string name = term::to_string(runs.sizes[i]);
    const int64_t value = runs.violations.front().sizes[i];
    if (name == "K") s.turns = value;
    if (name == "T") s.tiles = value;
  }
  return s;
}

/// How far schedules are followed.
struct Patience {
  int64_t runs = 200;   // where some slot is filled twice at most
  int64_t beyond = 20;  // where more are
};

/// The first finding at `s` or more turns, and where; "?" where a slot that is filled again has
/// more schedules than the patience lasts. Fewer turns first; to those at which each slot has been
/// filled twice, and one a third time.
std::pair<std::string, Sizes> explored_from(const core::Kernel& kernel, const Pipeline& p,
                                            const Sizes& s, const Patience& patience) {
  std::vector<Sizes> all;
  for (int64_t tiles = s.tiles; tiles <= std::max<int64_t>(s.tiles, p.tiles ? 2 : 1); ++tiles)
    for (int64_t turns = s.turns; turns <= 2 * p.slots + 1; ++turns)
      if (turns * tiles <= 2 * p.slots + 2) all.push_back({turns, tiles});
  std::stable_sort(all.begin(), all.end(), [](const Sizes& a, const Sizes& b) {
    return a.turns * a.tiles < b.turns * b.tiles;
  });
  for (const Sizes& at : all) {
    const bool needed = at.turns * at.tiles <= p.slots + 1;
    const std::string code = explored(kernel, at, needed ? patience.runs : patience.beyond);
    if (code == "?" && !needed) break;
    if (!code.empty()) return {code, at};
  }
  return {"", all.back()};
}

Compared compared(const Pipeline& p, const Patience& patience) {
  const Result<core::Kernel> kernel = kernel_of(p);
  if (!kernel) throw std::logic_error(to_text(kernel.error()));
  const check::Runs runs = check::run(*kernel);
  const std::string verdict = !runs.violations.empty() ? "refuted"
                              : runs.proved            ? "proved"
                                                       : "undecided";
  const auto say = [&](const std::string& outcome, const Sizes& s, const std::string& code) {
    std::string text =
        fmt::format("{}: {} by the checker, `{}` at K = {}, T = {} by the interpreter: {}",
                    text_of(p), verdict, code, s.turns, s.tiles, outcome);
    if (!runs.violations.empty())
      text += fmt::format("; {}: {}", runs.violations[0].kind, runs.violations[0].message);
    return Compared{verdict, outcome, text + runs.why_not};
  };
  if (!runs.violations.empty()) {
    const Sizes s = witness(runs);
    const std::string code = explored(*kernel, s, patience.runs);
    if (code == "?") return say("too many schedules", s, code);
    if (!code.empty()) return say("agree", s, code);
    // A barrier that counts otherwise than what arrives does no harm until its next phase.
    const auto [later, at] = explored_from(*kernel, p, s, patience);
    if (later == "?") return say("too many schedules", at, later);
    return say(later.empty() ? "false alarm" : "agree at more turns", at, later);
  }
  const auto [code, at] = explored_from(*kernel, p, {p.least, 1}, patience);
  if (code == "?") return say("too many schedules", at, code);
  if (!runs.proved) return say(code.empty() ? "clean" : "faulty", at, code);
  return say(code.empty() ? "agree" : "missed", at, code);
}

TEST(AgreementPipeline, EveryMistakeAloneIsFoundByBoth) {
  for (const Pipeline& p :
       {Pipeline{.missing = Pipeline::Missing::wait_full},
        Pipeline{.missing = Pipeline::Missing::wait_empty},
        Pipeline{.missing = Pipeline::Missing::arrive_full},
        Pipeline{.missing = Pipeline::Missing::init_fence},
        Pipeline{.missing = Pipeline::Missing::init_sync},
        Pipeline{.release = Pipeline::Release::before_read},
        Pipeline{.release = Pipeline::Release::never},
        Pipeline{.signals_early = true},
        Pipeline{.readers = 2, .only_release = 0},
        Pipeline{.readers = 2, .meeting_threads = 96},
        Pipeline{.full_count_off = 1},
        Pipeline{.readers = 2, .empty_count_off = -1},
        Pipeline{.readers = 2, .empty_count_off = 1},
        Pipeline{.feed = Pipeline::Feed::copies, .bytes_off = 16},
        Pipeline{.feed = Pipeline::Feed::copies, .bytes_off = -16},
        Pipeline{.producer_parity = 0},
        Pipeline{.reader_parity = 1},
        Pipeline{.flips_after = 1},
        Pipeline{.reader_slot = 1},
        Pipeline{.release_slot = 1},
        Pipeline{.tiles = true, .resets = true},
        Pipeline{.feed = Pipeline::Feed::copies, .reads_fence = false},
        Pipeline{.feed = Pipeline::Feed::copies, .signals_early = true, .expects_apart = true},
        Pipeline{.feed = Pipeline::Feed::copies,
                 .missing = Pipeline::Missing::arrive_full,
                 .expects_apart = true},
        Pipeline{.passes_on = true, .passes_fence = false},
        Pipeline{.passes_on = true, .passes_pending = 2},
        Pipeline{.passes_on = true, .passes_end = false}}) {
    const Compared c = compared(p, {.runs = 1000});
    EXPECT_EQ(c.verdict, "refuted") << c.text;
    EXPECT_EQ(c.outcome.substr(0, 5), "agree") << c.text;
  }
}

/// Ten parts of ten thousand pipelines, which run side by side; a hundred of the first one are
/// enough for every day.
class AgreementOfPart : public ::testing::TestWithParam<int64_t> {};

TEST_P(AgreementOfPart, CheckerAndInterpreter) {
  const bool all = thorough();
  if (!all && GetParam() > 0) GTEST_SKIP() << "a thousand pipelines: ./dev test all";
  const int64_t count = all ? 1'000 : 100, first = GetParam() * count;
  const Patience patience = all ? Patience{4000, 400} : Patience{};
  std::map<std::string, int64_t> counts;
  for (int64_t seed = first; seed < first + count; ++seed) {
    const Compared c = compared(random_pipeline(static_cast<uint64_t>(seed)), patience);
    ++counts[c.verdict + ", " + c.outcome];
    EXPECT_TRUE(c.outcome != "missed" && c.outcome != "false alarm") << seed << ": " << c.text;
    if (std::getenv("TESSERA_TEST_VERBOSE") != nullptr && c.outcome != "agree")
      fmt::print("{}: {}\n", seed, c.text);
  }
  for (const auto& [what, n] : counts) fmt::print("{}: {}\n", what, n);
  EXPECT_GT(counts["proved, agree"] * 8, count);
  EXPECT_GT(counts["refuted, agree"] * 4, count);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, AgreementOfPart, ::testing::Range<int64_t>(0, 10));

}  // namespace
}  // namespace tessera::agreement
