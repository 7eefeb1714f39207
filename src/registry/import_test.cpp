#include "registry/import.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace tessera::registry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Key key(const std::string& name = "gemm 64") {
  return {name, "bf16", "H200", measuring_policy()};
}

kernel::Winner winner(double ms) {
  kernel::Winner w;
  w.candidate = {.realizer = "tile_gemm",
                 .config = {{"tile", {64, 64}}, {"schedule", "cooperative"}}};
  w.candidate.source =
      toolchain::Source{.name = "k", .text = "PLANTED", .flags = {"-fplugin=evil.so"}};
  w.candidate.launches = {{.knobs = {{"raster", "m"}}, .ints = {1, 2}}};
  w.evidence = {.ms = ms, .ci95 = 0.01, .resources = {{"registers", 9}}};
  w.binary = "abc";
  return w;
}

Entry accepted(double ms, const std::string& name = "gemm 64") {
  Entry e{.key = key(name), .rule = "gemm", .arch = "sm_90a"};
  e.winners = {winner(ms)};
  e.eager_ms = 2.0;
  e.toolchain = "nvcc13";
  e.created = "2026-01-01T00:00:00Z";
  e.shape = {{"m", 64}, {"a", {{"shape", {64, 64}}, {"strides", {64, 1}}}}};
  e.search = thoroughness_of({.seconds = 9, .because = "space exhausted"});
  e.libraries = {{"torch", "2.11.0"}};
  e.negative = {{{"label", "c"}, {"outcome", "build_failed"}, {"reason", "line 1\nline 2\xff"}}};
  return e;
}

/// As version 1 exported, sources and all.
Json version1(const Entry& e) {
  return {{"schema", "tessera.registry/1"}, {"entries", {to_json(e)}}};
}

struct Body : rules::PatternBody {
  [[nodiscard]] Json to_json() const override { return {{"m", 64}}; }
};

class ImportTest : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::unique_ptr<Registry> registry = open("registry.sqlite");
  std::unique_ptr<Registry> open(const std::string& name) {
    auto r = Registry::open(folder.path() / name);
    EXPECT_TRUE(r.has_value()) << to_text(r.error());
    return std::move(*r);
  }
  Imported take(const Json& file) {
    auto done = registry->import_entries(file, "theirs.json");
    EXPECT_TRUE(done.has_value()) << to_text(done.error());
    return done ? *done : Imported{};
  }
  Lookup look() {
    rules::Pattern p;
    p.rule = "gemm";
    p.body = std::make_shared<Body>();
    return *registry->lookup(key(), p, {.toolchain = "nvcc13"});
  }
};

TEST_F(ImportTest, NothingThatCouldRunIsTaken) {
  const Imported done = take(version1(accepted(0.5)));
  EXPECT_EQ(done.read, 1);
  EXPECT_EQ(done.taken, 1);
  EXPECT_EQ(done.sources, 1);
  const Entry e = registry->list("")->at(0);
  const std::string all = to_json(e).dump();
  for (const char* planted : {"PLANTED", "evil.so", "source", "ints\":[1", "abc", "registers"})
    EXPECT_THAT(all, Not(HasSubstr(planted)));
  EXPECT_TRUE(e.provenance.imported);
  EXPECT_EQ(e.provenance.file, "theirs.json");
  EXPECT_NE(e.provenance.when, "");
  const kernel::Winner& first = e.winners.front();
  EXPECT_EQ(first.candidate.config["schedule"], "cooperative");
  EXPECT_EQ(first.launched().knobs["raster"], "m");
  EXPECT_EQ(first.evidence.ms, 0.5);
  EXPECT_FALSE(first.candidate.can_run());
}

