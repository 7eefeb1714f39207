#include "skeleton/common/unused.h"

#include <gtest/gtest.h>

namespace tessera::skeleton {
namespace {

TEST(SkeletonUnused, HelpersThatNothingUsesAreLeftOut) {
  const std::string source =
      "#define FN inline\n"
      "FN float one(float x) { return x; }\n"
      "FN float two(float x) {\n  if (x > 0) {\n    x = one(x);\n  }\n  return x;\n}\n"
      "FN float\n    three(float x) { return x; }\n"
      "FN float four(float x) { return five(x); }\n"
      "int main() { return two(1); }\n";
  EXPECT_EQ(without_unused(source, "FN "),
            "#define FN inline\n"
            "FN float one(float x) { return x; }\n"
            "FN float two(float x) {\n  if (x > 0) {\n    x = one(x);\n  }\n  return x;\n}\n"
            "int main() { return two(1); }\n");
  EXPECT_EQ(without_unused("int x;", "FN "), "int x;");
}

}  // namespace
}  // namespace tessera::skeleton
