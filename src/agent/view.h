// The state as the model sees it in one turn: typed, and written as dense text within a number of
// tokens. There is no memory beside it: a turn is the prompt and one view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attempt/verdict.h"

namespace tessera::agent {

/// A pattern of the module.
struct Subject {
  std::string id;       // "p03"
  std::string rule;     // "gemm"
  std::string summary;  // what it computes, for people
  double floor_ms = 0;
  double unfused_ms = 0;  // op by op, estimated
  double gain_ms = 0;     // that is expected at most
  std::string facts;      // its meaning, tensors and budgets: the skeleton's head
  std::string skeleton;   // "" where none can be written
  std::string ending;     // ".cpp": of what is to be written
};

/// One source that was judged, or one reply that held none.
struct Tried {
  int number = 0;
  std::string outcome;  // "passed", a failure's word, "unreadable", "refused", "the same"
  double ms = 0;        // 0: not timed
  std::string note;     // what the model said that it does
  std::string cause;    // of a failure
};

struct Best {
  std::string what;  // "eager", "your source 2", "stored: ..."
  double ms = 0;
};

struct View {
  std::string arch;
  std::string device;
  std::string precision;
  std::string nodes;  // of proposals: the graph, a node a line, `*` before those without a pattern
  std::vector<Subject> patterns;            // of a plan, and of proposals: all; else the one
  std::vector<Best> times;                  // of the pattern, the fastest first
  std::string source;                       // the last one; of a tuning turn the best one
  std::optional<attempt::Verdict> verdict;  // on it
  std::vector<Tried> tried;
  int attempts_left = 0;
  std::string said;  // by a person, or about a reply that could not be read
};

/// What proposals are made from: the nodes, beside the patterns that the rules found.
std::string render_proposals(const View& view, int64_t tokens);
/// A plan's view: the patterns as a table.
std::string render_plan(const View& view, int64_t tokens);
/// The view of one pattern. Where all of it is more than `tokens` (llm::estimated_tokens), what
/// says least is shortened first, and says by how much.
std::string render(const View& view, int64_t tokens);

/// A verdict for the model: what stopped it and where, the first wrong element, the
/// counterexample, the compiler's words, times, and what to do next.
std::string verdict_text(const attempt::Verdict& v, const std::string& source);

/// Without the folders of absolute paths, which are the user's own: "/home/u/k/source.cpp:7" is
/// "source.cpp:7".
std::string without_folders(const std::string& text);

}  // namespace tessera::agent
