// What became of one kernel that a person or an agent wrote for one pattern: the gates that it
// passed, what stopped it, and what is known of it. One type with one codec, whoever asks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "diag/diagnostic.h"

namespace tessera::attempt {

/// In the order in which they are passed.
enum class Gate : uint8_t { parse, check, build, verify, sanitize, measure };
std::string_view name_of(Gate gate);

/// `skipped`: it does not apply to this source, or cannot run on this machine; the note says which.
enum class Passage : uint8_t { passed, failed, skipped };
std::string_view name_of(Passage passage);

struct GateResult {
  Gate gate = Gate::parse;
  Passage passage = Passage::passed;
  std::string note;  // why it was skipped or failed; what passing means where that needs words
  double seconds = 0;
};

/// Why a kernel was stopped, as one word that programs can branch on.
enum class Failure : uint8_t {
  none,
  bad_source,        // the file does not say what a source must: tunables, language
  refuted,           // the checker shows a schedule under which it is wrong
  not_the_pattern,   // its tensors are not those of the pattern
  does_not_compile,  //
  compiler_hangs,    //
  not_loadable,      // the library lacks a symbol of the contract, or refuses the launch
  crash,             // a signal ended the process that ran it
  hang,              // it did not end in the time that it had
  wrong_result,      //
  non_finite,        // infinities or NaN where the pattern has none, or the other way round
  incomplete,        // elements of an output that nobody wrote
  out_of_bounds,     // bytes beside a tensor were written
  input_modified,    //
  invalid_access,    // the sanitizer's word
  out_of_memory,     //
  forbidden,         // it tried what the sandbox does not allow; the cause says what
  unsupported        // this machine or architecture cannot build or run such a source
};
std::string_view name_of(Failure failure);

/// How the wrong elements of an output lie, as the evaluator found them.
struct Wrong {
  std::string output;
  std::vector<int64_t> shape;
  std::vector<int64_t> index;  // the first wrong element, in row-major order
  std::string expected;        // texts, since infinities and NaN are no JSON
  std::string found;
  int64_t count = 0;
  int64_t of = 0;
  /// "everywhere", "one element", "rows", "columns", "tail of rows", "tail of columns", "a block",
  /// "every n-th", "a diagonal", "a triangle", "a band", "scattered".
  std::string lies;
  std::vector<std::vector<int64_t>> box;  // [first, last] of the wrong ones, one a dim
  std::string details;                    // the same for people
  /// What the found values are of the expected ones: "zero", "scaled", "scaled_rows", "shifted",
  /// "transposed", "other_type", "constant", "offset", "rounded", "one_way", "nearly_scaled",
  /// "nearly_scaled_rows", "wrong_constant"; or the mistake that they come from:
  /// "exchanged_inputs", "transposed_input", "first_for_all", "left_out", "negated_input",
  /// "rounded_input". "" where nothing simple fits.
  std::string relation;
  std::string relation_details;
  /// What the worst element depends on otherwise than it must: {"tensor", "dim", "first", "last",
  /// "weight", "text"} each, the weight null for what it must not depend on (docs/try.md).
  Json depends = Json::array();
  std::string inputs;  // the distribution and the seed that showed it
};

/// A peer in the same run, at equal precision.
struct Peer {
  std::string name;  // "eager", "inductor", "library: ...", "best so far: ..."
  double ms = 0;
  double ci95 = 0;
  std::string reason;       // why it has no time
  bool unreliable = false;  // its interval is too wide for a comparison
};

struct Measured {
  double ms = 0;
  double ci95 = 0;                // half of the interval
  double sustained_ms = 0;        // a call back to back; 0: not measured
  double floor_ms = 0;            // of the roofline
  std::string bound;              // "memory", "arithmetic", "launch"
  bool unreliable = false;        // the machine was too noisy
  double elsewhere = 0;           // processors that other processes kept busy meanwhile
  std::vector<std::string> busy;  // the busiest of these: "python3 (pid 4711, 1.7 processors)"
  std::vector<Peer> peers;
};

/// Whether the ratio of the two times is a figure: both are reliable, and no near tie under load.
bool comparable(const Measured& m, const Peer& p);

/// The source with one choice of its tunables.
struct Variant {
  Json tunables = Json::object();
  std::string outcome;  // tune::name_of
  double ms = 0;
  std::string reason;
};

/// A row of the table of symptoms that fits.
struct Advice {
  std::string symptom;
  std::string cause;
  std::string where;
  std::string remedy;
};

struct Verdict {
  std::string source;    // the file as it was given
  std::string hash;      // of its text
  std::string language;  // "tile", "cuda", "cxx"
  std::string pattern;   // "p03"
  std::string rule;
  std::string summary;
  std::string arch;
  std::string device;
  std::string precision;
  std::vector<GateResult> gates;
  Failure failure = Failure::none;
  std::string cause;  // one sentence; "" where it passed
  Place place;        // the author's line, where one is known
  std::vector<Diagnostic> diagnostics;
  std::optional<Wrong> wrong;
  Json counterexample;  // findings of the checker; null where there are none
  Json resources = Json::object();
  std::vector<std::string> warnings;  // of the compilers
  Json errors = Json::object();       // against fp64: {"rms","max","baseline_rms","baseline_max"}
  std::optional<Measured> measured;
  std::vector<Variant> variants;  // the first is the default
  bool won = false;               // the fastest there is: in the registry
  std::string standing;           // why it won or not
  std::vector<Advice> advice;
  bool reliable = true;  // the same again would give the same
  bool known = false;    // from the cache: computed by an earlier command

  [[nodiscard]] bool passed() const { return failure == Failure::none; }
  /// The last gate that it came to.
  [[nodiscard]] Gate reached() const;
  [[nodiscard]] const GateResult* find(Gate gate) const;
};

/// As the evaluator says it (docs/protocol.md, `verify`), and as a verdict's JSON has it.
Wrong wrong_from_json(const Json& j);

/// Schema "tessera.verdict/1" (docs/try.md).
Json to_json(const Verdict& v);
/// The inverse. Throws Json::exception where a field is of another type, std::invalid_argument for
/// a word that is none of ours.
Verdict verdict_from_json(const Json& j);
/// For people, some 20 lines.
std::string to_text(const Verdict& v);

}  // namespace tessera::attempt
