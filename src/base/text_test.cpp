#include "base/text.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Text, NearestFindsAMisspelledWordAndNothingFar) {
  EXPECT_EQ(nearest("optimise", {"optimize", "trace"}), "optimize");
  EXPECT_EQ(nearest("xyzzyx", {"optimize", "trace"}), "");
}

TEST(Text, TableAlignsNumbersRightAndCountsCodePoints) {
  EXPECT_EQ(render_table({"name", "ms"}, {{"µs", "1.5"}, {"long name", "12.25"}}),
            "name       ms\n"
            "----------------\n"
            "µs           1.5\n"
            "long name  12.25\n");
}

TEST(Text, ReplaceAllDoesNotRescanWhatItWrote) {
  EXPECT_EQ(replace_all("aa", "a", "aa"), "aaaa");
}

}  // namespace
}  // namespace tessera
