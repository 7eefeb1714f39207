#include "check/means.h"

#include <gtest/gtest.h>

#include "core/testing/gemm.h"

namespace tessera::check {
namespace {

Result<std::optional<Means>> read(const std::string& text,
                                  const core::testing::GemmShape& shape = {}) {
  Result<core::Kernel> k = core::testing::gemm(shape);
  if (!k) return error(k.error());
  k->means = text;
  return means_of(*k);
}

TEST(CheckMeans, ReadsProducts) {
  const auto plain = read("C[i, j] = sum(A[i, k] * B[j, k], k)");
  ASSERT_TRUE(plain && *plain) << to_text(plain.error());
  EXPECT_EQ((*plain)->a.tensor.index, 0);
  EXPECT_EQ((*plain)->b.front().tensor.index, 1);
  EXPECT_EQ((*plain)->outputs[0].to.tensor.index, 2);
  EXPECT_EQ((*plain)->outputs[0].to.place(Axis::column), 1);
  const auto turned = read("C[y, x] = sum(A[s, x] * B[y, s], s)");
  ASSERT_TRUE(turned && *turned);
  EXPECT_EQ((*turned)->a.place(Axis::k), 0);
  EXPECT_EQ((*turned)->a.place(Axis::row), 1);
  EXPECT_EQ((*turned)->outputs[0].to.place(Axis::row), 1);
  EXPECT_EQ((*turned)->outputs[0].to.place(Axis::column), 0);
}

TEST(CheckMeans, ReadsFunctionsOfTheSumAndOfOtherTensors) {
  const core::testing::GemmShape shape{.epilogue = core::testing::Epilogue::residual};
  const auto m =
      read("C[i, j] = max(relu(sum(A[i, k] * B[j, k], k) / 2 + X0[j]), -X1[0, j]) ** 2", shape);
  ASSERT_TRUE(m && *m) << to_text(m.error());
  const Output& o = (*m)->outputs.front();
  ASSERT_EQ(o.cases.size(), 1U);
  const Case& p = o.cases.front();
  EXPECT_EQ(p.value.to_string(), "pow(maximum(relu(add(div(%0, 2), %1)), neg(%2)), 2)");
  ASSERT_EQ(p.reads.size(), 3U);
  EXPECT_EQ(p.reads[0].factor, 0);
  EXPECT_EQ(p.reads[1].element.at, (std::vector<Index>{{Axis::column}}));
  EXPECT_EQ(p.reads[2].element.at, (std::vector<Index>{{Axis::number, 0}, {Axis::column}}));
}

TEST(CheckMeans, ReadsBatches) {
  const auto both = read("C[b, i, j] = sum(A[b, i, k] * B[b, j, k], k)", {.batched = true});
  ASSERT_TRUE(both && *both) << to_text(both.error());
  EXPECT_EQ((*both)->a.place(Axis::batch), 0);
  EXPECT_EQ((*both)->outputs[0].to.place(Axis::batch), 0);
  const auto one =
      read("C[n, y, x] = sum(A[y, s] * B[n, x, s], s)", {.batched = true, .one_a = true});
  ASSERT_TRUE(one && *one) << to_text(one.error());
  EXPECT_EQ((*one)->a.place(Axis::batch), -1);
  EXPECT_EQ((*one)->b.front().place(Axis::batch), 0);
  EXPECT_EQ((*one)->b.front().place(Axis::column), 1);
  const auto zero = read("C[b, i, j] = sum(A[b, i, k] * B[0, j, k], k)", {.batched = true});
  ASSERT_TRUE(zero && *zero) << to_text(zero.error());
  EXPECT_EQ((*zero)->b.front().at[0], (Index{Axis::number, 0}));
}

TEST(CheckMeans, ReadsSeveralOutputsOfOneSum) {
  const core::testing::GemmShape shape{.direct = true, .two = true};
  const auto m =
      read("C[i, j] = relu(sum(A[i, k] * B[j, k], k)); D[y, x] = sum(A[y, s] * B[x, s], s)", shape);
  ASSERT_TRUE(m && *m) << to_text(m.error());
  EXPECT_EQ((*m)->outputs.size(), 2U);
  EXPECT_FALSE(
      read("C[i, j] = sum(A[i, k] * B[j, k], k); D[i, j] = sum(B[j, k] * A[i, k], k)", shape));
  EXPECT_FALSE(
      read("C[i, j] = sum(A[i, k] * B[j, k], k); C[i, j] = sum(A[i, k] * B[j, k], k)", shape));
}

TEST(CheckMeans, ReadsSumsOfSeveralRightFactors) {
  const core::testing::GemmShape shape{.epilogue = core::testing::Epilogue::residual};
  const auto m =
      read("C[i, j] = silu(sum(A[i, k] * X1[j, k], k)) * sum(A[i, k] * B[j, k], k)", shape);
  ASSERT_TRUE(m && *m) << to_text(m.error());
  ASSERT_EQ((*m)->b.size(), 2U);
  const Case& p = (*m)->outputs.front().cases.front();
  EXPECT_EQ(p.value.to_string(), "mul(silu(%0), %1)");
  EXPECT_EQ(p.reads[0].factor, 0);
  EXPECT_EQ(p.reads[1].factor, 1);
  EXPECT_FALSE(read("C[i, j] = sum(A[i, k] * B[j, k], k) * sum(X1[i, k] * B[j, k], k)", shape));
  EXPECT_FALSE(read("C[i, j] = sum(A[i, k] * B[j, k], k) * sum(A[i, k] * X1[k, j], l)", shape));
}

TEST(CheckMeans, ReadsPartsOfTheColumns) {
  const core::testing::GemmShape shape{.epilogue = core::testing::Epilogue::residual};
  const auto m = read(
      "C[i, j] = (sum(A[i, k] * B[j, k], k) * X1[i, j % 64] - sum(A[i, k] * B[j + 64, k], k)"
      " if j % 128 < 64 else sum(A[i, k] * B[j - 64, k], k) * X1[i % 32, (j - 64) % 128])"
      " if j < 256 else sum(A[i, k] * B[j, k], k)",
      shape);
  ASSERT_TRUE(m && *m) << to_text(m.error());
  ASSERT_EQ((*m)->b.size(), 1U);
  const std::vector<Case>& p = (*m)->outputs.front().cases;
  ASSERT_EQ(p.size(), 3U);
  ASSERT_EQ(p[0].where.size(), 2U);
  EXPECT_EQ(p[0].where[0].below, 256);
  EXPECT_EQ(p[1].where[1].index, (Index{Axis::column, 0, 128}));
  EXPECT_FALSE(p[1].where[1].holds);
  EXPECT_FALSE(p[2].where[0].holds);
  EXPECT_EQ(p[0].reads[2].element.at[0], (Index{Axis::column, 64}));
  EXPECT_EQ(p[1].reads[1].element.at,
            (std::vector<Index>{{Axis::row, 0, 32}, {Axis::column, -64, 128}}));
  for (const char* other :
       {"C[i, j] = sum(A[i, k] * B[j, k], k) if i < 64 else sum(A[i, k] * B[j, k], k)",
        "C[i, j] = sum(A[i, k] * B[j, k], k) if j > 64 else sum(A[i, k] * B[j, k], k)",
        "C[i, j] = sum(A[i, k] * B[j, k], k) if j < 64 else X1[i, j]",
        "C[i, j] = sum(A[i + 8, k] * B[j, k], k)", "C[i, j] = sum(A[i, k] * B[j % 8, k], k)",
        "C[i, j] = sum(A[i, k] * B[j, k + 1], k)", "C[i, j % 8] = sum(A[i, k] * B[j, k], k)"})
    EXPECT_FALSE(read(other, shape)) << other;
}

/// Two kernels that make a product together.
TEST(CheckMeans, ReadsSlicesAndTheirSums) {
  const auto slices =
      read("sum(C[s, i, j], s) = sum(A[0, i, k] * B[0, j, k], k)", {.batched = true});
  ASSERT_TRUE(slices && *slices) << to_text(slices.error());
  EXPECT_TRUE((*slices)->slices && (*slices)->multiplies());
  EXPECT_EQ((*slices)->outputs[0].to.place(Axis::batch), 0);
  EXPECT_EQ((*slices)->a.place(Axis::batch), -1);
  const auto added = read("C[0, i, j] = relu(sum(A[s, j, i], s))", {.batched = true});
  ASSERT_TRUE(added && *added) << to_text(added.error());
  EXPECT_FALSE((*added)->slices || (*added)->multiplies());
  EXPECT_EQ((*added)->a.place(Axis::k), 0);
  EXPECT_EQ((*added)->a.place(Axis::row), 2);
  for (const char* text :
       {"sum(C[s, i, j], s) = relu(sum(A[0, i, k] * B[0, j, k], k))",
        "sum(C[s, i, j], s) = sum(A[s, i, k] * B[0, j, k], k)",
        "sum(C[s, i, j], t) = sum(A[0, i, k] * B[0, j, k], k)",
        "sum(C[s, i, j], s) = sum(A[s, i, j], s)", "C[0, i, j] = sum(A[s, i, i], s)",
        "C[0, i, j] = sum(A[s, i, 0], s)", "C[b, i, j] = sum(A[s, i, j], s)",
        // One column's function alone, and sums of one kind.
        "sum(C[s, i, j], s) = sum(A[0, i, k] * B[0, j + 8, k], k)",
        "sum(C[s, i, j], s) = sum(A[0, i, k] * B[0, j, k], k) if j < 64 else A[0, i, j]",
        "C[0, i, j] = sum(A[s, i, j], s) if j < 64 else relu(sum(A[s, i, j], s))",
        "C[0, i, j] = sum(A[s, i, j], s) + B[0, i, j % 8]",
        "C[0, i, j] = sum(A[s, i, j], s) + sum(A[s, i, j] * B[0, j, s], s)",
        "C[0, i, j] = sum(A[0, i, s] * B[0, j, s], s) + sum(A[0, i, s], s)"}) {
    const auto m = read(text, {.batched = true});
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().code, "TS0878") << text;
  }
}

/// Functions of elements alone.
TEST(CheckMeans, NothingHasToBeSummed) {
  const auto copy = read("C[i, j] = A[i, j]");
  ASSERT_TRUE(copy && *copy) << to_text(copy.error());
  EXPECT_FALSE((*copy)->sums() || (*copy)->multiplies());
  EXPECT_EQ((*copy)->outputs[0].to.place(Axis::row), 0);
  EXPECT_EQ((*copy)->outputs[0].to.place(Axis::column), 1);
  const auto turned = read("C[b, i, j] = relu(A[b, j, i]) + 2", {.batched = true});
  ASSERT_TRUE(turned && *turned) << to_text(turned.error());
  const Output& o = (*turned)->outputs[0];
  EXPECT_EQ(o.to.place(Axis::batch), 0);
  ASSERT_EQ(o.cases[0].reads.size(), 1U);
  EXPECT_EQ(o.cases[0].reads[0].factor, -1);
  EXPECT_EQ(o.cases[0].reads[0].element.place(Axis::row), 2);
  for (const char* text :
       {"C[0, 0, j] = A[0, 0, j]", "C[b, i, j] = A[b, i, k]", "C[b, i, j] = C[b, i, j]",
        "sum(C[s, i, j], s) = A[0, i, j]",
        "C[0, i, j] = A[0, i, j] if j < 64 else sum(A[0, i, k] * B[0, j, k], k)"}) {
    const auto m = read(text, {.batched = true});
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().code, "TS0878") << text;
  }
}

