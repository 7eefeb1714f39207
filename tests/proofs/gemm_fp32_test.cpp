// kernels/gemm_fp32.py: proved in its variants, as near to float64 as it says under schedules of
// the interpreter, and refuted with an edit of how elements are taken apart, or of who waits for
// whom.
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "lower/lower.h"
#include "proofs/checked_kernel.h"
#include "simulate/simulate.h"

namespace tessera::proofs {
namespace {

std::string file_text() {
  return read_file(source_folder() + "/kernels/gemm_fp32.py");
}

std::optional<core::Kernel> kernel_of(const std::string& text, const Constants& constants) {
  return checked_kernel("kernels/gemm_fp32.py", text, "gemm", {constants},
                        {{"BN", 64}, {"STAGES", 2}, {"PROMOTE", 2}});
}

struct Sizes {
  int64_t m = 136, n = 68, k = 104;
};

/// Elements between -1 and 1, or between 0 and 1, of 24 bits.
simulate::Launch launch_of(const core::Kernel& kernel, const Sizes& s, bool positive) {
  const std::map<std::string, int64_t> known = {
      {"M", s.m},        {"N", s.n},        {"K", s.k},     {"L", 1},       {"A_STRIDE", s.m},
      {"B_STRIDE", s.n}, {"C_STRIDE", s.n}, {"A_BATCH", 0}, {"B_BATCH", 0}, {"C_BATCH", 0}};
  simulate::Launch out;
  for (const core::Term p : kernel.parameters)
    out.parameters[p->symbol->name] = known.at(p->symbol->name);
  out.multiprocessors = 1;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> some(positive ? 0.0F : -1.0F, 1.0F);
  for (const auto& [name, rows] : {std::pair{"A", s.m}, {"B", s.n}})
    for (int64_t i = 0; i < rows * s.k; ++i)
      out.inputs[name].push_back(static_cast<double>(some(random)));
  return out;
}

/// The greatest error of an element, of the sum of its terms' sizes.
double error_of(const simulate::Outcome& o, const simulate::Launch& on, const Sizes& s,
                bool a_by_columns, bool b_by_columns) {
  const auto& a = on.inputs.at("A");
  const auto& b = on.inputs.at("B");
  const auto& c = o.outputs.at("C");
  double worst = 0;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double x = a.at(a_by_columns ? k * s.m + i : i * s.k + k);
        const double y = b.at(b_by_columns ? k * s.n + j : j * s.k + k);
        sum += x * y;
        size += std::fabs(x * y);
      }
      const double off = std::fabs(c.at(i * s.n + j) - sum) / size;
      worst = off <= worst ? worst : off;  // NaN is the worst
    }
  return worst;
}

/// What a term may be off by: low * low, and what tf32 cuts of both low parts, 2^-22 each; beside
/// it float32's own rounding of sums.
constexpr double permitted = 3 * 0x1p-22;

double error_of(const std::string& text, const Constants& c, const Sizes& s, uint64_t seeds) {
  const auto kernel = kernel_of(text, c);
  if (!kernel) return INFINITY;
  const auto lowered = lower::lower(*kernel);
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  double worst = 0;
  for (const bool positive : {false, true}) {
    const simulate::Launch on = launch_of(*kernel, s, positive);
    const auto simulator = simulate::Simulator::make(*kernel, on);
    EXPECT_TRUE(simulator) << to_text(simulator.error());
    for (uint64_t seed = 0; simulator && seed < seeds; ++seed) {
      const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(seed));
      for (const Diagnostic& d : o.findings) ADD_FAILURE() << to_text(d);
      const auto by_columns = [&](const char* order) {
        const auto known = c.find(order);
        return known != c.end() && std::get<int64_t>(known->second) == 2;
      };
      worst = std::max(worst, error_of(o, on, s, by_columns("A_ORDER"), by_columns("B_ORDER")));
    }
  }
  return worst;
}

TEST(GemmFp32, IsAsNearToFloat64AsItSays) {
  const uint64_t seeds = thorough() ? 8 : 1;
  EXPECT_LT(error_of(file_text(), {}, {}, seeds), permitted);
  EXPECT_LT(
      error_of(file_text(), {{"A_ORDER", 2}, {"B_ORDER", 2}, {"BN", 96}}, {136, 100, 72}, seeds),
      permitted);
}

