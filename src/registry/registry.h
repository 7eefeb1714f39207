// The registry: what has been realized, with its evidence; what failed, so that no machine tries it
// twice.
//
// Key: pattern signature x precision x device model x measuring policy. The toolchain's
// fingerprint, the versions of the vendors' libraries and how thorough its search was say whether
// an entry holds (standing.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/result.h"
#include "registry/thoroughness.h"
#include "rules/rules.h"

#include "kernel/winner.h"

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

/// Where an entry comes from. An imported one is another machine's word: its configurations are
/// tried here at first use, and what comes of that is this machine's own (with the file's name).
struct Provenance {
  bool imported = false;
  std::string file;  // imported from; "" when it never was
  std::string when;  // ISO 8601, UTC
};

struct Entry {
  Key key;
  std::string rule;
  std::string arch;
  /// The first is placed first; none where nothing passed. Imported ones have realizer and
  /// configuration alone.
  std::vector<kernel::Winner> winners;
  double eager_ms = 0;   // of the pattern's ops one by one; 0: not known
  bool refined = false;  // the winners' order was settled in a module's own run
  /// Failed trials: {"label","kind","outcome","reason"}; of a winner that was wrong in a module
  /// also "realizer", "config" and "in_module": true.
  Json negative = Json::array();
  std::string toolchain;        // fingerprint
  std::string created;          // ISO 8601, UTC
  Json shape = Json::object();  // the body, or its extents: the index for ADAPT (the test is within
                                // a factor of two)
  Thoroughness search;
  Json libraries = Json::object();  // versions of torch, cuBLAS, cuDNN, the driver, by name
  Provenance provenance;
  /// `created` of the entry whose winners were tried beside this one's: it takes that one's place
  /// whatever their times say, which are of two sessions.
  std::string replaces;
  /// The run that stored it: what it says later takes the place of what it said before.
  std::string run;

  [[nodiscard]] bool accepted() const { return !winners.empty(); }
  /// "accepted", "failed".
  [[nodiscard]] std::string_view status() const { return accepted() ? "accepted" : "failed"; }
  /// "" where it failed.
  [[nodiscard]] std::string realizer() const;
  /// "synthesized", "library"; "" where it failed.
  [[nodiscard]] std::string_view kind() const;
  /// Of the fastest winner by itself, which may be another than the first (`refined`); infinite
  /// where nothing was measured.
  [[nodiscard]] double alone_ms() const;
  /// A figure of it was taken while the machine was too noisy.
  [[nodiscard]] bool unreliable() const;
};

/// What a run brings along: an entry is a verdict where all of it agrees.
struct Here {
  std::string toolchain;
  std::string arch;  // ADAPT stays within it; "": the architectures of the entries of this device
  Asked asked;
  Json libraries = Json::object();  // {}: not known, and not compared
};

/// Whether an entry of the same key is a verdict here, and what keeps it from being one.
enum class Standing : uint8_t {
  holds,
  imported,         // never tried here
  other_toolchain,  // its kernels would be built by another compiler
  unreliable,       // the machine was too noisy for its figures
  shallow,          // its search was less thorough than the one asked for
  other_libraries,  // its library kernels, and eager, are of other versions
};
std::string_view name_of(Standing standing);
struct Judged {
  Standing standing = Standing::holds;
  std::string why;  // "" when it holds
};
Judged judge(const Entry& e, const Here& here);

/// REUSE: an entry of the same key that holds here. It may have the status "failed": what was tried
/// then would fail again. ADAPT: an accepted one of the same key that does not hold, else an
/// accepted entry of the same rule, precision and architecture whose extents are all within a
/// factor of two; the nearest one (the same key under another toolchain is the nearest there is).
/// NEW: neither.
struct Lookup {
  rules::Reuse reuse = rules::Reuse::fresh;
  std::optional<Entry> entry;  // for reuse: the entry; for adapt: that, or the nearest relative
  /// Of the same key and toolchain, to be tried before anything else; `entry` as well when there is
  /// no other.
  std::optional<Entry> imported;
  std::optional<Entry> own;          // of the same key and toolchain, whatever its status
  std::optional<Standing> standing;  // of `own`
  std::string detail;                // why
};

