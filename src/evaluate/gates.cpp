#include "evaluate/gates.h"

#include <algorithm>

#include "base/processors.h"
#include "evaluate/builds.h"

namespace tessera::evaluate {
namespace {

using Clock = std::chrono::steady_clock;
using tune::Outcome;
using tune::Trial;

constexpr double measure_ms = 30;         // running time of one candidate in the search
constexpr double final_measure_ms = 150;  // and among the finalists

// No run can be faster. The stated rates are halved: work may be counted that a kernel rightly
// skips (masked scores, unread parts of an input), and a floor that is too high would throw out
// honest kernels.
double hard_floor_ms(const rules::Pattern& p, const arch::Arch& arch) {
  const double rate = arch.bandwidth_of(p.min_bytes, arch.bandwidth_gbs);
  const double bytes_ms = rate > 0 ? p.min_bytes / rate * 1e-6 : 0;
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

/// A row of `times`.
Trial timed(const Json& row, double eager_ms) {
  if (!row.value("ok", false)) return refused(row);
  Trial t{.outcome = Outcome::measured, .ms = number(row, "ms"), .ci95 = number(row, "ci95")};
  t.detail = {{"samples", row.value("samples", 0)}, {"eager_ms", eager_ms}};
  if (row.contains("sustained_ms")) t.detail["sustained_ms"] = row.at("sustained_ms");
  return t;
}

int compilers_of(const Options& options) {
  if (options.parallel_builds > 0) return options.parallel_builds;
  return processors();
}

}  // namespace

double number(const Json& j, const char* key) {
  const auto it = j.find(key);
  if (it == j.end()) return 0;
  if (it->is_number()) return it->get<double>();
  return it->is_string() ? std::strtod(it->get<std::string>().c_str(), nullptr) : 0;
}

void take_errors(kernel::Evidence& e, const Json& reply) {
  e.max_error = number(reply, "max_error");
  e.rms_error = number(reply, "rms_error");
  e.baseline_max_error = number(reply, "baseline_max_error");
  e.baseline_rms_error = number(reply, "baseline_rms_error");
}

Evaluator::State::State(Options o, const graph::Graph& g, const arch::Arch& a)
    : options(std::move(o)),
      graph(g),
      arch(a),
      session(options, g, a),
      farm(options.tools, options.cache, options.build_limit, compilers_of(options)) {}

int Evaluator::State::compilers() const {
  return compilers_of(options);
}

double Evaluator::State::build_seconds(const kernel::Candidate& c) const {
  if (!c.source) return 0;
  if (const auto at = builds_.find(c.realizer); at != builds_.end())
    return at->second.first / at->second.second;
  return c.build_seconds();
}

void Evaluator::State::learn_build(const kernel::Candidate& c, const toolchain::Built& built) {
  if (built.seconds <= 0) return;
  auto& [seconds, n] = builds_[c.realizer];
  seconds += built.seconds;
  ++n;
}

Json Gates::wire(tune::Point p) const {
  const auto c = static_cast<std::size_t>(p.candidate);
  return kernel::wire_form(candidates[c], p.launch, built[c]);
}

std::pair<Trial, Json> Gates::verify(tune::Point p, const char* level) {
  const Answer a = shared.session.ask(pattern, "verify", {{"candidate", wire(p)}, {"level", level}},
                                      shared.options.measure_limit);
  if (!a.forbidden.empty()) {
    Trial t{.point = p, .outcome = Outcome::crashed, .reason = a.forbidden};
    t.detail = {{"kind", "forbidden"}};
    return {t, a.reply.value_or(Json::object())};
  }
  if (!a.reply)
    return {Trial{.point = p, .outcome = a.outcome, .reason = a.reason}, Json::object()};
  if (!a.reply->value("ok", false)) {
    Trial t = refused(*a.reply);
    t.point = p;
    return {t, *a.reply};
  }
  return {Trial{.point = p, .outcome = Outcome::measured}, *a.reply};
}

// The pattern's own ops are the anchor that is timed in every turn.
Trial Gates::anchor(const Json& reply) const {
  Trial t{.outcome = Outcome::measured, .ms = eager_ms, .ci95 = number(reply, "eager_ci95")};
  t.detail = {{"samples", reply.value("eager_samples", 0)}, {"eager_ms", eager_ms}};
  if (reply.contains("eager_sustained_ms"))
    t.detail["sustained_ms"] = reply.at("eager_sustained_ms");
  return t;
}

std::vector<Trial> Gates::measure(const std::vector<tune::Point>& points, bool final) {
  Json list = Json::array();
  for (const tune::Point& p : points) {
    if (!is_eager(p.candidate)) list.push_back(wire(p));
  }
  const auto limit = shared.options.measure_limit + std::chrono::seconds(5 * points.size());
  const Answer a = shared.session.ask(pattern, "measure",
                                      {{"candidates", list},
                                       {"anchor", true},
                                       {"milliseconds", final ? final_measure_ms : measure_ms},
                                       {"load", final},
                                       {"floor_ms", hard_floor_ms(pattern, shared.arch)}},
                                      limit);
  std::vector<Trial> out;
  if (!a.reply) {
    if (points.size() == 1)
      return {Trial{.point = points[0], .outcome = a.outcome, .reason = a.reason}};
    // One of them took the process with it: each alone tells which.
    for (const tune::Point& p : points) out.push_back(measure({p}, final).front());
    return out;
  }
  const double eager = number(*a.reply, "eager_ms");
  if (eager > 0) eager_ms = eager;
  std::size_t next = 0;
  for (const tune::Point& p : points) {
    Trial t =
        is_eager(p.candidate) ? anchor(*a.reply) : timed(a.reply->at("times").at(next++), eager);
    t.point = p;
    out.push_back(std::move(t));
  }
  return out;
}

std::vector<Trial> Gates::build(const std::vector<int>& which, double seconds,
                                const std::atomic<bool>& stop) {
  const auto deadline = seconds > 0 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                         std::chrono::duration<double>(seconds))
                                    : BuildFarm::Deadline::max();
  std::vector<Trial> out = build_all(candidates, which, shared.farm, stop, deadline, built);
  for (const int c : which) {
    const auto& b = built[static_cast<std::size_t>(c)];
    if (b) shared.learn_build(candidates[static_cast<std::size_t>(c)], *b);
  }
  return out;
}

}  // namespace tessera::evaluate