TEST(GemmFp32, IsProvedInItsVariants) {
  std::vector<Constants> all = {{},
                                {{"B_ORDER", 2}, {"BN", 128}, {"STAGES", 3}, {"PROMOTE", 4}},
                                {{"A_ORDER", 2}, {"BATCHES", 1}, {"A_BATCHES", 1}}};
  if (thorough())
    for (const int64_t columns : {64, 96, 128})
      all.push_back(
          {{"BN", columns}, {"STAGES", 3}, {"PROMOTE", 4}, {"A_ORDER", 1}, {"C_ORDER", 1}});
  for (const Constants& c : all) {
    const auto kernel = kernel_of(file_text(), c);
    ASSERT_TRUE(kernel);
    const check::Report r = judged(*kernel);
    EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
    EXPECT_EQ(r.find("reduction")->reason,
              "all elements of a tile, for all corners, but for products of low parts");
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted
};

constexpr const char* cross = "wgmma(a_high[h], parts_of_b[:, low].T, sums)";
constexpr const char* apart =
    "take_apart(b[k, :, part(h, 16)], taken_apart[k, h][:, high], taken_apart[k, h][:, low])";
constexpr Edit edits[] = {
    {"low by low in the place of high by low", cross, "wgmma(a_low[h], parts_of_b[:, low].T, sums)",
     "reduction"},
    {"low of the other half of A", "a_low[h][:] = x - a_high[h]",
     "a_low[h][:] = load(a[k, :, part(1 - h, 16)], like=x) - a_high[h]", "k_agreement"},
    {"no fence between the parts and wgmma", "fence.async_shared()", "wgmma.fence()",
     "proxy_fence"},
    {"the parts of B are not awaited", "made[h][k].wait()", "wgmma.fence()", "race_shared"},
    {"the parts of the other half are awaited", "made[h][k].wait()", "made[0][k].wait()",
     "race_shared"},
    {"parts are made before their place is free", "used[h][k].wait()", "fence.async_shared()",
     "race_shared"},
    {"places are free while products read them",
     "if k.index > 0:\n                        used[h][k - 1].arrive()", "used[h][k].arrive()",
     "arrivals"},
    {"A's slot is given back without a fence", "fence.async_shared()  # a", "wgmma.fence()  # a",
     "proxy_fence"},
    {"a product is left out", cross, "wgmma.fence()", "reduction"},
    {"a product twice", cross, "wgmma(a_high[h], parts_of_b[:, high].T, sums)", "reduction"},
    {"parts exchanged", apart,
     "take_apart(b[k, :, part(h, 16)], taken_apart[k, h][:, low], taken_apart[k, h][:, high])",
     "reduction"},
    {"high is not rounded, and low what is left of it", "store(high, to_high)", "store(x, to_high)",
     "reduction"},
    {"nothing is low", "store(x - high, to_low)", "store(x - x, to_low)", "k_agreement"},
    {"low is doubled", "store(x - high, to_low)", "store(2.0 * (x - high), to_low)", "k_agreement"},
    {"the other half of A",
     "load(a[k, :, part(h, 16)], like=", "load(a[k, :, part(1 - h, 16)], like=", "k_agreement"},
    {"the other half of B", "take_apart(b[k, :, part(h, 16)]",
     "take_apart(b[k, :, part(1 - h, 16)]", "k_agreement"},
    {"another slot of B", "parts_of_b = taken_apart[k, h]", "parts_of_b = taken_apart[0, h]",
     "race_shared"},
    {"a slot is given back after its first half", "if h == 1:", "if h == 0:", "race_shared"},
    {"registers of products under way", "wgmma.wait(1)", "wgmma.wait(2)", "async_registers"},
    {"sums begin anew in each half", "if h == 0 else False", "if h == 0 else True", "reduction"},
};

TEST(GemmFp32, WithAnEditIsRefuted) {
  int which = 0;
  for (const Edit& e : edits) {
    if (!thorough() && which++ % 3 != 0) continue;
    SCOPED_TRACE(e.what);
    std::string text = file_text();
    const auto place = text.find(e.from, text.find("with role(\"divider\""));
    ASSERT_NE(place, std::string::npos);
    text.replace(place, std::string(e.from).size(), e.to);
    const auto kernel = kernel_of(text, {});
    if (!kernel) continue;
    const check::Report r = judged(*kernel);
    EXPECT_EQ(r.find(e.kind)->verdict, check::Verdict::refuted) << to_text(r);
  }
}

/// What the checker does not see, rounding, the numbers do: each part is needed.
TEST(GemmFp32, WithoutAPartIsNotAsNear) {
  std::string text = file_text();
  text.replace(text.find(cross), std::string(cross).size(), "wgmma.fence()");
  EXPECT_GT(error_of(text, {}, {128, 64, 32}, 1), 16 * permitted);
}

}  // namespace
}  // namespace tessera::proofs
