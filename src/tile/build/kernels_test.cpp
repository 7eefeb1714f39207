// Pointwise, full reductions and attention: the host lowering against the interpreter, and both
// against formulas.
#include "tile/build/attention_reference.h"
#include "tile/build/pointwise.h"
#include "tile/test_support.h"

namespace tessera::tile::build {
namespace {

using enum tile::Access;

/// y[b, t, :] = gelu(x[b, t, :] + bias) * s[b], with x transposed in memory.
TEST(Pointwise, BroadcastAndStridedViews) {
  PointwiseProblem p;
  p.shape = {3, 5, 37};
  p.tensors = {row_major_tensor("x", DType::float32, {3, 37, 5}, input),
               row_major_tensor("bias", DType::float32, {37}, input),
               row_major_tensor("s", DType::float32, {3}, input),
               row_major_tensor("y", DType::float32, {3, 5, 37}, output)};
  p.operands = {{0, {185, 1, 5}, 0}, {1, {0, 0, 1}, 0}, {2, {1, 0, 0}, 0}};
  p.outputs = {{3, {185, 37, 1}, 0}};
  auto& d = p.dag;
  int sum = d.add_call("add", {d.add_operand(0), d.add_operand(1)});
  d.results = {d.add_call("mul", {d.add_call("gelu_tanh", {sum}), d.add_operand(2)})};
  auto in = inputs_of(p.tensors);
  Program host = pointwise(p, {.columns = 16}, Target::host).value();
  expect_host_matches(host, in, 1e-5);
  Program gpu = pointwise(p, {.threads = 32, .vector = 4, .unroll = 2}, Target::cuda).value();
  Memory a = interpret(host, in).value();
  Memory b = interpret(gpu, in).value();
  EXPECT_EQ(a.data[3], b.data[3]);
  EXPECT_TRUE(emit(gpu, Target::cuda));
}

/// Rotary embedding: two halves of x, two halves of y, cos and sin broadcast over heads.
TEST(Pointwise, RotaryWritesBothHalves) {
  PointwiseProblem p;
  int64_t T = 4, H = 3, D = 8;
  p.shape = {T, H, D / 2};
  p.tensors = {row_major_tensor("x", DType::float32, {T, H, D}, input),
               row_major_tensor("c", DType::float32, {T, D / 2}, input),
               row_major_tensor("s", DType::float32, {T, D / 2}, input),
               row_major_tensor("y", DType::float32, {T, H, D}, output)};
  p.operands = {{0, {H * D, D, 1}, 0},
                {0, {H * D, D, 1}, D / 2},
                {1, {D / 2, 0, 1}, 0},
                {2, {D / 2, 0, 1}, 0}};
  p.outputs = {{3, {H * D, D, 1}, 0}, {3, {H * D, D, 1}, D / 2}};
  auto& d = p.dag;
  int x0 = d.add_operand(0), x1 = d.add_operand(1), c = d.add_operand(2), s = d.add_operand(3);
  d.results = {d.add_call("sub", {d.add_call("mul", {x0, c}), d.add_call("mul", {x1, s})}),
               d.add_call("add", {d.add_call("mul", {x1, c}), d.add_call("mul", {x0, s})})};
  auto in = inputs_of(p.tensors);
  for (Target t : {Target::host, Target::cuda}) {
    Program program = pointwise(p, {.threads = 32, .vector = 4, .unroll = 1}, t).value();
    Memory m = interpret(program, in).value();
    for (int64_t i = 0; i < T * H * D; ++i) {
      ASSERT_TRUE(m.written[3][i]);
      int64_t t0 = i / (H * D), k = i % D;
      double cs = in[1][t0 * D / 2 + k % (D / 2)], sn = in[2][t0 * D / 2 + k % (D / 2)];
      double other = k < D / 2 ? -in[0][i + D / 2] : in[0][i - D / 2];
      EXPECT_NEAR(m.data[3][i], in[0][i] * cs + other * sn, 1e-5);
    }
    if (t == Target::host) expect_host_matches(program, in, 1e-6);
  }
}

TEST(Pointwise, JudgeFindsWhatAProgramDoesWrong) {
  PointwiseProblem p;
  p.shape = {4, 8};
  p.tensors = {row_major_tensor("x", DType::float32, {4, 8}, input),
               row_major_tensor("y", DType::float32, {4, 8}, output)};
  p.operands = {{0, {8, 1}, 0}};
  p.dag = identity_dag();
  p.outputs = {{1, {4, 1}, 0}};  // rows overlap
  Program twice = pointwise(p, {}, Target::host).value();
  EXPECT_EQ(interpret(twice, inputs_of(p.tensors)).error().code, "TS0422");
  p.outputs = {{1, {8, 1}, 0}};
  Program beyond = pointwise(p, {}, Target::host).value();
  beyond.tensors[0].shape[0] = 3;  // the view reaches a row further
  EXPECT_EQ(interpret(beyond, inputs_of(beyond.tensors)).error().code, "TS0420");
  p.operands = {{1, {8, 1}, 0}};  // reads the output
  EXPECT_EQ(interpret(pointwise(p, {}, Target::host).value(), inputs_of(p.tensors)).error().code,
            "TS0421");
  p.operands = {{0, {8, 1}, 1}};  // one too far
  EXPECT_EQ(pointwise(p, {}, Target::host).error().code, "TS0411");
}

TEST(FullReduction, MeanOfSquares) {
  PointwiseProblem p;
  p.name = "mse";
  p.shape = {7, 33};
  p.tensors = {row_major_tensor("a", DType::float32, {7, 33}, input),
               row_major_tensor("b", DType::float32, {7, 33}, input),
               row_major_tensor("y", DType::float32, {1}, output)};
  p.operands = {{0, {33, 1}, 0}, {1, {33, 1}, 0}};
  p.dag.results = {p.dag.add_call(
      "square", {p.dag.add_call("sub", {p.dag.add_operand(0), p.dag.add_operand(1)})})};
  p.outputs = {{2, {0, 0}, 0}};
  auto in = inputs_of(p.tensors);
  double want = 0;
  for (int i = 0; i < 231; ++i) want += std::pow(in[0][i] - in[1][i], 2) / 231;
  RowConfig host{.threads_per_row = 1, .rows_per_block = 1};
  Program program = full_reduction(p, RowKind::mean, {}, host, Target::host).value();
  EXPECT_EQ(program.kernels.size(), 2u);
  EXPECT_NEAR(interpret(program, in).value().data[2][0], want, 1e-5);
  expect_host_matches(program, in, 1e-5);
  Program gpu =
      full_reduction(p, RowKind::mean, {},
                     {.threads_per_row = 32, .rows_per_block = 2, .vector = 1}, Target::cuda)
          .value();
  EXPECT_TRUE(emit(gpu, Target::cuda));
}

void check_attention(const AttentionProblem& p, const std::vector<std::vector<double>>& in,
                     AttentionConfig c) {
  Program program = attention(p, c, Target::host).value();
  Result<Memory> m = interpret(program, in);
  ASSERT_TRUE(m) << to_text(m.error());
  std::vector<double> want = attention_formula(p, in);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(want[i])) continue;
    ASSERT_NEAR(m->data.back()[i], want[i], 1e-4) << i;
  }
  expect_host_matches(program, in, 1e-5);
}

