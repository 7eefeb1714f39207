#include <gmock/gmock.h>

#include "arch/arch.h"
#include "pipeline/pipeline.h"
#include "pipeline/testing/product.h"

namespace tessera::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A product of fp32 matrices and its gelu.
Discovered product_and_gelu(const char* arch) {
  Discovered found;
  found.graph = testing::product_and("aten.gelu.default", 512, Precision::fp32, DType::float32);
  found.arch = *arch::find(arch);
  found.discovery = rules::discover(found.graph, *found.arch);
  ask_realizers(found);
  return found;
}

const rules::Pattern& first(const Discovered& found, std::string_view rule) {
  for (const rules::Pattern& p : found.discovery.patterns)
    if (p.rule == rule) return p;
  throw std::logic_error("no such pattern");
}

std::string level(const Discovered& found, std::string_view rule) {
  const Json discovery = rules::to_json(found.graph, found.discovery);
  for (const Json& p : discovery.at("patterns"))
    if (p.at("rule") == rule) return p.at("priority");
  return "";
}

TEST(Makers, OnHostAProductIsALibrarys) {
  const Discovered found = product_and_gelu("host");
  const rules::Pattern& product = first(found, "gemm");
  EXPECT_THAT(product.makers->synthesized, IsEmpty());
  EXPECT_THAT(product.makers->library, Not(IsEmpty()));
  EXPECT_THAT(product.makers->refused, Not(IsEmpty()));
  EXPECT_EQ(level(found, "gemm"), "low");
  EXPECT_THAT(first(found, "pointwise").makers->synthesized, Contains("tile_pointwise"));
  EXPECT_EQ(level(found, "pointwise"), "high");
  EXPECT_THAT(rules::to_table(found.graph, found.discovery),
              AllOf(HasSubstr("no kernel of ours on host for " + product.id),
                    HasSubstr("wgmma_gemm, wgmma_split_k: host has no wgmma and TMA"),
                    Not(HasSubstr("cublaslt"))));
}

TEST(Makers, OnHopperItIsOurs) {
  const Discovered found = product_and_gelu("sm_90a");
  EXPECT_THAT(first(found, "gemm").makers->synthesized, Not(IsEmpty()));
  EXPECT_EQ(level(found, "gemm"), "high");
  EXPECT_THAT(rules::to_table(found.graph, found.discovery), Not(HasSubstr("no kernel of ours")));
}

TEST(Makers, NobodyIsAskedOnTheWayToAPlan) {
  Discovered found = product_and_gelu("host");
  found.discovery = rules::discover(found.graph, *found.arch);
  EXPECT_FALSE(first(found, "gemm").makers);
  EXPECT_EQ(level(found, "gemm"), "high");
}

}  // namespace
}  // namespace tessera::pipeline
