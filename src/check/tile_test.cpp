// Kernels of which the tile's walk cannot say what they store: none of them is proved, and the
// reason says what was not followed.
#include "check/tile.h"

#include <functional>
#include <gtest/gtest.h>

#include "check/check.h"
#include "check/kind.h"
#include "core/testing/gemm.h"

namespace tessera::check {
namespace {

using core::Body;
using core::Kernel;
using core::Op;
using core::testing::GemmShape;

/// Every op from the last to the first, with the body that it stands in.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void each(Body& body, const std::function<void(Body&, std::size_t)>& f) {
  for (std::size_t i = body.size(); i-- > 0;) {
    for (Body* inner :
         {std::get_if<core::For>(&body[i].node) ? &std::get<core::For>(body[i].node).body : nullptr,
          std::get_if<core::If>(&body[i].node) ? &std::get<core::If>(body[i].node).body : nullptr,
          std::get_if<core::Elected>(&body[i].node) ? &std::get<core::Elected>(body[i].node).body
                                                    : nullptr,
          std::get_if<core::Role>(&body[i].node) ? &std::get<core::Role>(body[i].node).body
                                                 : nullptr})
      if (inner != nullptr) each(*inner, f);
    f(body, i);
  }
}

core::Issue* issue(Op& op, std::string_view form) {
  auto* i = std::get_if<core::Issue>(&op.node);
  return i != nullptr && i->form->name.starts_with(form) ? i : nullptr;
}

/// The reason of the first kind of data that is undecided; the verdict's name where it is another.
std::string why(const GemmShape& s, const std::function<void(Kernel&)>& edit) {
  Result<Kernel> k = core::testing::gemm(s);
  if (!k) return to_text(k.error());
  edit(*k);
  const Report r = check(*k, {}, **means_of(*k));
  for (const char* kind : {"k_agreement", "reduction", "placement", "output_once"})
    if (r.find(kind)->verdict == Verdict::unknown) return r.find(kind)->reason;
  return std::string(name_of(r.verdict()));
}

const GemmShape direct{.bm = 64, .bn = 64, .stages = 2, .direct = true};

TEST(CheckTile, OneLaneThatStoresAloneIsNotFollowed) {
  EXPECT_EQ(why(direct, [](Kernel&) {}), "proved");
  EXPECT_EQ(why(direct,
                [](Kernel& k) {
                  each(k.body, [](Body& b, std::size_t i) {
                    if (issue(b[i], "store.global") != nullptr) b[i] = {core::Elected{{b[i]}}, {}};
                  });
                }),
            "`store.global.4.bounded` is done by one lane alone");
}

/// Zeros in the registers that results go to.
Op zeros(Kernel& k) {
  core::Compute c;
  each(k.body, [&](Body& b, std::size_t i) {
    if (const auto* found = b[i].as<core::Compute>()) c = *found;
  });
  auto dag = std::make_shared<pointwise::Dag>();
  dag->results = {dag->add_constant(0)};
  c.dag = dag;
  c.inputs.clear();
  for (core::Run& r : c.results) r.first = k.pool->constant(0);
  return {c, {}};
}

Body& consumer(Kernel& k) {
  for (Op& op : k.body)
    if (auto* role = std::get_if<core::Role>(&op.node); role != nullptr && role->name == "consumer")
      return role->body;
  throw std::logic_error("no consumer");
}

TEST(CheckTile, RegistersThatGoFromTurnToTurnAreNotFollowed) {
  EXPECT_EQ(why(direct,
                [](Kernel& k) {
                  Body& body = consumer(k);
                  body.insert(
                      std::find_if(body.begin(), body.end(),
                                   [](const Op& op) { return op.as<core::For>() != nullptr; }),
                      zeros(k));
                }),
            "registers `out` go from turn to turn");
}

TEST(CheckTile, ANegatedOperandIsNotProved) {
  EXPECT_EQ(why({.bm = 64, .bn = 64, .stages = 2},
                [](Kernel& k) {
                  each(k.body, [&](Body& b, std::size_t i) {
                    core::Issue* w = issue(b[i], "wgmma.f32");
                    if (w == nullptr) return;
                    for (std::size_t a = 0; a < w->arguments.size(); ++a)
                      if (w->form->operands[a].name == "scale_b")
                        w->arguments[a] = core::Integers{{k.pool->constant(-1)}};
                  });
                }),
            "a product negates an operand");
}

TEST(CheckTile, AStoreElsewhereIsNotFollowed) {
  EXPECT_EQ(why(direct,
                [](Kernel& k) {
                  core::Issue store;
                  each(k.body, [&](Body& b, std::size_t i) {
                    if (const core::Issue* s = issue(b[i], "store.global")) store = *s;
                  });
                  for (core::Argument& a : store.arguments) {
                    if (auto* slice = std::get_if<core::Slice>(&a))
                      slice->first = k.pool->constant(0);
                    if (auto* at = std::get_if<core::GlobalAt>(&a))
                      at->at = {k.pool->constant(0), k.pool->constant(0)};
                  }
                  consumer(k).push_back(zeros(k));
                  consumer(k).push_back({store, {}});
                }),
            "a store stands elsewhere than behind the products of a turn");
}

TEST(CheckTile, AFunctionOfAnotherFormThatIsEqualIsNotProved) {
  Result<Kernel> k = core::testing::gemm(
      {.bm = 64, .bn = 64, .stages = 2, .epilogue = core::testing::Epilogue::relu});
  ASSERT_TRUE(k);
  const auto judged = [&](const std::string& means) {
    k->means = means;
    return *check(*k, {}, **means_of(*k)).find("placement");
  };
  const std::string sum = "sum(A[i, k] * B[j, k], k)";
  EXPECT_EQ(judged("C[i, j] = relu(-0.5 * " + sum + ")").verdict, Verdict::proved);
  EXPECT_EQ(judged("C[i, j] = relu(0.5 * " + sum + ")").verdict, Verdict::refuted);
  EXPECT_EQ(judged("C[i, j] = -0.5 * relu(" + sum + ")").verdict, Verdict::refuted);
  const Finding equal = judged("C[i, j] = 0.5 * relu(-" + sum + ")");
  EXPECT_EQ(equal.verdict, Verdict::unknown);
  EXPECT_EQ(equal.reason,
            "it is not known that relu(sum[i, j] * -0.5) is 0.5 * relu(sum[i, j] * -1)");
}

}  // namespace
}  // namespace tessera::check