TEST_F(ImportTest, ItIsNoVerdictUntilItHasBeenTried) {
  take(version1(accepted(0.5)));
  const Lookup found = look();
  EXPECT_EQ(found.reuse, rules::Reuse::adapt);
  ASSERT_TRUE(found.imported);
  EXPECT_FALSE(found.own);
  EXPECT_THAT(found.detail, HasSubstr("imported from theirs.json"));
  Entry own = accepted(0.6);  // what came of it here, slower than promised
  own.provenance = {.imported = false, .file = "theirs.json", .when = "now"};
  ASSERT_TRUE(registry->store(own));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  EXPECT_FALSE(look().imported);
  EXPECT_EQ(registry->list("")->size(), 1u);
}

TEST_F(ImportTest, AnOwnEntryIsNeverOverwritten) {
  ASSERT_TRUE(registry->store(accepted(0.5)));
  EXPECT_EQ(take(version1(accepted(0.7))).taken, 0);
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
  EXPECT_EQ(take(version1(accepted(1e-9))).taken, 1);
  const Lookup found = look();
  EXPECT_EQ(found.reuse, rules::Reuse::adapt);
  EXPECT_EQ(found.own->winners.front().evidence.ms, 0.5);
  EXPECT_EQ(registry->show(key().hash())->provenance.imported, false);
  ASSERT_TRUE(registry->forget_imported(key(), "nvcc13"));
  EXPECT_EQ(look().reuse, rules::Reuse::reuse);
}

TEST_F(ImportTest, ThatNothingPassedElsewhereIsLeftOut) {
  Entry e = accepted(1);
  e.winners.clear();
  const Imported done = take(version1(e));
  EXPECT_EQ(done.failed, 1);
  EXPECT_EQ(done.taken, 0);
  EXPECT_EQ(look().reuse, rules::Reuse::fresh);
}

TEST_F(ImportTest, ExportTravelsWithoutSources) {
  Entry own = accepted(0.5);
  ASSERT_TRUE(registry->store(own));
  const Json exported = *registry->export_entries("");
  EXPECT_EQ(exported["schema"], "tessera.registry/2");
  EXPECT_THAT(exported.dump(-1, ' ', false, Json::error_handler_t::replace),
              Not(HasSubstr("PLANTED")));
  auto theirs = std::move(registry);
  registry = open("other.sqlite");
  const Json travelled = parse_json(exported.dump(-1, ' ', false, Json::error_handler_t::replace));
  EXPECT_EQ(take(travelled).taken, 1);
  EXPECT_EQ(take(travelled).taken, 0);
  const Entry e = registry->list("")->at(0);
  EXPECT_EQ(e.key.hash(), own.key.hash());
  EXPECT_EQ(to_json(e.search), to_json(own.search));
  EXPECT_EQ(e.libraries, own.libraries);
  EXPECT_EQ(e.shape, extents(own.shape));
  EXPECT_EQ(e.negative.size(), 1u);
  // What was never tried here is not passed on.
  EXPECT_EQ(registry->export_entries("")->at("entries").size(), 0u);
  EXPECT_EQ(*registry->prune("imported"), 1);
}

struct Malicious {
  const char* name;
  std::function<void(Json& entry)> change;
  const char* found;
};

Json& config_of(Json& e) {
  return e["candidate"]["winners"][0]["candidate"]["config"];
}

