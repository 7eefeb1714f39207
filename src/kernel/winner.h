// A candidate that passed its gates, with what is known of it, and every form in which it is
// written: for the registry, for the process that runs it, for reports, for other machines.
#pragma once

#include <optional>
#include <string>

#include "kernel/candidate.h"
#include "kernel/evidence.h"

namespace tessera::kernel {

struct Winner {
  Candidate candidate;
  int launch = 0;                         // of candidate.launches
  std::optional<toolchain::Built> built;  // none of a library call, and before it is built again
  std::string binary;  // of a stored one, the hash of what it was built into; "" where nothing was
  Evidence evidence;
  /// The launch that won; the default one where the candidate has none.
  [[nodiscard]] Launch launched() const;
  /// Whether realizer and configuration are the same, in whatever order the configuration's keys
  /// are.
  [[nodiscard]] bool is_of(const Candidate& c) const;
};

/// As the registry keeps it: {"candidate": to_json(Candidate), "launch": {"knobs", "ints"},
/// "evidence", "binary"}.
Json to_json(const Winner& w);
/// Reads that; the launch becomes the candidate's only one. Of a candidate that cannot be read, or
/// whose source text is not the one that was stored, realizer, kind and configuration stay. Error
/// `bad_candidate`: it has not even a realizer.
Result<Winner> winner_from_json(const Json& j);

/// For another machine: {"realizer", "kind", "config", "knobs", "evidence"}; nothing that could be
/// built or run.
Json portable(const Winner& w);
/// Reads that. Throws Json::exception where a field is of a wrong type or there is no realizer.
Winner winner_from_portable(const Json& j);

/// For the process that runs it (docs/protocol.md, "A candidate on the wire"), and in a plan's
/// step.
Json wire_form(const Candidate& c, int launch, const std::optional<toolchain::Built>& built);
Json wire_form(const Winner& w);

/// For a report (docs/report.md, `winners`).
Json report_row(const Winner& w);

/// ordered_json compares keys in their order; those of a file may have another.
bool same(const Json& a, const Json& b);

}  // namespace tessera::kernel
