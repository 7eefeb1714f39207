#include <array>
#include <fstream>
#include <gtest/gtest.h>

#include "base/files.h"
#include "store/database.h"
#include "store/journal.h"
#include "store/lock.h"

namespace tessera::store {
namespace {

using namespace std::chrono_literals;

int64_t count(Database& db) {
  auto s = db.prepare("SELECT count(*) FROM t");
  EXPECT_TRUE(s && *s->step());
  return s->integer(0);
}

TEST(Database, BindsAndReadsBack) {
  TemporaryFolder folder;
  auto db = Database::open(folder.path() / "deep" / "x.db");
  ASSERT_TRUE(db) << to_text(db.error());
  ASSERT_TRUE(db->execute("CREATE TABLE t(a TEXT, b INTEGER, c REAL)"));
  const std::string odd("nul\0 and 'quote'", 16);
  auto put = db->prepare("INSERT INTO t VALUES(?1,?2,?3)");
  ASSERT_TRUE(put->bind(1, odd).bind(2, int64_t{1} << 40).bind(3, 0.5).run());
  ASSERT_TRUE(put->bind(1, "again").run());  // reset and run again
  auto get = db->prepare("SELECT a, b, c FROM t");
  ASSERT_TRUE(*get->step());
  EXPECT_EQ(get->text(0), odd);
  EXPECT_EQ(get->integer(1), int64_t{1} << 40);
  EXPECT_EQ(get->real(2), 0.5);
  EXPECT_EQ(count(*db), 2);
  EXPECT_TRUE(db->check());
}

TEST(Database, AFailedTransactionLeavesNothing) {
  TemporaryFolder folder;
  auto db = Database::open(folder.path() / "x.db");
  ASSERT_TRUE(db->execute("CREATE TABLE t(a UNIQUE)"));
  const Status failed = db->transaction([&]() -> Status {
    TESSERA_CHECK(db->execute("INSERT INTO t VALUES(1)"));
    return db->execute("INSERT INTO t VALUES(1)");
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, "TS0960");
  EXPECT_EQ(count(*db), 0);
  EXPECT_TRUE(db->transaction([&] { return db->execute("INSERT INTO t VALUES(1)"); }));
  EXPECT_EQ(count(*db), 1);
}

TEST(Database, ALockedFileIsBusyAfterTheTimeout) {
  TemporaryFolder folder;
  auto first = Database::open(folder.path() / "x.db");
  auto second = Database::open(folder.path() / "x.db", {.busy_timeout = 20ms});
  ASSERT_TRUE(first->execute("CREATE TABLE t(a); BEGIN IMMEDIATE"));
  const Status refused = second->execute("INSERT INTO t VALUES(1)");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0624");
  ASSERT_TRUE(first->execute("COMMIT"));
  EXPECT_TRUE(second->execute("INSERT INTO t VALUES(1)"));
}

TEST(Database, RubbishIsCorrupt) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "x.db") << std::string(8192, 'z');
  const auto refused = Database::open(folder.path() / "x.db");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0625");
  EXPECT_FALSE(refused.error().helps.empty());
}

TEST(Database, AFolderInThePlaceOfTheFileIsAnError) {
  TemporaryFolder folder;
  const auto refused = Database::open(folder.path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0621");
}

constexpr std::array<Migration, 2> two{
    {{"0001_t", "CREATE TABLE t(a)"}, {"0002_b", "ALTER TABLE t ADD COLUMN b"}}};

TEST(Migrate, AppliesWhatIsMissingOnce) {
  TemporaryFolder folder;
  {
    auto db = Database::open(folder.path() / "x.db");
    ASSERT_TRUE(migrate(*db, std::span(two).first(1)));
    ASSERT_TRUE(db->execute("INSERT INTO t VALUES(1)"));
  }
  auto db = Database::open(folder.path() / "x.db");
  ASSERT_TRUE(migrate(*db, two));
  ASSERT_TRUE(migrate(*db, two));
  EXPECT_TRUE(db->execute("INSERT INTO t(a, b) VALUES(1, 2)"));
  EXPECT_EQ(count(*db), 2);
  const Status older = migrate(*db, std::span(two).first(1));
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, "TS0626");
}

TEST(Migrate, AFailedStepIsNotNoted) {
  TemporaryFolder folder;
  auto db = Database::open(folder.path() / "x.db");
  const std::array<Migration, 1> bad{{{"0001_t", "CREATE TABLE t(a); CREATE TABLE t(a)"}}};
  EXPECT_FALSE(migrate(*db, bad));
  EXPECT_TRUE(migrate(*db, std::span(two).first(1)));
}

Json numbered(int n) {
  return {{"n", n}};
}

TEST(Journal, SkipsTornAndFlippedLines) {
  TemporaryFolder folder;
  const auto file = folder.path() / "j.jsonl";
  EXPECT_EQ(read_records(file)->records.size(), 0u);
  auto size = append_records(file, std::vector<Json>(1, numbered(1)));
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, size_of_records(file));
  std::ofstream(file, std::ios::app) << "0123 torn";
  const int64_t middle = size_of_records(file);
  const int64_t longer = *append_records(file, std::vector<Json>({numbered(2), numbered(3)}));
  EXPECT_EQ(longer, size_of_records(file));
  auto all = read_records(file);
  ASSERT_EQ(all->records.size(), 3u);
  EXPECT_EQ(all->damaged, 1);
  EXPECT_EQ(all->records[2]["n"], 3);
  EXPECT_EQ(read_records(file, middle)->records.size(), 2u);
  std::fstream f(file, std::ios::in | std::ios::out);
  f.seekp(36);
  f.put('X');
  f.close();
  EXPECT_EQ(read_records(file)->records.size(), 2u);
  const int64_t rewritten = *rewrite_records(file, std::vector<Json>(1, numbered(9)));
  EXPECT_EQ(rewritten, size_of_records(file));
  EXPECT_EQ(read_records(file)->records.size(), 1u);
}

TEST(Journal, AFolderInThePlaceOfTheFileIsAnError) {
  TemporaryFolder folder;
  const auto refused = append_records(folder.path(), std::vector<Json>(1, numbered(1)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0627");
}

TEST(FileLock, ExclusiveWaitsForTheOthers) {
  TemporaryFolder folder;
  auto a = FileLock::shared(folder.path() / "l");
  {
    auto b = FileLock::shared(folder.path() / "l");
    ASSERT_TRUE(a && b);
    const Status refused = a->exclusive(30ms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "TS0624");
  }
  EXPECT_TRUE(a->exclusive(30ms));
  EXPECT_TRUE(a->share());
}

}  // namespace
}  // namespace tessera::store
