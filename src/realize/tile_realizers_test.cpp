// The tile_* realizers on patterns made by hand: candidates for the host and for sm_90a, and what
// the host's first candidate computes, built through the toolchain.
#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <unistd.h>

#include "realize/common/tile_candidates.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/disassembly.h"
#include "rules/attention.h"
#include "rules/pointwise.h"
#include "rules/row_norm.h"
#include "tile/build/rows.h"

#include "tessera/kernel.h"

namespace tessera::realize {
namespace {

using rules::TensorView;
using ::testing::HasSubstr;
using Shape = std::vector<int64_t>;
using Floats = std::vector<float>;

/// Inputs and outputs of float32, row-major; values are their numbers in order.
struct Case {
  graph::Graph graph;
  rules::Pattern pattern;
  std::vector<Shape> shapes;

  Case(const Shape& output, const std::vector<Shape>& inputs, std::string_view rule) {
    pattern.rule = rule;
    for (const Shape& s : inputs) pattern.inputs.push_back(add(s));
    pattern.outputs.push_back(add(output));
  }
  graph::ValueId add(const Shape& s) {
    graph::Value v;
    v.name = "t" + std::to_string(shapes.size());
    v.type = {DType::float32, s, graph::contiguous_strides(s)};
    shapes.push_back(s);
    return graph.add_value(v);
  }
};

TensorView view(int tensor, const Shape& shape, const Shape& strides, int64_t offset = 0) {
  TensorView v;
  v.tensor = tensor;
  v.shape = shape;
  v.strides = strides;
  v.offset = offset;
  return v;
}

const Realizer& realizer(std::string_view name) {
  for (const Realizer* r : all())
    if (r->name == name) return *r;
  ADD_FAILURE() << "no realizer " << name;
  return *all().front();
}

Result<Space> space_of(const Case& c, std::string_view name, std::string_view arch) {
  return realizer(name).realize(c.pattern, c.graph, **arch::find(arch));
}

Floats noise(std::size_t n, unsigned seed) {
  Floats v(n);
  for (float& x : v) {
    seed = seed * 1664525U + 1013904223U;
    x = static_cast<float>(seed >> 8) / (1 << 22) - 2;
  }
  return v;
}

std::size_t count(const Shape& s) {
  std::size_t n = 1;
  for (int64_t e : s) n *= static_cast<std::size_t>(e);
  return n;
}

/// Builds the first candidate for the host and runs it on noise: all tensors, the output last.
std::vector<Floats> run_first(const Case& c, std::string_view name) {
  const Result<Space> space = space_of(c, name, "host");
  EXPECT_TRUE(space) << (space ? "" : to_text(space.error()));
  if (!space) return {};
  const auto& candidate = space->candidates.front();
  EXPECT_EQ(candidate.kind, Kind::synthesized);
  EXPECT_FALSE(candidate.launches.empty());
  static int serial = 0;
  const std::filesystem::path cache =
      std::filesystem::temp_directory_path() /
      ("tessera_tile_realizers_" + std::to_string(::getpid()) + "_" + std::to_string(serial++));
  const auto built = toolchain::build(toolchain::locate("python3"), *candidate.source, cache,
                                      std::chrono::seconds(120));
  EXPECT_TRUE(built) << (built ? "" : to_text(built.error()));
  if (!built) return {};
  void* library = dlopen(built->library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  std::filesystem::remove_all(cache);
  if (library == nullptr) return {};
  auto* run = reinterpret_cast<decltype(&tessera_run)>(dlsym(library, "tessera_run"));
  auto* size =
      reinterpret_cast<decltype(&tessera_workspace_size)>(dlsym(library, "tessera_workspace_size"));
  std::vector<Floats> tensors;
  std::vector<void*> pointers;
  for (const Shape& s : c.shapes) {
    tensors.push_back(noise(count(s), static_cast<unsigned>(tensors.size()) + 1));
  }
  tensors.back().assign(tensors.back().size(), 777);
  for (Floats& t : tensors) pointers.push_back(t.data());
  const tessera_launch launch{pointers.data(), static_cast<int32_t>(pointers.size()), nullptr, 0};
  Floats workspace(static_cast<std::size_t>(size(&launch)) / sizeof(float) + 1);
  EXPECT_EQ(run(&launch, workspace.data(), nullptr), 0);
  return tensors;
}

/// Candidates for the GPU, distinct, each with a source that names its architecture.
void expect_gpu_candidates(const Case& c, std::string_view name) {
  const Result<Space> space = space_of(c, name, "sm_90a");
  ASSERT_TRUE(space) << to_text(space.error());
  EXPECT_GE(space->candidates.size(), 3U);
  for (const Candidate& one : space->candidates) {
    ASSERT_TRUE(one.source);
    EXPECT_EQ(one.source->arch, "sm_90a");
    EXPECT_EQ(one.source->language, toolchain::Language::cuda);
    EXPECT_THAT(one.source->text, HasSubstr("TESSERA_KERNEL("));
    EXPECT_FALSE(one.launches.empty());
  }
  EXPECT_NE(space->candidates[0].config, space->candidates[1].config);
  EXPECT_NE(space->candidates[0].source->text, space->candidates[1].source->text);
}

/// layer_norm(x) * w + b on [rows, columns].
Case layer_norm(int64_t rows, int64_t columns) {
  Case c({rows, columns}, {{rows, columns}, {columns}, {columns}}, "row_norm");
  auto body = std::make_shared<rules::RowNormBody>();
  body->kind = "layer_norm";
  body->rows = {rows};
  body->columns = columns;
  body->eps = 1e-5;
  body->operands = {view(0, {rows, columns}, {columns, 1}), view(1, {rows, columns}, {0, 1}),
                    view(2, {rows, columns}, {0, 1})};
  body->pre.results = {body->pre.add_operand(0)};
  const int y = body->post.add_operand(0);
  const int scaled = body->post.add_call("mul", {y, body->post.add_operand(3)});
  body->post.results = {body->post.add_call("add", {scaled, body->post.add_operand(4)})};
  body->outputs = {view(3, {rows, columns}, {columns, 1})};
  c.pattern.body = body;
  return c;
}

TEST(TileRow, LayerNormOnHost) {
  constexpr int rows = 7, columns = 45;
  const std::vector<Floats> t = run_first(layer_norm(rows, columns), "tile_row");
  ASSERT_EQ(t.size(), 4U);
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int i = 0; i < columns; ++i) mean += t[0][r * columns + i] / double{columns};
    for (int i = 0; i < columns; ++i)
      variance += std::pow(t[0][r * columns + i] - mean, 2) / columns;
    for (int i = 0; i < columns; ++i) {
      const double norm = (t[0][r * columns + i] - mean) / std::sqrt(variance + 1e-5);
      ASSERT_NEAR(t[3][r * columns + i], norm * t[1][i] + t[2][i], 1e-5) << r << " " << i;
    }
  }
}

TEST(TileRow, CandidatesForTheGpu) {
  const Case c = layer_norm(2048, 768);
  expect_gpu_candidates(c, "tile_row");
  testing::expect_compiles(*space_of(c, "tile_row", "sm_90a")->candidates.front().source);
}

// What the compile tests rely on, which see only kernels that wait.
TEST(ProgrammaticLaunch, AListingTellsWhoTouchesMemoryBeforeItWaits) {
  const std::string wait = "/*0010*/ ACQBULK ;\n", load = "/*0020*/ LDG.E.128 R4, [R2] ;\n";
  const std::string tile = "/*0030*/ UTMALDG.3D [UR8], [UR4] ;\n",
                    role = "Function : device_kernel\n";
  const std::string kernel = "Function : k\n";
  using testing::kernel_without_wait;
  EXPECT_EQ(kernel_without_wait(kernel + wait + load), "");
  EXPECT_EQ(kernel_without_wait(kernel + load + wait), "k");
  EXPECT_EQ(kernel_without_wait(kernel + "/*0010*/ @P0 LDGSTS.E [R1], [R2] ;\n" + wait), "k");
  EXPECT_EQ(kernel_without_wait(kernel + "/*0010*/ EXIT ;\n" + kernel + wait), "k");
  EXPECT_EQ(kernel_without_wait(kernel + wait + load + "Function : second\n" + load), "second");
  EXPECT_EQ(kernel_without_wait(role + load + wait + tile), "");
  EXPECT_EQ(kernel_without_wait(role + load + tile + wait), "device_kernel");
}

TEST(ProgrammaticLaunch, IsAskedForWhereTheArchitectureHasIt) {
  const auto flags = [](const char* arch) {
    return space_of(layer_norm(2048, 768), "tile_row", arch)->candidates.front().source->flags;
  };
  EXPECT_THAT(flags("sm_90a"), ::testing::Contains("-DTESSERA_PROGRAMMATIC_LAUNCH=1"));
  EXPECT_THAT(flags("sm_80"), ::testing::Not(::testing::Contains(HasSubstr("PROGRAMMATIC"))));
  EXPECT_THAT(flags("host"), ::testing::Not(::testing::Contains(HasSubstr("PROGRAMMATIC"))));
}

TEST(TileRow, RefusesAKindThatItDoesNotKnow) {
  Case c = layer_norm(4, 8);
  auto body = std::make_shared<rules::RowNormBody>(
      dynamic_cast<const rules::RowNormBody&>(*c.pattern.body));
  body->kind = "sparsemax";
  c.pattern.body = body;
  const Result<Space> space = space_of(c, "tile_row", "host");
  ASSERT_FALSE(space);
  EXPECT_THAT(to_text(space.error()), HasSubstr("sparsemax"));
}

TEST(TileRealizers, RefuseAPatternWithoutTheirBody) {
  Case c = layer_norm(4, 8);
  c.pattern.body = nullptr;
  for (const auto& [name, code] : {std::pair{"tile_row", "TS0441"},
                                   {"tile_pointwise", "TS0442"},
                                   {"tile_attention", "TS0443"},
                                   {"library_linear", "TS0432"}})
    EXPECT_EQ(space_of(c, name, "host").error().code, code) << name;
}

TEST(TileRealizers, SayThatThereIsNoSchedule) {
  const auto build = [](const tile::build::RowConfig&) -> Result<tile::Program> {
    return tile::Program{};
  };
  const Result<Space> none =
      tile_space("tile_row", std::vector<tile::build::RowConfig>{}, **arch::find("host"), build);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, "TS0440");
}

