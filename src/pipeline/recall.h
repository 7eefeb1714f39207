// Times of whole modules that an earlier run took under the same circumstances.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// What the tracer is asked for.
struct Question {
  std::string method;  // of docs/protocol.md
  Json request;
  /// What of the request its answer depends on: not the seconds that it may take, and of a plan
  /// timed_part().
  Json about;
  std::chrono::seconds limit;
  /// The seconds of the search, which an answer with ways that had no time (`no_time`) is of: it is
  /// recalled by searches of as many.
  double within = 0;
};

/// What of a plan (tessera.plan/1) decides how long it takes: its steps, without what is known of
/// their kernels and how their patterns stood in the registry.
Json timed_part(const Json& plan);

/// The tracer's answer; or that of an earlier run of this graph with the same question, on the same
/// machine, with the same kernels, libraries, settings and flags, where all its times were
/// reliable. Then it has `measured`, the time (ISO 8601, UTC) when it was taken. --retune and
/// --use-registry=false always ask.
Result<Json> ask_or_recall(const Session& s, bridge::Peer& tracer, const Question& question);
/// The same of anybody who answers a request.
using Answerer = std::function<Result<Json>(const Json& request)>;
Result<Json> ask_or_recall(const Session& s, const Answerer& ask, const Question& question);

/// Why an answer is not kept for later runs: a time is missing, but of ways that had no time, or is
/// noisier than a comparison allows, but of ways that are behind a reliable one in both measures,
/// all of their interval. Noise of ways that came about while no other process disturbed the clock
/// is this machine's own: the next run would not know them better. "" where it is kept.
std::string why_not_kept(const Json& answer, bool disturbed);

}  // namespace tessera::pipeline
