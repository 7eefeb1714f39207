// The records against CuTe's traits, element by element: tests/cutlass/instruction_traits.cpp is
// compiled for the host and prints what CuTe says.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "arch/instruction.h"
#include "arch/ldmatrix.h"
#include "arch/mma.h"
#include "arch/shared_tile.h"
#include "arch/testing/compilers.h"
#include "arch/wgmma.h"
#include "base/files.h"
#include "base/text.h"

namespace tessera::arch {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::vector<std::string>>;

/// What the program prints, in words; nothing where CuTe or a compiler is missing.
Lines printed() {
  const fs::path cute = testing::cutlass_include(), cuda = testing::cuda_root();
  const auto cxx = find_program("g++");
  if (cute.empty() || cuda.empty() || !cxx) return {};
  const TemporaryFolder folder("cute");
  const std::string program = (folder.path() / "traits").string();
  const Finished built =
      run({.argv = {cxx->string(), "-std=c++17", "-O0", "-w", "-isystem", cute.string(), "-isystem",
                    (cuda / "include").string(), "-isystem", (cuda / "include/cccl").string(),
                    source_folder() + "/tests/cutlass/instruction_traits.cpp", "-o", program},
           .folder = {},
           .env = {}},
          std::chrono::minutes(8));
  EXPECT_TRUE(built.ok()) << built.output.substr(0, 4000);
  const Finished ran = run({.argv = {program}, .folder = {}, .env = {}}, std::chrono::minutes(1));
  EXPECT_TRUE(ran.ok()) << ran.output.substr(0, 4000);
  Lines out;
  for (const std::string& line : split(ran.output, '\n')) {
    std::istringstream words(line);
    out.push_back({std::istream_iterator<std::string>(words), {}});
  }
  return out;
}

/// Compiled once: the file is one test, since tests run in processes of their own.
const Lines& cute() {
  static const Lines lines = printed();
  return lines;
}

/// Lines of a kind: `prefix` of the first word is taken off.
Lines lines_of(std::string_view prefix) {
  Lines out;
  for (std::vector<std::string> words : cute())
    if (!words.empty() && words[0].starts_with(prefix)) {
      words[0] = words[0].substr(prefix.size());
      out.push_back(std::move(words));
    }
  return out;
}

/// CuTe marks constants by an underscore.
Layout layout_of(const std::string& text) {
  return parse_layout(replace_all(text, "_", "")).value();
}

void expect_same(const Layout& ours, const Layout& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  ASSERT_EQ(ours.mode(0).size(), theirs.mode(0).size()) << what;
  for (int64_t i = 0; i < ours.size(); ++i) ASSERT_EQ(ours(i), theirs(i)) << what << " at " << i;
}

/// Of an operand in shared memory CuTe says that every thread has all of [rows, k].
void expect_whole(const Layout& theirs, int64_t rows, int64_t k, const std::string& what) {
  expect_same(
      concat({Layout(128, 0), Layout(IntTuple::flat({rows, k}), IntTuple::flat({1, rows}))}),
      theirs, what);
}

void agrees_on_wgmma() {
  int compared = 0;
  for (const auto& words : lines_of("wgmma.")) {
    const std::string name = "wgmma." + words[0].substr(0, words[0].find('/'));
    const int64_t n = std::stoll(words[0].substr(words[0].find('/') + 1));
    const Layout theirs = layout_of(words.at(2));
    for (Wgmma w : wgmma_kinds()) {
      if (w.form().name != name) continue;
      w = wgmma(w.a, w.b, w.c, w.a_from, n).value();
      ++compared;
      if (words[1] == "b")
        expect_whole(theirs, n, w.k(), name);
      else if (words[1] == "c")
        expect_same(w.c_layout(), theirs, name);
      else if (w.a_from == Feed::shared)
        expect_whole(theirs, Wgmma::m, w.k(), name);
      else
        expect_same(w.a_layout(), theirs, name);
    }
  }
  EXPECT_EQ(compared, 11 * 2 * 3);
}

void agrees_on_the_accumulators_of_every_width() {
  const Lines all = lines_of("accumulators");
  EXPECT_EQ(all.size(), 32u);
  for (const auto& words : all) {
    const Wgmma w =
        wgmma(Element::bf16, Element::bf16, Element::f32, Feed::shared, std::stoll(words.at(1)))
            .value();
    expect_same(w.c_layout(), layout_of(words.at(2)), words[1]);
  }
}

void agrees_on_mma_sync() {
  int compared = 0;
  for (const auto& words : lines_of("mma."))
    for (const MmaSync& i : mma_sync_kinds()) {
      if (i.form().name != "mma." + words[0]) continue;
      ++compared;
      const Layout ours = words[1] == "a"   ? i.a_layout()
                          : words[1] == "b" ? i.b_layout()
                                            : MmaSync::c_layout();
      expect_same(ours, layout_of(words.at(2)), words[0]);
    }
  EXPECT_EQ(compared, 13 * 3);
}

/// CuTe counts bits: 128 a row, 1024 a matrix.
void agrees_on_ldmatrix_and_stmatrix() {
  int compared = 0;
  for (const bool stores : {false, true})
    for (const bool transposed : {false, true})
      for (const int matrices : {1, 2, 4}) {
        const MatrixMove ours{matrices, transposed, stores};
        const std::string name = fmt::format("{}/{}", ours.form().name, matrices);
        for (const auto& words : cute()) {
          if (words.empty() || words[0] != name) continue;
          const Layout theirs = layout_of(words.at(2));
          ++compared;
          if ((words[1] == "source") == stores) {
            for (int64_t lane = 0; lane < 32; ++lane)
              for (int64_t e = 0; e < 2 * matrices; ++e)
                ASSERT_EQ(16 * ours.elements().at({lane, e}), theirs.at({lane, 16 * e})) << name;
          } else {
            for (int64_t row = 0; row < 8 * matrices; ++row)
              ASSERT_EQ(theirs.at({ours.lane_of_row()(row), 0}), 128 * row) << name;
          }
        }
      }
  EXPECT_EQ(compared, 24);
}

/// "f16.k.128B" with its extents.
SharedTile tile_of(const std::vector<std::string>& words) {
  const std::vector<std::string> parts = split(words.at(0), '.');
  Element element = Element::f16;
  for (Element e : {Element::s8, Element::tf32})
    if (parts.at(0) == name_of(e)) element = e;
  SwizzleMode mode = SwizzleMode::none;
  for (SwizzleMode s : {SwizzleMode::bytes_32, SwizzleMode::bytes_64, SwizzleMode::bytes_128})
    if (parts.at(2) == name_of(s)) mode = s;
  return shared_tile(element, parts.at(1) == "k" ? Major::k : Major::mn, mode,
                     std::stoll(words.at(1)), std::stoll(words.at(2)))
      .value();
}

void agrees_on_every_byte_of_shared_tiles() {
  const Lines all = lines_of("tile/");
  EXPECT_EQ(all.size(), 13u);
  for (const auto& words : all) {
    const SharedTile tile = tile_of(words);
    ASSERT_EQ(words.size(), static_cast<std::size_t>(3 + tile.mn * tile.k));
    const Layout layout = tile.layout();
    const Swizzle swizzle = swizzle_of(tile.swizzle);
    for (int64_t i = 0; i < tile.mn * tile.k; ++i)
      ASSERT_EQ(swizzle(layout(i) * bytes_of(tile.element)), std::stoll(words[3 + i]))
          << words[0] << " at " << i;
  }
}

/// CuTe's host code cannot tell a shared address, so its descriptors start at 0; where each starts
/// is the last number.
void agrees_on_descriptors() {
  const Lines all = lines_of("descriptor/");
  std::size_t steps = 0;
  for (const auto& words : lines_of("tile/"))
    steps += tile_of(words).k * bytes_of(tile_of(words).element) / 32;
  EXPECT_EQ(all.size(), steps);
  for (const auto& words : all) {
    const SharedTile tile = tile_of(words);
    const uint64_t theirs = std::stoull(words.at(4), nullptr, 16);
    const uint64_t start = std::stoull(words.at(5));
    EXPECT_EQ(tile.descriptor(0, 0, std::stoll(words.at(3))), theirs | start >> 4)
        << words[0] << " " << words[1] << " " << words[2] << " at k = " << words[3];
  }
}

TEST(Cute, AgreesOnEveryLayout) {
  if (cute().empty()) GTEST_SKIP() << "needs CUTLASS, the CUDA toolkit's headers and g++";
  agrees_on_wgmma();
  agrees_on_the_accumulators_of_every_width();
  agrees_on_mma_sync();
  agrees_on_ldmatrix_and_stmatrix();
  agrees_on_every_byte_of_shared_tiles();
  agrees_on_descriptors();
}

}  // namespace
}  // namespace tessera::arch