/// Rotary embedding of x [heads, tokens, 2 * half]: two groups that write the halves of one output.
Case rotary(int64_t heads, int64_t tokens, int64_t half) {
  const Shape whole = {heads, tokens, 2 * half}, part = {heads, tokens, half};
  Case c(whole, {whole, {tokens, half}, {tokens, half}}, "pointwise");
  auto body = std::make_shared<rules::PointwiseBody>();
  const Shape strides = {tokens * 2 * half, 2 * half, 1}, angle = {0, half, 1};
  for (int h = 0; h < 2; ++h) {
    rules::PointwiseBody::Group g;
    g.shape = part;
    g.operands = {view(0, part, strides, h * half), view(0, part, strides, (1 - h) * half),
                  view(1, part, angle), view(2, part, angle)};
    const int same = g.dag.add_call("mul", {g.dag.add_operand(0), g.dag.add_operand(2)});
    const int other = g.dag.add_call("mul", {g.dag.add_operand(1), g.dag.add_operand(3)});
    g.dag.results = {g.dag.add_call(h == 0 ? "sub" : "add", {same, other})};
    g.outputs = {view(3, part, strides, h * half)};
    body->groups.push_back(g);
  }
  c.pattern.body = body;
  return c;
}

TEST(TilePointwise, RotaryOnHostWritesBothHalves) {
  constexpr int heads = 3, tokens = 5, half = 12;
  const std::vector<Floats> t = run_first(rotary(heads, tokens, half), "tile_pointwise");
  ASSERT_EQ(t.size(), 4U);
  for (int row = 0; row < heads * tokens; ++row)
    for (int i = 0; i < half; ++i) {
      const float a = t[0][row * 2 * half + i], b = t[0][row * 2 * half + half + i];
      const float cosine = t[1][row % tokens * half + i], sine = t[2][row % tokens * half + i];
      ASSERT_NEAR(t[3][row * 2 * half + i], a * cosine - b * sine, 1e-5) << row << " " << i;
      ASSERT_NEAR(t[3][row * 2 * half + half + i], b * cosine + a * sine, 1e-5) << row << " " << i;
    }
}

