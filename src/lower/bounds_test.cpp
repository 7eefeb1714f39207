// Loads of an unrolled loop: what they share, and what is constant in the text of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/builder.h"
#include "lower/lower.h"

namespace tessera::lower {
namespace {

using core::Builder;
using core::Integers;
using term::Term;
using ::testing::HasSubstr;

TEST(LowerBounds, TwoTruthValuesAreLoadedAtOnceAndReadOneByOne) {
  Builder b("k", 128);
  const core::TensorId x = b.tensor({"x", DType::boolean, {b.number(512)}, {b.number(1)}});
  const auto layout = *parse_layout("(128,4):(1,128)");
  const core::RegistersId r = b.registers("r", DType::boolean, {512}, layout),
                          y = b.registers("y", DType::float32, {512}, layout);
  b.unrolled("i", 2, [&](Term i) {
    b.issue("load.global.2.bounded",
            {core::Slice{r, i * 2}, core::GlobalAt{x, {b.at().lane * 4 + i * 2}},
             Integers{{b.select(term::less(b.at().lane * 4 + i * 2, b.at().warp * 2), b.number(1),
                                b.number(0))}}});
  });
  auto dag = std::make_shared<pointwise::Dag>();
  dag->results = {dag->add_operand(0)};
  core::Compute c{.dag = dag};
  c.inputs = {core::Run{r, b.number(0), Layout(4, 1)}};
  c.results = {core::Run{y, b.number(0), Layout(4, 1)}};
  c.count = 4;
  b.compute(std::move(c));
  const Result<core::Kernel> kernel = b.finish();
  ASSERT_TRUE(kernel) << to_text(kernel.error());
  const auto s = lower(*kernel);
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_THAT(s->text, HasSubstr("set_field<16>(r[0], ((i * 2) & 3) >> 1, part);"));
  EXPECT_THAT(s->text, HasSubstr("field<8>(r[(e) / 4], (e) % 4) != 0 ? 1.0f : 0.0f"));
  // What the loads share is computed once: a constant stands apart in address and bound.
  EXPECT_THAT(s->text, HasSubstr("x + 1 * int64_t(4 * lane) + 1 * (2 * i), "));
  EXPECT_THAT(s->text, HasSubstr("(2 * i) < ((warp * 2) - "));
}

}  // namespace
}  // namespace tessera::lower
