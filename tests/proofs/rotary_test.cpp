// kernels/gemm.py with columns that make results in pairs, as rotary embedding does, and columns of
// several parts: proved, refuted with an edit of partner, sign, table or part, and right where the
// interpreter runs it.
#include <gmock/gmock.h>
#include <random>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "language/language.h"
#include "replay/reference.h"
#include "simulate/simulate.h"

namespace tessera::proofs {
namespace {

using Constants = std::map<std::string, language::Constant>;

/// Columns below 256 are turned by tables, in groups of 64; the others stay.
constexpr const char* rotary = R"(

def rotary(
    low, high, batch, m, left, right, half,
    COS: Tensor[bf16, "M", 32],
    SIN: Tensor[bf16, "M", 32],
):
    x = registers(f32, low.shape)
    y = registers(f32, high.shape)
    x[:] = low
    y[:] = high
    if left.start < 256:
        cos = load(COS[m, half], like=low)
        sin = load(SIN[m, half], like=low)
        x[:] = x * cos - high * sin
        y[:] = y * cos + low * sin
    return [x, y]
)";
constexpr const char* meaning =
    "C[i, j] = (sum(A[i, k] * B[j, k], k) * COS[i, j % 32]"
    " - sum(A[i, k] * B[j + 32, k], k) * SIN[i, j % 32] if j % 64 < 32 else "
    "sum(A[i, k] * B[j, k], k) * COS[i, j % 32]"
    " + sum(A[i, k] * B[j - 32, k], k) * SIN[i, j % 32])"
    " if j < 256 else sum(A[i, k] * B[j, k], k)";

std::string text() {
  return read_file(source_folder() + "/kernels/gemm.py") + rotary;
}

Result<core::Kernel> kernel_of(const std::string& text, Constants constants) {
  constants.insert({{"BM", int64_t{64}},
                    {"BN", int64_t{128}},
                    {"STAGES", int64_t{2}},
                    {"HALF", int64_t{32}},
                    {"PART", int64_t{32}},
                    {"turned", std::string("rotary")}});
  return language::elaborate({"gemm.py", text}, "gemm", {.constants = constants, .means = meaning});
}

std::optional<check::Report> report(const std::string& text, const Constants& constants) {
  const auto kernel = kernel_of(text, constants);
  EXPECT_TRUE(kernel) << to_text(kernel.error());
  if (!kernel) return std::nullopt;
  const auto means = check::means_of(*kernel);
  EXPECT_TRUE(means) << to_text(means.error());
  if (!means) return std::nullopt;
  return check::check(*kernel, {}, *means);
}

TEST(Rotary, IsProved) {
  std::vector<Constants> all = {{}, {{"BN", 256}, {"BM", 128}, {"CLUSTER", 2}}};
  if (thorough())
    all.insert(all.end(), {{{"DIRECT", 1}, {"RESULT", std::string("f32")}},
                           {{"TURNS", 2}},
                           {{"BM", 256}, {"ROWS", 128}},
                           {{"CLUSTER", 2}, {"BESIDE", 1}, {"B_ORDER", 2}}});
  for (const Constants& c : all) {
    const auto r = report(text(), c);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->verdict(), check::Verdict::proved) << to_text(*r);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* says;  // of the placement that is refuted
};

constexpr const char* function = "another function than the meaning has";
constexpr Edit edits[] = {
    {"the wrong sign", "x * cos - high * sin", "x * cos + high * sin", function},
    {"no partner", "x * cos - high * sin", "x * cos - low * sin", function},
    {"the partner's partner", "y * cos + low * sin", "y * cos + high * sin", function},
    {"tables are exchanged", "x * cos - high * sin", "x * sin - high * cos", function},
    {"one half is not turned", "        y[:] = y * cos + low * sin\n", "", function},
    {"halves are exchanged", "return [x, y]", "return [y, x]", function},
    {"another row of the table", "COS[m, half]", "COS[part(0, 64), half]", "COS[0, 0]"},
    {"another column of the table", "SIN[m, half]", "SIN[m, part(0, 32)[part(0, 1)]]", function},
    {"parts begin later", "left.start < 256", "left.start < 384", function},
    {"parts begin earlier", "left.start < 256", "left.start < 128", function},
    {"all is turned", "left.start < 256", "left.start < 1 << 20", function},
    {"the others are turned", "left.start < 256", "256 <= left.start", function},
    {"the partner is a quarter away", "right = g[part(p + HALF // PART, PART)]",
     "right = g[part(p, PART)]", ""},
};

TEST(Rotary, AnEditIsRefuted) {
  for (const Edit& e : edits) {
    std::string kernel = text();
    const auto place = kernel.find(e.from);
    ASSERT_NE(place, std::string::npos) << e.what;
    kernel.replace(place, std::string(e.from).size(), e.to);
    const auto r = report(kernel, {});
    ASSERT_TRUE(r) << e.what;
    const check::Finding* f = r->find("placement");
    ASSERT_EQ(f->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(*r);
    EXPECT_THAT(to_text(f->diagnostics.front()), ::testing::HasSubstr(e.says)) << e.what;
  }
}

TEST(Rotary, RegistersOfOutsideAreNotKnownBehindAConditionOnThePlace) {
  // They may hold nothing where the condition does not hold.
  std::string kernel = text();
  const std::string table = "        cos = load(COS[m, half], like=low)\n";
  const auto place = kernel.find(table);
  ASSERT_NE(place, std::string::npos);
  kernel.replace(place, table.size(), "        cos[:] = load(COS[m, half], like=low)\n");
  kernel.insert(kernel.find("    x = registers(f32, low.shape)"),
                "    cos = registers(f32, low.shape)\n");
  const auto r = report(kernel, {});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->find("initialized")->verdict, check::Verdict::unknown) << to_text(*r);
}

TEST(Rotary, ATileThatLiesInTwoPartsIsNotDecided) {
  const auto r = report(text(), {{"BN", 192}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->find("placement")->verdict, check::Verdict::unknown) << to_text(*r);
  EXPECT_EQ(r->find("placement")->reason,
            "a tile of 192 columns may lie on both sides of column 256");
}

TEST(Rotary, TheInterpreterAgrees) {
  const auto kernel = kernel_of(text(), {{"BK", 16}});
  ASSERT_TRUE(kernel) << to_text(kernel.error());
  const auto means = check::means_of(*kernel);
  ASSERT_TRUE(means && *means);
  simulate::Launch launch;
  launch.multiprocessors = 2;
  launch.parameters = {{"M", 72}, {"N", 328}, {"K", 24}};
  std::mt19937_64 random(7);
  const std::map<std::string, int> sizes = {
      {"A", 72 * 24}, {"B", 328 * 24}, {"COS", 72 * 32}, {"SIN", 72 * 32}};
  for (const auto& [name, elements] : sizes)
    for (int i = 0; i < elements; ++i)
      launch.inputs[name].push_back(static_cast<double>(random() % 3) - 1);
  const auto simulator = simulate::Simulator::make(*kernel, launch);
  ASSERT_TRUE(simulator) << to_text(simulator.error());
  const replay::Reference reference(*kernel, **means, launch);
  const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(1));
  for (const Diagnostic& d : o.findings) ADD_FAILURE() << to_text(d);
  EXPECT_EQ(reference.wrong_element(o), std::nullopt);
}

}  // namespace
}  // namespace tessera::proofs