TEST(TilePointwise, RotaryForTheGpuIsTwoKernelsOfOneLaunch) {
  const Case c = rotary(32, 512, 64);
  expect_gpu_candidates(c, "tile_pointwise");
  const std::string text = space_of(c, "tile_pointwise", "sm_90a")->candidates.front().source->text;
  EXPECT_THAT(text, HasSubstr("tessera::launch(TESSERA_ENTRY(tile_part0), "));
  EXPECT_THAT(text, HasSubstr("tessera::launch(TESSERA_ENTRY(tile_part1), "));
}

/// A reduction of (x * y) over the last `reduced` of the dims [4, 6, 10], then exp where asked.
Case reduction(const char* name, int reduced, bool exponential = false) {
  const Shape shape = {4, 6, 10};
  Case c(Shape(shape.begin(), shape.end() - reduced), {shape, shape}, "pointwise");
  auto body = std::make_shared<rules::PointwiseBody>();
  rules::PointwiseBody::Group g;
  g.shape = shape;
  g.operands = {view(0, shape, {60, 10, 1}), view(1, shape, {60, 10, 1})};
  g.dag.results = {g.dag.add_call("mul", {g.dag.add_operand(0), g.dag.add_operand(1)})};
  Shape strides = graph::contiguous_strides(c.shapes.back());
  strides.resize(3, 0);
  g.outputs = {view(2, shape, strides)};
  body->groups = {g};
  body->reduction = name;
  body->reduced_dims = reduced;
  if (exponential)
    body->finish.results = {body->finish.add_call("exp", {body->finish.add_operand(0)})};
  c.pattern.body = body;
  return c;
}

