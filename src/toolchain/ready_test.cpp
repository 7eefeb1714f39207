#include "toolchain/ready.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace tessera::toolchain {
namespace {

TEST(Ready, SaysWhatIsMissingToBuild) {
  Toolchain none;
  EXPECT_EQ(ready_to_build(none, Language::cxx).error().code, "TS0301");
  none.cxx = "/usr/bin/g++";
  EXPECT_EQ(ready_to_build(none, Language::cxx).error().code, "TS0308");
  none.own_include = "/somewhere/include";
  EXPECT_TRUE(ready_to_build(none, Language::cxx));
  const Diagnostic d = ready_to_build(none, Language::cuda).error();
  EXPECT_EQ(d.code, "TS0301");
  EXPECT_NE(d.message.find("nvcc"), std::string::npos);
  EXPECT_FALSE(d.helps.empty());
}

TEST(Ready, CacheIsMadeOrRefused) {
  const TemporaryFolder folder;
  EXPECT_TRUE(ready_cache(folder.path() / "a/b"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "a/b"));
  write_file_atomically(folder.path() / "file", "");
  const auto refused = ready_cache(folder.path() / "file/kernels");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0305");
}

}  // namespace
}  // namespace tessera::toolchain
