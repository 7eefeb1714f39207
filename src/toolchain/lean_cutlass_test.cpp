#include "toolchain/lean_cutlass.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process.h"
#include "toolchain/flags.h"
#include "toolchain/toolchain.h"

namespace tessera::toolchain {
namespace {
namespace fs = std::filesystem;

TEST(LeanReturns, CallsAreChanged) {
  EXPECT_EQ(with_lean_returns("{\n  return f(a,\n           g(b{}));\n}\n"),
            "{\n  TESSERA_RETURN(f(a,\n           g(b{})))\n}\n");
  EXPECT_EQ(with_lean_returns("  } else {\n\n    return f(a);\n  }\n"),
            "  } else {\n\n    TESSERA_RETURN(f(a))\n  }\n");
}

TEST(LeanReturns, OthersStay) {
  for (const char* const text : {
           "{\n  return a;\n}\n",
           "{\n  return Layout{a, b};\n}\n",
           "{\n  return f(a, [&](auto x) { return g(x); });\n}\n",
           "{\n  return f(a[0]);\n}\n",
           "  if (a)\n    return f(a);\n",
           "{\n  auto x = f([](auto i) { return g(i); });\n}\n",
           "{\n  return static_cast<T&&>(f(t));\n}\n",
       }) {
    EXPECT_EQ(with_lean_returns(text), text);
  }
}

TEST(WgmmaShapes, EveryNumberOfASourceMayBeATiles) {
  EXPECT_EQ(wgmma_columns("Shape<_64, Int<320>, _64>"), (std::set<int>{32, 64, 128, 160}));
  EXPECT_EQ(wgmma_columns("x 0 1 3 99999999999999999999"), (std::set<int>{256}));
  EXPECT_EQ(wgmma_columns(""), std::set<int>{});
}

TEST(WgmmaShapes, OthersAreOnlyDeclared) {
  const std::string header =
      "template <int t>\nstruct MMA_64x24x16_SS\n{\n  int a;\n};\n\n"
      "template <int t>\nstruct MMA_64x160x16_SS\n{\n  int b;\n};\n\n"
      "// no template\nstruct MMA_64x24x32_S32_TN\n{\n  int c;\n};\n\n"
      "template <int t>\nstruct MMA_Traits<SM90_64x24x16_SS<t>>\n{\n  int d;\n};\n"
      "template <int t>\nstruct Other\n{\n  int e;\n};\nusing A = MMA_64x24x16_SS<1>;\n";
  EXPECT_EQ(with_wgmma_shapes(header, {160}),
            "template <int t>\nstruct MMA_64x24x16_SS;\n\n"
            "template <int t>\nstruct MMA_64x160x16_SS\n{\n  int b;\n};\n\n"
            "// no template\nstruct MMA_64x24x32_S32_TN\n{\n  int c;\n};\n\n"
            "template <int t>\nstruct MMA_Traits<SM90_64x24x16_SS<t>>;\n"
            "template <int t>\nstruct Other\n{\n  int e;\n};\nusing A = MMA_64x24x16_SS<1>;\n");
}

TEST(LeanHeaders, AnotherVersionIsReadAsItIs) {
  const TemporaryFolder include;
  EXPECT_TRUE(lean_headers(include.path(), "", false).empty());
  write_file_atomically(include.path() / "cute/layout.hpp", "#pragma once\n");
  EXPECT_TRUE(lean_headers(include.path(), "", false).empty());
  write_lean_headers(include.path(), {}, include.path() / "kernel.so");
  EXPECT_FALSE(fs::exists(lean_folder(include.path() / "kernel.so")));
}

TEST(LeanHeaders, KeyKnowsOurPart) {
  const TemporaryFolder own;
  Toolchain t;
  t.nvcc = "/nvcc";
  t.own_include = own.path();
  const Source source = {.name = "k",
                         .language = Language::cuda,
                         .text = "__global__ void k() {}",
                         .arch = "sm_90a",
                         .flags = {},
                         .links = {},
                         .cutlass = true};
  for (const char* const file : {"lean.h", "lean_tuple.h", "lean_tuple_traits.h", "lean_apply.h"}) {
    const std::string before = cache_key(t, source);
    write_file_atomically(own.path() / "tessera_cutlass" / file, "//");
    EXPECT_NE(cache_key(t, source), before) << file;
  }
}

// Constant layouts, layouts with values, tuples of both, more than five elements, references.
const char* const algebra = R"(
#include <cuda_runtime.h>
//
#include "cute/tensor.hpp"
using namespace cute;

template <class T>  // stands in the symbol
__global__ void type(T const*, int* out) {
  *out = static_cast<int>(sizeof(T));
}

template <class T>
void seen(T const&) { type<T><<<1, 1>>>(nullptr, nullptr); }

__device__ int moved(tuple<int, _1, long, _2, int, int> t) {
  get<4>(t) = 7;
  return get<0>(t) + static_cast<int>(get<2>(t)) + get<4>(t) + get<5>(t) + get<1>(t);
}

__global__ void values(int* out, int n, long ld) {
  const auto layout = make_layout(make_shape(n, Int<64>{}), make_stride(ld, Int<1>{}));
  const auto tiles = zipped_divide(layout, Shape<_16, _32>{});
  out[0] = static_cast<int>(tiles(make_coord(3, 1), make_coord(n / 32, 1)));
  out[1] = moved(make_tuple(n, _1{}, ld, _2{}, n + 1, n + 2));
  out[2] = static_cast<int>(crd2idx(make_coord(n, 2, 3), make_shape(n, 4, _8{})));
  out[3] = cosize(coalesce(layout));
}

int main() {
  const auto a = Layout<Shape<Shape<_8, _4>, Shape<_2, _4>>, Stride<Stride<_4, _1>, Stride<_32, _64>>>{};
  seen(composition(a, Layout<Shape<_16, _4>, Stride<_4, _1>>{}));
  seen(logical_divide(a, make_tile(Layout<_4, _2>{}, _2{})));
  seen(zipped_divide(a, Shape<_4, _2>{}));
  seen(right_inverse(a));
  seen(left_inverse(a));
  seen(complement(Layout<Shape<_2, _4>, Stride<_1, _8>>{}, Int<256>{}));
  seen(blocked_product(a, Layout<Shape<_2, _2>>{}));
  seen(tile_to_shape(Layout<Shape<_8, _16>, Stride<_16, _1>>{}, Shape<_64, _64, _3>{}));
  seen(group<0, 2>(make_layout(Shape<_2, _3, _4, _5, _6, _7>{})));
  seen(slice(make_coord(_, 1, _), make_tuple(_1{}, 2, 3L)));
  seen(make_layout(a, a));
  seen(make_layout(a, make_layout(5)));
  seen(filter_zeros(Layout<Shape<_2, _3>, Stride<_0, _1>>{}));
  seen(fold(Shape<_1, _2, _3, _4, _5>{}, _0{}, [](auto x, auto y) { return x + y; }));
}
)";

/// The instructions' text (PTX) of `algebra`, with or without what is changed.
std::string ptx(const Toolchain& tools, const fs::path& folder, bool lean) {
  const fs::path out = folder / (lean ? "lean.ptx" : "plain.ptx");
  std::vector<std::string> argv = {tools.nvcc.string(),
                                   "-std=c++17",
                                   "-O3",
                                   "-ptx",
                                   "--expt-relaxed-constexpr",
                                   "-arch=sm_90a",
                                   "-diag-suppress=20012,550,177"};
  if (lean) {
    write_lean_headers(tools.cutlass / "include", {}, out);
    EXPECT_TRUE(fs::exists(lean_folder(out) / "cute/layout.hpp"));
    argv.push_back("-I" + lean_folder(out).string());
  }
  argv.insert(argv.end(),
              {"-I" TESSERA_SOURCE_DIR "/include", "-I" + (tools.cutlass / "include").string(),
               "-o", out.string(), (folder / "algebra.cu").string()});
  const Finished done =
      run({.argv = argv, .folder = folder, .env = {}}, std::chrono::minutes(5), nullptr);
  EXPECT_TRUE(done.ok()) << done.output.substr(0, 4000);
  return done.ok() ? read_file(out) : "";
}

TEST(LeanHeaders, TypesAndInstructionsAreTheSame) {
  Toolchain tools = locate("python3");
  if (tools.nvcc.empty() || tools.cutlass.empty())
    GTEST_SKIP() << "no nvcc or no CUTLASS headers on this machine";
  ASSERT_FALSE(lean_headers(tools.cutlass / "include", "", true).empty())
      << "CUTLASS " << tools.cutlass_version << " has other lines: sources compile for longer";
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "algebra.cu", algebra);
  EXPECT_EQ(ptx(tools, folder.path(), true), ptx(tools, folder.path(), false));
}

}  // namespace
}  // namespace tessera::toolchain
