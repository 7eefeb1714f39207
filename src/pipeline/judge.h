// A whole module that somebody wrote in the place of another, judged by all gates (docs/judge.md):
// its file runs in one process, the references and comparisons in another, and this program's clock
// decides.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

#include "attempt/verdict.h"

namespace tessera::pipeline {

struct Judging {
  std::vector<std::string> files;  // each with a class that is judged
  std::string cls = "ModelNew";    //
  std::string reference;           // the file with the reference; empty: the only one of `files`
  std::string reference_cls;       // empty: Model
  std::string precision = "auto";  //
  std::string device = "cpu";      // "cuda"
  bool synthesized = false;        // it claims that no library computes its results
  bool confined = true;            // built and run in a sandbox
  std::vector<std::string> peers;  // "eager", "inductor"
  std::vector<std::string> reads;  // further folders that it may read
  std::chrono::seconds limit{60};  // of one call; a build has ten times this
  int rounds = 5;                  // timed ones
};

/// What came of one file beside the verdict.
struct Judged {
  std::string file;
  attempt::Verdict verdict;
  /// The verdict's word, or one of a module's own: "aliased_output", "not_a_tensor", "tampered",
  /// "clock_disagrees", "impossible_time", "not_its_own_work", which a verdict calls wrong_result.
  std::string failure = "none";
  Json trials = Json::array();  // [{"inputs", "build", "ok", "errors"}]
  Json work;   // {"label", "by_library", "names"}; null where it did not come so far
  Json clock;  // {"outside_ms", "inside_ms", "device_ms", "calls", "rounds"}; null likewise
};

/// All files, beside one reference. Errors are of the input and the environment alone: the
/// reference's file, TS0540 to TS0543, TS0717. What is wrong with the judged module is in the
/// verdict.
Result<std::vector<Judged>> judge(const Judging& given, const Options& options,
                                  const Context& context);

/// Schema "tessera.judged/1" (docs/judge.md), and the same for people.
Json to_json(const Judging& given, const Judged& judged);
std::string to_text(const Judged& judged);

}  // namespace tessera::pipeline
