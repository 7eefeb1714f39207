#include "pipeline/kept.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace tessera::pipeline {
namespace {

class KeptTest : public ::testing::Test {
 protected:
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / "kept" /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const Kept kept_{folder_};
  void SetUp() override { std::filesystem::remove_all(folder_); }
};

TEST_F(KeptTest, FindsWhatWasKeptLastUnderAKindAndKey) {
  EXPECT_FALSE(kept_.find("times", "a"));
  kept_.keep("times", "a", {{"ms", 1}});
  kept_.keep("times", "a", {{"ms", 2}});
  kept_.keep("sizes", "a", Json::array());
  EXPECT_EQ(kept_.find("times", "a"), Json({{"ms", 2}}));
  EXPECT_EQ(kept_.find("sizes", "a"), Json::array());
  EXPECT_FALSE(kept_.find("times", "b"));
}

TEST_F(KeptTest, ADamagedFileHoldsNothing) {
  kept_.keep("times", "a", 1);
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_))
    if (file.is_regular_file()) write_file_atomically(file.path(), R"({"res)");
  EXPECT_FALSE(kept_.find("times", "a"));
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_))
    if (file.is_regular_file()) write_file_atomically(file.path(), R"({"other": 1})");
  EXPECT_FALSE(kept_.find("times", "a"));
}

}  // namespace
}  // namespace tessera::pipeline
