// tests/kernels/gemm_unaligned.py: proved in its variants, right under schedules of the
// interpreter, and never proved with an edit of what threads bring, or of who waits for whom.
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
  return read_file(source_folder() + "/tests/kernels/gemm_unaligned.py");
}

std::optional<core::Kernel> kernel_of(const std::string& text, const Constants& constants) {
  return checked_kernel("tests/kernels/gemm_unaligned.py", text, "gemm", {constants},
                        {{"BM", 64}, {"BN", 64}, {"STAGES", 2}});
}

struct Sizes {
  int64_t m = 75, n = 67, k = 37, batches = 1;
};

/// Elements -1, 0 and 1: every sum is a number of bfloat16. Rows follow one another.
simulate::Launch launch_of(const core::Kernel& kernel, const Sizes& s) {
  const std::map<std::string, int64_t> known = {{"M", s.m},
                                                {"N", s.n},
                                                {"K", s.k},
                                                {"L", s.batches},
                                                {"A_STRIDE", s.k},
                                                {"B_STRIDE", s.k},
                                                {"C_STRIDE", s.n},
                                                {"A_BATCH", s.m * s.k},
                                                {"B_BATCH", s.n * s.k},
                                                {"C_BATCH", s.m * s.n}};
  simulate::Launch out;
  for (const core::Term p : kernel.parameters)
    out.parameters[p->symbol->name] = known.at(p->symbol->name);
  out.multiprocessors = 3;
  std::mt19937_64 random(7);
  for (const auto& [name, rows] : {std::pair{"A", s.m}, {"B", s.n}})
    for (int64_t i = 0; i < s.batches * rows * s.k; ++i)
      out.inputs[name].push_back(static_cast<double>(random() % 3) - 1);
  return out;
}

void expect_product(const simulate::Launch& on, const std::vector<double>& c, const Sizes& s) {
  const auto& a = on.inputs.at("A");
  const auto& b = on.inputs.at("B");
  for (int64_t l = 0; l < s.batches; ++l)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k)
          sum += a.at((l * s.m + i) * s.k + k) * b.at((l * s.n + j) * s.k + k);
        ASSERT_EQ(c.at((l * s.m + i) * s.n + j), sum) << l << " " << i << " " << j;
      }
}

TEST(GemmUnaligned, IsRightUnderSchedules) {
  const std::pair<Constants, Sizes> cases[] = {
      {{}, {}},
      {{{"WIDTH", 2}, {"BK", 32}}, {.m = 75, .n = 130, .k = 70}},
      {{{"WIDTH", 4}, {"BK", 64}, {"BM", 128}, {"STAGES", 3}}, {.m = 130, .n = 67, .k = 76}},
      {{{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}},
       {.m = 65, .n = 33, .k = 19, .batches = 3}}};
  for (const auto& [constants, sizes] : cases) {
    const auto kernel = kernel_of(file_text(), constants);
    ASSERT_TRUE(kernel);
    const simulate::Launch on = launch_of(*kernel, sizes);
    const auto simulator = simulate::Simulator::make(*kernel, on);
    ASSERT_TRUE(simulator) << to_text(simulator.error());
    const uint64_t seeds = thorough() ? 16 : 2;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(seed));
      for (const Diagnostic& d : o.findings) ADD_FAILURE() << to_text(d);
      expect_product(on, o.outputs.at("C"), sizes);
    }
  }
}

TEST(GemmUnaligned, IsProvedInItsVariants) {
  std::vector<Constants> all = {{},
                                {{"WIDTH", 4}, {"BK", 64}, {"BM", 128}, {"BN", 128}},
                                {{"WIDTH", 2}, {"BK", 16}, {"BN", 192}, {"STAGES", 3}},
                                {{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}},
                                {{"WIDTH", 2}, {"BK", 32}, {"BATCHES", 1}, {"A_BATCHES", 1}}};
  if (thorough())
    for (const int64_t width : {1, 2, 4})
      for (const int64_t columns : {64, 128, 192})
        all.push_back({{"WIDTH", width}, {"BK", 16 * width}, {"BN", columns}, {"STAGES", 4}});
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
  const char* kind;  // that is refuted; nullptr: it is not proved
};

constexpr Edit edits[] = {
    {"B of the next turn's k", "load(B[batch.index, n, k]", "load(B[batch.index, n, k + 1]",
     "k_agreement"},
    {"the same elements of both", "load(B[batch.index, n, k]", "load(A[batch.index, m, k]",
     "k_agreement"},
    {"rows of A where B has its columns", "load(A[batch.index, m, k]", "load(A[batch.index, n, k]",
     "placement"},
    {"what lies beyond k is not zero", "load(A[batch.index, m, k], lanes",
     "load(A[batch.index, m, k], fill=1.0, lanes", "reduction"},
    {"another slot", "hand_over(x, b[k], full[k])", "hand_over(x, b[k + 1], full[k])",
     "initialized"},
    {"A to B's place", "hand_over(x, a[k], full[k])", "hand_over(x, b[k], full[k])", "race_shared"},
    {"a slot in use is overwritten",
     "                empty[k].wait()\n                hand_over(x, a",
     "                hand_over(x, a", "race_shared"},
    {"stores of threads are not fenced", "    fence.async_shared()\n", "", "proxy_fence"},
    {"the slot is filled before it is", "    filled.arrive()\n", "    pass\n", "deadlock"},
    {"a function of the elements", "    store(x, slot)\n", "    store(x + x, slot)\n", nullptr},
    {"a slot is given back too early", "wgmma.wait(1)", "wgmma.wait(2)", "race_shared"},
};

TEST(GemmUnaligned, WithAnEditIsNotProved) {
  for (const Edit& e : edits) {
    SCOPED_TRACE(e.what);
    std::string text = file_text();
    const auto place = text.find(e.from);
    ASSERT_NE(place, std::string::npos) << e.from;
    const auto kernel = kernel_of(text.replace(place, std::string(e.from).size(), e.to), {});
    ASSERT_TRUE(kernel);
    const check::Report r = judged(*kernel);
    if (e.kind == nullptr) {
      EXPECT_EQ(r.verdict(), check::Verdict::unknown) << to_text(r);
      continue;
    }
    EXPECT_EQ(r.verdict(), check::Verdict::refuted) << to_text(r);
    const auto* finding = r.find(e.kind);
    ASSERT_NE(finding, nullptr) << e.kind << "\n" << to_text(r);
    EXPECT_EQ(finding->verdict, check::Verdict::refuted) << to_text(r);
  }
}

}  // namespace
}  // namespace tessera::proofs
