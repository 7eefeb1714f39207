#include "check/means.h"

#include <gtest/gtest.h>

#include "core/testing/gemm.h"

namespace tessera::check {
namespace {

Result<std::optional<Means>> read(const std::string& text) {
  Result<core::Kernel> k = core::testing::gemm();
  if (!k) return error(k.error());
  k->means = text;
  return means_of(*k);
}

TEST(CheckMeans, ReadsProducts) {
  const auto plain = read("C[i, j] = sum(A[i, k] * B[j, k], k)");
  ASSERT_TRUE(plain && *plain) << to_text(plain.error());
  EXPECT_EQ((*plain)->a.tensor.index, 0);
  EXPECT_EQ((*plain)->b.tensor.index, 1);
  EXPECT_EQ((*plain)->outputs[0].to.tensor.index, 2);
  EXPECT_EQ((*plain)->outputs[0].to.place(Axis::column), 1);
  const auto turned = read("C[y, x] = sum(A[s, x] * B[y, s], s)");
  ASSERT_TRUE(turned && *turned);
  EXPECT_EQ((*turned)->a.place(Axis::k), 0);
  EXPECT_EQ((*turned)->a.place(Axis::row), 1);
  EXPECT_EQ((*turned)->outputs[0].to.place(Axis::row), 1);
  EXPECT_EQ((*turned)->outputs[0].to.place(Axis::column), 0);
}

TEST(CheckMeans, NothingSaidIsNothing) {
  const auto none = read("");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST(CheckMeans, RefusesOtherForms) {
  for (const char* text :
       {"C[i, j]", "C[i, j] = A[i, j]", "C[i, j] = sum(A[i, k] + B[j, k], k)",
        "C[i, j] = sum(A[i, k] * Z[j, k], k)", "C[i, j] = sum(A[i, k] * B[i, k], k)",
        "C[i, j] = sum(A[i, i] * B[j, k], k)", "C[i, l] = sum(A[i, k] * B[j, k], k)",
        "C[i, j] += sum(A[i, k] * B[j, k], k)", "C[i, j] = sum(A[i, k] * B[j, k], l)"}) {
    const auto m = read(text);
    ASSERT_FALSE(m) << text;
    EXPECT_EQ(m.error().code, bad_meaning.id) << text;
  }
}

}  // namespace
}  // namespace tessera::check
