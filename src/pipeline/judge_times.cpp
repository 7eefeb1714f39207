#include "pipeline/judge_times.h"

#include <algorithm>
#include <cmath>

namespace tessera::pipeline {
namespace {

constexpr std::chrono::seconds own_limit{600};  // of the judge's process: fp64, compilers of peers
constexpr double round_ms = 40;                 // of running time, of the fastest peer
constexpr int timed_build = 1;                  // of the two that the reference made

struct Turn {
  Json reply;
  double seconds = 0;
};

/// A request, by our clock.
Result<Turn> clocked(Occupant& who, const std::string& method, const Json& params,
                     std::chrono::seconds limit) {
  const double begin = seconds_of_machine();
  TESSERA_TRY(reply, who.call(method, params, limit));
  return Turn{.reply = std::move(reply), .seconds = seconds_of_machine() - begin};
}

class Times {
 public:
  Times(const Parties& parties, const Judging& given, int most_calls)
      : judge_(parties.judge), judged_(parties.judged), given_(given), most_calls_(most_calls) {}

  Result<Timed> take() {
    out_.runners.emplace_back();
    TESSERA_CHECK(prepare());
    for (int r = 0; r < given_.rounds && out_.breach.is_null(); ++r) TESSERA_CHECK(round(r));
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::chrono::seconds limit() const { return 10 * given_.limit; }

  Result<Json> draw(int calls) {
    TESSERA_TRY(sets, judge_.call("round", {{"calls", calls}, {"build", timed_build}}, own_limit));
    TESSERA_CHECK(judged_.call("load", sets, limit()));
    return sets;
  }

  // Which calls, in order.
  static Json which(int calls) {
    Json out = Json::array();
    for (int i = 0; i < calls; ++i) out.push_back(i);
    return out;
  }

  Result<double> run(Runner& runner, int calls, bool counts) {
    const bool peer = !runner.name.empty();
    Json params = {{"which", which(calls)}};
    if (peer) params["name"] = runner.name;
    TESSERA_TRY(turn, clocked(peer ? judge_ : judged_, peer ? "peer_run" : "run", params, limit()));
    if (turn.reply.contains("refused")) {
      out_.breach = turn.reply["refused"];
      return 0.0;
    }
    const double ms = turn.seconds * 1e3 / calls;
    if (!counts) return ms;
    runner.outside_ms.push_back(ms);
    runner.inside_ms.push_back(turn.reply.at("seconds").get<double>() * 1e3 / calls);
    for (const Json& d : turn.reply.at("device_ms")) runner.device_ms.push_back(d.get<double>());
    return ms;
  }

  // Peers are compiled, everything is warm, and it is known how many calls a round has.
  Status prepare() {
    TESSERA_TRY(sets, draw(2));
    double eager_ms = 0;
    for (const std::string& name : given_.peers) {
      Json params = sets;
      params["name"] = name;
      params["build"] = timed_build;
      TESSERA_TRY(made, judge_.call("peer", params, own_limit));
      Runner runner{.name = name};
      runner.reason = made.value("absent", "");
      if (runner.reason.empty()) {
        TESSERA_TRY(ms, run(runner, 2, false));
        eager_ms = eager_ms == 0 ? ms : std::min(eager_ms, ms);
      }
      out_.runners.push_back(std::move(runner));
    }
    double ours = 0;
    for (int i = 0; i < 2 && out_.breach.is_null(); ++i) {
      TESSERA_TRY(ms, run(out_.runners.front(), 2, false));
      ours = ms;
    }
    const double least = eager_ms > 0 ? eager_ms : ours;
    const double wanted =
        std::min(round_ms / std::max(least, 1e-3), 10 * round_ms / std::max(ours, 1e-3));
    out_.calls = std::clamp(static_cast<int>(wanted), 2, most_calls_);
    return {};
  }

  Status round(int number) {
    TESSERA_TRY(sets, draw(out_.calls));
    TESSERA_CHECK(judge_.call("peer_load", sets, own_limit));
    const int n = static_cast<int>(out_.runners.size());
    for (int i = 0; i < n && out_.breach.is_null(); ++i) {
      Runner& runner = out_.runners[(i + number) % n];
      if (!runner.reason.empty()) continue;
      TESSERA_CHECK(run(runner, out_.calls, true));
      if (runner.name.empty() && out_.breach.is_null()) TESSERA_CHECK(check());
    }
    return {};
  }

  // The last result, which had no time to be finished behind our back, and one more.
  Status check() {
    for (const int slot :
         {out_.calls - 1, std::uniform_int_distribution(0, out_.calls - 1)(chance_)}) {
      // On the host they lie in the file already.
      if (given_.device == "cuda")
        TESSERA_CHECK(judged_.call("deliver", {{"slot", slot}}, limit()));
      TESSERA_TRY(reply,
                  judge_.call("check_round",
                              {{"slot", slot}, {"shelf", (judged_.own() / "shelf.bin").string()}},
                              own_limit));
      if (reply.value("ok", false)) continue;
      out_.breach = std::move(reply);
      return {};
    }
    return {};
  }

  Occupant& judge_;
  Occupant& judged_;
  const Judging& given_;
  int most_calls_;
  Timed out_;
  std::mt19937 chance_{std::random_device{}()};
};

}  // namespace

Median median_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<int>(samples.size());
  const double half = 0.98 * std::sqrt(n);
  const int low = std::max(0, static_cast<int>(n / 2.0 - half));
  const int high = std::min(n - 1, static_cast<int>(n / 2.0 + half));
  const double middle = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  return {.ms = middle, .ci95 = (samples[high] - samples[low]) / 2};
}

Result<Timed> take_times(const Parties& parties, const Judging& given, int most_calls) {
  return Times(parties, given, most_calls).take();
}

}  // namespace tessera::pipeline
