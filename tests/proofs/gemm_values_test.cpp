// kernels/gemm.py in its variants, run by the interpreter: every element of C, under several
// schedules, and CUDA C++ is made of each.
#include <gtest/gtest.h>
#include <random>

#include "base/files.h"
#include "base/source_folder.h"

#include "core/verify.h"
#include "language/language.h"
#include "lower/lower.h"
#include "simulate/simulate.h"

namespace tessera::proofs {
namespace {

/// How a matrix of each batch lies: elements from one batch, row and column to the next.
struct Strides {
  int64_t batch = 0, row = 0, column = 1;
  [[nodiscard]] int64_t at(int64_t b, int64_t i, int64_t j) const {
    return b * batch + i * row + j * column;
  }
};

struct Case {
  std::string name;
  std::map<std::string, language::Constant> constants;
  int64_t m = 72, n = 72, k = 40, batches = 1;
  int64_t multiprocessors = 3;
  [[nodiscard]] int64_t constant(const std::string& of) const {
    const auto known = constants.find(of);
    return known == constants.end() ? 0 : std::get<int64_t>(known->second);
  }
  /// With gaps of 8 elements where strides are the launch's.
  [[nodiscard]] Strides strides(const std::string& tensor, int64_t rows, int64_t columns) const {
    const int64_t order = constant(tensor + "_ORDER");
    const int64_t gap = order == 0 ? 0 : 8, side = order == 2 ? rows : columns;
    const int64_t apart = (side + 7) / 8 * 8 + gap;
    Strides out = {0, order == 0 ? columns : apart, 1};
    if (order == 2) out = {0, 1, apart};
    const bool many = constant(tensor == "C" ? "BATCHES" : tensor + "_BATCHES") == 1;
    if (many) out.batch = order == 0 ? rows * columns : apart * (order == 2 ? columns : rows) + gap;
    return out;
  }
};

struct Matrices {
  simulate::Launch launch;
  Strides a, b, c;
};

/// Elements -1, 0 and 1: every sum is a number of bfloat16.
Matrices launch_of(const Case& c, const core::Kernel& kernel) {
  Matrices out{{}, c.strides("A", c.m, c.k), c.strides("B", c.n, c.k), c.strides("C", c.m, c.n)};
  const std::map<std::string, int64_t> known = {{"M", c.m},
                                                {"N", c.n},
                                                {"K", c.k},
                                                {"L", c.batches},
                                                {"A_STRIDE", std::max(out.a.row, out.a.column)},
                                                {"B_STRIDE", std::max(out.b.row, out.b.column)},
                                                {"C_STRIDE", out.c.row},
                                                {"A_BATCH", out.a.batch},
                                                {"B_BATCH", out.b.batch},
                                                {"C_BATCH", out.c.batch}};
  for (const core::Term p : kernel.parameters) {
    const std::string& name = p->symbol->name;
    out.launch.parameters[name] = known.at(name);
  }
  out.launch.multiprocessors = c.multiprocessors;
  std::mt19937_64 random(7);
  const auto fill = [&](const std::string& name, const Strides& s, int64_t rows) {
    const int64_t last = s.at(s.batch == 0 ? 0 : c.batches - 1, rows - 1, c.k - 1);
    for (int64_t i = 0; i <= last; ++i)
      out.launch.inputs[name].push_back(static_cast<double>(random() % 3) - 1);
  };
  fill("A", out.a, c.m);
  fill("B", out.b, c.n);
  return out;
}

void expect_product(const Case& c, const Matrices& on, const std::vector<double>& result) {
  const std::vector<double>& a = on.launch.inputs.at("A");
  const std::vector<double>& b = on.launch.inputs.at("B");
  for (int64_t l = 0; l < c.batches; ++l)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < c.k; ++k) sum += a.at(on.a.at(l, i, k)) * b.at(on.b.at(l, j, k));
        ASSERT_EQ(result.at(on.c.at(l, i, j)), sum) << l << " " << i << " " << j;
      }
}

