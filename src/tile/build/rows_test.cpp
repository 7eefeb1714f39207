#include "tile/build/rows.h"

#include <set>

#include "tile/test_support.h"

namespace tessera::tile::build {
namespace {

/// y * w + b after the kind, on [rows, columns].
RowProblem problem(RowKind kind, int64_t rows, int64_t columns, DType t, bool affine) {
  RowProblem p;
  p.name = std::string(name_of(kind));
  p.kind = kind;
  p.row_shape = {rows};
  p.columns = columns;
  bool narrow = kind == RowKind::sum || kind == RowKind::mean || kind == RowKind::max;
  p.tensors = {row_major_tensor("x", t, {rows, columns}, tile::Access::input)};
  p.operands = {{0, {columns, 1}, 0}};
  if (affine) {
    p.tensors.push_back(row_major_tensor("w", t, {columns}, tile::Access::input));
    p.tensors.push_back(row_major_tensor("b", t, {columns}, tile::Access::input));
    p.operands.push_back({1, {0, 1}, 0});
    p.operands.push_back({2, {0, 1}, 0});
    int y = p.post.add_operand(0);
    int w = p.post.add_operand(3);
    int b = p.post.add_operand(4);
    p.post.results = {p.post.add_call("add", {p.post.add_call("mul", {y, w}), b})};
  }
  p.outputs = {{static_cast<int>(p.tensors.size()), {narrow ? 1 : columns, 1}, 0}};
  p.tensors.push_back(row_major_tensor(
      "y", t, narrow ? std::vector<int64_t>{rows} : std::vector<int64_t>{rows, columns},
      tile::Access::output));
  return p;
}

std::vector<std::vector<double>> inputs_of(const RowProblem& p) {
  std::vector<std::vector<double>> in;
  for (const Tensor& t : p.tensors) in.push_back(noise(t.extent(), in.size() + 1));
  return in;
}

/// The meaning in double, written independently of programs.
std::vector<double> reference(const RowProblem& p, const std::vector<double>& x) {
  std::vector<double> y;
  for (std::size_t r = 0; r * p.columns < x.size(); ++r) {
    const double* row = &x[r * p.columns];
    double n = static_cast<double>(p.columns), sum = 0, most = -INFINITY, e = 0, m2 = 0, ss = 0;
    for (int64_t i = 0; i < p.columns; ++i)
      sum += row[i], ss += row[i] * row[i],
          most = row[i] > most || std::isnan(row[i]) ? row[i] : most;
    for (int64_t i = 0; i < p.columns; ++i)
      e += std::exp(row[i] - most), m2 += std::pow(row[i] - sum / n, 2);
    if (p.kind == RowKind::sum) y.push_back(sum);
    if (p.kind == RowKind::mean) y.push_back(sum / n);
    if (p.kind == RowKind::max) y.push_back(most);
    for (int64_t i = 0; i < p.columns; ++i) {
      if (p.kind == RowKind::softmax) y.push_back(std::exp(row[i] - most) / e);
      if (p.kind == RowKind::log_softmax) y.push_back(row[i] - most - std::log(e));
      if (p.kind == RowKind::layer_norm)
        y.push_back((row[i] - sum / n) / std::sqrt(m2 / n + p.eps));
      if (p.kind == RowKind::rms_norm) y.push_back(row[i] / std::sqrt(ss / n + p.eps));
    }
  }
  return y;
}

constexpr RowKind all_kinds[] = {RowKind::layer_norm,  RowKind::rms_norm, RowKind::softmax,
                                 RowKind::log_softmax, RowKind::sum,      RowKind::mean,
                                 RowKind::max};

/// The program for a GPU means the same as the formula: judged slot by slot, with tails in both
/// axes.
TEST(Rows, InterpretedGpuProgramsMeanTheFormula) {
  for (RowKind kind : all_kinds)
    for (RowConfig c : {RowConfig{4, 8, 2, 1, 0, 0}, RowConfig{32, 1, 4, 1, 2, 0},
                        RowConfig{8, 4, 2, 2, 0, 0}, RowConfig{32, 1, 1, 1, 0, 32}}) {
      RowProblem p = problem(kind, 6, 37, DType::float32, false);
      Result<Program> program = rows(p, c, Target::cuda);
      ASSERT_TRUE(program) << to_text(program.error());
      auto in = inputs_of(p);
      Result<Memory> m = interpret(*program, in);
      ASSERT_TRUE(m) << to_text(m.error());
      std::vector<double> x = in[0];
      for (double& v : x) v = static_cast<float>(v);
      std::vector<double> want = reference(p, x);
      ASSERT_EQ(m->data.back().size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_TRUE(m->written.back()[i]) << i;
        ASSERT_NEAR(m->data.back()[i], want[i], 2e-5) << name_of(kind) << " " << i;
      }
    }
}

TEST(Rows, HostMatchesTheInterpreter) {
  for (RowKind kind : all_kinds)
    for (int64_t chunk : {0, 16}) {
      bool narrow = kind == RowKind::sum || kind == RowKind::mean || kind == RowKind::max;
      RowProblem p = problem(kind, 5, 37, DType::float32, !narrow);
      RowConfig c{.threads_per_row = 1, .rows_per_block = 1, .chunk = chunk};
      expect_host_matches(rows(p, c, Target::host).value(), inputs_of(p), 1e-5);
    }
}

TEST(Rows, HostKeepsInfinitiesAndNan) {
  for (RowKind kind : all_kinds)
    for (int64_t chunk : {0, 16}) {
      RowProblem p = problem(kind, 5, 37, DType::float32, false);
      auto in = inputs_of(p);
      in[0][3] = NAN;
      in[0][37 + 20] = INFINITY;
      in[0][2 * 37 + 36] = -INFINITY;
      for (int i = 0; i < 37; ++i) in[0][3 * 37 + i] = -INFINITY;
      RowConfig c{.threads_per_row = 1, .rows_per_block = 1, .chunk = chunk};
      expect_host_matches(rows(p, c, Target::host).value(), in, 1e-5);
    }
}

/// One inf in a row of rms_norm: the mean square is inf, so the row is 0 but for inf * 0 = NaN at
/// its place. Columns that leave a tail, whole rows and chunks.
TEST(Rows, RmsNormOfARowWithInfinityIsNanOnlyThere) {
  constexpr int columns = 33;
  RowProblem p = problem(RowKind::rms_norm, 3, columns, DType::float32, false);
  auto in = inputs_of(p);
  in[0][columns - 1] = INFINITY;
  in[0][columns + 5] = -INFINITY;
  auto expect = [&](const std::vector<double>& y, const char* who) {
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < columns; ++c) {
        bool there = c == (r == 0 ? columns - 1 : 5);
        double v = y[r * columns + c];
        EXPECT_TRUE(there ? std::isnan(v) : v == 0) << who << " row " << r << " column " << c;
      }
    for (int c = 2 * columns; c < 3 * columns; ++c) EXPECT_TRUE(std::isfinite(y[c])) << who;
  };
  for (RowConfig c :
       {RowConfig{32, 2, 4, 1, 0, 0}, RowConfig{32, 2, 2, 1, 8, 0}, RowConfig{32, 1, 1, 1, 0, 32}})
    expect(interpret(rows(p, c, Target::cuda).value(), in).value().data.back(), "gpu program");
  for (int64_t chunk : {0, 16}) {
    RowConfig c{.threads_per_row = 1, .rows_per_block = 1, .chunk = chunk};
    expect(run_on_host(rows(p, c, Target::host).value(), in).back(), "host");
  }
}

/// Chunks of several warps, the last one cut: the moments of 7 parts combine to those of the row.
TEST(Rows, ChunksOfALongRowMeanTheFormula) {
  for (RowKind kind : {RowKind::layer_norm, RowKind::log_softmax, RowKind::rms_norm}) {
    RowProblem p = problem(kind, 3, 6 * 512 + 100, DType::float32, false);
    auto in = inputs_of(p);
    for (double& v : in[0]) v = static_cast<float>(v + 3);
    std::vector<double> want = reference(p, in[0]);
    Program gpu = rows(p, {64, 1, 4, 1, 0, 512}, Target::cuda).value();
    Program host =
        rows(p, {.threads_per_row = 1, .rows_per_block = 1, .chunk = 512}, Target::host).value();
    std::vector<double> a = interpret(gpu, in).value().data.back();
    std::vector<double> b = run_on_host(host, in).back();
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(a[i], want[i], 2e-5) << name_of(kind) << " " << i;
      ASSERT_NEAR(b[i], want[i], 2e-5) << name_of(kind) << " " << i;
    }
  }
}

