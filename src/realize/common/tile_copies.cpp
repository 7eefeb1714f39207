#include "realize/common/tile_copies.h"

#include <numeric>

#include "base/integers.h"
#include "realize/common/kernel_files.h"

#include "core/verify.h"
#include "language/language.h"

namespace tessera::realize {
namespace {

constexpr int64_t vector_bytes = 8;  // that a thread loads at most: wider ones are TMA's
constexpr int64_t warps = 8;         // of a block, each with a row

/// Elements that a thread loads at once, as many as all rows begin at multiples of.
int64_t width_of(const TileCopy& c) {
  const int64_t begins = std::gcd(std::gcd(c.from.ld, c.from.batch), c.from.offset);
  return std::gcd(std::gcd(c.columns, begins), vector_bytes / size_of(c.from.dtype));
}

/// What a thread loads before it stores: eight vectors, or what a short row has of them.
int64_t vectors_of(const TileCopy& c) {
  int64_t vectors = 8;
  while (vectors > 1 && 32 * width_of(c) * vectors / 2 >= c.columns) vectors /= 2;
  return vectors;
}

Result<core::Kernel> kernel_of(const TileCopy& copy, const arch::Arch& arch) {
  const Source source("kernels/copies.py", std::string(kernel_file("copies.py")));
  TESSERA_TRY(
      kernel,
      language::elaborate(
          source, "copy",
          {.constants = {{"ELEMENT", language::Constant(std::string(short_name(copy.from.dtype)))},
                         {"WIDTH", language::Constant(width_of(copy))},
                         {"VECTORS", language::Constant(vectors_of(copy))},
                         {"WARPS", language::Constant(warps)}}}));
  kernel.name = "copy_" + copy.operand;
  for (const Diagnostic& finding : core::verify(kernel, arch)) return error(finding);
  return kernel;
}

}  // namespace

Result<std::vector<TileCopy>> tile_copies(const GemmProblem& p, const arch::Arch& arch) {
  std::vector<TileCopy> out;
  if (p.paired() || p.inner > 0) return out;
  for (const auto& [name, m, extent] : {std::tuple("A", &p.a, p.m), std::tuple("B", &p.b, p.n)}) {
    if (m->aligned()) continue;
    TileCopy c{.operand = name,
               .rows = m->columns_contiguous ? extent : p.k,
               .columns = m->columns_contiguous ? p.k : extent,
               .matrices = m->batch == 0 ? 1 : p.l,
               .from = *m,
               .to = *m};
    c.to.tensor = -1;
    c.to.offset = 0;
    c.to.ld = round_up(c.columns, int64_t{16} / size_of(m->dtype));
    c.to.batch = m->batch == 0 ? 0 : c.rows * c.to.ld;
    TESSERA_TRY(kernel, kernel_of(c, arch));
    c.kernel = std::make_shared<const core::Kernel>(std::move(kernel));
    c.proof = proof_of(c.kernel);
    out.push_back(std::move(c));
  }
  return out;
}

GemmProblem tile_copied(GemmProblem p, const std::vector<TileCopy>& copies) {
  for (const TileCopy& c : copies) (c.operand == "A" ? p.a : p.b) = c.to;
  return p;
}

double tile_copies_ms(const std::vector<TileCopy>& copies, const arch::Arch& arch) {
  constexpr double launch_ms = 0.002;  // that a grid's begin and end take of the one before it
  double ms = 0;
  for (const TileCopy& c : copies) {
    const double bytes = 2.0 * static_cast<double>(c.matrices * c.rows * c.columns) *
                         static_cast<double>(size_of(c.from.dtype));
    ms += launch_ms + bytes / (arch.achievable_bandwidth_gbs * 1e6);
  }
  return ms;
}

int64_t tile_copies_bytes(const std::vector<TileCopy>& copies) {
  int64_t bytes = 0;
  for (const TileCopy& c : copies) bytes += c.matrices * c.rows * c.to.ld * size_of(c.to.dtype);
  return bytes;
}

std::map<std::string, int64_t> tile_copy_values(const TileCopy& copy) {
  return {{"M", copy.rows},
          {"N", copy.columns},
          {"L", copy.matrices},
          {"X_tensor", copy.from.tensor},
          {"X_offset", copy.from.offset},
          {"X_STRIDE", copy.from.ld},
          // Of one matrix nothing is taken from its batches' strides; the copy's room is one.
          {"X_BATCH", copy.from.batch == 0 ? copy.rows * copy.from.ld : copy.from.batch},
          {"Y_STRIDE", copy.to.ld},
          {"Y_BATCH", copy.to.batch == 0 ? copy.rows * copy.to.ld : copy.to.batch}};
}

lower::Sequence tile_copies_first(const std::vector<TileCopy>& copies,
                                  const core::Kernel& of_product) {
  lower::Sequence s;
  for (const TileCopy& c : copies) s.kernels.push_back(c.kernel.get());
  s.kernels.push_back(&of_product);
  const std::size_t product = copies.size();
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const TileCopy& c = copies[i];
    s.passed.push_back({i, "Y", product, c.operand});
    const bool rows = c.from.columns_contiguous;
    const std::string extent = c.operand == "A" ? "M" : "N";
    const auto same = [&](const char* of_copy, const std::string& integer) {
      s.agree.push_back({i, of_copy, product, integer});
    };
    same("M", rows ? extent : "K");
    same("N", rows ? "K" : extent);
    same("Y_STRIDE", c.operand + "_STRIDE");
    if (c.to.batch == 0) continue;
    same("L", "L");
    same("Y_BATCH", c.operand + "_BATCH");
  }
  return s;
}

}  // namespace tessera::realize
