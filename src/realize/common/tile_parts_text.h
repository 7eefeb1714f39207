// Parts of a product's columns in the kernel language: a function of two columns of a group, or of
// one, that knows where it is in the result, and the meaning, part by part.
#pragma once

#include <map>
#include <string>

#include "realize/common/tile_gemm_config.h"

namespace tessera::realize {

/// Half of the columns of a group, whose halves make results together; 0 where all make theirs
/// alone. The problem has parts.
int64_t tile_parts_half(const GemmProblem& p);
/// Columns that leave at a time.
int tile_parts_columns(const TileGemmConfig& c, const GemmProblem& p);

/// `def turned(low, high, ...)`, or `def epilogue(x, ...)` without halves. `rows`: those of a tile
/// that leave together.
Result<std::string> parts_function(const GemmProblem& p, int64_t rows);
/// `C[i, j] = (... if j % 128 < 64 else ...) if j < 5120 else ...`.
std::string parts_meaning(const GemmProblem& p);
/// The launch's integers of the parts' operands.
void add_part_places(const GemmProblem& p, std::map<std::string, int64_t>& values);

/// Why the language has no such tiles; nothing where it has.
std::optional<std::string> tile_refuses_parts(const TileGemmConfig& c, const GemmProblem& p);

}  // namespace tessera::realize
