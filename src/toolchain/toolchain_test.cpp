#include "toolchain/toolchain.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

#include "base/files.h"
#include "toolchain/flags.h"
#include "toolchain/machine.h"
#include "toolchain/ptxas.h"

namespace tessera::toolchain {
namespace {
namespace fs = std::filesystem;
using std::chrono::seconds;

const char* const simple = R"(
#include "tessera/kernel.h"
extern "C" int tessera_run(const tessera_launch*, void*, void*) { return 0; }
)";

Toolchain host_tools() {
  Toolchain t = locate("");
  t.own_include = fs::path(TESSERA_SOURCE_DIR) / "include";
  return t;
}

Source host_source(std::string text) {
  return {.name = "k",
          .language = Language::cxx,
          .text = std::move(text),
          .arch = "host",
          .flags = {},
          .links = {}};
}

TEST(Build, SecondTimeComesFromTheCache) {
  const TemporaryFolder cache;
  const Toolchain t = host_tools();
  const auto first = build(t, host_source(simple), cache.path(), seconds(60));
  ASSERT_TRUE(first) << to_text(first.error());
  EXPECT_FALSE(first->cached);
  EXPECT_TRUE(fs::exists(first->library));
  const auto second = build(t, host_source(simple), cache.path(), seconds(60));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->cached);
  EXPECT_EQ(first->hash, second->hash);
  EXPECT_DOUBLE_EQ(first->seconds, second->seconds);
  EXPECT_TRUE(find_built(t, host_source(simple), cache.path()));
  EXPECT_FALSE(find_built(t, host_source(std::string(simple) + "//"), cache.path()));
}

TEST(Build, FailureIsRememberedWithItsLog) {
  const TemporaryFolder cache;
  const Toolchain t = host_tools();
  const auto first = build(t, host_source("int f( { this is wrong; }"), cache.path(), seconds(60));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, "TS0303");
  ASSERT_FALSE(first.error().notes.empty());
  EXPECT_NE(first.error().notes.front().find("error"), std::string::npos);
  const auto second = build(t, host_source("int f( { this is wrong; }"), cache.path(), seconds(60));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("remembered"), std::string::npos);
}

TEST(Build, TimeLimitIsNotRemembered) {
  const TemporaryFolder cache;
  const auto r = build(host_tools(), host_source(simple), cache.path(), seconds(0));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0304");
  EXPECT_TRUE(build(host_tools(), host_source(simple), cache.path(), seconds(60)));
}

TEST(Build, MissingCompilerSaysWhatToDo) {
  const TemporaryFolder cache;
  Toolchain t = host_tools();
  t.nvcc.clear();
  Source s = host_source("__global__ void k() {}");
  s.language = Language::cuda;
  const auto r = build(t, s, cache.path(), seconds(60));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0301");
  EXPECT_FALSE(r.error().helps.empty());
}

TEST(Build, UnwritableCacheIsADiagnostic) {
  const auto r = build(host_tools(), host_source(simple), "/proc/no-such-place", seconds(60));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0305");
}

TEST(Build, ConcurrentBuildersAgree) {
  const TemporaryFolder cache;
  const Toolchain t = host_tools();
  std::vector<std::thread> threads;
  std::array<bool, 6> ok{};
  for (std::size_t i = 0; i < ok.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto r = build(t, host_source(simple), cache.path(), seconds(120));
      ok[i] = r && fs::file_size(r->library) > 0;
    });
  }
  for (std::thread& th : threads) th.join();
  for (const bool b : ok) EXPECT_TRUE(b);
  EXPECT_TRUE(fs::is_empty(cache.path() / "building"));
}

TEST(Build, DamagedEntryIsBuiltAgain) {
  const TemporaryFolder cache;
  const auto first = build(host_tools(), host_source(simple), cache.path(), seconds(60));
  ASSERT_TRUE(first);
  std::ofstream(first->library, std::ios::trunc) << "torn";
  const auto second = build(host_tools(), host_source(simple), cache.path(), seconds(60));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->cached);
  EXPECT_GT(fs::file_size(second->library), 100u);
}

TEST(CacheKey, ChangesWithWhatDecidesTheBinary) {
  Toolchain t = host_tools();
  const Source s = host_source(simple);
  const std::string key = cache_key(t, s);
  Source flags = s;
  flags.flags = {"-DX=1"};
  EXPECT_NE(cache_key(t, flags), key);
  Source renamed = s;
  renamed.name = "other";
  EXPECT_EQ(cache_key(t, renamed), key);
  t.cxx_version = "g++ 99";
  EXPECT_NE(cache_key(t, s), key);
}

TEST(CacheKey, FollowsIncludedHeadersOnly) {
  const TemporaryFolder include;
  fs::create_directories(include.path() / "own");
  std::ofstream(include.path() / "own/a.h") << "#include \"b.h\"\n";
  std::ofstream(include.path() / "own/b.h") << "int b;\n";
  std::ofstream(include.path() / "own/c.h") << "int c;\n";
  const auto hash = [&] { return included_headers_hash(include.path(), "#include \"own/a.h\"\n"); };
  const std::string before = hash();
  std::ofstream(include.path() / "own/c.h") << "int changed;\n";
  EXPECT_EQ(hash(), before);
  std::ofstream(include.path() / "own/b.h") << "int changed;\n";
  EXPECT_NE(hash(), before);
}

TEST(Prune, RemovesTheLongestUnused) {
  const TemporaryFolder cache;
  const auto put = [&](const std::string& hash, int hours) {
    const fs::path folder = cache.path() / hash.substr(0, 2) / hash;
    write_file_atomically(folder / "kernel.so", std::string(1000, 'x'));
    write_file_atomically(folder / "meta.json", "{}");
    fs::last_write_time(folder / "meta.json",
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
    return folder;
  };
  const fs::path old = put("aaaa", 50);
  const fs::path newer = put("bbbb", 20);
  const fs::path fresh = put("cccc", 0);
  const Pruned p = prune_cache(cache.path(), 2100);
  EXPECT_EQ(p.removed, 1);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(newer));
  EXPECT_EQ(prune_cache(cache.path(), 0).removed, 1);
  EXPECT_TRUE(fs::exists(fresh));  // used within the last hour
}

TEST(Ptxas, ReadsResourcesAndWarnings) {
  const Json j = parse_ptxas(
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 8 bytes cumulative stack size, 1024 "
      "bytes smem\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to ...\n"
      "ptxas info    : Used 32 registers, 380 bytes cmem[0]\n");
  EXPECT_EQ(j.at("registers"), 168);
  EXPECT_EQ(j.at("spill_bytes"), 16);
  EXPECT_EQ(j.at("shared_bytes"), 1024);
  EXPECT_EQ(j.at("serialized_wgmma"), true);
  EXPECT_EQ(j.at("warnings").size(), 1u);
  EXPECT_FALSE(parse_ptxas("nothing").contains("registers"));
}

TEST(Locate, WrongOverrideIsNotPaperedOver) {
  ::setenv("TESSERA_NVCC", "/nowhere/nvcc", 1);
  EXPECT_TRUE(locate("").nvcc.empty());
  ::unsetenv("TESSERA_NVCC");
}

}  // namespace
}  // namespace tessera::toolchain
