#include "toolchain/device_text.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

namespace tessera::toolchain {
namespace {

const char* const source = R"(__device__ void help() {
}
__global__ void k(int* x) {
  // k.py:4: x = 1
  x[0] = 1;
  x[1] = 2;
  // k.py:7: y = 2
  help();
}
void other() {}
)";
const char* const first = "k.py:4: x = 1";
const char* const second = "k.py:7: y = 2";

TEST(DeviceText, PlacesHoldUntilTheNextOneOrTheEndOfTheFunction) {
  const std::vector<std::string> places = authors_places(source);
  const std::vector<std::string> expected = {"",     "",     "", first, first, first,
                                             second, second, "", "",    ""};
  EXPECT_EQ(places, expected);
}

TEST(DeviceText, MarksOfPtxBecomePlaces) {
  const std::string text = R"(begin
	.loc	1 3 0
	a;
	.loc	1 5 3
	b;
	.loc	1 6 3
	c;
	.loc	2 9 1, function_name $L__info_string0, inlined_at 1 8 3
	d;
	.file	1 "/tmp/s.cu"
	.file	2 "/cuda/i.h"
end)";
  EXPECT_EQ(with_places(text, Stage::ptx, "/tmp/s.cu", authors_places(source)),
            "begin\n\ta;\n\t// k.py:4: x = 1\n\tb;\n\tc;\n\t// k.py:7: y = 2\n\td;\nend\n");
}

TEST(DeviceText, InlinedMachineCodeHasThePlaceOfItsCall) {
  const std::string text = R"(	//## File "/tmp/s.cu", line 5
	MOV;
	//## File "/tmp/s.cu", line 1 inlined at "/tmp/s.cu", line 8
	//## File "/tmp/s.cu", line 8
	BAR;
	//## File "/cuda/i.h", line 5
	EXIT;)";
  EXPECT_EQ(with_places(text, Stage::sass, "/tmp/s.cu", authors_places(source)),
            "\t// k.py:4: x = 1\n\tMOV;\n\t// k.py:7: y = 2\n\tBAR;\n\tEXIT;\n");
}

TEST(DeviceText, WhatIsMissingIsNamed) {
  Toolchain tools = locate("python3");
  tools.own_include = source_folder() + "/include";
  Source kernel;
  kernel.name = "k";
  kernel.text = source;
  kernel.arch = "sm_90a";
  tools.nvcc.clear();
  const auto without = device_text(tools, kernel, Stage::ptx, std::chrono::seconds(60));
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, "TS0301");
  const TemporaryFolder empty;
  tools.nvcc = empty.path() / "nvcc";
  const auto sass = device_text(tools, kernel, Stage::sass, std::chrono::seconds(60));
  ASSERT_FALSE(sass);
  // Where nvdisasm is on PATH, the compiler is what does not start.
  EXPECT_TRUE(sass.error().code == "TS0326" || sass.error().code == "TS0306") << sass.error().code;
}

TEST(DeviceText, PtxIsMadeAndDoesNotCompileWhatIsWrong) {
  Toolchain tools = locate("python3");
  if (tools.nvcc.empty()) GTEST_SKIP() << "no nvcc on this machine";
  tools.own_include = source_folder() + "/include";
  Source kernel;
  kernel.name = "k";
  kernel.text = source;
  kernel.arch = "sm_90a";
  const auto ptx = device_text(tools, kernel, Stage::ptx, std::chrono::seconds(120));
  ASSERT_TRUE(ptx) << to_text(ptx.error());
  EXPECT_NE(ptx->find("\t// k.py:4: x = 1\n"), std::string::npos) << *ptx;
  kernel.text += "wrong";
  const auto wrong = device_text(tools, kernel, Stage::ptx, std::chrono::seconds(120));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, "TS0303");
}

}  // namespace
}  // namespace tessera::toolchain
