#include "commands/common/kernel_interface.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "language/language.h"

namespace tessera::commands {
namespace {

Json interface_of_gemm(const language::Options& options) {
  const std::string file = "kernels/gemm.py";
  const auto kernel =
      language::elaborate({file, read_file(source_folder() + "/" + file)}, "gemm", options);
  if (!kernel) throw std::runtime_error(to_text(kernel.error()));
  return interface_of(*kernel);
}

TEST(KernelInterface, IntegersHaveTheirBoundsAndResidues) {
  const Json ints =
      interface_of_gemm({{{"K_MULTIPLE", 16}, {"N_MULTIPLE", 1}, {"C_ORDER", 1}}}).at("ints");
  std::map<std::string, Json> of;
  for (const Json& i : ints) of[i.at("name")] = i;
  EXPECT_EQ(
      of.at("K"),
      (Json{{"name", "K"}, {"lower", 16}, {"below", 1048576}, {"multiple", 16}, {"residue", 0}}));
  EXPECT_EQ(of.at("N").at("multiple"), 1);
  EXPECT_EQ(of.at("C_STRIDE").at("multiple"), 8);
  EXPECT_FALSE(of.contains("L"));
}

TEST(KernelInterface, TensorsHaveTheirExtentsAndStridesInTheOrderOfTheLaunch) {
  const Json tensors =
      interface_of_gemm({{{"BATCHES", 1}, {"B_BATCHES", 1}, {"A_ORDER", 2}, {"ELEMENT", "f16"}}})
          .at("tensors");
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_EQ(tensors[0], (Json{{"name", "A"},
                              {"dtype", "float16"},
                              {"access", "input"},
                              {"extents", {"M", "K"}},
                              {"strides", {1, "A_STRIDE"}}}));
  EXPECT_EQ(tensors[1].at("extents"), (Json{"L", "N", "K"}));
  EXPECT_EQ(tensors[1].at("strides"), (Json{"K * N", "K", 1}));
  EXPECT_EQ(tensors[2].at("access"), "output");
  EXPECT_EQ(tensors[2].at("dtype"), "float16");
}

}  // namespace
}  // namespace tessera::commands
