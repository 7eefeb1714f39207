#include "registry/tables.h"

#include <array>
#include <set>

#include "base/hash.h"
#include "registry/rank.h"

namespace tessera::registry {
namespace {

inline constexpr Code bad_record{"TS0633", "registry.bad_record"};

constexpr std::array<store::Migration, 3> history{{
    {"0001_entries",
     "CREATE TABLE entries(id INTEGER PRIMARY KEY, hash TEXT NOT NULL, toolchain TEXT NOT NULL, "
     "rule TEXT NOT NULL,"
     " arch TEXT NOT NULL, precision TEXT NOT NULL, device TEXT NOT NULL, status TEXT NOT NULL, "
     "created TEXT NOT NULL,"
     " body TEXT NOT NULL, body_hash TEXT NOT NULL, UNIQUE(hash, toolchain));"
     "CREATE INDEX entries_by_kind ON entries(rule, precision, arch)"},
    {"0002_trials",
     "CREATE TABLE trials(id INTEGER PRIMARY KEY, key_hash TEXT NOT NULL, body TEXT NOT NULL, "
     "body_hash TEXT NOT NULL,"
     " UNIQUE(key_hash, body_hash))"},
    {"0003_journal",
     "CREATE TABLE journal(id INTEGER PRIMARY KEY CHECK(id = 1), bytes INTEGER NOT NULL)"},
}};

std::string text_of(const Json& j) {
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<bool> apply_entry(store::Database& db, const Json& record) {
  TESSERA_TRY(incoming, entry_from_json(record.at("entry")));
  const std::string hash = incoming.key.hash();
  TESSERA_TRY(select, db.prepare("SELECT body FROM entries WHERE hash=?1 AND toolchain=?2"));
  select.bind(1, hash).bind(2, incoming.toolchain);
  TESSERA_TRY(held_here, select.step());
  Entry result = incoming;
  if (held_here) {
    const std::string held_text = select.text(0);
    const Json held_json = Json::parse(held_text, nullptr, false);
    if (auto held = entry_from_json(held_json); held) result = merge(*held, incoming);
    if (text_of(to_json(result)) == held_text) return false;
  }
  const std::string body = text_of(to_json(result));
  TESSERA_TRY(
      put,
      db.prepare(
          "INSERT INTO entries(hash, toolchain, rule, arch, precision, device, status, created,"
          " body, body_hash) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"
          " ON CONFLICT(hash, toolchain) DO UPDATE SET rule=?3, arch=?4, precision=?5, device=?6,"
          " status=?7, created=?8, body=?9, body_hash=?10"));
  put.bind(1, hash).bind(2, result.toolchain).bind(3, result.rule).bind(4, result.arch);
  put.bind(5, result.key.precision)
      .bind(6, result.key.device)
      .bind(7, result.status)
      .bind(8, result.created);
  TESSERA_CHECK(put.bind(9, body).bind(10, content_hash(body)).run());
  return true;
}

Result<bool> apply_trial(store::Database& db, const Json& record) {
  const std::string body = text_of(record.at("trial"));
  TESSERA_TRY(
      put, db.prepare("INSERT OR IGNORE INTO trials(key_hash, body, body_hash) VALUES(?1,?2,?3)"));
  put.bind(1, record.at("key").get<std::string>()).bind(2, body).bind(3, content_hash(body));
  TESSERA_CHECK(put.run());
  return db.changes() > 0;
}

// Reads a table forwards until the end or a fault, and from a fault on backwards.
void scan(store::Database& db, const std::string& select,
          const std::function<void(store::Statement&)>& take, Rows& rows) {
  std::set<int64_t> seen;
  for (const char* direction : {" ORDER BY id", " ORDER BY id DESC"}) {
    auto statement = db.prepare(select + direction);
    if (!statement) {
      rows.fault = statement.error().found;
      return;
    }
    while (true) {
      const auto row = statement->step();
      if (!row) {
        rows.fault = row.error().found;
        break;
      }
      if (!*row) return;
      if (!seen.insert(statement->integer(0)).second) return;
      take(*statement);
    }
  }
}

}  // namespace

std::span<const store::Migration> migrations() {
  return history;
}

std::filesystem::path journal_of(const std::filesystem::path& file) {
  return file.string() + ".copy.jsonl";
}

Json entry_record(const Entry& e) {
  return {{"what", "entry"}, {"entry", to_json(e)}};
}

Json trial_record(const std::string& key_hash, const std::string& label, const Json& trial) {
  Json body = trial.is_object() ? trial : Json{{"value", trial}};
  body["label"] = label;
  return {{"what", "trial"}, {"key", key_hash}, {"trial", body}};
}

Json forget_record(const std::string& key_hash) {
  return {{"what", "forget"}, {"key", key_hash}};
}

Result<bool> apply(store::Database& db, const Json& record) {
  const std::string what = record.value("what", "");
  if (what == "entry") return apply_entry(db, record);
  if (what == "trial") return apply_trial(db, record);
  if (what == "forget") {
    TESSERA_TRY(statement, db.prepare("DELETE FROM trials WHERE key_hash=?1"));
    TESSERA_CHECK(statement.bind(1, record.at("key").get<std::string>()).run());
    return db.changes() > 0;
  }
  return error(
      fail(bad_record, "the registry's copy has a record `{}`", what).help("update tessera"));
}

Rows readable_rows(store::Database& db) {
  Rows rows;
  const auto take = [&](store::Statement& s, const auto& make) {
    const std::string body = s.text(1);
    Json parsed = content_hash(body) == s.text(2) ? Json::parse(body, nullptr, false)
                                                  : Json(Json::value_t::discarded);
    if (parsed.is_discarded()) {
      ++rows.damaged;
    } else {
      rows.records.push_back(make(std::move(parsed)));
    }
  };
  scan(
      db, "SELECT id, body, body_hash, hash FROM entries",
      [&](store::Statement& s) {
        take(s, [&](Json body) { return Json{{"what", "entry"}, {"entry", std::move(body)}}; });
      },
      rows);
  scan(
      db, "SELECT id, body, body_hash, key_hash FROM trials",
      [&](store::Statement& s) {
        take(s, [&](Json body) {
          return Json{{"what", "trial"}, {"key", s.text(3)}, {"trial", std::move(body)}};
        });
      },
      rows);
  return rows;
}

Result<int64_t> journal_size(store::Database& db) {
  TESSERA_TRY(statement, db.prepare("SELECT bytes FROM journal"));
  TESSERA_TRY(row, statement.step());
  return row ? statement.integer(0) : int64_t{0};
}

Status set_journal_size(store::Database& db, int64_t bytes) {
  TESSERA_TRY(
      statement,
      db.prepare("INSERT INTO journal VALUES(1,?1) ON CONFLICT(id) DO UPDATE SET bytes=?1"));
  return statement.bind(1, bytes).run();
}

}  // namespace tessera::registry
