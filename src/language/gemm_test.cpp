// kernels/gemm.py, the kernel that the layers below are tested with.
#include "core/testing/gemm.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "core/walk.h"
#include "language/language.h"
#include "language/testing/dump.h"

namespace tessera::language {
namespace {

Source gemm_source() {
  const std::string name = "kernels/gemm.py";
  return {name, read_file(source_folder() + "/" + name)};
}

TEST(LanguageGemm, IsTheKernelThatTheCoreIsTestedWith) {
  const Result<core::Kernel> written = core::testing::gemm({.early = true});
  ASSERT_TRUE(written) << to_text(written.error());
  const Result<core::Kernel> read = elaborate(gemm_source(), "gemm");
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_EQ(testing::dump(core::without_tags(*read)), testing::dump(*written));
  EXPECT_EQ(read->constants.at("STAGES"), 4);
}

/// The first op that issues the form.
const core::Op* find(const core::Body& body, std::string_view form) {
  for (const core::Op& op : body) {
    if (const auto* i = op.as<core::Issue>(); i != nullptr && i->form->name == form) return &op;
    for (const core::Body* inner :
         {op.as<core::For>() ? &op.as<core::For>()->body : nullptr,
          op.as<core::If>() ? &op.as<core::If>()->body : nullptr,
          op.as<core::Elected>() ? &op.as<core::Elected>()->body : nullptr,
          op.as<core::Role>() ? &op.as<core::Role>()->body : nullptr})
      if (const core::Op* found = inner == nullptr ? nullptr : find(*inner, form)) return found;
  }
  return nullptr;
}

TEST(LanguageGemm, OpsHaveThePlacesOfTheTextThatTheyComeFrom) {
  const Result<core::Kernel> k = elaborate(gemm_source(), "gemm");
  ASSERT_TRUE(k) << to_text(k.error());
  const auto text = [&](std::string_view form) {
    const core::Op* const op = find(k->body, form);
    return op == nullptr ? "none" : std::string(k->source->text(op->span));
  };
  EXPECT_EQ(text("wgmma.f32.bf16.bf16.ss"),
            "wgmma(a[k, part(h, high)], b[k].T, sums[h], start=begins)");
  EXPECT_EQ(text("tma.load"),
            "tma.load(A[batch.index, m, k], a[k], full[k], share=BESIDE == 1, round=ROUND == 1)");
  EXPECT_EQ(text("mbarrier.arrive_expect_tx"), "full[k].expect(a[k], b[k])");
  EXPECT_EQ(text("stmatrix"), "stmatrix(result, buffer)");
  EXPECT_EQ(text("mbarrier.init"), "barrier(STAGES, arrivals=1)");
  EXPECT_EQ(
      k->source->text(k->shared[1].span),
      "shared(ELEMENT, [STAGES, BN, BK], swizzle=128 if B_ORDER == 2 else row, contiguous=1 if "
      "B_ORDER == 2 else 2)");
}

TEST(LanguageGemm, ConstantsMakeTheOtherKernelsOfTheFamily) {
  using core::testing::GemmShape;
  for (const GemmShape& s :
       {GemmShape{.bm = 64, .bn = 64, .bk = 32, .stages = 1, .band = 2},
        GemmShape{.bm = 192, .bn = 192, .stages = 3, .element = DType::float16},
        GemmShape{.cluster = 2}, GemmShape{.cluster = 2, .beside = true},
        GemmShape{.bm = 64, .bn = 128, .stages = 6, .band = 4, .cluster = 2}}) {
    GemmShape same = s;
    same.early = same.drains = true;
    const Result<core::Kernel> written = core::testing::gemm(same);
    ASSERT_TRUE(written) << to_text(written.error());
    const Result<core::Kernel> read =
        elaborate(gemm_source(), "gemm",
                  {{{"BM", s.bm},
                    {"BN", s.bn},
                    {"BK", s.bk},
                    {"STAGES", s.stages},
                    {"GROUP", s.band},
                    {"CLUSTER", s.cluster},
                    {"BESIDE", s.beside ? 1 : 0},
                    {"ELEMENT", std::string(short_name(s.element))}}});
    ASSERT_TRUE(read) << to_text(read.error());
    EXPECT_EQ(testing::dump(core::without_tags(*read)), testing::dump(*written));
  }
}

std::string dumped(const Options& options) {
  const Result<core::Kernel> k = elaborate(gemm_source(), "gemm", options);
  return k ? testing::dump(*k) : to_text(k.error());
}

TEST(LanguageGemm, BatchesAreTheOutermostTiles) {
  const std::string text =
      dumped({{{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_ORDER", 1}, {"C_ORDER", 1}}});
  for (const char* part :
       {"tensor bf16 [L, M, K] [K * M, K, 1] 0\n", "tensor bf16 [N, K] [B_STRIDE, 1] 0\n",
        "tensor bf16 [L, M, N] [C_BATCH, C_STRIDE, 1] 1\n", "map of tensor0 [2, 1, 0] [64, 128, 1]",
        "map of tensor1 [1, 0] [64, 256]", "parameter B_STRIDE in [8, 2147483648) modulo 8\n",
        "// ((M + 127) // 128 * ((N + 255) // 256))], barriers0["})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  for (const char* part : {"parameter A_STRIDE", "parameter A_BATCH", "parameter B_BATCH"})
    EXPECT_EQ(text.find(part), std::string::npos) << part;
}

TEST(LanguageGemm, TheMeaningNamesTheDimensionsThatTensorsHave) {
  const auto means = [&](const Options& options) {
    return elaborate(gemm_source(), "gemm", options)->means;
  };
  EXPECT_EQ(means({}), "C[i, j] = sum(A[i, k] * B[j, k], k)");
  EXPECT_EQ(means({{{"BATCHES", 1}, {"B_BATCHES", 1}}}),
            "C[b, i, j] = sum(A[i, k] * B[b, j, k], k)");
}

TEST(LanguageGemm, RowsSideBySideAreLoadedPanelByPanel) {
  const std::string text = dumped({{{"A_ORDER", 2}, {"B_ORDER", 2}}});
  for (const char* part :
       {"shared bf16 (4,(64,2),64):(8192,(1,4096),64) 128B", "map of tensor0 [0, 1] [64, 64]",
        "shared bf16 (4,(64,4),64):(16384,(1,4096),64) 128B",
        "[1], [1], [1], [1], n=256)"})  // both scales, both transposed
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(LanguageGemm, AnEpilogueIsComputedWhereTheResultIsRounded) {
  const std::string with_function = read_file(source_folder() + "/kernels/gemm.py") +
                                    "\n\ndef positive(x, batch, m, n):\n    return relu(x)\n";
  const Result<core::Kernel> k =
      elaborate({"gemm.py", with_function}, "gemm", {{{"epilogue", std::string("positive")}}});
  ASSERT_TRUE(k) << to_text(k.error());
  EXPECT_NE(testing::dump(*k).find("32 x registers1[0 + 32:1] = relu(%0) of registers0["),
            std::string::npos)
      << testing::dump(*k);
}

}  // namespace
}  // namespace tessera::language
