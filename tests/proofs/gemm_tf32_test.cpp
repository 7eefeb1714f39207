// kernels/gemm_tf32.py: proved in its variants, right under schedules of the interpreter, and
// refuted with an edit of what threads take of A, or of who waits for whom.
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "proofs/checked_kernel.h"
#include "simulate/simulate.h"

namespace tessera::proofs {
namespace {

std::string file_text() {
  return read_file(source_folder() + "/kernels/gemm_tf32.py");
}

std::optional<core::Kernel> kernel_of(const std::string& text, const Constants& constants) {
  return checked_kernel("kernels/gemm_tf32.py", text, "gemm", {constants},
                        {{"BM", 64}, {"BN", 32}, {"STAGES", 2}});
}

struct Sizes {
  int64_t m = 136, n = 36, k = 104;
  bool c_by_rows = false;
};

/// Elements between -1 and 1 of 11 bits, which tf32 keeps.
simulate::Launch launch_of(const core::Kernel& kernel, const Sizes& s) {
  const std::map<std::string, int64_t> known = {
      {"M", s.m},        {"N", s.n},
      {"K", s.k},        {"L", 1},
      {"A_STRIDE", s.m}, {"B_STRIDE", s.k},
      {"A_BATCH", 0},    {"B_BATCH", 0},
      {"C_BATCH", 0},    {"C_STRIDE", s.c_by_rows ? s.n : s.m}};
  simulate::Launch out;
  for (const core::Term p : kernel.parameters)
    out.parameters[p->symbol->name] = known.at(p->symbol->name);
  out.multiprocessors = 2;
  std::mt19937_64 random(5);
  std::uniform_int_distribution<int> some(-1023, 1023);
  for (const auto& [name, rows] : {std::pair{"A", s.m}, {"B", s.n}})
    for (int64_t i = 0; i < rows * s.k; ++i)
      out.inputs[name].push_back(static_cast<double>(some(random)) / 1024);
  return out;
}

/// The greatest error of an element, of the sum of its terms' sizes. A lies by columns.
double error_of(const simulate::Outcome& o, const simulate::Launch& on, const Sizes& s) {
  const auto& a = on.inputs.at("A");
  const auto& b = on.inputs.at("B");
  const auto& c = o.outputs.at("C");
  double worst = 0;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double term = a.at(k * s.m + i) * b.at(j * s.k + k);
        sum += term;
        size += std::fabs(term);
      }
      const double off = std::fabs(c.at(s.c_by_rows ? i * s.n + j : j * s.m + i) - sum) / size;
      worst = off <= worst ? worst : off;  // NaN is the worst
    }
  return worst;
}

TEST(GemmTf32, IsRightUnderSchedules) {
  for (const Constants& c :
       {Constants{}, Constants{{"TURNS", 2}, {"STAGES", 3}, {"DIRECT", 0}},
        Constants{{"CLUSTER", 2}, {"BM", 128}, {"ROWS", 128}},
        Constants{{"BM", 128}, {"BN", 64}, {"DIRECT", 0}, {"C_ORDER", 1}},
        Constants{{"CLUSTER", 2}, {"BM", 128}, {"BN", 64}, {"ROWS", 128}, {"DIRECT", 0}}}) {
    const auto kernel = kernel_of(file_text(), c);
    ASSERT_TRUE(kernel);
    const auto order = c.find("C_ORDER");
    const Sizes sizes{.c_by_rows =
                          order != c.end() && order->second == language::Constant(int64_t{1})};
    const simulate::Launch on = launch_of(*kernel, sizes);
    const auto simulator = simulate::Simulator::make(*kernel, on);
    ASSERT_TRUE(simulator) << to_text(simulator.error());
    const uint64_t seeds = thorough() ? 16 : 2;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(seed));
      for (const Diagnostic& d : o.findings) ADD_FAILURE() << to_text(d);
      EXPECT_LT(error_of(o, on, sizes), 0x1p-20);
    }
  }
}