void expect_right(Case c) {
  SCOPED_TRACE(c.name);
  for (const auto& [name, value] :
       std::map<std::string, int64_t>{{"BM", 64}, {"BN", 64}, {"BK", 16}, {"STAGES", 2}})
    c.constants.try_emplace(name, value);
  const std::string file = "kernels/gemm.py";
  const Result<core::Kernel> kernel =
      language::elaborate({file, read_file(source_folder() + "/" + file)}, "gemm", {c.constants});
  ASSERT_TRUE(kernel) << to_text(kernel.error());
  const auto arch = arch::find("sm_90a");
  ASSERT_TRUE(arch);
  for (const Diagnostic& d : core::verify(*kernel, **arch)) ADD_FAILURE() << to_text(d);
  const auto text = lower::lower(*kernel);
  EXPECT_TRUE(text) << to_text(text.error());
  const Matrices on = launch_of(c, *kernel);
  const Result<simulate::Simulator> simulator = simulate::Simulator::make(*kernel, on.launch);
  ASSERT_TRUE(simulator) << to_text(simulator.error());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(seed));
    for (const Diagnostic& d : o.findings) ADD_FAILURE() << "seed " << seed << "\n" << to_text(d);
    expect_product(c, on, o.outputs.at("C"));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(GemmValues, OfOneMatrix) {
  expect_right({"as it is", {}});
  expect_right({"rows with gaps", {{"A_ORDER", 1}, {"B_ORDER", 1}, {"C_ORDER", 1}}});
}

TEST(GemmValues, OfBatches) {
  const std::map<std::string, language::Constant> all = {
      {"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}};
  expect_right({"of each", all, 72, 40, 24, 3, 4});
  expect_right({"one B for all", {{"BATCHES", 1}, {"A_BATCHES", 1}}, 72, 40, 24, 2});
  expect_right({"one A for all, with gaps",
                {{"BATCHES", 1}, {"B_BATCHES", 1}, {"A_ORDER", 1}, {"B_ORDER", 1}, {"C_ORDER", 1}},
                40,
                72,
                24,
                2});
}

TEST(GemmValues, OfOperandsWhoseRowsLieSideBySide) {
  expect_right({"A", {{"A_ORDER", 2}}});
  expect_right({"B", {{"B_ORDER", 2}}});
  expect_right({"both, several panels",
                {{"A_ORDER", 2}, {"B_ORDER", 2}, {"BM", 128}, {"BN", 192}, {"BK", 64}},
                136,
                200,
                72});
  expect_right(
      {"both, of batches",
       {{"A_ORDER", 2}, {"B_ORDER", 2}, {"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}},
       72,
       40,
       24,
       2});
}

TEST(GemmValues, OfClusters) {
  for (const int64_t beside : {0, 1}) {
    const auto with = [&](std::map<std::string, language::Constant> more) {
      more.insert({{"CLUSTER", int64_t{2}}, {"BESIDE", beside}});
      return more;
    };
    expect_right({"rows", with({}), 136, 136, 40, 1, 4});
    expect_right({"panels, a share of k", with({{"A_ORDER", 2}, {"B_ORDER", 2}}), 136, 136, 40});
    expect_right({"a share of panels",
                  with({{"A_ORDER", 2}, {"B_ORDER", 2}, {"BM", 128}, {"BN", 256}, {"STAGES", 3}}),
                  136, 264, 40});
    expect_right(
        {"batches", with({{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}}), 72, 136, 24, 3, 4});
  }
}

TEST(GemmValues, OfSumsThatArePromoted) {
  const auto with = [](std::map<std::string, language::Constant> more) {
    more.insert({{"PROMOTE", int64_t{2}}, {"STAGES", int64_t{3}}});
    return more;
  };
  // Of seven turns, whole intervals and what is left; of one turn, which none is added to.
  expect_right({"seven turns", with({}), 136, 72, 104, 1, 1});
  expect_right({"one turn", with({}), 72, 72, 16, 1, 2});
  expect_right({"each turn", with({{"PROMOTE", 1}}), 72, 136, 72, 1, 1});
  expect_right({"halves", with({{"BM", 128}, {"ROWS", 128}}), 136, 72, 72, 1, 1});
  expect_right({"by turns", with({{"TURNS", 2}, {"DIRECT", 1}}), 200, 72, 72, 1, 1});
  expect_right({"clusters", with({{"CLUSTER", 2}, {"PROMOTE", 3}}), 136, 136, 104, 1, 4});
}

TEST(GemmValues, OfRolesThatTakeTilesByTurns) {
  const auto with = [](std::map<std::string, language::Constant> more) {
    more.insert({"TURNS", int64_t{2}});
    return more;
  };
  // Several tiles a block, an odd number of them in some; one tile, which the second role leaves.
  expect_right({"six turns", with({}), 200, 136, 40, 1, 2});
  expect_right({"one turn", with({}), 40, 40, 24, 1, 2});
  expect_right({"from registers", with({{"DIRECT", 1}, {"STAGES", 3}}), 200, 72, 24, 1, 1});
  expect_right({"two warpgroups each", with({{"BM", 128}}), 264, 136, 40, 1, 2});
  expect_right(
      {"batches", with({{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}}), 72, 72, 24, 3, 2});
  expect_right({"clusters", with({{"CLUSTER", 2}}), 264, 136, 40, 1, 4});
}

}  // namespace
}  // namespace tessera::proofs
