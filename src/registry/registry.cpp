#include "registry/registry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <set>

#include "base/text.h"
#include "registry/mend.h"
#include "registry/rank.h"
#include "registry/tables.h"
#include "store/journal.h"
#include "store/lock.h"

namespace tessera::registry {
namespace {

inline constexpr Code no_entry{"TS0634", "registry.no_entry"};
inline constexpr Code ambiguous{"TS0635", "registry.ambiguous"};
inline constexpr Code bad_prune{"TS0636", "registry.bad_prune"};
inline constexpr Code bad_import{"TS0637", "registry.bad_import"};
constexpr std::string_view export_schema = "tessera.registry/1";

std::string describe(const Entry& e) {
  const bool timed =
      e.evidence.is_object() && e.evidence.contains("ms") && e.evidence.at("ms").is_number();
  const std::string ms =
      timed ? fmt::format(" at {:.4g} ms", e.evidence.at("ms").get<double>()) : "";
  return fmt::format("{}{} of {}", e.realizer.empty() ? e.rule : e.realizer, ms, e.created);
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
  if (what == "failed") return Test([](const Entry& e) { return e.status == "failed"; });
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
                   .expect("failed, all, stale, older:30d or hash:PREFIX")
                   .help("`tessera registry list` shows what there is"));
}

class SqliteRegistry final : public Registry {
 public:
  SqliteRegistry(store::FileLock lock, Opened opened)
      : lock_(std::move(lock)), db_(std::move(opened.db)), mended_(std::move(opened.note)) {}

  Result<Lookup> lookup(const Key& key, const rules::Pattern& pattern, const std::string& toolchain,
                        const std::string& arch) override {
    const std::string hash = key.hash();
    TESSERA_TRY(same, select("WHERE hash=?1 AND toolchain=?2", {hash, toolchain}));
    if (!same.empty()) {
      const Entry& e = same.front();
      const std::string detail =
          e.status == "accepted"
              ? fmt::format("{}, same toolchain", describe(e))
              : fmt::format("tried on {} with this toolchain and nothing passed ({} failed trials)",
                            e.created, e.negative.size());
      return Lookup{rules::Reuse::reuse, e, detail};
    }
    const Json wanted = extents(pattern.body ? pattern.body->to_json() : Json::object());
    TESSERA_TRY(relatives, select("WHERE rule=?1 AND precision=?2 AND status='accepted'",
                                  {pattern.rule, key.precision}));
    return nearest_of(relatives, key, wanted, arch);
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
    return *std::max_element(found.begin(), found.end(),
                             [](const Entry& a, const Entry& b) { return a.created < b.created; });
  }

  Result<int> prune(const std::string& what) override {
    TESSERA_TRY(goes, chosen(what));
    int gone = 0;
    TESSERA_CHECK(db_.transaction([&]() -> Status {
      TESSERA_CHECK(reconcile(db_));
      TESSERA_TRY(all, select("", {}));
      TESSERA_TRY(remove, db_.prepare("DELETE FROM entries WHERE hash=?1 AND toolchain=?2"));
      for (const Entry& e : all) {
        if (!goes(e)) continue;
        TESSERA_CHECK(remove.bind(1, e.key.hash()).bind(2, e.toolchain).run());
        ++gone;
      }
      if (what == "all") TESSERA_CHECK(db_.execute("DELETE FROM trials"));
      return rewrite_journal(db_);
    }));
    TESSERA_CHECK(db_.execute("VACUUM"));
    return gone;
  }

  Result<Json> export_entries(const std::string& filter) override {
    TESSERA_TRY(entries, list(filter));
    Json out = {{"schema", export_schema}, {"entries", Json::array()}};
    for (const Entry& e : entries) out["entries"].push_back(to_json(e));
    return out;
  }

  Result<int> import_entries(const Json& entries) override {
    if (!entries.is_object() || entries.value("schema", "") != export_schema ||
        !entries.contains("entries") || !entries.at("entries").is_array()) {
      return error(fail(bad_import, "this is not a registry export")
                       .expect("a JSON object with the schema {}", export_schema)
                       .help("make one with `tessera registry export -o FILE.json`"));
    }
    std::vector<Json> records;
    for (const Json& j : entries.at("entries")) {
      TESSERA_TRY(e, entry_from_json(j));
      records.push_back(entry_record(e));
    }
    return write(records);
  }

  Status note_trial(const Key& key, const std::string& label, const Json& trial) override {
    return write({trial_record(key.hash(), label, trial)}).map([](int) {});
  }

  Result<Json> trials(const Key& key) override {
    TESSERA_TRY(statement, db_.prepare("SELECT body FROM trials WHERE key_hash=?1 ORDER BY id"));
    statement.bind(1, key.hash());
    Json out = Json::array();
    while (true) {
      TESSERA_TRY(row, statement.step());
      if (!row) return out;
      out.push_back(Json::parse(statement.text(0)));
    }
  }

  Status forget_trials(const Key& key) override {
    return write({forget_record(key.hash())}).map([](int) {});
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
      TESSERA_TRY(e, entry_from_json(Json::parse(statement.text(0), nullptr, false)));
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
      return Lookup{
          rules::Reuse::fresh, std::nullopt,
          fmt::format(
              "no entry of this key, and none of {} accepted {} {} entries is of this architecture "
              "and within a factor of two",
              relatives.size(), key.precision, relatives.empty() ? "related" : relatives[0].rule)};
    }
    const std::string detail =
        best_score < 0 ? fmt::format("same problem built by another toolchain: {}", describe(*best))
                       : fmt::format("nearest relative, {:.2f} octaves away: {} ({})", best_score,
                                     describe(*best), extents(best->shape).dump());
    return Lookup{rules::Reuse::adapt, *best, detail};
  }

  store::FileLock lock_;
  store::Database db_;
  std::string mended_;
};

}  // namespace

Result<std::unique_ptr<Registry>> Registry::open(const std::filesystem::path& file) {
  const std::filesystem::path place = std::filesystem::absolute(file);
  TESSERA_TRY(lock, store::FileLock::shared(place.string() + ".lock"));
  TESSERA_TRY(opened, open_and_mend(place, lock));
  return std::make_unique<SqliteRegistry>(std::move(lock), std::move(opened));
}

}  // namespace tessera::registry
