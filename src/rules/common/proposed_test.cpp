// What the graph refuses of a proposal, and rules of a place, by the code.
#include "rules/proposed.h"

#include <gtest/gtest.h>

#include "rules/common/matrix.h"
#include "rules/common/region.h"
#include "rules/common/testing.h"

namespace tessera::rules {
namespace {

using namespace testing;

std::string code_of(const GraphBuilder& b, const std::vector<std::string>& nodes) {
  const Flow flow(b.g);
  const Result<Pattern> p = propose(flow, {.name = "it", .nodes = nodes, .rationale = "r"});
  return p ? "" : p.error().code;
}

TEST(Proposed, WhatCannotRunAsOneStepIsRefused) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 4});
  const ValueId e = b.unary("exp", x);
  const ValueId changed = b.call("aten.relu_.default", {{"self", e}}, {4, 4});
  b.output(b.call("ours.gate.default", {{"self", changed}}, {4, 4}));
  EXPECT_EQ(code_of(b, {"exp"}), "");
  EXPECT_EQ(code_of(b, {"relu_"}), "TS0232");
  EXPECT_EQ(code_of(b, {"gate"}), "TS0236");
  b.g.value(x).device = "cpu";
  EXPECT_EQ(code_of(b, {"exp"}), "TS0234");
}

TEST(Proposed, WhatIsNoListOfProposalsIsRefused) {
  EXPECT_TRUE(proposals_from_json(
      parse_json(R"([{"name": "gate", "nodes": ["exp"], "rationale": "fewer passes"}])")));
  for (const char* text : {"3", R"({"proposals": 3})", R"([{"name": "gate"}])",
                           R"([{"name": "gate", "nodes": [3], "rationale": "r"}])"})
    EXPECT_EQ(proposals_from_json(parse_json(text)).error().code, "TS0238") << text;
}

TEST(Region, AnElementTypeWithoutKernelsIsRefused) {
  const GraphBuilder b;
  EXPECT_TRUE(precision_for(b.g, DType::float16, true));
  EXPECT_EQ(precision_for(b.g, DType::int32, false).error().code, "TS0212");
}

TEST(Matrix, AWeightThatIsNoMatrixIsRefused) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 4, 4});
  const ValueId w = b.parameter("w", {2, 8, 4});
  const ValueId y =
      b.call("aten.linear.default", {{"input", x}, {"weight", w}, {"bias", {}}}, {2, 4, 8});
  b.output(y);
  EXPECT_EQ(find_product(Flow(b.g), b.node(y)).error().code, "TS0211");
}

}  // namespace
}  // namespace tessera::rules
