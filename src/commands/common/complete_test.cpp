#include <gtest/gtest.h>

#include "commands/commands.h"

namespace tessera::commands {
namespace {

using Type = Parameter::Type;

const Command command = {
    .name = "try",
    .doc = "",
    .parameters =
        {{.type = Type::text,
          .name = "model",
          .doc = "a file",
          .positional = true,
          .required = true},
         {.type = Type::text,
          .name = "effort",
          .doc = "",
          .preset = "default",
          .choices = {"quick", "default", "max"}},
         {.type = Type::integer, .name = "jobs", .doc = "", .preset = "0", .not_negative = true},
         {.type = Type::real, .name = "seconds", .doc = "", .not_negative = true},
         {.type = Type::numbers, .name = "moments", .doc = "", .rising = true},
         {.type = Type::flag, .name = "retune", .doc = ""},
         {.type = Type::list, .name = "peers", .doc = "", .preset = "eager,inductor"},
         {.type = Type::text, .name = "cache", .doc = ""}},
    .run = nullptr,
};

TEST(Complete, FillsPresetsInTheirTypes) {
  const Json expected = {{"model", "m.py"}, {"effort", "default"},
                         {"jobs", 0},       {"moments", Json::array()},
                         {"retune", false}, {"peers", {"eager", "inductor"}},
                         {"cache", ""}};
  EXPECT_EQ(complete(command, {{"model", "m.py"}}).value(), expected);
}

TEST(Complete, TakesTextsAndTypedValuesAlike) {
  const Json texts = {
      {"model", "m"}, {"jobs", "3"}, {"seconds", "1.5"}, {"retune", "true"}, {"peers", "a, b"}};
  const Json typed = {
      {"model", "m"}, {"jobs", 3}, {"seconds", 1.5}, {"retune", true}, {"peers", {"a", "b"}}};
  EXPECT_EQ(complete(command, texts).value(), complete(command, typed).value());
  EXPECT_EQ(complete(command, texts).value()["seconds"], 1.5);
}

std::string refusal(const Json& arguments) {
  const auto r = complete(command, arguments);
  return r ? "" : r.error().code + ": " + (r.error().helps.empty() ? "" : r.error().helps[0]);
}

TEST(Complete, NamesTheNearestRightWord) {
  EXPECT_EQ(refusal({{"model", "m"}, {"efort", "max"}}), "TS0041: did you mean `effort`?");
  EXPECT_EQ(refusal({{"model", "m"}, {"effort", "quik"}}), "TS0043: did you mean `quick`?");
}

TEST(Complete, FiguresAreWithinTheirBounds) {
  EXPECT_EQ(refusal({{"model", "m"}, {"seconds", -3}}), "TS0046: ");
  EXPECT_EQ(refusal({{"model", "m"}, {"seconds", "nan"}}), "TS0046: ");
  EXPECT_EQ(refusal({{"model", "m"}, {"jobs", "-1"}}), "TS0046: ");
  for (const Json& wrong : {Json{2, 1}, Json{1, 1}, Json{0, 1}, Json{-1}, Json("1,nan")})
    EXPECT_EQ(refusal({{"model", "m"}, {"moments", wrong}}), "TS0047: ") << wrong;
  EXPECT_EQ(refusal({{"model", "m"}, {"moments", "1,soon"}}), "TS0043: ");
  EXPECT_EQ(complete(command, {{"model", "m"}, {"moments", "1, 2.5"}}).value()["moments"],
            Json({1, 2.5}));
}

TEST(Complete, RefusesWrongTypesAndMissingOnes) {
  EXPECT_EQ(refusal({{"effort", "max"}}), "TS0042: see `tessera try --help`");
  for (const Json& wrong : {Json{{"jobs", "three"}}, Json{{"jobs", 1.5}}, Json{{"jobs", "3x"}},
                            Json{{"seconds", "soon"}}, Json{{"retune", "maybe"}},
                            Json{{"peers", {1}}}, Json{{"cache", 3}}}) {
    Json arguments = {{"model", "m"}};
    arguments.update(wrong);
    EXPECT_EQ(refusal(arguments), "TS0043: ") << wrong;
  }
  EXPECT_FALSE(complete(command, Json::array({1})));
}

}  // namespace
}  // namespace tessera::commands