TEST(Rows, HostHalfPrecision) {
  for (DType t : {DType::bfloat16, DType::float16}) {
    RowProblem p = problem(RowKind::layer_norm, 3, 65, t, true);
    expect_host_matches(rows(p, {.threads_per_row = 1, .rows_per_block = 1}, Target::host).value(),
                        inputs_of(p), t == DType::bfloat16 ? 8e-3 : 1e-3);
  }
}

/// The row itself is an operand of post, so it can be an output too; rounded as a library call
/// would leave it.
TEST(Rows, PostReadsTheRow) {
  RowProblem p = problem(RowKind::softmax, 4, 24, DType::bfloat16, false);
  p.tensors.push_back(row_major_tensor("h", DType::bfloat16, {4, 24}, tile::Access::output));
  p.outputs.push_back({2, {24, 1}, 0});
  p.pre.results = {p.pre.add_call("mul", {p.pre.add_operand(0), p.pre.add_constant(1.7)})};
  p.round_x = DType::bfloat16;
  p.post.results = {p.post.add_operand(0), p.post.add_operand(1)};
  auto in = inputs_of(p);
  for (int64_t chunk : {0, 16}) {
    RowConfig c{.threads_per_row = 1, .rows_per_block = 1, .chunk = chunk};
    Program program = rows(p, c, Target::host).value();
    expect_host_matches(program, in, 8e-3);
    Memory m = interpret(program, in).value();
    for (int i = 0; i < 96; ++i) {
      EXPECT_EQ(
          m.data[2][i],
          round_to(DType::bfloat16, static_cast<float>(1.7 * round_to(DType::bfloat16, in[0][i]))));
    }
  }
}