TEST(GemmTf32, IsProvedInItsVariants) {
  std::vector<Constants> all = {
      {},
      {{"BM", 128}, {"BN", 256}, {"STAGES", 4}, {"CLUSTER", 2}},
      {{"BM", 128}, {"ROWS", 128}, {"BN", 128}, {"TURNS", 2}, {"STAGES", 4}, {"CLUSTER", 2}},
      {{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}, {"C_ORDER", 1}},
      {{"DIRECT", 0}, {"BM", 128}, {"BN", 256}, {"STAGES", 4}, {"CLUSTER", 2}},
      {{"DIRECT", 0}, {"BN", 64}, {"TURNS", 2}, {"STAGES", 3}, {"C_ORDER", 1}}};
  if (thorough())
    for (const int64_t columns : {64, 128, 192, 256})
      all.push_back({{"BN", columns}, {"STAGES", 3}, {"TURNS", 2}});
  for (const Constants& c : all) {
    const auto kernel = kernel_of(file_text(), c);
    ASSERT_TRUE(kernel);
    const check::Report r = judged(*kernel);
    EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted
};

constexpr const char* fence = "fence.async_shared()";
constexpr const char* fence_of_one =
    "with one_thread(\"warpgroup\"):\n                                    fence.async_shared()";
constexpr Edit edits[] = {
    {"the other half of A", "load(a[k, part(u, high), half]",
     "load(a[k, part(u, high), part(1 - h, 16)]", "k_agreement"},
    {"the other half of B", "b[k, :, half].T", "b[k, :, part(1 - h, 16)].T", "k_agreement"},
    {"the slot before", "load(a[k, ", "load(a[k - 1, ", "initialized"},
    {"threads' reads are not fenced", "fence.async_shared()", "wgmma.fence()", "proxy_fence"},
    {"the producer is not told of what threads have read", "arrive(cluster=True, release=True)",
     "arrive(cluster=True)", "race_shared"},
    {"registers of products under way", "wgmma.wait(1)", "wgmma.wait(2)", "async_registers"},
    {"a slot of the tile before is given back twice", "if h == 0 and k.index > 0:\n",
     "if h == 0 and k.index >= 0:\n", "phase_window"},
    {"one thread fences what all have read", fence, fence_of_one, "proxy_fence"},
    {"sums begin anew in each half", "if h == 0 else False", "if h == 0 else k.first", "reduction"},
};

/// Of what results leave by.
constexpr Edit of_stores[] = {
    {"stores of threads are not fenced", "    fence.async_shared()\n", "", "proxy_fence"},
    {"a buffer is written while it is read", "bulk.wait_read(1)", "bulk.wait_read(2)",
     "race_shared"},
    {"the other part's place", "to[part(warpgroup, 64), :]", "to[part(1 - warpgroup, 64), :]",
     "placement"},
};

std::string edited(const std::string& from, const std::string& to,
                   const std::string& behind = "with role(\"consumer\"") {
  std::string text = file_text();
  const auto place = text.find(from, text.find(behind));
  EXPECT_NE(place, std::string::npos) << from;
  return place == std::string::npos ? text : text.replace(place, from.size(), to);
}

/// Lanes read together, then one of them arrives at a barrier, and each fences by itself.
TEST(GemmTf32, LanesFenceWhatTheyReadTogetherOnlyAllOfThem) {
  const auto kernel = kernel_of(edited(fence, fence_of_one), {});
  ASSERT_TRUE(kernel);
  const simulate::Launch on = launch_of(*kernel, {});
  const auto simulator = simulate::Simulator::make(*kernel, on);
  ASSERT_TRUE(simulator) << to_text(simulator.error());
  const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(0));
  ASSERT_FALSE(o.findings.empty());
  EXPECT_EQ(o.findings.front().code, "TS0841") << to_text(o.findings.front());
}

void expect_refuted(const Edit& e, const std::string& text, const Constants& constants) {
  SCOPED_TRACE(e.what);
  const auto kernel = kernel_of(text, constants);
  if (!kernel) return;
  const check::Report r = judged(*kernel);
  EXPECT_EQ(r.verdict(), check::Verdict::refuted) << to_text(r);
  const auto* finding = r.find(e.kind);
  ASSERT_NE(finding, nullptr) << e.kind << "\n" << to_text(r);
  EXPECT_EQ(finding->verdict, check::Verdict::refuted) << to_text(r);
}

TEST(GemmTf32, WithAnEditIsRefuted) {
  for (const Edit& e : edits) expect_refuted(e, edited(e.from, e.to), {{"CLUSTER", 2}});
  for (const Edit& e : of_stores)
    expect_refuted(e, edited(e.from, e.to, "def store_part"),
                   {{"BM", 128}, {"BN", 96}, {"DIRECT", 0}});
}

}  // namespace
}  // namespace tessera::proofs
