#include "smt/library.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"

#include "smt/query.h"

namespace tessera::smt {
namespace {

namespace fs = std::filesystem;

fs::path packages(const fs::path& environment) {
  return environment / "lib" / "python3.11" / "site-packages";
}

TEST(Library, IsSoughtWhereThePackageIs) {
  const TemporaryFolder place;
  const fs::path environment = place.path() / "venv", tree = place.path() / "tree";
  fs::create_directories(packages(environment));
  fs::create_directories(packages(tree / ".venv"));
  const std::vector<fs::path> found =
      candidates({.library = {},
                  .packages = {packages(environment)},
                  .executable = packages(environment) / "tessera" / "bin"});
  const fs::path there = packages(environment) / "z3" / "lib" / "libz3.so";
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], there) << "Python's own come first";
  // An installed program finds the package beside its own, without being told of Python.
  const std::vector<fs::path> beside =
      candidates({.executable = packages(environment) / "tessera" / "bin"});
  EXPECT_NE(std::find(beside.begin(), beside.end(), there), beside.end());
  const std::vector<fs::path> built = candidates({.executable = tree / "build" / "bin"});
  EXPECT_NE(
      std::find(built.begin(), built.end(), packages(tree / ".venv") / "z3" / "lib" / "libz3.so"),
      built.end());
  EXPECT_EQ(candidates({.library = "/x/libz3.so", .packages = {packages(environment)}}),
            (std::vector<fs::path>{"/x/libz3.so"}))
      << "what is named is not sought elsewhere";
}

TEST(Library, SaysWhatIsMissing) {
  const TemporaryFolder place;
  const Result<Library> none = load({place.path() / "libz3.so"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, "TS0880");
  EXPECT_NE(none.error().helps.at(0).find("z3-solver"), std::string::npos);

  std::ofstream(place.path() / "libz3.so") << "no library";
  const Result<Library> text = load({place.path() / "libz3.so"});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, "TS0881");

  // A library that is not Z3: the C library's.
  Dl_info info;
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::getppid), &info), 0);
  const Result<Library> other = load({info.dli_fname});
  ASSERT_FALSE(other) << info.dli_fname;
  EXPECT_EQ(other.error().code, "TS0881");
  EXPECT_NE(other.error().found.find("Z3_mk_context"), std::string::npos) << other.error().found;
}

TEST(Library, IsTheOneOfTheRequirements) {
  ASSERT_TRUE(library()) << to_text(library().error());
  EXPECT_GE(library()->version, "4.12");
  EXPECT_TRUE(fs::exists(library()->file));
}

// The verdicts of a process without the library: 0 if they are what they should be.
[[noreturn]] void decide_without_library() {
  ::setenv("TESSERA_LIBZ3", "/nowhere/libz3.so", 1);
  term::Pool pool;
  const term::Term k = *pool.parameter("K", {.lower = pool.constant(0)});
  const Question open{Question::Kind::always, {term::less(k * k, k * k * k + 1)}, {}};
  const Question clear{Question::Kind::always, {term::less(k, k + 1)}, {}};
  const Decision d = decide(open);
  const bool is_unknown = d.verdict.outcome == term::Outcome::unknown && d.by == Tier::none &&
                          d.verdict.reason.find("z3-solver") != std::string::npos &&
                          smt::is_injective(k, {k}).outcome == term::Outcome::unknown;
  const bool terms_decide = decide(clear).by == Tier::terms && ask(clear).verdict.proved();
  std::exit(is_unknown && terms_decide ? 0 : 1);
}

// In a process of its own, because a process loads the library once.
TEST(LibraryDeathTest, WithoutItVerdictsAreUnknown) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(decide_without_library(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera::smt
