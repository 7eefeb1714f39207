// kernels/gated.py, two products that share A: proved in its variants, refuted with an edit of what
// meets what, and right where the interpreter runs it.
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

std::string gated_text() {
  return read_file(source_folder() + "/kernels/gated.py");
}

Result<core::Kernel> kernel_of(const std::string& text, Constants constants) {
  constants.insert({{"BN", int64_t{64}}, {"STAGES", int64_t{2}}});
  return language::elaborate({"gated.py", text}, "gated", {constants});
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

TEST(Gated, IsProved) {
  std::vector<Constants> all = {
      {},
      {{"BM", 64}, {"BN", 160}, {"PART", 32}, {"STAGES", 3}},  // a wgmma for each product
      {{"CLUSTER", 2}, {"A_ORDER", 2}, {"B_ORDER", 2}, {"BN", 128}},
      {{"TURNS", 2}, {"ROWS", 128}, {"BM", 128}, {"C_ORDER", 1}, {"DIRECT", 1}},
      {{"ELEMENT", std::string("f32")}, {"BK", 32}, {"ROUND", 1}, {"BN", 32}, {"PART", 32}}};
  if (thorough())
    all.insert(all.end(), {{{"BN", 128}},
                           {{"BM", 256}, {"ROWS", 128}, {"CLUSTER", 2}, {"BESIDE", 1}},
                           {{"TURNS", 2}, {"BM", 64}, {"CLUSTER", 2}},
                           {{"BN", 160}, {"PART", 32}, {"CLUSTER", 2}, {"STAGES", 3}},
                           {{"BN", 192}, {"B_ORDER", 2}, {"BM", 64}, {"STAGES", 3}},
                           {{"ELEMENT", std::string("f32")},
                            {"RESULT", std::string("bf16")},
                            {"BK", 32},
                            {"ROUND", 1}}});
  for (const Constants& c : all) {
    const auto r = report(gated_text(), c);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->verdict(), check::Verdict::proved) << to_text(*r);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted
  const char* says;
};

constexpr const char* function = "another function than the meaning has";
constexpr const char* load_b = "tma.load(B[n, k], b[k, part(0, BN)]";
constexpr const char* load_d = "tma.load(D[n, k], b[k, part(1, BN)]";
constexpr const char* up = "c + (BN // PART if products == 1 else 0)";
constexpr Edit edits[] = {
    {"gate and up are exchanged", "epilogue(gate, up,", "epilogue(up, gate,", "placement",
     function},
    {"the other one is activated", "return silu(gate) * up", "return gate * silu(up)", "placement",
     "silu(sum_D[i, j])"},
    {"they are added", "return silu(gate) * up", "return silu(gate) + up", "placement", function},
    {"one is left out", "return silu(gate) * up", "return silu(gate)", "placement", function},
    {"another activation", "return silu(gate) * up", "return gelu_erf(gate) * up", "placement",
     function},
    {"twice as much", "return silu(gate) * up", "return silu(gate) * up * 2.0", "placement",
     function},
    {"B twice", load_d, "tma.load(B[n, k], b[k, part(1, BN)]", "placement", function},
    {"B and D change places", load_b, "tma.load(D[n, k], b[k, part(0, BN)]", "placement", function},
    {"D of the next columns", load_d, "tma.load(D[n + 1, k], b[k, part(1, BN)]", "placement",
     "sum_D[i, j + 64]"},
    {"D of another k", load_d, "tma.load(D[n, k + 1], b[k, part(1, BN)]", "k_agreement",
     "reads other elements of `D` than its place says"},
    {"D in the place of B", load_d, "tma.load(D[n, k], b[k, part(0, BN)]", "race_shared", ""},
    {"D is not awaited", "expect(a[k], b[k])", "expect(a[k], b[k, part(0, BN)])", "arrivals", ""},
    {"up of gate's columns", up, "c", "placement", function},
    {"a product goes on with the last tile's", "start=k.first", "start=False", "initialized", ""},
};

TEST(Gated, AnEditOfWhatMeetsWhatIsRefuted) {
  for (const Edit& e : edits) {
    std::string text = gated_text();
    const auto place = text.find(e.from, text.find("def swiglu"));
    ASSERT_NE(place, std::string::npos) << e.what;
    text.replace(place, std::string(e.from).size(), e.to);
    const auto r = report(text, {});
    ASSERT_TRUE(r) << e.what;
    const check::Finding* f = r->find(e.kind);
    ASSERT_EQ(f->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(*r);
    EXPECT_THAT(to_text(f->diagnostics.front()), ::testing::HasSubstr(e.says)) << e.what;
  }
}

/// Elements -1, 0 and 1, under several schedules, against the meaning.
TEST(Gated, TheInterpreterAgrees) {
  const auto kernel = kernel_of(gated_text(), {{"BM", 64}, {"BK", 16}, {"PART", 32}});
  ASSERT_TRUE(kernel) << to_text(kernel.error());
  const auto means = check::means_of(*kernel);
  ASSERT_TRUE(means && *means);
  simulate::Launch launch;
  launch.multiprocessors = 2;
  launch.parameters = {{"M", 72}, {"N", 104}, {"K", 40}};
  std::mt19937_64 random(7);
  for (const auto& [name, rows] : std::map<std::string, int>{{"A", 72}, {"B", 104}, {"D", 104}})
    for (int i = 0; i < rows * 40; ++i)
      launch.inputs[name].push_back(static_cast<double>(random() % 3) - 1);
  const auto simulator = simulate::Simulator::make(*kernel, launch);
  ASSERT_TRUE(simulator) << to_text(simulator.error());
  const replay::Reference reference(*kernel, **means, launch);
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(seed));
    for (const Diagnostic& d : o.findings) ADD_FAILURE() << "seed " << seed << "\n" << to_text(d);
    EXPECT_EQ(reference.wrong_element(o), std::nullopt);
  }
}

}  // namespace
}  // namespace tessera::proofs
