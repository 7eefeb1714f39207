// Emitted CUDA sources, compiled with g++ and run thread by thread (tests/emulate), against fp64.
#include <unistd.h>

#include "base/source_folder.h"
#include "tile/build/attention_reference.h"
#include "tile/build/pointwise.h"

namespace tessera::tile {
namespace {

namespace fs = std::filesystem;
using build::AttentionConfig;
using build::AttentionProblem;
using Values = std::vector<std::vector<double>>;

std::string read_file(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder with the source, the tensors of a launch by number, and after run() what it printed.
struct Emulation {
  fs::path dir = fs::temp_directory_path() / fmt::format("tessera-emulate-{}", getpid());
  int count = 0;

  Emulation(const std::string& source, const Program& p, const Values& inputs) {
    fs::create_directories(dir);
    std::ofstream(dir / "k.cpp") << source;
    for (std::size_t i = 0; i < p.tensors.size(); ++i) {
      const Tensor& t = p.tensors[i];
      if (t.access == Access::workspace) continue;
      const auto bytes = t.access == Access::input
                             ? to_bytes(t.element, inputs[i])
                             : std::vector<unsigned char>(t.extent() * size_of(t.element), 0xff);
      std::ofstream(dir / std::to_string(count++), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
    }
  }
  Emulation(const Emulation&) = delete;
  Emulation& operator=(const Emulation&) = delete;
  ~Emulation() { fs::remove_all(dir); }

  [[nodiscard]] int run() const {
    return std::system(
        fmt::format("g++ -std=c++20 -O1 -w -DTST_EMULATE -DTESSERA_PROGRAMMATIC_LAUNCH=1 -include "
                    "cuda_runtime.h -I {0}/tests/emulate/include -I {0}/include {1}/k.cpp "
                    "{0}/tests/emulate/run.cpp -o {1}/run 2>{1}/log && {1}/run {1} {2} 2>>{1}/log",
                    source_folder(), dir.string(), count)
            .c_str());
  }
  [[nodiscard]] std::string log() const { return read_file(dir / "log").substr(0, 3000); }
};

/// Every tensor of the launch after the run, inputs too; outputs start as NaN.
Values emulate(const Program& p, const Values& inputs) {
  Result<Emitted> e = emit(p, Target::cuda);
  EXPECT_TRUE(e) << (e ? "" : to_text(e.error()));
  if (!e) return {};
  const Emulation emulation(e->source, p, inputs);
  const int rc = emulation.run();
  EXPECT_EQ(rc, 0) << emulation.log()
                   << e->source.substr(e->source.find("using tst_index")).substr(0, 200);
  Values out;
  for (int i = 0; i < emulation.count && rc == 0; ++i) {
    const std::string bytes = read_file(emulation.dir / std::to_string(i));
    out.push_back(from_bytes(p.tensors[i].element, {bytes.begin(), bytes.end()}));
  }
  return out;
}

/// Relative RMS error of the last tensor.
double rms_error(const std::vector<double>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::pow(got[i] - want[i], 2);
    size += std::pow(want[i], 2);
  }
  return std::sqrt(error / size);
}

/// The kernel and its interpretation against the formula on what the tensors hold.
void check(const AttentionProblem& p, const AttentionConfig& c, double most) {
  Values in = build::inputs_of(p.tensors);
  for (std::size_t i = 0; i < in.size(); ++i)
    for (double& x : in[i]) x = round_to(p.tensors[i].element, x);
  Result<Program> program = attention(p, c, Target::cuda);
  ASSERT_TRUE(program) << to_text(program.error());
  const std::vector<double> want = build::attention_formula(p, in);
  Result<Memory> m = interpret(*program, in);
  ASSERT_TRUE(m) << to_text(m.error());
  EXPECT_LE(rms_error(m->data.back(), want), most) << "interpreted";
  const Values got = emulate(*program, in);
  ASSERT_EQ(got.size(), p.tensors.size());
  EXPECT_LE(rms_error(got.back(), want), most) << "emulated";
}

AttentionProblem sized(int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys, int64_t dim,
                       int64_t value_dim, DType t, Precision precision) {
  AttentionProblem p =
      build::attention_problem(1, heads, kv_heads, queries, keys, dim, value_dim, t);
  p.precision = precision;
  return p;
}

constexpr AttentionConfig small{.block_queries = 32, .block_keys = 32, .row_tiles = 1, .stages = 1};

TEST(EmulatedAttention, CausalTf32) {
  AttentionProblem p = sized(1, 1, 100, 100, 96, 96, DType::float32, Precision::tf32);
  p.causal = true;
  build::finish_problem(p);
  check(p, {.block_queries = 64, .block_keys = 64, .row_tiles = 1, .stages = 1}, 8e-4);
}

TEST(EmulatedAttention, FullFp32OfSharedHeadsWithOddSizes) {
  AttentionProblem p = sized(4, 2, 37, 75, 40, 24, DType::float32, Precision::fp32);
  build::finish_problem(p);
  AttentionConfig c = small;
  c.stages = 2;
  check(p, c, 4e-7);
}

TEST(EmulatedAttention, CausalBf16WithTwoTilesAWarp) {
  AttentionProblem p = sized(2, 1, 70, 70, 64, 64, DType::bfloat16, Precision::bf16);
  p.causal = true;
  build::finish_problem(p);
  check(
      p,
      {.block_queries = 64, .block_keys = 32, .row_tiles = 2, .stages = 3, .shared_queries = true},
      4e-3);
}

TEST(EmulatedAttention, MaskedFp16OfAnOddHeadDim) {
  AttentionProblem p = sized(2, 2, 33, 50, 40, 40, DType::float16, Precision::fp16);
  p.tensors.push_back(
      build::row_major_tensor("mask", DType::float16, {33, 50}, tile::Access::input));
  p.mask = build::StridedView{3, {0, 0, 50, 1}, 0};
  build::finish_problem(p);
  check(p, small, 1e-3);
}

TEST(EmulatedRows, NormalizeInLanesAndAcrossWarps) {
  for (int threads : {8, 64}) {
    build::RowProblem p;
    p.kind = build::RowKind::softmax;
    p.row_shape = {37};
    p.columns = 203;
    p.tensors = {build::row_major_tensor("x", DType::bfloat16, {37, 203}, tile::Access::input),
                 build::row_major_tensor("y", DType::float32, {37, 203}, tile::Access::output)};
    p.operands = {{0, {203, 1}, 0}};
    p.outputs = {{1, {203, 1}, 0}};
    const build::RowConfig c{.threads_per_row = threads,
                             .rows_per_block = 64 / threads,
                             .blocks_per_multiprocessor = threads == 64 ? 2 : 0};
    const Program program = rows(p, c, Target::cuda).value();
    const Values in = build::inputs_of(p.tensors);
    const Values got = emulate(program, in);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_LE(rms_error(got[1], interpret(program, in)->data[1]), 1e-6) << threads;
  }
}

/// Layer norms of rows of 203 numbers, in one piece and in chunks.
Values emulated_norms(const Values& in, int64_t chunk) {
  build::RowProblem p;
  p.kind = build::RowKind::layer_norm;
  p.row_shape = {static_cast<int64_t>(in[0].size()) / 203};
  p.columns = 203;
  const std::vector<int64_t> shape = {p.row_shape[0], 203};
  p.tensors = {build::row_major_tensor("x", DType::float32, shape, tile::Access::input),
               build::row_major_tensor("y", DType::float32, shape, tile::Access::output)};
  p.operands = {{0, {203, 1}, 0}};
  p.outputs = {{1, {203, 1}, 0}};
  const build::RowConfig c{.threads_per_row = 64, .rows_per_block = 1, .chunk = chunk};
  return emulate(rows(p, c, Target::cuda).value(), in);
}

/// Roundings of a mean would be all that is left of the row, and 1 / sqrt(eps) times as large.
TEST(EmulatedRows, LeaveNothingOfEqualElements) {
  const double rows[] = {12345.678, 0.1, -7e-3, 1e30, -3.3e5, 100.1};
  Values in = {std::vector<double>(6 * 203)};
  for (std::size_t i = 0; i < in[0].size(); ++i) in[0][i] = static_cast<float>(rows[i / 203]);
  for (int64_t chunk : {0, 128}) {
    const Values got = emulated_norms(in, chunk);
    for (const double y : got[1]) EXPECT_EQ(y, 0) << chunk;
  }
}

/// Wherever an outlier lies, the others keep their digits.
TEST(EmulatedRows, KeepTheDigitsBesideAnOutlier) {
  Values in = {std::vector<double>(4 * 203)};
  const std::size_t outliers[] = {0, 101, 202, 57};
  for (std::size_t i = 0; i < in[0].size(); ++i)
    in[0][i] = static_cast<float>(
        i % 203 == outliers[i / 203] ? 1e6 : std::sin(static_cast<double>(i)) * 1e-3);
  const double eps = build::RowProblem{}.eps;
  for (int64_t chunk : {0, 128}) {
    const Values got = emulated_norms(in, chunk);
    for (std::size_t r = 0; r < 4; ++r) {
      const std::span row = std::span(in[0]).subspan(r * 203, 203);
      double mean = 0, m2 = 0;
      for (const double x : row) mean += x / 203;
      for (const double x : row) m2 += (x - mean) * (x - mean);
      const double rstd = 1 / std::sqrt(m2 / 203 + eps);
      for (std::size_t i = 0; i < 203; ++i) {
        const double want = (row[i] - mean) * rstd;
        EXPECT_NEAR(got[1][r * 203 + i], want, std::abs(want) * 1e-6)
            << r << ' ' << i << ' ' << chunk;
      }
    }
  }
}

// What the other tests rely on: memory touched before the wait stops the run.
TEST(EmulatedLaunch, AKernelThatReadsBeforeItWaitsIsStopped) {
  build::PointwiseProblem p;
  p.shape = {64};
  p.tensors = {build::row_major_tensor("x", DType::float32, {64}, tile::Access::input),
               build::row_major_tensor("y", DType::float32, {64}, tile::Access::output)};
  p.operands = {{0, {1}, 0}};
  p.outputs = {{1, {1}, 0}};
  p.dag.results = {p.dag.add_call("neg", {p.dag.add_operand(0)})};
  const Program program = build::pointwise(p, {.threads = 32, .vector = 1}, Target::cuda).value();
  std::string source = emit(program, Target::cuda).value().source;
  const std::string wait = "tessera::after_previous(x, y);";
  const std::size_t at = source.find(wait);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(Emulation(source, program, build::inputs_of(p.tensors)).run(), 0);
  source.replace(at, wait.size(), "volatile float early = x[0]; " + wait);
  EXPECT_NE(Emulation(source, program, build::inputs_of(p.tensors)).run(), 0);
}

TEST(EmulatedPointwise, OfATransposedOperand) {
  build::PointwiseProblem p;
  p.shape = {19, 45};
  p.tensors = {build::row_major_tensor("x", DType::float32, {45, 19}, tile::Access::input),
               build::row_major_tensor("s", DType::float16, {45}, tile::Access::input),
               build::row_major_tensor("y", DType::bfloat16, {19, 45}, tile::Access::output)};
  p.operands = {{0, {1, 19}, 0}, {1, {0, 1}, 0}};
  p.outputs = {{2, {45, 1}, 0}};
  auto& d = p.dag;
  d.results = {d.add_call("mul", {d.add_call("gelu_tanh", {d.add_operand(0)}), d.add_operand(1)})};
  const Program program =
      build::pointwise(p, {.threads = 64, .vector = 4, .unroll = 2}, Target::cuda).value();
  const Values in = build::inputs_of(p.tensors);
  const Values got = emulate(program, in);
  ASSERT_EQ(got.size(), 3U);
  EXPECT_LE(rms_error(got[2], interpret(program, in)->data[2]), 1e-3);
}

}  // namespace
}  // namespace tessera::tile
