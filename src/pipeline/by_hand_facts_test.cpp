#include "pipeline/by_hand_facts.h"

#include <gtest/gtest.h>

namespace tessera::pipeline {
namespace {

graph::Graph graph_of(int values) {
  graph::Graph g;
  for (int i = 0; i < values; ++i) {
    graph::Value v;
    v.name = std::string(1, static_cast<char>('a' + i));
    g.add_value(std::move(v));
  }
  return g;
}

rules::Pattern pattern_of(const std::string& id, const std::vector<std::size_t>& inputs) {
  rules::Pattern p;
  p.id = id;
  p.rule = "gemm";
  for (const std::size_t i : inputs) p.inputs.push_back(graph::ValueId{i});
  p.outputs = {graph::ValueId{0}};
  return p;
}

constexpr const char* three = R"(
const char* tessera_describe(void) {
  return "{\"abi\":1,\"ints\":[],\"tensors\":[\"t0\",\"t1\","
         "\"t2\"],\"arch\":\"host\"}";
})";

TEST(ByHandFacts, TensorsThatASourceDescribes) {
  EXPECT_EQ(described_tensors(three), 3U);
  EXPECT_EQ(described_tensors("tessera_describe() { return R\"({\"tensors\": [\"a\"]})\"; }"), 1U);
  EXPECT_EQ(described_tensors("tensors[4]; tessera_describe() { return text; }"), 0U);
  EXPECT_EQ(described_tensors("int tessera_describe; tensors of a launch are many: l->t[2]"), 0U);
}

TEST(ByHandFacts, ASourceForAnotherPatternSaysForWhich) {
  const graph::Graph g = graph_of(4);
  const rules::Pattern own = pattern_of("p01", {1, 2, 3});
  const std::vector<rules::Pattern> all = {own, pattern_of("p03", {1, 2})};
  EXPECT_EQ(for_other_tensors(three, own, all, g),
            "the source is for 3 tensors, as its tessera_describe says; pattern p01 has 4: %b, %c, "
            "%d -> %a; p03 (gemm) has 3: is it for that one?");
  EXPECT_EQ(for_other_tensors(three, all[1], all, g), "");
  EXPECT_EQ(for_other_tensors("", own, all, g), "");
}

TEST(ByHandFacts, WhyAVerificationEnded) {
  const auto failure = [](tune::Outcome outcome, const char* kind) {
    return failure_of({.outcome = outcome, .detail = {{"kind", kind}}});
  };
  using attempt::Failure;
  EXPECT_EQ(failure(tune::Outcome::crashed, ""), Failure::crash);
  EXPECT_EQ(failure(tune::Outcome::timed_out, ""), Failure::hang);
  EXPECT_EQ(failure(tune::Outcome::crashed, "forbidden"), Failure::forbidden);
  EXPECT_EQ(failure(tune::Outcome::wrong_result, "input_modified"), Failure::input_modified);
  EXPECT_EQ(failure(tune::Outcome::unsupported, "launch_failed"), Failure::not_loadable);
  EXPECT_EQ(failure(tune::Outcome::wrong_result, ""), Failure::wrong_result);
}

}  // namespace
}  // namespace tessera::pipeline
