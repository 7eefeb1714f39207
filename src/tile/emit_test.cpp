// The CUDA sources compile; what a target cannot do is refused with a reason; the judge and the
// type rules say no.
#include <unistd.h>

#include "base/source_folder.h"
#include "tile/build/pointwise.h"
#include "tile/op_record.h"
#include "tile/test_support.h"

namespace tessera::tile {
namespace {

using build::RowConfig;
using build::RowKind;
using build::RowProblem;

RowProblem rows_of(RowKind kind, int64_t rows, int64_t columns, DType t) {
  RowProblem p;
  p.name = std::string(name_of(kind));
  p.kind = kind;
  p.row_shape = {rows};
  p.columns = columns;
  p.tensors = {build::row_major_tensor("x", t, {rows, columns}, Access::input),
               build::row_major_tensor("y", t, {rows, columns}, Access::output)};
  p.operands = {{0, {columns, 1}, 0}};
  p.outputs = {{1, {columns, 1}, 0}};
  return p;
}

std::string nvcc() {
  for (const char* path : {"/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc"})
    if (std::filesystem::exists(path)) return path;
  return "";
}

void compile(const Program& p, const std::string& arch) {
  namespace fs = std::filesystem;
  Result<Emitted> e = emit(p, Target::cuda);
  ASSERT_TRUE(e) << to_text(e.error());
  fs::path dir = fs::temp_directory_path() / fmt::format("tessera-cuda-{}", getpid());
  fs::create_directories(dir);
  std::ofstream(dir / "k.cu") << e->source;
  std::string command = fmt::format(
      "{} -std=c++17 -cubin -gencode=arch=compute_{},code=sm_{} -I {}/include {}/k.cu -o "
      "{}/k.cubin 2>{}/log",
      nvcc(), arch, arch, source_folder(), dir.string(), dir.string(), dir.string());
  int rc = std::system(command.c_str());
  std::ifstream log(dir / "log");
  EXPECT_EQ(rc, 0) << std::string(std::istreambuf_iterator<char>(log), {})
                   << e->source.substr(e->source.find("using tst_index"));
  fs::remove_all(dir);
}

// A kernel may start before the one before it has ended: nothing comes before its wait, and the
// wait knows every pointer, so that no load can rise above it.
TEST(EmitCuda, KernelsWaitBeforeTheyTouchMemory) {
  const Program p = rows(rows_of(RowKind::softmax, 64, 4096, DType::float32),
                         {.threads_per_row = 256, .rows_per_block = 1}, Target::cuda)
                        .value();
  const std::string source = emit(p, Target::cuda).value().source;
  std::size_t kernels = 0;
  for (std::size_t at = source.find("TESSERA_KERNEL("); at != std::string::npos;
       at = source.find("TESSERA_KERNEL(", at + 1), ++kernels) {
    const std::size_t body = source.find("{\n", at) + 2;
    EXPECT_EQ(source.substr(body, source.find("}", body) - body),
              "  tessera::after_previous(x, y);\n  tile_softmax_body(x, y);\n");
  }
  EXPECT_EQ(kernels, p.kernels.size());
  EXPECT_EQ(source.find("<<<"), std::string::npos);
}

TEST(EmitCuda, RowKernelsCompile) {
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc";
  // Lanes with tails, warps with a persistent grid, and chunks: the three ways to reduce.
  compile(rows(rows_of(RowKind::layer_norm, 37, 1001, DType::bfloat16),
               {.threads_per_row = 32, .rows_per_block = 4}, Target::cuda)
              .value(),
          "90a");
  compile(rows(rows_of(RowKind::max, 64, 4096, DType::float32),
               {.threads_per_row = 512, .rows_per_block = 1, .blocks_per_multiprocessor = 4},
               Target::cuda)
              .value(),
          "80");
  compile(rows(rows_of(RowKind::softmax, 3, 70001, DType::float16),
               {.threads_per_row = 512, .rows_per_block = 1, .chunk = 4096}, Target::cuda)
              .value(),
          "90a");
}

TEST(EmitCuda, AccessesAreAsWideAsTheViewsAllow) {
  auto source = [](int64_t columns, DType t, int vector) {
    return emit(rows(rows_of(RowKind::softmax, 64, columns, t),
                     {.threads_per_row = 32, .rows_per_block = 2, .vector = vector}, Target::cuda)
                    .value(),
                Target::cuda)
        ->source;
  };
  EXPECT_NE(source(768, DType::float32, 4).find("tst_load<4>("), std::string::npos);
  EXPECT_NE(source(768, DType::bfloat16, 8).find("tst_load<8>("), std::string::npos);
  EXPECT_NE(source(770, DType::float32, 4).find("tst_load<2>("),
            std::string::npos);  // rows start at 8 bytes
  EXPECT_NE(source(771, DType::float32, 4).find("tst_load<1>("), std::string::npos);
}

/// x[r, :] * s[r]: a flat tile of 4 columns lies in one row, so s is read once for all of them.
TEST(EmitCuda, BroadcastOperandsAreReadOncePerAccess) {
  build::PointwiseProblem p;
  p.shape = {16, 64};
  p.tensors = {build::row_major_tensor("x", DType::float32, {16, 64}, Access::input),
               build::row_major_tensor("s", DType::float32, {16}, Access::input),
               build::row_major_tensor("y", DType::float32, {16, 64}, Access::output)};
  p.operands = {{0, {64, 1}, 0}, {1, {1, 0}, 0}};
  p.outputs = {{2, {64, 1}, 0}};
  p.dag.results = {p.dag.add_call("mul", {p.dag.add_operand(0), p.dag.add_operand(1)})};
  Program program =
      build::pointwise(p, {.threads = 64, .vector = 4, .unroll = 1}, Target::cuda).value();
  EXPECT_NE(emit(program, Target::cuda)->source.find("tst_repeat<4>(s_1"), std::string::npos);
  if (!nvcc().empty()) compile(program, "90a");
  p.shape = {16, 63};  // now a run of 4 may cross a row
  p.operands[0].strides = p.outputs[0].strides = {63, 1};
  program = build::pointwise(p, {.threads = 64, .vector = 4, .unroll = 1}, Target::cuda).value();
  EXPECT_NE(emit(program, Target::cuda)->source.find("tst_repeat<1>(s_1"), std::string::npos);
}

TEST(Emit, IsDeterministic) {
  Program p = rows(rows_of(RowKind::softmax, 64, 768, DType::float32), {}, Target::cuda).value();
  EXPECT_EQ(emit(p, Target::cuda)->source, emit(p, Target::cuda)->source);
}

TEST(Types, RefuseWhatDoesNotFit) {
  EXPECT_EQ(try_register_type(DType::float32, {{8, {}}}, {8}, parse_layout("(2,4):(1,2)").value())
                .value()
                .threads(),
            2);
  EXPECT_EQ(try_register_type(DType::float32, {{8, {}}}, {8}, parse_layout("(2,2):(1,2)").value())
                .error()
                .code,
            "TS0412");
  EXPECT_EQ(try_register_type(DType::float32, {{2, {}}, {6, {}}}, {2, 6},
                              parse_layout("(1,12):(0,1)").value())
                .error()
                .code,
            "TS0412");
  EXPECT_EQ(try_register_type(DType::float32, {{9, {}}}, {8}, parse_layout("(2,4):(1,2)").value())
                .error()
                .code,
            "TS0412");
}

TEST(Operations, EveryRecordIsComplete) {
  for (const OpFamily* family : ops::all())
    for (const OpRecord& r : family->records) {
      EXPECT_NE(r.infer, nullptr) << r.name;
      EXPECT_NE(r.interpret, nullptr) << r.name;
      EXPECT_NE(r.emit, nullptr) << r.name;
      EXPECT_EQ(find_op(r.name), &r);
    }
  EXPECT_EQ(find_op("no such"), nullptr);
}

}  // namespace
}  // namespace tessera::tile
