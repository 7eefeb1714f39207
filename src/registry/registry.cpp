#include "registry/registry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "registry/import.h"
#include "registry/mend.h"
#include "registry/rank.h"
#include "registry/subgraph_table.h"
#include "registry/subgraphs.h"
#include "registry/tables.h"
#include "store/journal.h"
#include "store/lock.h"

namespace tessera::registry {
namespace {

inline constexpr Code no_entry{"TS0634", "registry.no_entry"};
inline constexpr Code ambiguous{"TS0635", "registry.ambiguous"};
inline constexpr Code bad_prune{"TS0636", "registry.bad_prune"};
constexpr std::string_view export_schema = "tessera.registry/2";

std::string describe(const Entry& e) {
  const std::string ms =
      e.accepted() ? fmt::format(" at {:.4g} ms", e.winners.front().evidence.ms) : "";
  return fmt::format("{}{} of {}", e.accepted() ? e.realizer() : e.rule, ms, e.created);
}

// Days of "30d", "12h", "2w".
Result<double> parse_age(std::string_view text) {
  double number = 0;
  const auto parsed = std::from_chars(text.begin(), text.end(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(parsed.ptr - text.begin()));
  const double days = unit == "d" ? 1 : unit == "h" ? 1.0 / 24 : unit == "w" ? 7 : 0;
  if (parsed.ec != std::errc() || days == 0 || number < 0) {
    return error(fail(bad_prune, "`{}` is not an age", text)
                     .expect("a number and d, h or w, as in older:30d"));
  }
  return number * days;
}

// Which entries `what` of prune() names.
Result<std::function<bool(const Entry&)>> chosen(const std::string& what) {
  using Test = std::function<bool(const Entry&)>;
  const auto after = [&](std::string_view prefix) { return what.substr(prefix.size()); };
  if (what == "all") return Test([](const Entry&) { return true; });
  if (what == "failed") return Test([](const Entry& e) { return !e.accepted(); });
  if (what == "imported") return Test([](const Entry& e) { return e.provenance.imported; });
  if (what == "stale")
    return Test([](const Entry& e) { return e.key.policy != measuring_policy(); });
  if (what.starts_with("stale:")) {
    return Test([now = after("stale:")](const Entry& e) {
      return e.key.policy != measuring_policy() || e.toolchain != now;
    });
  }
  if (what.starts_with("hash:") && what.size() > 5) {
    return Test(
        [prefix = after("hash:")](const Entry& e) { return e.key.hash().starts_with(prefix); });
  }
  if (what.starts_with("older:")) {
    TESSERA_TRY(days, parse_age(after("older:")));
    return Test([limit = utc_before(days)](const Entry& e) { return e.created < limit; });
  }
  return error(fail(bad_prune, "cannot prune `{}`", what)
                   .expect("failed, imported, all, stale, older:30d or hash:PREFIX")
                   .help("`tessera registry list` shows what there is"));
}

class SqliteRegistry final : public Registry, public Subgraphs {
 public:
  SqliteRegistry(store::FileLock lock, Opened opened)
      : lock_(std::move(lock)), db_(std::move(opened.db)), mended_(std::move(opened.note)) {}

  Result<Lookup> lookup(const Key& key, const rules::Pattern& pattern, const Here& here) override {
    TESSERA_TRY(same, select("WHERE hash=?1 AND toolchain=?2", {key.hash(), here.toolchain}));
    Lookup out;
    for (Entry& e : same) (e.provenance.imported ? out.imported : out.own) = std::move(e);
    const std::optional<Entry>& own = out.own;
    Judged judged;
    if (own) {
      judged = judge(*own, here);
      out.standing = judged.standing;
    }
    if (own && !out.imported && judged.standing == Standing::holds) {
      out.reuse = rules::Reuse::reuse;
      out.detail = own->accepted() ? fmt::format("{}, same toolchain", describe(*own))
                                   : fmt::format(
                                         "tried on {} with this toolchain and nothing passed ({} "
                                         "failed trials; its search was {})",
                                         own->created, own->negative.size(), to_text(own->search));
      out.entry = own;
      return out;
    }
    const bool accepted = own && own->accepted();
    if (accepted || out.imported) {
      out.reuse = rules::Reuse::adapt;
      out.entry = accepted ? own : out.imported;
      const std::string why = out.imported ? judge(*out.imported, here).why : judged.why;
      out.detail = fmt::format("{}: {}", describe(*out.entry), why);
      return out;
    }
    const Json wanted = extents(pattern.body ? pattern.body->to_json() : Json::object());
    TESSERA_TRY(relatives, select("WHERE rule=?1 AND precision=?2 AND status='accepted'",
                                  {pattern.rule, key.precision}));
    TESSERA_TRY(near, nearest_of(relatives, key, wanted, here.arch));
    near.standing = out.standing;
    near.own = own;
    if (own) near.detail = fmt::format("nothing passed, but {}; {}", judged.why, near.detail);
    return near;
  }

  Status store(const Entry& entry) override {
    return write({entry_record(entry)}).map([](int) {});
  }

  Result<std::vector<Entry>> list(const std::string& filter) override {
    TESSERA_TRY(all, select("", {}));
    std::vector<Entry> out;
    for (Entry& e : all) {
      TESSERA_TRY(match, matches(e, filter));
      if (match) out.push_back(std::move(e));
    }
    return out;
  }

  Result<Entry> show(const std::string& prefix) override {
    TESSERA_TRY(found, select("WHERE substr(hash, 1, length(?1))=?1", {prefix}));
    if (found.empty() || prefix.empty()) {
      return error(fail(no_entry, "no registry entry has a hash that starts with `{}`", prefix)
                       .help("`tessera registry list` shows the hashes"));
    }
    std::set<std::string> hashes;
    for (const Entry& e : found) hashes.insert(e.key.hash());
    if (hashes.size() > 1) {
      return error(
          fail(ambiguous, "{} entries have a hash that starts with `{}`", hashes.size(), prefix)
              .help("give more digits: {}", join({hashes.begin(), hashes.end()}, ", ")));
    }
    // What was seen here before what another machine says.
    return *std::max_element(found.begin(), found.end(), [](const Entry& a, const Entry& b) {
      if (a.provenance.imported != b.provenance.imported) return a.provenance.imported;
      return a.created < b.created;
    });
  }

  Result<int> prune(const std::string& what) override {
    TESSERA_TRY(goes, chosen(what));
    int gone = 0;
    TESSERA_CHECK(db_.transaction([&]() -> Status {
      TESSERA_CHECK(reconcile(db_));
      TESSERA_TRY(all, select("", {}));
      TESSERA_TRY(remove, db_.prepare("DELETE FROM entries WHERE hash=?1 AND toolchain=?2 AND "
                                      "origin=?3"));
      TESSERA_TRY(forget, db_.prepare("DELETE FROM trials WHERE key_hash=?1 AND (toolchain=?2 OR "
                                      "toolchain='')"));
      for (const Entry& e : all) {
        if (!goes(e)) continue;
        const bool imported = e.provenance.imported;
        remove.bind(1, e.key.hash()).bind(2, e.toolchain).bind(3, imported ? "imported" : "own");
        TESSERA_CHECK(remove.run());
        if (!imported) TESSERA_CHECK(forget.bind(1, e.key.hash()).bind(2, e.toolchain).run());
        ++gone;
      }
      if (what == "all") TESSERA_CHECK(db_.execute("DELETE FROM trials; DELETE FROM subgraphs"));
      return rewrite_journal(db_);
    }));
    TESSERA_CHECK(db_.execute("VACUUM"));
    return gone;
  }

  Result<Json> export_entries(const std::string& filter) override {
    TESSERA_TRY(entries, list(filter));
    Json out = {{"schema", export_schema}, {"entries", Json::array()}};
    for (const Entry& e : entries) {
      // What was imported and not tried is not ours to pass on.
      if (!e.provenance.imported) out["entries"].push_back(portable(e));
    }
    return out;
  }

  Result<Imported> import_entries(const Json& entries, const std::string& file) override {
    TESSERA_TRY(sanitized, sanitize(entries, file, now_utc()));
    std::vector<Json> records;
    for (const Entry& e : sanitized.entries) records.push_back(entry_record(e));
    TESSERA_TRY(taken, write(records));
    sanitized.counts.taken = taken;
    return sanitized.counts;
  }

  Status mark_wrong(const Key& key, const std::string& toolchain, const Wrong& wrong) override {
    return write({wrong_record(key.hash(), toolchain, wrong)}).map([](int) {});
  }

  Status note_trial(const Key& key, const std::string& toolchain, const std::string& label,
                    const Json& trial) override {
    return write({trial_record(key.hash(), toolchain, label, trial)}).map([](int) {});
  }

  Result<Json> trials(const Key& key, const std::string& toolchain) override {
    TESSERA_TRY(list, trials_of(db_, key.hash(), toolchain));
    return Json(std::move(list));
  }

  Status settle_trials(const Key& key, const std::string& toolchain) override {
    return write({settle_record(key.hash(), toolchain)}).map([](int) {});
  }

  Status forget_imported(const Key& key, const std::string& toolchain) override {
    return write({tried_record(key.hash(), toolchain)}).map([](int) {});
  }

  Status store_subgraph(const Json& proposed) override {
    return write({subgraph_record(proposed)}).map([](int) {});
  }

  Result<std::vector<Json>> subgraphs() override { return subgraphs_of(db_); }

  Result<int> withdraw(const std::vector<std::string>& names) override {
    int gone = 0;
    TESSERA_CHECK(db_.transaction([&]() -> Status {
      TESSERA_CHECK(reconcile(db_));
      TESSERA_TRY(deleted, delete_subgraphs(db_, names));
      gone = deleted;
      return gone == 0 ? Status{} : rewrite_journal(db_);
    }));
    return gone;
  }

  [[nodiscard]] std::string mended() const override { return mended_; }

 private:
  Result<std::vector<Entry>> select(const std::string& where,
                                    const std::vector<std::string>& arguments) {
    TESSERA_TRY(statement, db_.prepare("SELECT body FROM entries " + where + " ORDER BY id"));
    for (std::size_t i = 0; i < arguments.size(); ++i)
      statement.bind(static_cast<int>(i) + 1, arguments[i]);
    std::vector<Entry> out;
    while (true) {
      TESSERA_TRY(row, statement.step());
      if (!row) return out;
      TESSERA_TRY(e, entry_from_json(try_parse_json(statement.text(0))));
      out.push_back(std::move(e));
    }
  }

  // One transaction over the database and its journal; returns how many records changed something.
  Result<int> write(const std::vector<Json>& records) {
    std::vector<Json> effective;
    TESSERA_CHECK(db_.transaction([&]() -> Status {
      TESSERA_CHECK(reconcile(db_));
      for (const Json& record : records) {
        TESSERA_TRY(changed, apply(db_, record));
        if (changed) effective.push_back(record);
      }
      if (effective.empty()) return {};
      TESSERA_TRY(bytes, store::append_records(journal_of(db_.file()), effective));
      return set_journal_size(db_, bytes);
    }));
    return static_cast<int>(effective.size());
  }

  Result<Lookup> nearest_of(const std::vector<Entry>& relatives, const Key& key, const Json& wanted,
                            const std::string& arch) {
    std::set<std::string> archs;
    if (!arch.empty()) archs.insert(arch);
    if (arch.empty()) {
      TESSERA_TRY(statement, db_.prepare("SELECT DISTINCT arch FROM entries WHERE device=?1"));
      statement.bind(1, key.device);
      while (true) {
        TESSERA_TRY(row, statement.step());
        if (!row) break;
        archs.insert(statement.text(0));
      }
    }
    const Entry* best = nullptr;
    double best_score = INFINITY;
    for (const Entry& e : relatives) {
      if (!archs.contains(e.arch)) continue;
      const bool same_key = e.key.hash() == key.hash();
      const std::optional<double> d = distance(extents(e.shape), wanted);
      if (!same_key && !d) continue;
      // The same problem first, then the distance; another device of the architecture counts as a
      // small step.
      const double score = same_key ? -1 : *d + (e.key.device == key.device ? 0 : 0.1);
      if (score < best_score || (score == best_score && e.created > best->created)) {
        best = &e;
        best_score = score;
      }
    }
    if (best == nullptr) {
      return Lookup{.detail = fmt::format(
                        "no entry of this key, and none of {} accepted {} {} entries is of this "
                        "architecture and within a factor of two",
                        relatives.size(), key.precision,
                        relatives.empty() ? "related" : relatives[0].rule)};
    }
    const std::string detail =
        best_score < 0 ? fmt::format("same problem built by another toolchain: {}", describe(*best))
                       : fmt::format("nearest relative, {:.2f} octaves away: {} ({})", best_score,
                                     describe(*best), extents(best->shape).dump());
    return Lookup{.reuse = rules::Reuse::adapt, .entry = *best, .detail = detail};
  }

  store::FileLock lock_;
  store::Database db_;
  std::string mended_;
};

}  // namespace

namespace {

Result<std::unique_ptr<SqliteRegistry>> opened_at(const std::filesystem::path& file) {
  const std::filesystem::path place = std::filesystem::absolute(file);
  TESSERA_TRY(lock, store::FileLock::shared(place.string() + ".lock"));
  TESSERA_TRY(opened, open_and_mend(place, lock));
  return std::make_unique<SqliteRegistry>(std::move(lock), std::move(opened));
}

}  // namespace

Result<std::unique_ptr<Registry>> Registry::open(const std::filesystem::path& file) {
  TESSERA_TRY(opened, opened_at(file));
  return opened;
}

Result<std::unique_ptr<Subgraphs>> Subgraphs::open(const std::filesystem::path& file) {
  TESSERA_TRY(opened, opened_at(file));
  return opened;
}

}  // namespace tessera::registry
