#include "commands/common/optimizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::commands {
namespace {

using ::testing::HasSubstr;

TEST(OptionsOfAProgram, AreThoseOfTheCommandWithUnderscoresAndSwitches) {
  const auto given = options_of_program(
      {{"use_registry", false}, {"retune", true}, {"checkpoints", {15, 30.5}}, {"measure", false}});
  ASSERT_TRUE(given) << to_text(given.error());
  const pipeline::Options options = pipeline::options_from(*given);
  EXPECT_FALSE(options.use_registry);
  EXPECT_TRUE(options.retune);
  EXPECT_FALSE(options.measure);
  EXPECT_EQ(options.checkpoints, (std::vector<double>{15, 30.5}));
  EXPECT_EQ(options.effort, "default");
}

TEST(OptionsOfAProgram, AnUnknownOneIsRefusedWithItsNearest) {
  const auto helps = [](const Json& given) {
    return options_of_program(given).error().helps.front();
  };
  EXPECT_THAT(helps({{"retunee", true}}), HasSubstr("`retune`"));
  EXPECT_THAT(helps({{"leftover", "induktor"}}), HasSubstr("`inductor`"));
  EXPECT_THAT(helps({{"peers", {"eagr"}}}), HasSubstr("`eager`"));
  EXPECT_EQ(options_of_program({{"spent", -1}}).error().name, "input.negative_option");
  EXPECT_EQ(options_of_program({{"checkpoints", {30, 15}}}).error().code, "TS0047");
}

}  // namespace
}  // namespace tessera::commands