/// The most trials that are kept of one key and toolchain: a search by default makes 400.
inline constexpr int most_trials = 512;

/// What became of an import.
struct Imported {
  int read = 0;
  int taken = 0;
  int sources = 0;  // source texts and library calls that were left out
  int failed = 0;   // entries without a kernel: no verdict here, left out
};

struct Wrong {
  std::string label;
  std::string realizer;
  Json config = Json::object();
  std::string reason;
};

class Registry {
 public:
  /// Opens or creates; migrates older schemas. A corrupt file is moved aside, what can be read of
  /// it is salvaged into a new one, and the diagnostic note says so; a full disk or a read-only
  /// place is an error that says what to do.
  static Result<std::unique_ptr<Registry>> open(const std::filesystem::path& file);
  virtual ~Registry() = default;

  virtual Result<Lookup> lookup(const Key& key, const rules::Pattern& pattern,
                                const Here& here) = 0;
  /// Replaces the entry of the same key and toolchain when the old one failed, or the new one is
  /// accepted and faster (or as fast and refined, of other library versions, or `replaces` it);
  /// failed trials and thoroughness are those of both either way. Entries of other toolchains stay
  /// until they are pruned. One that was made of an imported entry takes that one away.
  virtual Status store(const Entry& entry) = 0;
  /// `filter`: words and FIELD=VALUE terms (rule, arch, device, precision, status, realizer, kind,
  /// toolchain, hash), all of which must hold; a word holds where it occurs in any field or in the
  /// signature. "" takes everything.
  virtual Result<std::vector<Entry>> list(const std::string& filter) = 0;
  /// The newest entry whose key hash starts so.
  virtual Result<Entry> show(const std::string& hash_prefix) = 0;
  /// "failed", "all", "imported", "older:30d" (d, h, w), "stale" (another measuring policy),
  /// "stale:FINGERPRINT" (that, or another toolchain), "hash:PREFIX". Their trials go with them.
  /// Returns how many entries went.
  virtual Result<int> prune(const std::string& what) = 0;
  /// Configurations and evidence (schema tessera.registry/2): no source text, no library call.
  virtual Result<Json> export_entries(const std::string& filter) = 0;
  /// All or nothing. Takes configurations and evidence (import.h) as entries that are tried here
  /// before they are used, and none that an own entry is as good as. `file` and the time become
  /// their provenance.
  virtual Result<Imported> import_entries(const Json& entries, const std::string& file) = 0;

  /// What was imported under this key has been tried, and is of no use here.
  virtual Status forget_imported(const Key& key, const std::string& toolchain) = 0;

  /// A winner that gave a wrong result in a module: it leaves the entry (`failed` for that reason
  /// when none is left) and stays among its failed trials; a search does not take it again.
  virtual Status mark_wrong(const Key& key, const std::string& toolchain, const Wrong& wrong) = 0;

  /// Trials of searches, so that one that was cut goes on from them: appended as they are made, the
  /// newest `most_trials` of a key and toolchain. trials() returns them in that order, each with
  /// its "label"; of two of one point (realizer, config, knobs) settle_trials() keeps the last.
  virtual Status note_trial(const Key& key, const std::string& toolchain, const std::string& label,
                            const Json& trial) = 0;
  virtual Result<Json> trials(const Key& key, const std::string& toolchain) = 0;
  virtual Status settle_trials(const Key& key, const std::string& toolchain) = 0;
  /// What opening had to mend, for the user ("" when nothing).
  [[nodiscard]] virtual std::string mended() const = 0;
};

/// As it is stored (docs/registry.md): beside the winners, what is known of the first of them
/// stands in fields of its own.
Json to_json(const Entry& e);
/// What an export has of it.
Json portable(const Entry& e);
Result<Entry> entry_from_json(const Json& j);

}  // namespace tessera::registry