TEST(CheckMeans, NothingSaidIsNothing) {
  const auto none = read("");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST(CheckMeans, RefusesOtherForms) {
  for (const char* text :
       {"C[i, j]", "C[i, j] = A[i, k]", "C[i, j] = sum(A[i, k] + B[j, k], k)",
        "C[i, j] = sum(A[i, k] * Z[j, k], k)", "C[i, j] = sum(A[i, k] * B[i, k], k)",
        "C[i, j] = sum(A[i, i] * B[j, k], k)", "C[i, l] = sum(A[i, k] * B[j, k], k)",
        "C[i, j] = relu(sum(A[i, k] * B[j, k], k), 2)", "C[i, j] = what(sum(A[i, k] * B[j, k], k))",
        "C[i, j] = sum(A[i, k] * B[j, k], k) + C[i, j]",
        "C[i, j] = sum(A[i, k] * B[j, k], k) + A[i, k]",
        "C[i, j] = sum(A[i, k] * B[j, k], k) + sum(A[i, k] * B[i, k], k)",
        "C[i, j] += sum(A[i, k] * B[j, k], k)", "C[i, j] = sum(A[i, k] * B[j, k], l)"}) {
    const auto m = read(text);
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().code, "TS0878") << text;
  }
}

}  // namespace
}  // namespace tessera::check
