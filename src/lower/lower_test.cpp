// Whole kernels: the text, what the compilers say of it, and what cannot be lowered.
#include "lower/lower.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process.h"
#include "base/source_folder.h"
#include "base/text.h"
#include "toolchain/flags.h"
#include "toolchain/ptxas.h"

#include "core/builder.h"
#include "core/testing/attention.h"
#include "core/testing/gemm.h"
#include "core/verify.h"
#include "lower/codes.h"

namespace tessera::lower {
namespace {

using core::Builder;
using core::Integers;
using core::testing::GemmShape;
using term::Term;
using ::testing::HasSubstr;
using ::testing::Not;

CudaSource lowered(const Result<core::Kernel>& kernel, const Options& options = {}) {
  EXPECT_TRUE(kernel);
  const Result<CudaSource> source = lower(*kernel, options);
  EXPECT_TRUE(source) << to_text(source.error());
  return source ? *source : CudaSource{};
}

/// The library of a source, where the tools for it are there; its device code is held to what
/// wgmma needs: no spills, and nothing that makes it run one after the other.
void expect_builds(const CudaSource& source, const TemporaryFolder& folder) {
  toolchain::Toolchain tools = toolchain::locate("python3");
  if (tools.nvcc.empty()) GTEST_SKIP() << "no nvcc on this machine: the kernel is not compiled";
  if (tools.host_runtime.empty()) GTEST_SKIP() << "no headers for a host side on this machine";
  tools.own_include = source_folder() + "/include";
  const toolchain::Source text{
      source.name, toolchain::Language::cuda, source.text, "sm_90a", {}, {}, false};
  ASSERT_EQ(toolchain::sides_of(tools, text), toolchain::Sides::apart);
  write_file_atomically(folder.path() / "k.cu", source.text);
  std::string log;
  for (const auto& argv :
       toolchain::compile_commands(tools, text, folder.path() / "k.cu", folder.path() / "k.so")) {
    const Finished f = run({.argv = argv, .folder = {}, .env = {}}, std::chrono::minutes(2));
    ASSERT_TRUE(f.ok()) << f.output.substr(0, 4000);
    log += f.output;
  }
  const Json said = toolchain::parse_ptxas(log);
  EXPECT_EQ(said.value("spill_bytes", -1), 0) << log;
  EXPECT_FALSE(said.value("serialized_wgmma", false)) << log;
  EXPECT_EQ(log.find("C75"), std::string::npos) << log;
}

TEST(LowerKernel, TheSameKernelIsTheSameText) {
  EXPECT_EQ(lowered(core::testing::gemm()).text, lowered(core::testing::gemm()).text);
}

TEST(LowerKernel, ProductSaysWhatTheCoreSays) {
  const CudaSource s = lowered(core::testing::gemm());
  EXPECT_EQ(s.ints, (std::vector<std::string>{"M", "N", "K"}));
  EXPECT_EQ(s.tensors, (std::vector<std::string>{"A", "B", "C"}));
  for (const char* part :
       {"TESSERA_KERNEL(384, 1)\nvoid gemm(const __grid_constant__ TensorMap A_map,",
        "if (warp < 4) {\n    // producer\n    const int producer_warp = warp;",
        "mbarrier_arrive_expect_tx(full + slot * 8, 49152);", "float acc[128];",
        "matrix((a >> 4 | 0x10000u) + a_at + 2, 0x40000040u)",
        "two_bfloat16(acc[(part * 32) + e], acc[(part * 32) + e + 1])",
        "constexpr tessera::Shape shape{384, 1, 229440, false};"})
    EXPECT_THAT(s.text, HasSubstr(part));
  EXPECT_THAT(s.text, Not(HasSubstr("__cluster_dims__")));
  // What loads and what multiplies has 32-bit indices alone where it matters: none of them divides
  // by the ring's length.
  EXPECT_THAT(s.text, Not(HasSubstr("% uint64_t(4")));
}

TEST(LowerKernel, RingsAreCounted) {
  const CudaSource s = lowered(core::testing::gemm({.bn = 128, .stages = 5}));
  EXPECT_THAT(s.text, HasSubstr("if (++slot == 5) {"));
}

TEST(LowerKernel, ClustersAreDeclared) {
  const CudaSource s = lowered(core::testing::gemm({.cluster = 2}));
  for (const char* part :
       {"__cluster_dims__(2, 1, 1)", "tma_load_multicast_2(", "cluster_arrive_relaxed();",
        "const int rank = static_cast<int>(blockIdx.x % 2);", "Shape shape{384, 2, "})
    EXPECT_THAT(s.text, HasSubstr(part));
}

/// Kernels that are raced elsewhere are ones that the verifier takes.
TEST(LowerKernel, PairsOfBlocksAreRight) {
  const auto arch = arch::find("sm_90a");
  ASSERT_TRUE(arch);
  for (const bool beside : {false, true})
    for (const Diagnostic& d :
         core::verify(*core::testing::gemm({.cluster = 2, .beside = beside}), **arch))
      ADD_FAILURE() << to_text(d);
}

TEST(LowerBuild, Product) {
  const TemporaryFolder folder("lower");
  expect_builds(lowered(core::testing::gemm()), folder);
}
TEST(LowerBuild, SquareProduct) {
  const TemporaryFolder folder("lower");
  expect_builds(lowered(core::testing::gemm({.bn = 128, .stages = 5})), folder);
}
TEST(LowerBuild, PairedProductOfEightBits) {
  const TemporaryFolder folder("lower");
  const GemmShape shape{.bk = 128, .element = DType::float8_e4m3fn, .cluster = 2};
  expect_builds(lowered(core::testing::gemm(shape)), folder);
}
TEST(LowerBuild, ProductOfOperandsWhoseRowsLieSideBySide) {
  const TemporaryFolder folder("lower");
  expect_builds(lowered(core::testing::gemm({.a_rows = true, .b_rows = true})), folder);
}
TEST(LowerBuild, PairedProductOfBatches) {
  const TemporaryFolder folder("lower");
  const GemmShape shape{
      .cluster = 2, .beside = true, .batched = true, .one_b = true, .b_rows = true};
  expect_builds(lowered(core::testing::gemm(shape)), folder);
}
TEST(LowerBuild, CausalAttention) {
  const TemporaryFolder folder("lower");
  expect_builds(lowered(core::testing::attention({.causal = true})), folder);
}

/// The library answers without a GPU what does not need one.
TEST(LowerBuild, LaunchesAreChecked) {
  const TemporaryFolder folder("lower");
  expect_builds(lowered(core::testing::gemm()), folder);
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFailure()) return;
  void* const library = dlopen((folder.path() / "k.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  struct Launch {
    void* const* tensors;
    int32_t tensor_count;
    const int64_t* ints;
    int32_t int_count;
  };
  const auto size =
      reinterpret_cast<int64_t (*)(const Launch*)>(dlsym(library, "tessera_workspace_size"));
  const auto last_error = reinterpret_cast<const char* (*)()>(dlsym(library, "tessera_last_error"));
  ASSERT_TRUE(size != nullptr && last_error != nullptr);
  void* const tensors[3] = {};
  const auto asked = [&](std::vector<int64_t> ints) {
    const Launch launch{tensors, 3, ints.data(), static_cast<int32_t>(ints.size())};
    return size(&launch);
  };
  EXPECT_EQ(asked({4096, 4096, 4096}), 0);
  EXPECT_EQ(asked({4095, 4096, 4096}), -1);
  EXPECT_STREQ(last_error(), "M = 4095: expected 0 modulo 8, from 8 to 1048575");
  EXPECT_EQ(asked({4096, 4096}), -1);
  dlclose(library);
}

// ---- what a launch binds
// -----------------------------------------------------------------------------

TEST(LowerBinding, TensorsBeginWhereTheyAreBound) {
  const Options options{.tensors = {{2, 0}, {0, 64}, {2, 4096}}, .describe_name = "half a product"};
  const CudaSource s = lowered(core::testing::gemm(), options);
  EXPECT_EQ(s.tensors, (std::vector<std::string>{"B", "", "A"}));
  EXPECT_THAT(s.text, HasSubstr("void* A = launch->tensors[2];"));
  EXPECT_THAT(s.text, HasSubstr("void* B = static_cast<char*>(launch->tensors[0]) + 128;"));
  EXPECT_THAT(s.text, HasSubstr(R"("name":"half a product")"));
  const Result<CudaSource> few = lower(*core::testing::gemm(), {.tensors = {{0, 0}}});
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().code, bad_launch.id);
}

TEST(LowerBinding, ALaunchMaySayWhereTensorsAre) {
  Options options;
  options.places_at_launch = true;
  const CudaSource s = lowered(core::testing::gemm(), options);
  EXPECT_EQ(s.ints, (std::vector<std::string>{"M", "N", "K", "A_tensor", "A_offset", "B_tensor",
                                              "B_offset", "C_tensor", "C_offset"}));
  EXPECT_TRUE(s.tensors.empty());
  EXPECT_THAT(s.text, HasSubstr(R"(if (tessera::find_tensor(launch, "B", 5, 2, &B)) return -1;)"));
}

TEST(LowerBinding, WorkspacesLieOneAfterTheOther) {
  Builder b("k", 32);
  const Term n = b.parameter("n", 1, 1000);
  for (const char* name : {"first", "second"})
    b.tensor({name, DType::float32, {n}, {b.number(1)}, core::Access::workspace});
  const CudaSource s = lowered(b.finish());
  EXPECT_TRUE(s.tensors.empty());
  EXPECT_THAT(s.text, HasSubstr("return (n * 1L * 4 + 255) / 256 * 256 + (n * 1L * 4 + 255)"));
  EXPECT_THAT(s.text, HasSubstr("second = static_cast<char*>(workspace) + 0 + (n * 1L * 4"));
}

// ---- ops
// -----------------------------------------------------------------------------------------------

TEST(LowerOps, FunctionsAreAsGoodAsTheirResultsNeed) {
  const auto silu_into = [](DType result) {
    Builder b("k", 128);
    const core::RegistersId x =
        b.registers("x", DType::float32, {256}, *parse_layout("(128,2):(1,128)"));
    const core::RegistersId y = b.registers("y", result, {256}, *parse_layout("(128,2):(1,128)"));
    auto dag = std::make_shared<pointwise::Dag>();
    dag->results = {dag->add_call("silu", {dag->add_operand(0)})};
    const auto all = [&](core::RegistersId of) { return core::Run{of, b.number(0), Layout(2, 1)}; };
    b.compute({dag, {all(x)}, {all(y)}, 2, {}});
    return lowered(b.finish()).text;
  };
  EXPECT_THAT(silu_into(DType::bfloat16), HasSubstr("tsb_silu(x["));
  EXPECT_THAT(silu_into(DType::float16), HasSubstr("tsf_silu(x["));
  EXPECT_THAT(silu_into(DType::float16), HasSubstr("tessera_cutlass/functors.hpp"));
  EXPECT_THAT(silu_into(DType::float32), HasSubstr("tsr_silu(x["));
  EXPECT_THAT(silu_into(DType::float32), Not(HasSubstr("functors.hpp")));
}

TEST(LowerOps, HalfARegisterIsLoadedThroughAVariable) {
  Builder b("k", 128);
  const core::TensorId x = b.tensor({"x", DType::bfloat16, {b.number(256)}, {b.number(1)}});
  const core::RegistersId r =
      b.registers("r", DType::bfloat16, {256}, *parse_layout("(128,2):(1,128)"));
  b.issue("load.global.2", {core::Slice{r, b.number(1)}, core::GlobalAt{x, {b.at().lane}}});
  const CudaSource s = lowered(b.finish());
  EXPECT_THAT(s.text, HasSubstr("uint16_t part = field<16>(r[0], 1);"));
  EXPECT_THAT(s.text, HasSubstr("set_field<16>(r[0], 1, part);"));
}

TEST(LowerOps, AConstantOfAnInstructionUnrollsInTheText) {
  Builder b("k", 128);
  b.unrolled("i", 2, [&](Term i) { b.issue("bulk.wait_read", {Integers{{i}}}); });
  const CudaSource s = lowered(b.finish());
  EXPECT_THAT(s.text, HasSubstr("constexpr int i = 0;\n    bulk_wait_read<i>();"));
  EXPECT_THAT(s.text, HasSubstr("constexpr int i_2 = 1;\n    bulk_wait_read<i_2>();"));
}

TEST(LowerOps, LanesMeetBeforeAWarpsInstruction) {
  Builder b("k", 128);
  b.when(less(b.at().lane, b.number(3)), [&] { b.issue("bulk.commit"); });
  b.issue("bulk.commit");
  b.issue("barrier.sync", {Integers{{b.number(0)}}, Integers{{b.number(128)}}});
  const CudaSource s = lowered(b.finish());
  EXPECT_THAT(s.text, HasSubstr("bulk_commit();\n  __syncwarp();\n  barrier_sync(0, 128);"));
}

TEST(LowerOps, OddElementsOfHalvesAreKeptOneByOne) {
  Builder b("k", 128);
  const Layout three(IntTuple::flat({128, 3}), IntTuple::flat({1, 128}));
  const core::RegistersId x = b.registers("x", DType::float32, {128, 3}, three);
  const core::RegistersId y = b.registers("y", DType::float16, {128, 3}, three);
  auto dag = std::make_shared<pointwise::Dag>();
  dag->results = {dag->add_call("add", {dag->add_operand(0), dag->add_operand(1)})};
  const Term e = b.take(b.kernel().pool->coordinate("e", 3));
  b.compute({dag,
             {core::Run{x, b.number(0), Layout(3, 1)}, e * 2},
             {core::Run{y, b.number(0), Layout(3, 1)}},
             3,
             e});
  const CudaSource s = lowered(b.finish());
  EXPECT_THAT(s.text, HasSubstr("(x[e] + static_cast<float>(e * 2))"));
  EXPECT_THAT(s.text, HasSubstr("set_field<16>(y[(e) / 2], (e) % 2, two_float16("));
}

TEST(LowerOps, LinesOfTheAuthorStandAbove) {
  Builder b("k", 32);
  b.kernel().source = std::make_shared<Source>("k.py", "one\n  two(3)\n");
  b.stand_at({6, 12});
  b.issue("bulk.commit");
  EXPECT_THAT(lowered(b.finish()).text, HasSubstr("// k.py:2: two(3)\n  bulk_commit();"));
}

// ---- what is refused
// -----------------------------------------------------------------------------------

std::string refused(Builder& b) {
  const Result<core::Kernel> k = b.finish();
  EXPECT_TRUE(k);
  const Result<CudaSource> s = lower(*k);
  return s ? "accepted" : s.error().code;
}

TEST(LowerRefuses, RegistersWithoutAConstantNumber) {
  Builder b("k", 128);
  const Layout eight(IntTuple::flat({128, 8}), IntTuple::flat({1, 128}));
  const core::RegistersId r = b.registers("r", DType::int32, {128, 8}, eight);
  const core::SharedId s =
      b.shared("s", DType::int32, Layout(IntTuple::flat({32}), IntTuple::flat({1})));
  b.loop("i", b.number(0), b.number(8), b.number(1),
         [&](Term i) { b.issue("load.shared.4", {core::Slice{r, i}, core::SharedAt{s, {i}}}); });
  EXPECT_EQ(refused(b), bad_slice.id);
}

TEST(LowerRefuses, RegistersBeyondTheArray) {
  Builder b("k", 128);
  const Layout two(IntTuple::flat({128, 2}), IntTuple::flat({1, 128}));
  const core::RegistersId r = b.registers("r", DType::float32, {128, 2}, two);
  const core::SharedId s =
      b.shared("s", DType::float32, Layout(IntTuple::flat({32}), IntTuple::flat({1})));
  b.issue("load.shared.16", {core::Slice{r, b.number(0)}, core::SharedAt{s, {b.number(0)}}});
  EXPECT_EQ(refused(b), bad_slice.id);
}

TEST(LowerRefuses, ComputesBeyondTheArray) {
  const auto code_of = [](int64_t first, const Layout& steps, int operand) {
    Builder b("k", 128);
    const Layout four(IntTuple::flat({128, 4}), IntTuple::flat({1, 128}));
    const core::RegistersId r = b.registers("r", DType::float32, {128, 4}, four);
    auto dag = std::make_shared<pointwise::Dag>();
    dag->results = {dag->add_operand(operand)};
    const core::Run all{r, b.number(0), Layout(4, 1)};
    b.compute({dag, {all}, {core::Run{r, b.number(first), steps}}, 4, {}});
    return refused(b);
  };
  EXPECT_EQ(code_of(0, Layout(4, 1), 0), "accepted");
  EXPECT_EQ(code_of(1, Layout(4, 1), 0), "TS0854");
  EXPECT_EQ(code_of(0, Layout(4, 2), 0), "TS0854");
  EXPECT_EQ(code_of(0, Layout(2, 1), 0), "TS0853");
  EXPECT_EQ(code_of(0, Layout(4, 1), 1), "TS0853");
}

TEST(LowerRefuses, PlacesWithOtherCoordinates) {
  Builder b("k", 128);
  const Layout eight(IntTuple::flat({128, 8}), IntTuple::flat({1, 128}));
  const core::RegistersId r = b.registers("r", DType::int32, {128, 8}, eight);
  const core::TensorId t =
      b.tensor({"t", DType::int32, {b.number(64)}, {b.number(1)}, core::Access::input});
  b.issue("load.global.4",
          {core::Slice{r, b.number(0)}, core::GlobalAt{t, {b.number(0), b.number(0)}}});
  EXPECT_EQ(refused(b), bad_argument.id);
}

TEST(LowerRefuses, ArgumentsOfAnotherKind) {
  Builder b("k", 128);
  b.issue("bulk.wait_read", {Integers{{b.at().lane}}});
  EXPECT_EQ(refused(b), bad_argument.id);
  Builder c("k", 128);
  c.issue("mbarrier.arrive", {Integers{{c.number(0)}}});
  EXPECT_EQ(refused(c), bad_argument.id);
  Builder d("k", 128);
  d.issue("wgmma.fence", {Integers{{d.number(0)}}});
  EXPECT_EQ(refused(d), bad_argument.id);
}

TEST(LowerRefuses, IntegersWithoutBounds) {
  Builder b("k", 128);
  const Term n = b.take(b.kernel().pool->parameter("n"));
  b.kernel().parameters.push_back(n);
  b.issue("warp.sync", {Integers{{n + 1}}});
  EXPECT_EQ(refused(b), unbounded.id);
}

TEST(LowerRefuses, MoreSharedMemoryThanThereIs) {
  const Result<CudaSource> s = lower(*core::testing::gemm({.stages = 6}));
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, "TS0855");
  EXPECT_THAT(s.error().message, HasSubstr("bytes of shared memory"));
}

TEST(LowerRefuses, ElementsThatNoComputeHas) {
  Builder b("k", 128);
  const Layout four(IntTuple::flat({128, 4}), IntTuple::flat({1, 128}));
  const core::RegistersId r = b.registers("r", DType::int8, {128, 4}, four);
  auto dag = std::make_shared<pointwise::Dag>();
  dag->results = {dag->add_constant(1)};
  b.compute({dag, {}, {core::Run{r, b.number(0), Layout(4, 1)}}, 4, {}});
  EXPECT_EQ(refused(b), unsupported.id);
}

/// The place of the op is that of the error.
TEST(LowerRefuses, SaysWhere) {
  Builder b("k", 128);
  b.kernel().source = std::make_shared<Source>("k.py", "one\n  wait(lane)\n");
  b.stand_at({6, 16});
  b.issue("bulk.wait_read", {Integers{{b.at().lane}}});
  const Result<CudaSource> s = lower(*b.finish());
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().place.line, 2);
}

}  // namespace
}  // namespace tessera::lower
