// kernels/copies.py: proved in its variants, right under the interpreter, and never proved with an
// edit of what goes where. Functions of elements that stand in a kernel of other forms.
#include <gtest/gtest.h>
#include <random>

#include "base/files.h"
#include "base/source_folder.h"

#include "check/check.h"
#include "check/kind.h"
#include "proofs/checked_kernel.h"
#include "replay/reference.h"
#include "simulate/simulate.h"

namespace tessera::proofs {
namespace {

std::string file_text() {
  return read_file(source_folder() + "/kernels/copies.py");
}

std::optional<core::Kernel> kernel_of(const std::string& text, const Constants& constants) {
  return checked_kernel("kernels/copies.py", text, "copy", {constants},
                        {{"WARPS", 2}, {"VECTORS", 2}});
}

struct Sizes {
  int64_t m = 5, n = 77, batches = 1, stride = 79;
};

simulate::Launch launch_of(const core::Kernel& kernel, const Sizes& s) {
  const std::map<std::string, int64_t> known = {{"M", s.m},
                                                {"N", s.n},
                                                {"L", s.batches},
                                                {"X_STRIDE", s.stride},
                                                {"X_BATCH", s.m * s.stride},
                                                {"Y_STRIDE", 96},
                                                {"Y_BATCH", s.m * 96}};
  simulate::Launch out;
  for (const core::Term p : kernel.parameters)
    out.parameters[p->symbol->name] = known.at(p->symbol->name);
  out.multiprocessors = 3;
  std::mt19937_64 random(5);
  for (int64_t i = 0; i < (s.batches * s.m - 1) * s.stride + s.n; ++i)
    out.inputs["X"].push_back(static_cast<double>(random() % 16));
  return out;
}

TEST(Copies, AreProvedAndRightInTheirVariants) {
  const std::pair<Constants, Sizes> cases[] = {
      {{}, {}},
      {{{"WIDTH", 2}}, {.n = 82, .stride = 90}},
      {{{"WIDTH", 4}, {"VECTORS", 1}}, {.m = 7, .n = 84, .batches = 3, .stride = 84}},
      {{{"ELEMENT", "f32"}, {"WIDTH", 2}, {"VECTORS", 4}}, {.m = 4, .n = 70, .stride = 70}},
      {{{"ELEMENT", "e4m3"}, {"WARPS", 4}}, {.m = 6, .n = 31, .batches = 2, .stride = 33}}};
  for (const auto& [constants, sizes] : cases) {
    const auto kernel = kernel_of(file_text(), constants);
    ASSERT_TRUE(kernel);
    const check::Report r = judged(*kernel);
    EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
    const simulate::Launch on = launch_of(*kernel, sizes);
    const replay::Reference reference(*kernel, **check::means_of(*kernel), on);
    const auto simulator = simulate::Simulator::make(*kernel, on);
    ASSERT_TRUE(simulator) << to_text(simulator.error());
    const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(1));
    for (const Diagnostic& d : o.findings) ADD_FAILURE() << to_text(d);
    EXPECT_EQ(reference.wrong_element(o), std::nullopt);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted; nullptr: it is not proved
};

constexpr Edit edits[] = {
    {"another column", "load(X[b.index, m, n]", "load(X[b.index, m, n + 1]", "placement"},
    {"another row", "Y[b.index, m, n])", "Y[b.index, m + 1, n])", "placement"},
    {"a function", "store(load(X[b.index, m, n], lanes=32),",
     "store((load(X[b.index, m, n], lanes=32).to(f32) * 2).to(ELEMENT),", "placement"},
    {"one batch's elements for all", "load(X[b.index, m, n]", "load(X[0, m, n]", "placement"},
    {"another batch", "Y[b.index, m, n])", "Y[0, m, n])", nullptr},
    {"tiles of another extent", "tiles(L, 1, M, WARPS, N,", "tiles(L, 1, M, WARPS, M,", nullptr},
    {"nothing is stored", "store(load(X[b.index, m, n], lanes=32), Y[b.index, m, n])",
     "x = load(X[b.index, m, n], lanes=32)", nullptr},
    {"an order of batches that is not known", "load(X[b.index, m, n], lanes=32), Y[b.index, m, n]",
     "load(X[L - 1 - b.index, m, n], lanes=32), Y[L - 1 - b.index, m, n]", nullptr},
    {"extents of another tensor", "X: Tensor[ELEMENT, \"L\", \"M\", \"N\"",
     "X: Tensor[ELEMENT, \"L\", \"N\", \"M\"", nullptr},
    {"it loads before it waits",
     "            grid.wait()  # where the tile lies is known by now\n            grid.launch()\n"
     "            store(load(X[b.index, m, n], lanes=32), ",
     "            x = load(X[b.index, m, n], lanes=32)\n            grid.wait()\n"
     "            store(x, ",
     "early_access"},
};

/// All warps of a kernel without roles, and several elements in a function.
TEST(Copies, AFunctionOfElementsNeedsNoRole) {
  const std::string path = "kernels/rows.py", text = read_file(source_folder() + "/" + path);
  const auto judge = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    const auto place = edited.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    const auto kernel = checked_kernel(path, edited.replace(place, from.size(), to), "scaled_sum",
                                       {}, {{"ROWS", 4}, {"COLUMNS", 256}});
    return kernel ? judged(*kernel).verdict() : check::Verdict::unsupported;
  };
  EXPECT_EQ(judge("SCALE * load(Y[m, n])", "SCALE * load(Y[m, n])"), check::Verdict::proved);
  EXPECT_EQ(judge("SCALE * load(Y[m, n])", "load(Y[m, n])"), check::Verdict::refuted);
  EXPECT_EQ(judge("SCALE * load(Y[m, n])", "SCALE * load(Y[m, n + 1])"), check::Verdict::refuted);
  EXPECT_EQ(judge("Z[m, n])", "Z[m, n])\n        store(load(X[m, n]), Z[m, n])"),
            check::Verdict::refuted);
}

TEST(Copies, WithAnEditAreNotProved) {
  for (const Edit& e : edits) {
    SCOPED_TRACE(e.what);
    std::string text = file_text();
    const auto place = text.find(e.from);
    ASSERT_NE(place, std::string::npos) << e.from;
    const auto kernel = kernel_of(text.replace(place, std::string(e.from).size(), e.to), {});
    ASSERT_TRUE(kernel);
    const check::Report r = judged(*kernel);
    EXPECT_NE(r.verdict(), check::Verdict::proved) << to_text(r);
    if (e.kind == nullptr) continue;
    const auto* finding = r.find(e.kind);
    ASSERT_NE(finding, nullptr) << e.kind;
    EXPECT_EQ(finding->verdict, check::Verdict::refuted) << to_text(r);
  }
}

}  // namespace
}  // namespace tessera::proofs