/// h = x + r is stored and normalized as stored.
TEST(Rows, ResidualSumIsASecondOutput) {
  RowProblem p = problem(RowKind::rms_norm, 4, 40, DType::bfloat16, false);
  p.tensors.insert(p.tensors.begin() + 1,
                   row_major_tensor("r", DType::bfloat16, {4, 40}, tile::Access::input));
  p.tensors.push_back(row_major_tensor("h", DType::bfloat16, {4, 40}, tile::Access::output));
  p.operands.push_back({1, {40, 1}, 0});
  p.outputs[0].tensor = 2;
  p.stored = {{3, {40, 1}, 0}};
  p.pre.results = {p.pre.add_call("add", {p.pre.add_operand(0), p.pre.add_operand(1)})};
  auto in = inputs_of(p);
  Program program = rows(p, {.threads_per_row = 1, .rows_per_block = 1}, Target::host).value();
  expect_host_matches(program, in, 8e-3);
  Memory m = interpret(program, in).value();
  for (int i = 0; i < 160; ++i)
    EXPECT_EQ(m.data[3][i], round_to(DType::bfloat16, round_to(DType::bfloat16, in[0][i]) +
                                                          round_to(DType::bfloat16, in[1][i])));
}

/// A row that a kernel reads again is not copied; what it will write is asked for in between.
TEST(Rows, HostReadsAgainAndAsksForWhatItWrites) {
  RowProblem p = problem(RowKind::layer_norm, 4, 768, DType::float32, true);
  Program program = rows(p, {.threads_per_row = 1, .rows_per_block = 1}, Target::host).value();
  std::string source = emit(program, Target::host).value().source;
  EXPECT_EQ(source.find("[768];"), std::string::npos);
  EXPECT_NE(source.find("tst_expect_write(y + ((r)) * 768 + (0), 768);"), std::string::npos);
  expect_host_matches(program, inputs_of(p), 1e-5);
}

TEST(Rows, RefusesABlockThatCannotBe) {
  auto r = rows(problem(RowKind::softmax, 4, 8, DType::float32, false),
                {.threads_per_row = 8, .rows_per_block = 1}, Target::cuda);
  EXPECT_EQ(r.error().code, "TS0401");
}

TEST(Rows, EveryListedConfigEmits) {
  for (int64_t columns : {64, 768, 4096, 16384, 131072}) {
    RowProblem p = problem(RowKind::layer_norm, 256, columns, DType::bfloat16, true);
    std::vector<RowConfig> configs = row_configs(p, {.target = Target::cuda});
    EXPECT_FALSE(configs.empty()) << columns;
    EXPECT_LE(configs.size(), 16u) << columns;
    for (std::size_t i = 0; i < configs.size(); i += 3) {
      Result<Program> program = rows(p, configs[i], Target::cuda);
      ASSERT_TRUE(program) << to_text(program.error());
      ASSERT_TRUE(emit(*program, Target::cuda)) << to_json(configs[i]).dump();
    }
  }
}

/// What a tuner can choose from: wide and narrow spreads, two rows in flight, persistent blocks.
TEST(Rows, ListedConfigsDiffer) {
  RowProblem p = problem(RowKind::rms_norm, 16384, 4096, DType::float32, true);
  std::set<int> spreads;
  bool two_rows = false, persistent = false;
  for (const RowConfig& c : row_configs(p, {.target = Target::cuda})) {
    if (c.vector == 4) spreads.insert(c.threads_per_row);
    two_rows = two_rows || c.rows_per_thread == 2;
    persistent = persistent || c.blocks_per_multiprocessor > 0;
  }
  EXPECT_TRUE(spreads.contains(128) && spreads.contains(256) && spreads.contains(512));
  EXPECT_TRUE(two_rows && persistent);
}

}  // namespace
}  // namespace tessera::tile::build
