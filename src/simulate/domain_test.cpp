// Kernels on residues: the same instructions as on numbers.
#include "simulate/domain.h"

#include <gtest/gtest.h>

#include "simulate/testing/kit.h"
#include "simulate/testing/product.h"

namespace tessera::simulate {
namespace {

using residue::Value;

TEST(ResidueDomain, ElementsAreWhatWasWritten) {
  std::vector<uint8_t> bytes(4 * Residues::cell, 0xff);
  EXPECT_TRUE(Residues::decode(DType::float32, bytes.data()).is_nothing());
  const Value x = residue::residues(5, 7);
  Residues::encode(DType::float32, x, bytes.data());
  EXPECT_TRUE(residue::same(Residues::decode(DType::float32, bytes.data()), x));
  // Its bytes are no elements of another type.
  EXPECT_TRUE(Residues::decode(DType::bfloat16, bytes.data()).is_nothing());
  EXPECT_TRUE(Residues::decode(DType::bfloat16, bytes.data() + 2 * Residues::cell).is_nothing());
  std::fill(bytes.begin(), bytes.end(), 0);
  EXPECT_TRUE(residue::same(Residues::decode(DType::bfloat16, bytes.data()), residue::number(0)));
}

/// Loads by TMA, a ring, wgmma, stmatrix, stores by TMA: each element is the sum, exactly.
TEST(ResidueDomain, AProductIsTheSumOfItsProducts) {
  const core::Kernel k = *core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2});
  const testing::Sizes sizes{.m = 72, .n = 40, .k = 40, .multiprocessors = 2};
  Launch l = testing::launch(sizes);
  std::mt19937_64 random(4);
  std::map<std::string, std::vector<Value>> inputs;
  for (const auto& [name, values] : l.inputs)
    for (std::size_t i = 0; i < values.size(); ++i)
      inputs[name].push_back(residue::residues(random() % residue::p, random() % residue::q));
  l.residues = inputs;
  const Outcome o = testing::run(k, l);
  EXPECT_EQ(testing::findings(o), "");
  for (int64_t i = 0; i < sizes.m; ++i)
    for (int64_t j = 0; j < sizes.n; ++j) {
      Value sum = residue::number(0);
      for (int64_t n = 0; n < sizes.k; ++n)
        sum = residue::add(sum, residue::multiply(inputs.at("A")[i * sizes.k + n],
                                                  inputs.at("B")[j * sizes.k + n]));
      ASSERT_TRUE(residue::same(sum, o.residues.at("C")[i * sizes.n + j])) << i << ", " << j;
    }
}

}  // namespace
}  // namespace tessera::simulate
