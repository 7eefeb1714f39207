#include "registry/tables.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "base/hash.h"
#include "registry/rank.h"
#include "registry/subgraph_table.h"
#include "registry/wrong.h"

namespace tessera::registry {
namespace {

inline constexpr Code bad_record{"TS0633", "registry.bad_record"};

constexpr std::array<store::Migration, 5> history{{
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
    // An imported entry stands beside the own one until it has been tried; trials are kept, so they
    // must be of one toolchain.
    {"0004_origin_and_kept_trials",
     "CREATE TABLE entries_by_origin(id INTEGER PRIMARY KEY, hash TEXT NOT NULL, toolchain TEXT "
     "NOT NULL, origin TEXT NOT NULL, rule TEXT NOT NULL, arch TEXT NOT NULL, precision TEXT NOT "
     "NULL, device TEXT NOT NULL, status TEXT NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL, "
     "body_hash TEXT NOT NULL, UNIQUE(hash, toolchain, origin));"
     "INSERT INTO entries_by_origin SELECT id, hash, toolchain, 'own', rule, arch, precision, "
     "device, status, created, body, body_hash FROM entries;"
     "DROP TABLE entries;"
     "ALTER TABLE entries_by_origin RENAME TO entries;"
     "CREATE INDEX entries_by_kind ON entries(rule, precision, arch);"
     "ALTER TABLE trials ADD COLUMN toolchain TEXT NOT NULL DEFAULT '';"
     "CREATE INDEX trials_by_key ON trials(key_hash, toolchain)"},
    {"0005_subgraphs",
     "CREATE TABLE subgraphs(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, body TEXT NOT "
     "NULL, "
     "body_hash TEXT NOT NULL)"},
}};

std::string text_of(const Json& j) {
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string origin_of(const Entry& e) {
  return e.provenance.imported ? "imported" : "own";
}

Result<std::optional<Entry>> held(store::Database& db, const std::string& hash,
                                  const std::string& toolchain, const std::string& origin) {
  TESSERA_TRY(select,
              db.prepare("SELECT body FROM entries WHERE hash=?1 AND toolchain=?2 AND origin=?3"));
  select.bind(1, hash).bind(2, toolchain).bind(3, origin);
  TESSERA_TRY(there, select.step());
  if (!there) return std::optional<Entry>();
  auto e = entry_from_json(try_parse_json(select.text(0)));
  return e ? std::optional<Entry>(std::move(*e)) : std::nullopt;
}

Status put_entry(store::Database& db, const Entry& e) {
  const std::string body = text_of(to_json(e));
  TESSERA_TRY(
      put,
      db.prepare(
          "INSERT INTO entries(hash, toolchain, origin, rule, arch, precision, device, status, "
          "created, body, body_hash) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"
          " ON CONFLICT(hash, toolchain, origin) DO UPDATE SET rule=?4, arch=?5, precision=?6, "
          "device=?7, status=?8, created=?9, body=?10, body_hash=?11"));
  put.bind(1, e.key.hash()).bind(2, e.toolchain).bind(3, origin_of(e)).bind(4, e.rule);
  put.bind(5, e.arch).bind(6, e.key.precision).bind(7, e.key.device);
  put.bind(8, std::string(e.status()));
  return put.bind(9, e.created).bind(10, body).bind(11, content_hash(body)).run();
}

Result<bool> drop_imported(store::Database& db, const std::string& hash,
                           const std::string& toolchain) {
  TESSERA_TRY(remove, db.prepare("DELETE FROM entries WHERE hash=?1 AND toolchain=?2 AND "
                                 "origin='imported'"));
  TESSERA_CHECK(remove.bind(1, hash).bind(2, toolchain).run());
  return db.changes() > 0;
}

Result<bool> apply_entry(store::Database& db, const Json& record) {
  TESSERA_TRY(incoming, entry_from_json(record.at("entry")));
  const std::string hash = incoming.key.hash();
  if (incoming.provenance.imported) {
    // Another machine's word is worth a trial only where it promises more than what was seen here.
    TESSERA_TRY(own, held(db, hash, incoming.toolchain, "own"));
    if (own && !better(incoming, *own)) return false;
  }
  TESSERA_TRY(before, held(db, hash, incoming.toolchain, origin_of(incoming)));
  const Entry result = before ? merge(*before, incoming) : incoming;
  bool tried = false;
  // What was imported has been tried when an own entry is made of it.
  if (!incoming.provenance.imported && !incoming.provenance.file.empty()) {
    TESSERA_TRY(dropped, drop_imported(db, hash, incoming.toolchain));
    tried = dropped;
  }
  if (before && text_of(to_json(result)) == text_of(to_json(*before))) return tried;
  TESSERA_CHECK(put_entry(db, result));
  return true;
}

Result<bool> apply_trial(store::Database& db, const Json& record) {
  const std::string body = text_of(record.at("trial"));
  const std::string key = record.at("key").get<std::string>();
  const std::string toolchain = record.at("trial").value("toolchain", "");
  TESSERA_TRY(put, db.prepare("INSERT OR IGNORE INTO trials(key_hash, body, body_hash, toolchain) "
                              "VALUES(?1,?2,?3,?4)"));
  put.bind(1, key).bind(2, body).bind(3, content_hash(body)).bind(4, toolchain);
  TESSERA_CHECK(put.run());
  const bool changed = db.changes() > 0;
  // A search that never comes to its end must not grow without end.
  TESSERA_TRY(cut, db.prepare("DELETE FROM trials WHERE key_hash=?1 AND toolchain=?2 AND id <= "
                              "(SELECT id FROM trials WHERE key_hash=?1 AND toolchain=?2 "
                              "ORDER BY id DESC LIMIT 1 OFFSET ?3)"));
  TESSERA_CHECK(cut.bind(1, key).bind(2, toolchain).bind(3, int64_t{2} * most_trials).run());
  return changed;
}

struct Row {
  int64_t id = 0;
  Json trial;
};

// Those of the toolchain, and those of before it was written down.
Result<std::vector<Row>> trial_rows(store::Database& db, const std::string& key,
                                    const std::string& toolchain) {
  TESSERA_TRY(select, db.prepare("SELECT id, body FROM trials WHERE key_hash=?1 AND (toolchain=?2 "
                                 "OR toolchain='') ORDER BY id"));
  select.bind(1, key).bind(2, toolchain);
  std::vector<Row> out;
  while (true) {
    TESSERA_TRY(row, select.step());
    if (!row) return out;
    out.push_back({select.integer(0), try_parse_json(select.text(1))});
  }
}

Status remove_trials(store::Database& db, const std::vector<int64_t>& ids) {
  TESSERA_TRY(remove, db.prepare("DELETE FROM trials WHERE id=?1"));
  for (const int64_t id : ids) TESSERA_CHECK(remove.bind(1, id).run());
  return {};
}

// The point of the space that a trial is of.
std::string point_of(const Json& trial) {
  if (!trial.is_object() || !trial.contains("realizer")) return text_of(trial);
  if (is_wrong_trial(trial))
    return text_of({"wrong", trial.at("realizer"), trial.value("config", Json())});
  return text_of(
      {trial.at("realizer"), trial.value("config", Json()), trial.value("knobs", Json::object())});
}

Result<bool> apply_settle(store::Database& db, const Json& record) {
  const std::string key = record.at("key").get<std::string>();
  const std::string toolchain = record.at("toolchain").get<std::string>();
  TESSERA_TRY(rows, trial_rows(db, key, toolchain));
  std::set<std::string> points;
  std::vector<int64_t> gone;
  for (const Row& row : std::ranges::reverse_view(rows)) {
    const bool room = points.size() < most_trials || is_wrong_trial(row.trial);
    if (!room || !points.insert(point_of(row.trial)).second) gone.push_back(row.id);
  }
  TESSERA_CHECK(remove_trials(db, gone));
  TESSERA_TRY(adopt, db.prepare("UPDATE trials SET toolchain=?2 WHERE key_hash=?1 AND "
                                "toolchain=''"));
  TESSERA_CHECK(adopt.bind(1, key).bind(2, toolchain).run());
  return !gone.empty() || db.changes() > 0;
}

Result<bool> apply_wrong(store::Database& db, const Json& record) {
  const std::string key = record.at("key").get<std::string>();
  const std::string toolchain = record.at("toolchain").get<std::string>();
  const Json& mark = record.at("trial");
  if (!is_wrong_trial(mark)) return false;
  bool changed = false;
  TESSERA_TRY(own, held(db, key, toolchain, "own"));
  if (own && std::find(own->negative.begin(), own->negative.end(), mark) == own->negative.end()) {
    own->negative.push_back(mark);
    drop_wrong(*own);
    TESSERA_CHECK(put_entry(db, *own));
    changed = true;
  }
  TESSERA_TRY(rows, trial_rows(db, key, toolchain));
  std::vector<int64_t> gone;
  for (const Row& row : rows) {
    const bool same = row.trial.is_object() && !is_wrong_trial(row.trial) &&
                      row.trial.value("realizer", Json("")) == mark.at("realizer") &&
                      row.trial.value("config", Json()) == mark.at("config");
    if (same) gone.push_back(row.id);
  }
  TESSERA_CHECK(remove_trials(db, gone));
  Json trial = mark;
  trial["toolchain"] = toolchain;
  TESSERA_TRY(noted, apply_trial(db, {{"key", key}, {"trial", trial}}));
  return changed || noted || !gone.empty();
}

// By its form without names: who proposes it again, by whatever name, changes nothing.
Result<bool> apply_subgraph(store::Database& db, const Json& record) {
  const std::string body = text_of(record.at("subgraph"));
  TESSERA_TRY(
      put, db.prepare("INSERT OR IGNORE INTO subgraphs(hash, body, body_hash) VALUES(?1,?2,?3)"));
  put.bind(1, content_hash(text_of(record.at("subgraph").at("subgraph")))).bind(2, body);
  TESSERA_CHECK(put.bind(3, content_hash(body)).run());
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

Json trial_record(const std::string& key_hash, const std::string& toolchain,
                  const std::string& label, const Json& trial) {
  Json body = trial.is_object() ? trial : Json{{"value", trial}};
  body["label"] = label;
  // In the body, so that the same failure under two toolchains is two rows.
  body["toolchain"] = toolchain;
  return {{"what", "trial"}, {"key", key_hash}, {"trial", body}};
}

Json settle_record(const std::string& key_hash, const std::string& toolchain) {
  return {{"what", "settle"}, {"key", key_hash}, {"toolchain", toolchain}};
}

Json tried_record(const std::string& key_hash, const std::string& toolchain) {
  return {{"what", "tried"}, {"key", key_hash}, {"toolchain", toolchain}};
}

Json wrong_record(const std::string& key_hash, const std::string& toolchain, const Wrong& wrong) {
  return {{"what", "wrong"},
          {"key", key_hash},
          {"toolchain", toolchain},
          {"trial", wrong_trial(wrong)}};
}

Json subgraph_record(const Json& proposed) {
  return {{"what", "subgraph"}, {"subgraph", proposed}};
}

Result<std::vector<Json>> subgraphs_of(store::Database& db) {
  TESSERA_TRY(select, db.prepare("SELECT body FROM subgraphs ORDER BY id"));
  std::vector<Json> out;
  while (true) {
    TESSERA_TRY(row, select.step());
    if (!row) return out;
    Json body = try_parse_json(select.text(0));
    if (body.is_object() && body.contains("subgraph")) out.push_back(std::move(body));
  }
}

Result<int> delete_subgraphs(store::Database& db, const std::vector<std::string>& names) {
  TESSERA_TRY(select, db.prepare("SELECT id, body FROM subgraphs"));
  std::vector<int64_t> gone;
  while (true) {
    TESSERA_TRY(row, select.step());
    if (!row) break;
    const Json body = try_parse_json(select.text(1));
    if (body.is_object() && std::ranges::find(names, body.value("name", "")) != names.end())
      gone.push_back(select.integer(0));
  }
  TESSERA_TRY(remove, db.prepare("DELETE FROM subgraphs WHERE id=?1"));
  for (const int64_t id : gone) TESSERA_CHECK(remove.bind(1, id).run());
  return static_cast<int>(gone.size());
}

Result<std::vector<Json>> trials_of(store::Database& db, const std::string& key_hash,
                                    const std::string& toolchain) {
  TESSERA_TRY(rows, trial_rows(db, key_hash, toolchain));
  std::vector<Json> out;
  for (Row& row : rows) out.push_back(std::move(row.trial));
  return out;
}

Result<bool> apply(store::Database& db, const Json& record) {
  const std::string what = record.value("what", "");
  if (what == "entry") return apply_entry(db, record);
  if (what == "trial") return apply_trial(db, record);
  if (what == "settle") return apply_settle(db, record);
  if (what == "wrong") return apply_wrong(db, record);
  if (what == "subgraph") return apply_subgraph(db, record);
  if (what == "tried") return drop_imported(db, record.at("key"), record.at("toolchain"));
  if (what == "forget") {  // written by versions that kept no trials of a search that had ended
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
    Json parsed =
        content_hash(body) == s.text(2) ? try_parse_json(body) : Json(Json::value_t::discarded);
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
  scan(
      db, "SELECT id, body, body_hash, hash FROM subgraphs",
      [&](store::Statement& s) {
        take(s, [&](const Json& body) { return subgraph_record(body); });
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