TEST(Attention, FullWithTails) {
  AttentionProblem p = attention_problem(2, 2, 2, 21, 37, 12, 20);
  finish_problem(p);
  check_attention(p, inputs_of(p.tensors), {.block_queries = 8, .block_keys = 16});
}

TEST(Attention, CausalGroupedQueries) {
  AttentionProblem p = attention_problem(1, 4, 2, 35, 35, 16, 16);
  p.causal = true;
  finish_problem(p);
  check_attention(p, inputs_of(p.tensors), {.block_queries = 16, .block_keys = 16});
}

TEST(Attention, AdditiveMaskWithHiddenKeys) {
  AttentionProblem p = attention_problem(1, 2, 1, 9, 24, 8, 8);
  p.tensors.push_back(row_major_tensor("mask", DType::float32, {9, 24}, input));
  p.mask = StridedView{3, {0, 0, 24, 1}, 0};
  finish_problem(p);
  auto in = inputs_of(p.tensors);
  for (int i = 0; i < 9 * 24; i += 3) in[3][i] = -INFINITY;
  for (int i = 0; i < 24; ++i) in[3][2 * 24 + i] = -INFINITY;  // a row that sees nothing
  check_attention(p, in, {.block_queries = 4, .block_keys = 16});
  p.empty_rows_are_zero = true;
  check_attention(p, in, {.block_queries = 4, .block_keys = 16});
}

}  // namespace
}  // namespace tessera::tile::build