TEST(TilePointwise, ReductionsOnHost) {
  for (int reduced : {1, 2}) {
    const int columns = reduced == 1 ? 10 : 60;
    const std::vector<Floats> t = run_first(reduction("mean", reduced), "tile_pointwise");
    ASSERT_EQ(t.size(), 3U);
    for (int r = 0; r < 240 / columns; ++r) {
      double mean = 0;
      for (int i = r * columns; i < (r + 1) * columns; ++i)
        mean += double{t[0][i]} * t[1][i] / columns;
      ASSERT_NEAR(t[2][r], mean, 1e-5) << reduced << " " << r;
    }
    expect_gpu_candidates(reduction("mean", reduced), "tile_pointwise");
  }
  for (int reduced : {1, 3}) {  // a row's, everything's
    const int columns = reduced == 1 ? 10 : 240;
    const std::vector<Floats> t = run_first(reduction("sum", reduced, true), "tile_pointwise");
    for (int r = 0; r < 240 / columns; ++r) {
      double sum = 0;
      for (int i = r * columns; i < (r + 1) * columns; ++i) sum += double{t[0][i]} * t[1][i];
      ASSERT_NEAR(t[2][r], std::exp(sum), 1e-4 * std::exp(sum)) << reduced << " " << r;
    }
    expect_gpu_candidates(reduction("sum", reduced, true), "tile_pointwise");
  }
  const Result<Space> refused = space_of(reduction("prod", 1), "tile_pointwise", "host");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0442");
  EXPECT_THAT(to_text(refused.error()), HasSubstr("prod"));
}

/// Causal attention, as [batch, length, heads, dim] in memory; two query heads share a head of
/// keys.
Case attention(int64_t batch, int64_t heads, int64_t length, int64_t dim) {
  const int64_t kv = heads / 2;
  Case c({batch, length, heads, dim},
         {{batch, length, heads, dim}, {batch, length, kv, dim}, {batch, length, kv, dim}},
         "attention");
  auto body = std::make_shared<rules::AttentionBody>();
  body->batch = batch;
  body->heads = heads;
  body->kv_heads = kv;
  body->q_length = body->kv_length = length;
  body->head_dim = body->value_dim = dim;
  body->scale = 0.3;
  body->causal = true;
  const auto rows = [&](int tensor, int64_t h) {
    return view(tensor, {batch, h, length, dim}, {length * h * dim, dim, h * dim, 1});
  };
  body->q = rows(0, heads);
  body->k = rows(1, kv);
  body->v = rows(2, kv);
  body->output = rows(3, heads);
  c.pattern.body = body;
  return c;
}

TEST(TileAttention, CausalOnHost) {
  constexpr int heads = 4, length = 75, dim = 24;
  const std::vector<Floats> t = run_first(attention(1, heads, length, dim), "tile_attention");
  ASSERT_EQ(t.size(), 4U);
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < length; ++i) {
      std::vector<double> o(dim);
      double total = 0;
      for (int j = 0; j <= i; ++j) {
        const std::size_t kv = (static_cast<std::size_t>(j) * (heads / 2) + h / 2) * dim;
        double s = 0;
        for (int d = 0; d < dim; ++d) s += double{t[0][(i * heads + h) * dim + d]} * t[1][kv + d];
        const double e = std::exp(0.3 * s);
        total += e;
        for (int d = 0; d < dim; ++d) o[d] += e * t[2][kv + d];
      }
      for (int d = 0; d < dim; ++d)
        ASSERT_NEAR(t[3][(i * heads + h) * dim + d], o[d] / total, 2e-5) << h << " " << i;
    }
}

TEST(TileAttention, CandidatesForTheGpu) {
  const Case c = attention(1, 4, 512, 96);
  expect_gpu_candidates(c, "tile_attention");
  // Storage of float32 at fp32 accuracy: every product is three.
  EXPECT_THAT(space_of(c, "tile_attention", "sm_90a")->candidates.front().source->text,
              HasSubstr("tst_split_tf32(mma_b"));
}

TEST(TileAttention, SaysWhyThereIsNoneForTheGpu) {
  const Result<Space> space = space_of(attention(1, 4, 64, 512), "tile_attention", "sm_90a");
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().code, "TS0401");
  EXPECT_THAT(to_text(space.error()), HasSubstr("registers"));
}

}  // namespace
}  // namespace tessera::realize
