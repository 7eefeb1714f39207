// kernels/gemm.py, the kernel that the layers below are tested with.
#include "core/testing/gemm.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "language/language.h"
#include "language/testing/dump.h"

namespace tessera::language {
namespace {

Source gemm_source() {
  const std::string name = "kernels/gemm.py";
  return {name, read_file(source_folder() + "/" + name)};
}

TEST(LanguageGemm, IsTheKernelThatTheCoreIsTestedWith) {
  const Result<core::Kernel> written = core::testing::gemm();
  ASSERT_TRUE(written) << to_text(written.error());
  const Result<core::Kernel> read = elaborate(gemm_source(), "gemm");
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_EQ(testing::dump(*read), testing::dump(*written));
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
  EXPECT_EQ(text("wgmma.f32.bf16.bf16.ss"), "wgmma(a[k], b[k].T, acc, start=k.first)");
  EXPECT_EQ(text("tma.load"), "tma.load(A[m, k], a[k], full[k])");
  EXPECT_EQ(text("mbarrier.arrive_expect_tx"), "full[k].expect(a[k], b[k])");
  EXPECT_EQ(text("stmatrix"), "stmatrix(result, buffer)");
  EXPECT_EQ(text("mbarrier.init"), "barrier(STAGES, arrivals=1)");
  EXPECT_EQ(k->source->text(k->shared[1].span),
            "shared(ELEMENT, [STAGES, BN, BK], swizzle=2 * BK)");
}

TEST(LanguageGemm, ConstantsMakeTheOtherKernelsOfTheFamily) {
  for (const core::testing::GemmShape& s :
       {core::testing::GemmShape{.bm = 64, .bn = 64, .bk = 32, .stages = 1, .band = 2},
        core::testing::GemmShape{.bm = 192, .bn = 192, .stages = 3, .element = DType::float16}}) {
    const Result<core::Kernel> written = core::testing::gemm(s);
    ASSERT_TRUE(written) << to_text(written.error());
    const Result<core::Kernel> read =
        elaborate(gemm_source(), "gemm",
                  {{{"BM", s.bm},
                    {"BN", s.bn},
                    {"BK", s.bk},
                    {"STAGES", s.stages},
                    {"GROUP", s.band},
                    {"ELEMENT", std::string(short_name(s.element))}}});
    ASSERT_TRUE(read) << to_text(read.error());
    EXPECT_EQ(testing::dump(*read), testing::dump(*written));
  }
}

TEST(LanguageGemm, AnEpilogueIsComputedWhereTheResultIsRounded) {
  const Result<core::Kernel> k =
      elaborate(gemm_source(), "gemm", {{{"epilogue", std::string("relu")}}});
  ASSERT_TRUE(k) << to_text(k.error());
  EXPECT_NE(testing::dump(*k).find("32 x registers1[0 + 32:1] = relu(%0) of registers0["),
            std::string::npos)
      << testing::dump(*k);
}

}  // namespace
}  // namespace tessera::language
