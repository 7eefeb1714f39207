// What may run for a pattern: source text with a configuration, or a call to a vendor's library.
// Realizers make candidates; whoever stores, builds or places one reads it here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "diag/result.h"
#include "toolchain/toolchain.h"

#include "kernel/library_call.h"

namespace tessera::kernel {

enum class Kind : uint8_t { synthesized, library };
std::string_view name_of(Kind kind);

/// One way to launch a built kernel: run-time knobs that need no recompilation.
struct Launch {
  /// {"raster":"m","swizzle":8,"splits":1}: for people and the registry.
  Json knobs = Json::object();
  std::vector<int64_t> ints;  // in the order of the kernel's describe()
};

/// Of a source with CUTLASS' templates, on a core of its own (one of two builds on an H100's host).
inline constexpr double cutlass_build_seconds = 35;

struct Candidate {
  std::string realizer;
  Kind kind = Kind::synthesized;
  /// The decision record, flat and paste-able: tile, kernel and grid level, e.g.
  /// {"tile":[128,256,64],"cluster":[2,1],"schedule":"cooperative","epilogue":"tma","stages":4,"scheduler":"persistent"}.
  Json config = Json::object();
  /// Exactly one of source and call; neither where only its name and configuration are known, so
  /// that its realizer has to make it again.
  std::optional<toolchain::Source> source;
  std::optional<LibraryCall> call;
  std::vector<Launch> launches;  // for source: at least one; the first is the default
  double predicted_ms = 0;       // orders the search; 0 when there is no model
  /// Bytes of scratch memory that a launch takes, where they are many and known before it is built.
  int64_t workspace_bytes = 0;
  /// Inputs of the pattern, by their places, that the kernel is given and never looks at: it goes
  /// by what is known of them.
  std::vector<int> unread;
  bool peer = false;    // timed beside others, and placed by no plan: never a winner
  bool proven = false;  // won before, or for a relative of the pattern: the search begins with it
  /// A compiler's seconds for it, before one of its realizer was built: few for plain code, half a
  /// minute for CUTLASS' templates; 0 for a library's call.
  [[nodiscard]] double build_seconds() const;
  /// Whether it is the pattern's own ATen nodes, which a pattern's eager time is of.
  [[nodiscard]] bool is_eager() const { return call && call->function == "aten"; }
  /// Whether it can run without its realizer.
  [[nodiscard]] bool can_run() const { return source || call; }
  /// A short text that names it: "cutlass_gemm 128x256x64 2x1 coop".
  [[nodiscard]] std::string label() const;
};

inline constexpr Code bad_candidate{"TS0610", "registry.bad_candidate_record"};

/// {"realizer", "kind", "config", "source"?, "source_hash"?, "call"?, "unread"?}: what rebuilds it
/// without its realizer. Launches and what orders a search are left out.
Json to_json(const Candidate& c);
/// Reads that. Error `bad_candidate`: a field is missing or of a wrong type, or the source text is
/// not the one that its hash was taken of.
Result<Candidate> candidate_from_json(const Json& j);

}  // namespace tessera::kernel
