// Realizers turn a pattern and an architecture into candidates: source text with a configuration,
// or a call to a vendor's library. All candidates of a pattern compete; library ones are labelled
// and never count as synthesized.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/arch.h"
#include "rules/rules.h"
#include "toolchain/toolchain.h"

namespace tessera::realize {

enum class Kind : uint8_t { synthesized, library };
std::string_view name_of(Kind kind);

/// One way to launch a built kernel: run-time knobs that need no recompilation.
struct Launch {
  /// {"raster":"m","swizzle":8,"splits":1}: for people and the registry.
  Json knobs = Json::object();
  std::vector<int64_t> ints;  // in the order of the kernel's describe()
};

using rules::LibraryCall;

struct Candidate {
  std::string realizer;
  Kind kind = Kind::synthesized;
  /// The decision record, flat and paste-able: tile, kernel and grid level, e.g.
  /// {"tile":[128,256,64],"cluster":[2,1],"schedule":"cooperative","epilogue":"tma","stages":4,"scheduler":"persistent"}.
  Json config = Json::object();
  std::optional<toolchain::Source> source;  // exactly one of source and call
  std::optional<LibraryCall> call;
  std::vector<Launch> launches;  // for source: at least one; the first is the default
  double predicted_ms = 0;       // orders the search; 0 when there is no model
  /// Bytes of scratch memory that a launch takes, where they are many and known before it is built.
  int64_t workspace_bytes = 0;
  bool proven = false;  // won for a relative of the pattern: the search begins with it
  /// A compiler's seconds for it, before one of its realizer was built: few for plain code, half a
  /// minute for CUTLASS' templates; 0 for a library's call.
  [[nodiscard]] double build_seconds() const;
  /// Whether it is the pattern's own ATen nodes, which a pattern's eager time is of.
  [[nodiscard]] bool is_eager() const { return call && call->function == "aten"; }
  /// A short text that names it: "cutlass_gemm 128x256x64 2x1 coop".
  [[nodiscard]] std::string label() const;
};

/// The candidates of one realizer for one pattern, best prediction first, and what was pruned
/// before compiling.
struct Space {
  std::vector<Candidate> candidates;
  std::vector<std::pair<std::string, int>> pruned;  // reason, how many
};

struct Realizer {
  std::string_view name;
  std::string_view doc;
  Kind kind;
  std::string_view rule;  // the one rule that it realizes, or "" for any
  /// An error with a TS04xx code is "unsupported, because ...": recorded, never fatal.
  Result<Space> (*realize)(const rules::Pattern&, const graph::Graph&, const arch::Arch&);
};

std::span<const Realizer* const> all();

}  // namespace tessera::realize
