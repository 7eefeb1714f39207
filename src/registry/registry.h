// The registry: what has been realized, with its evidence; what failed, so that no machine tries it
// twice.
//
// Key: pattern signature x precision x device model x measuring policy. The toolchain's fingerprint
// says whether an entry still holds.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/result.h"
#include "rules/rules.h"

namespace tessera::registry {

struct Key {
  std::string signature;  // rules::Pattern::signature()
  std::string precision;
  std::string device;  // "NVIDIA H200", "AMD EPYC … 2 threads"
  std::string policy;  // measuring_policy()
  [[nodiscard]] std::string hash() const;
};
/// Names the way times are taken (flush, rotation, statistics); a change of method changes it.
std::string measuring_policy();
/// The user's own registry: registry.sqlite in data_home().
std::filesystem::path default_place();
/// The integer extents of a pattern's body in JSON, flat: {"m":4096,"rows[0]":128}. Views and
/// expressions are left out.
Json extents(const Json& body);

struct Entry {
  Key key;
  std::string rule;
  std::string arch;
  std::string status;  // "accepted", "failed"
  std::string realizer;
  std::string kind;  // "synthesized", "library"
  Json config = Json::object();
  Json launch = Json::object();     // knobs and ints
  Json candidate = Json::object();  // enough to rebuild: source text and flags, or the library call
  Json evidence = Json::object();
  Json negative = Json::array();  // failed trials by kind: {"label","outcome","reason"}
  std::string toolchain;          // fingerprint
  std::string created;            // ISO 8601, UTC
  std::string binary_hash;        // in the kernel cache
  Json shape = Json::object();  // the body, or its extents: the index for ADAPT (the test is within
                                // a factor of two)
};

/// REUSE: the key and the toolchain are equal. Its entry may have the status "failed": what was
/// tried then would fail again. ADAPT: an accepted entry of the same rule, precision and
/// architecture whose extents are all within a factor of two; the nearest one (the same key under
/// another toolchain is the nearest there is). NEW: neither.
struct Lookup {
  rules::Reuse reuse = rules::Reuse::fresh;
  std::optional<Entry> entry;  // for reuse: the entry; for adapt: the nearest relative
  std::string detail;          // why
};

class Registry {
 public:
  /// Opens or creates; migrates older schemas. A corrupt file is moved aside, what can be read of
  /// it is salvaged into a new one, and the diagnostic note says so; a full disk or a read-only
  /// place is an error that says what to do.
  static Result<std::unique_ptr<Registry>> open(const std::filesystem::path& file);
  virtual ~Registry() = default;

  /// Without `arch`, ADAPT takes the architectures of the entries that this device has.
  virtual Result<Lookup> lookup(const Key& key, const rules::Pattern& pattern,
                                const std::string& toolchain, const std::string& arch = {}) = 0;
  /// Replaces the entry of the same key and toolchain when the old one failed, or the new one is
  /// accepted and faster (or as fast and refined); failed trials of both are kept either way.
  /// Entries of other toolchains stay until they are pruned.
  virtual Status store(const Entry& entry) = 0;
  /// `filter`: words and FIELD=VALUE terms (rule, arch, device, precision, status, realizer, kind,
  /// toolchain, hash), all of which must hold; a word holds where it occurs in any field or in the
  /// signature. "" takes everything.
  virtual Result<std::vector<Entry>> list(const std::string& filter) = 0;
  /// The newest entry whose key hash starts so.
  virtual Result<Entry> show(const std::string& hash_prefix) = 0;
  /// "failed", "all", "older:30d" (d, h, w), "stale" (another measuring policy),
  /// "stale:FINGERPRINT" (that, or another toolchain), "hash:PREFIX". Returns how many entries
  /// went.
  virtual Result<int> prune(const std::string& what) = 0;
  virtual Result<Json> export_entries(const std::string& filter) = 0;  // schema tessera.registry/1
  /// All or nothing. By the rule of store(); returns how many entries are new or better than what
  /// was there.
  virtual Result<int> import_entries(const Json& entries) = 0;

  /// Trials of searches under way, so that an interrupted one resumes: appended as they are made.
  /// trials() returns them in that order, each with its "label".
  virtual Status note_trial(const Key& key, const std::string& label, const Json& trial) = 0;
  virtual Result<Json> trials(const Key& key) = 0;
  virtual Status forget_trials(const Key& key) = 0;
  /// What opening had to mend, for the user ("" when nothing).
  [[nodiscard]] virtual std::string mended() const = 0;
};

Json to_json(const Entry& e);
Result<Entry> entry_from_json(const Json& j);

}  // namespace tessera::registry