std::vector<Malicious> malicious() {
  return {
      {"quote", [](Json& e) { config_of(e)["tile"] = "'; touch /tmp/x; '"; }, "`config`"},
      {"quoted key", [](Json& e) { config_of(e)["$(id)"] = 1; }, "`config`"},
      {"newline", [](Json& e) { config_of(e)["tile"] = "a\n#include <x>"; }, "`config`"},
      {"deep", [](Json& e) { config_of(e)["a"] = parse_json("[[[[[[1]]]]]]"); }, "nested"},
      {"long", [](Json& e) { config_of(e)["a"] = std::vector<int>(9000, 7); }, "longer"},
      {"realizer",
       [](Json& e) { e["candidate"]["winners"][0]["candidate"]["realizer"] = "../../evil"; },
       "`realizer`"},
      {"kind", [](Json& e) { e["candidate"]["winners"][0]["candidate"]["kind"] = "shell"; },
       "`kind`"},
      {"time", [](Json& e) { e["candidate"]["winners"][0]["evidence"]["ms"] = 1e300; }, "`ms`"},
      {"negative time", [](Json& e) { e["candidate"]["winners"][0]["evidence"]["ms"] = -1; },
       "`ms`"},
      {"time in words", [](Json& e) { e["candidate"]["winners"][0]["evidence"]["ms"] = "fast"; },
       "`ms`"},
      {"no time", [](Json& e) { e["candidate"]["winners"][0].erase("evidence"); }, "`ms`"},
      {"winners", [](Json& e) { e["candidate"]["winners"] = "all"; }, "`winners`"},
      {"no winners", [](Json& e) { e["candidate"] = Json::object(); }, "`winners`"},
      {"many winners",
       [](Json& e) { e["candidate"]["winners"] = Json::array_t(99, e["candidate"]["winners"][0]); },
       "`winners`"},
      {"signature", [](Json& e) { e["key"]["signature"] = 5; }, "`signature`"},
      {"escape", [](Json& e) { e["key"]["signature"] = "gemm \x1b[2J"; }, "control"},
      {"key", [](Json& e) { e["key"] = Json::array(); }, "`key`"},
      {"no key", [](Json& e) { e.erase("key"); }, "`signature`"},
      {"status", [](Json& e) { e["status"] = "trusted"; }, "`status`"},
      {"rule", [](Json& e) { e["rule"] = Json::object(); }, "`rule`"},
      {"no arch", [](Json& e) { e.erase("arch"); }, "`arch`"},
      {"toolchain", [](Json& e) { e["toolchain"] = std::string(1 << 20, 'x'); }, "`toolchain`"},
      {"huge extents", [](Json& e) { e["shape"] = {{"m", int64_t{1} << 62}}; }, "`shape`"},
      {"negative extents", [](Json& e) { e["shape"] = {{"m", -1}}; }, "`shape`"},
      {"libraries", [](Json& e) { e["libraries"] = {{"torch", {1, 2}}}; }, "`libraries`"},
      {"search", [](Json& e) { e["search"] = 7; }, "`search`"},
      {"negative", [](Json& e) { e["negative"] = {{{"label", 7}}}; }, "`label`"},
  };
}

TEST_F(ImportTest, AFileThatTesseraDidNotWriteIsRefusedWhole) {
  for (const Malicious& m : malicious()) {
    Json file = version1(accepted(0.5));
    file["entries"].push_back(file["entries"][0]);
    m.change(file["entries"][1]);
    const auto refused = registry->import_entries(file, "theirs.json");
    ASSERT_FALSE(refused) << m.name;
    EXPECT_EQ(refused.error().code, "TS0639") << m.name;
    EXPECT_THAT(refused.error().found, HasSubstr(m.found)) << m.name;
    EXPECT_THAT(refused.error().message, HasSubstr("entry 2")) << m.name;
    EXPECT_EQ(registry->list("")->size(), 0u) << m.name;
  }
}

TEST_F(ImportTest, WhatIsNoExportIsRefused) {
  for (const char* text : {"[]", "7", "null", R"({"schema":5,"entries":[]})", R"({"entries":[]})",
                           R"({"schema":"tessera.registry/9","entries":[]})",
                           R"({"schema":"tessera.registry/2","entries":{}})"}) {
    const auto refused = registry->import_entries(parse_json(text), "f");
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, "TS0637") << text;
  }
  for (const char* text : {"3", "[]", "null", "\"x\""}) {
    const Json file = {{"schema", "tessera.registry/2"}, {"entries", {parse_json(text)}}};
    EXPECT_EQ(registry->import_entries(file, "f").error().code, "TS0639") << text;
  }
}

}  // namespace
}  // namespace tessera::registry
