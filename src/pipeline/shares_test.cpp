#include "pipeline/shares.h"

#include <gtest/gtest.h>

namespace tessera::pipeline {
namespace {

/// Works in the order of priority, each of one pattern or of several that are alike.
struct Works {
  std::vector<rules::Pattern> patterns;
  std::vector<Work> work;

  /// `places`: the ops of each occurrence.
  Works& add(const std::string& rule, const std::vector<std::vector<int>>& places,
             double unfused_ms = 1) {
    Work w;
    for (const auto& nodes : places) {
      w.patterns.push_back(static_cast<int>(patterns.size()));
      rules::Pattern p{.rule = rule, .unfused_ms = unfused_ms};
      for (const int n : nodes) p.computing.emplace_back(n);
      patterns.push_back(std::move(p));
    }
    w.key.signature = rule + std::to_string(work.size());
    work.push_back(w);
    return *this;
  }
  void order() { order_work(work, patterns); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Work& w : work) out.push_back(w.key.signature + (w.alternative ? " or" : ""));
    return out;
  }
  [[nodiscard]] double share(std::size_t at, double left, double total) const {
    return share_of(work, patterns, at, left, total);
  }
};

using Names = std::vector<std::string>;

TEST(OrderWork, SlowCompilersAfterTheOthersAndEqualsByPriority) {
  Works w;
  w.add("gemm", {{1}}).add("row_norm", {{2}}).add("gated_mlp", {{3}}).add("attention", {{4}});
  w.add("gemm", {{5}}).add("pointwise", {{6}}).order();
  EXPECT_EQ(w.names(),
            (Names{"row_norm1", "attention3", "pointwise5", "gemm0", "gated_mlp2", "gemm4"}));
}

TEST(OrderWork, AlternativesComeLast) {
  Works w;
  w.add("gemm", {{1, 2}}).add("pointwise", {{2}}).add("gemm", {{1}}).add("row_norm", {{3}});
  w.order();
  EXPECT_EQ(w.names(), (Names{"row_norm3", "gemm0", "pointwise1 or", "gemm2 or"}));
}

TEST(OrderWork, WhatOverlapsAnAlternativeIsOneToo) {
  Works w;
  w.add("pointwise", {{1, 2}}).add("pointwise", {{2, 3}}).add("pointwise", {{3, 4}});
  w.add("pointwise", {{5}}).order();
  EXPECT_EQ(w.names(), (Names{"pointwise0", "pointwise3", "pointwise1 or", "pointwise2 or"}));
}

TEST(OrderWork, WhatIsAloneAtOnePlaceIsNoAlternative) {
  Works w;
  w.add("pointwise", {{1}}).add("row_norm", {{1, 2}, {3, 4}}).add("softmax", {{4}}).order();
  EXPECT_EQ(w.names(), (Names{"pointwise0", "row_norm1", "softmax2 or"}));
}

TEST(ShareOf, ByTheCostOfWhatIsStillToCome) {
  Works w;
  w.add("pointwise", {{1}}, 1).add("row_norm", {{2}}, 3).add("gemm", {{3}}, 4).order();
  EXPECT_DOUBLE_EQ(w.share(0, 800, 800), 100);
  EXPECT_DOUBLE_EQ(w.share(1, 700, 800), 300);
  EXPECT_DOUBLE_EQ(w.share(2, 400, 800), 400);
  Works reused = w;
  reused.work[2].tuned.emplace();
  EXPECT_DOUBLE_EQ(reused.share(0, 800, 800), 200);
  Works refused = w;
  refused.work[2].skipped = "an earlier search found no kernel for it";
  EXPECT_DOUBLE_EQ(refused.share(0, 800, 800), 200);
}

TEST(ShareOf, ATenthIsKeptForAlternatives) {
  Works w;
  w.add("pointwise", {{1}}, 2).add("gemm", {{2}}, 2).add("gemm", {{2, 3}}, 6).order();
  ASSERT_TRUE(w.work[2].alternative);
  EXPECT_DOUBLE_EQ(w.share(0, 1000, 1000), 450);
  EXPECT_DOUBLE_EQ(w.share(1, 550, 1000), 450);  // the tenth is of all, however much was used
  EXPECT_DOUBLE_EQ(w.share(2, 100, 1000), 100);
  EXPECT_DOUBLE_EQ(w.share(1, 90, 1000), 15);  // nothing is left beside it: one batch all the same
  w.work[2].tuned.emplace();
  EXPECT_DOUBLE_EQ(w.share(1, 500, 1000), 500);
}

TEST(ShareOf, AlternativesShareWhatWasKept) {
  Works w;
  w.add("gemm", {{1, 2}}, 90).add("pointwise", {{1}}, 1).add("pointwise", {{2}}, 3).order();
  EXPECT_DOUBLE_EQ(w.share(1, 400, 1000), 100);
  EXPECT_DOUBLE_EQ(w.share(2, 300, 1000), 300);
}

TEST(ShareOf, NeverTooLittleToBeginWithNorMoreThanIsLeft) {
  Works w;
  w.add("pointwise", {{1}}, 1).add("gemm", {{2}}, 999).order();
  EXPECT_DOUBLE_EQ(w.share(0, 1000, 1000), 15);
  EXPECT_DOUBLE_EQ(w.share(0, 7, 1000), 7);
}

TEST(ShareOf, WithoutAnEstimateAllThatIsLeft) {
  Works w;
  w.add("pointwise", {{1}}, 0).add("gemm", {{2}}, 0).order();
  EXPECT_DOUBLE_EQ(w.share(0, 60, 100), 60);
}

}  // namespace
}  // namespace tessera::pipeline
