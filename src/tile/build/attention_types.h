// How the GPU's attention program spreads its tiles over registers, threads and shared memory.
#pragma once

#include "tile/build/attention_gpu.h"

namespace tessera::tile::build {

Type register_type(std::vector<Axis> axes, std::vector<int64_t> cover, Spread s);
/// The lane's 4, its 8, the warps: columns, rows, rows.
std::vector<SpreadMode> thread_modes(const AttentionShape& s, const AttentionConfig& c,
                                     int64_t step);
/// Queries: every lane reads 16 bytes of a row, which are its k of consecutive instructions.
Type query_type(const AttentionShape& s, const AttentionConfig& c, Axis rows, Axis columns);
/// What a product leaves: `run` neighbouring columns a lane from as many instructions.
Type result_type(const AttentionShape& s, const AttentionConfig& c, Axis rows, Axis columns,
                 int64_t cover, int64_t run);
/// 32-bit values are read from rows of V: 4 neighbouring columns at once when the width allows.
/// 16-bit ones come by ldmatrix, which gives columns in their order.
int64_t value_run(const AttentionShape& s);
/// A shared tile of rows that are padded until the instruction's reads are free of bank conflicts,
/// or as nearly so as 16-byte steps allow.
Result<Type> shared_type(const AttentionShape& s, DType element, Axis rows, Axis columns,
                         int64_t cover, const Type& a, const Type& c, bool transposed);
/// Who copies what of a shared tile: 16 bytes an access, up to 8 threads along a row.
Type copy_type(const AttentionShape& s, const Type& shared);

}  // namespace tessera::tile::build
