// Plans against the instructions' own layouts, and what the reads of attention's tiles cost in bank
// conflicts.
#include "tile/dot_plan.h"

#include "tile/build/attention_reference.h"
#include "tile/emit_dot.h"
#include "tile/op_record.h"

namespace tessera::tile {
namespace {

using build::AttentionConfig;
using build::AttentionProblem;

/// Every dot of a program, in order.
void dots_of(const Region& r, std::vector<const Op*>& out) {
  for (const Op& op : r.ops) {
    if (op.record->name == "dot") out.push_back(&op);
    for (const Region& inner : op.regions) dots_of(inner, out);
  }
}

Program attention_of(int64_t dim, DType t, Precision precision, AttentionConfig c) {
  AttentionProblem p = build::attention_problem(1, 1, 1, 128, 128, dim, dim, t);
  p.precision = precision;
  build::finish_problem(p);
  return attention(p, c, Target::cuda).value();
}

TEST(DotPlan, ReadsOfHeadDimsThatCountAreFreeOfConflicts) {
  for (int64_t dim : {64, 96, 128, 256})
    for (DType t : {DType::float32, DType::bfloat16}) {
      const Program p = attention_of(
          dim, t, Precision::tf32,
          {.block_queries = 64, .block_keys = 32, .row_tiles = 1, .shared_queries = true});
      std::vector<const Op*> dots;
      dots_of(p.kernels[0].body, dots);
      ASSERT_EQ(dots.size(), 2U);
      for (const Op* dot : dots) {
        const DotPlan plan = plan_of(p.kernels[0], *dot).value();
        EXPECT_EQ(read_conflicts(plan, size_of(t)), 1) << dim << " " << name_of(t);
        // 16 bytes a lane; four matrices at once where rows are transposed on the way.
        EXPECT_EQ(plan.vector_elements * size_of(t), 16);
        EXPECT_EQ(plan.transposed_rows, t == DType::bfloat16 && dot == dots[1]);
      }
    }
}

TEST(DotPlan, UnpaddedRowsConflict) {
  const Program p = attention_of(128, DType::float32, Precision::tf32,
                                 {.block_queries = 64, .block_keys = 32, .row_tiles = 1});
  std::vector<const Op*> dots;
  dots_of(p.kernels[0].body, dots);
  const auto& values = p.kernels[0].values;
  Type b = values[dots[0]->operands[1].index].type;
  b.layout = concat({Layout(32, 128), Layout(128, 1)});
  const DotPlan plan =
      plan_dot(*arch::find_mma("m16n8k8.tf32"), values[dots[0]->operands[0].index].type, b, true,
               values[dots[0]->operands[2].index].type)
          .value();
  EXPECT_EQ(read_conflicts(plan, 4), 2);  // 8 lanes: two rows on the same 16 banks
}

/// B's lane and slot of every instruction hold the k of A's slots and the n of C's.
TEST(DotPlan, OperandsAgreeOnEveryElement) {
  for (Precision precision : {Precision::tf32, Precision::bf16}) {
    const DType t = storage_type(precision);
    const Program p =
        attention_of(96, t, precision, {.block_queries = 64, .block_keys = 32, .row_tiles = 2});
    std::vector<const Op*> dots;
    dots_of(p.kernels[0].body, dots);
    for (const Op* dot : dots) {
      const Kernel& k = p.kernels[0];
      const DotPlan plan = plan_of(k, *dot).value();
      const Type& a = k.values[dot->operands[0].index].type;
      std::set<int64_t> seen;
      // The k of slot 0 of each lane, plus the digits, is the k of A's register of those digits.
      for (int64_t lane = 0; lane < 32; ++lane) {
        for (const Digit& inner : plan.k_inner)
          for (int64_t i = 0; i < inner.extent; ++i)
            EXPECT_EQ(coordinate(a, lane, i * inner.weight)[1],
                      lane_place(plan.lane_k, lane) + i * inner.step);
        for (int64_t r = 0; r < a.registers(); ++r) seen.insert(coordinate(a, lane, r)[1]);
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), a.cover[1]);
      const Type& c = k.values[dot->operands[2].index].type;
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t e = 0; e < 2; ++e) {
          // Column 2 (lane % 4) + e of the instruction: the lane of B that supplies it is 4 times
          // that, and its place in n is the lane's second mode.
          const int64_t g = lane % 4 * 2 + e;
          EXPECT_EQ(coordinate(c, lane, e * plan.n_inner[0].weight)[1], g * plan.lane[1].step);
        }
    }
  }
}

TEST(DotPlan, RefusesWhatDoesNotFitTheInstruction) {
  const Program p = attention_of(96, DType::float32, Precision::tf32,
                                 {.block_queries = 64, .block_keys = 32, .row_tiles = 1});
  std::vector<const Op*> dots;
  dots_of(p.kernels[0].body, dots);
  const auto type = [&](int i) { return p.kernels[0].values[dots[0]->operands[i].index].type; };
  const auto& by = *arch::find_mma("m16n8k8.tf32");
  EXPECT_EQ(plan_dot(by, type(0), type(0), true, type(2)).error().code, "TS0401");
  // Queries lie 4 in a row in a lane: no instruction leaves its result so.
  EXPECT_EQ(plan_dot(by, type(2), type(1), true, type(0)).error().code, "TS0401");
  Type one_thread = type(0);
  one_thread.layout = layout_of({{}, {{96, 1, 1}, {64, 0, 1}}}, one_thread.cover);
  EXPECT_EQ(plan_dot(by, one_thread, type(1), true, type(2)).error().code, "TS0401");
}

/// What the interpreter says of a pipeline that is wrong.
TEST(Rings, AReadBeforeItsWaitIsARace) {
  for (int pending : {0, 1}) {
    Program p = attention_of(96, DType::float32, Precision::tf32,
                             {.block_queries = 64, .block_keys = 64, .row_tiles = 1});
    for (Op& tiles : p.kernels[0].body.ops)
      for (Region& r : tiles.regions)
        for (Op& steps : r.ops)
          for (Region& turn : steps.regions)
            for (Op& op : turn.ops)
              if (op.record->name == "wait") op.payload = Wait{pending};
    std::vector<std::vector<double>> in = build::inputs_of(p.tensors);
    const Result<Memory> m = interpret(p, in);
    if (pending == 0) {
      EXPECT_TRUE(m);
    } else {
      ASSERT_FALSE(m);
      EXPECT_EQ(m.error().code, "TS0423");
    }
  }
}

}  // namespace
}  // namespace tessera::tile
