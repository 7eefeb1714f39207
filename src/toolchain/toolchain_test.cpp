#include "toolchain/toolchain.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

#include "base/files.h"
#include "base/source_folder.h"
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
  t.own_include = fs::path(source_folder()) / "include";
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

// What is not proved is not compiled, and not remembered either: a better checker may prove it.
TEST(Build, AsksForAProofBeforeItCompiles) {
  const TemporaryFolder cache;
  const Toolchain t = host_tools();
  Source source = host_source("this would not compile");
  int asked = 0;
  source.prove = [&]() -> Result<Json> {
    ++asked;
    return error(fail(Code{"TS0415", "realize.unproved"}, "undecided"));
  };
  const auto refused = build(t, source, cache.path(), seconds(60));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0415");
  EXPECT_FALSE(build(t, source, cache.path(), seconds(60)));
  EXPECT_EQ(asked, 2);
  source.text = simple;
  source.prove = [&]() -> Result<Json> { return Json{{"verdict", "proved"}}; };
  const auto built = build(t, source, cache.path(), seconds(60));
  ASSERT_TRUE(built) << to_text(built.error());
  EXPECT_EQ(built->resources.at("proof").at("verdict"), "proved");
  EXPECT_GE(built->resources.at("proof").at("seconds").get<double>(), 0);
  // The cache keeps it with the library, which is not proved again.
  source.prove = [&]() -> Result<Json> { return error(fail(Code{"TS0415", "x"}, "asked again")); };
  const auto again = build(t, source, cache.path(), seconds(60));
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_TRUE(again->cached);
  EXPECT_EQ(again->resources.at("proof").at("verdict"), "proved");
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

TEST(Build, MissingHeadersOfCutlassAreNamed) {
  const TemporaryFolder cache;
  Toolchain t = host_tools();
  t.cutlass.clear();
  Source s = host_source(simple);
  s.cutlass = true;
  const auto r = build(t, s, cache.path(), seconds(60));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0302");
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

const char* const two_sides = R"(
#define TESSERA_SIDES_APART 1
#include "tessera/kernel.h"
#include "tessera/programmatic_launch.h"

#if TESSERA_DEVICE_SIDE
TESSERA_KERNEL(32) void fill(float* x) { x[threadIdx.x] = 1; }
#endif
#if TESSERA_HOST_SIDE
extern "C" const char* tessera_describe(void) { return "two sides"; }
extern "C" int tessera_run(const tessera_launch* l, void*, void* stream) {
  void* x = l->tensors[0];
  return tessera::launch(TESSERA_ENTRY(fill), 1, 32, 0, static_cast<cudaStream_t>(stream), x);
}
#endif
)";

Source two_sided() {
  return {.name = "two sides", .text = two_sides, .arch = "sm_90a", .flags = {}, .links = {}};
}

TEST(Sides, HostSideHoldsTheCubinAndSharesNothing) {
  const TemporaryFolder cache;
  const Toolchain t = host_tools();
  if (t.nvcc.empty()) GTEST_SKIP() << "no nvcc";
  ASSERT_EQ(sides_of(t, two_sided()), Sides::apart) << t.together_because;
  const auto built = build(t, two_sided(), cache.path(), seconds(120));
  ASSERT_TRUE(built) << to_text(built.error());
  EXPECT_TRUE(built->resources.contains("registers"));
  EXPECT_NE(read_file(built->library).find(".text.fill"), std::string::npos);
  void* library = ::dlopen(built->library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto describe = reinterpret_cast<const char* (*)()>(::dlsym(library, "tessera_describe"));
  ASSERT_NE(describe, nullptr);
  EXPECT_STREQ(describe(), "two sides");
  EXPECT_EQ(::dlsym(library, "tessera_device_code"), nullptr);
  ::dlclose(library);
}

TEST(Sides, TogetherGivesTheSameInterface) {
  const TemporaryFolder cache;
  Toolchain t = host_tools();
  if (t.nvcc.empty()) GTEST_SKIP() << "no nvcc";
  t.host_runtime.clear();  // an older toolkit
  ASSERT_EQ(sides_of(t, two_sided()), Sides::together);
  const auto built = build(t, two_sided(), cache.path(), seconds(120));
  ASSERT_TRUE(built) << to_text(built.error());
  EXPECT_NE(read_file(built->library).find("tessera_describe"), std::string::npos);
}

TEST(Sides, EitherSidesFailureIsTheBuilds) {
  const TemporaryFolder cache;
  const Toolchain t = host_tools();
  if (t.nvcc.empty()) GTEST_SKIP() << "no nvcc";
  for (const char* side : {"TESSERA_DEVICE_SIDE", "TESSERA_HOST_SIDE"}) {
    Source s = two_sided();
    s.text += fmt::format("#if {}\nint wrong(\n#endif\n", side);
    const auto built = build(t, s, cache.path(), seconds(120));
    ASSERT_FALSE(built) << side;
    EXPECT_EQ(built.error().code, "TS0303");
    EXPECT_FALSE(built.error().notes.empty());
  }
  const auto late = build(t, two_sided(), cache.path(), seconds(0));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, "TS0304");
  const std::atomic<bool> stop = true;
  const auto stopped = build(t, two_sided(), cache.path(), seconds(120), &stop);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, "TS0307");
}

TEST(Sides, NeedARecentRuntimeAndTheGnuCompiler) {
  const Toolchain t = host_tools();
  if (t.nvcc.empty()) GTEST_SKIP() << "no nvcc";
  EXPECT_EQ(t.together_because.empty(), !t.host_runtime.empty());
  EXPECT_EQ(sides_of(t, host_source(two_sides)), Sides::together);  // no CUDA
  Source plain = two_sided();
  plain.text = "__global__ void k() {}";
  EXPECT_EQ(sides_of(t, plain), Sides::together);
}

TEST(Sides, KeyKnowsHowTheHostSideIsCompiled) {
  Toolchain t;
  t.nvcc = "/nvcc";
  t.nvcc_version = "13.0.88";
  t.cxx_version = "g++ 12";
  t.host_runtime = "/lib64";
  const std::string apart = cache_key(t, two_sided());
  t.cxx_version = "g++ 13";
  EXPECT_NE(cache_key(t, two_sided()), apart);
  t.cxx_version = "g++ 12";
  t.host_runtime.clear();
  EXPECT_NE(cache_key(t, two_sided()), apart);
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

TEST(Locate, PackagesOfThePythonPathComeFirst) {
  const TemporaryFolder site;
  const auto header = site.path() / "cutlass_library/source/include/cutlass/version.h";
  std::filesystem::create_directories(header.parent_path());
  write_file_atomically(
      header, "#define CUTLASS_MAJOR 9\n#define CUTLASS_MINOR 8\n#define CUTLASS_PATCH 7\n");
  const char* const before = ::getenv("PYTHONPATH");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("PYTHONPATH", ("/nowhere:" + site.path().string()).c_str(), 1);
  const Toolchain t = locate("");
  if (before != nullptr)
    ::setenv("PYTHONPATH", kept.c_str(), 1);
  else
    ::unsetenv("PYTHONPATH");
  EXPECT_EQ(t.cutlass, site.path() / "cutlass_library/source");
  EXPECT_EQ(t.cutlass_version, "9.8.7");
}

TEST(Locate, WrongOverrideIsNotPaperedOver) {
  ::setenv("TESSERA_NVCC", "/nowhere/nvcc", 1);
  EXPECT_TRUE(locate("").nvcc.empty());
  ::unsetenv("TESSERA_NVCC");
}

}  // namespace
}  // namespace tessera::toolchain
