// Long K as a strided batch: K slices with fp32 partial sums in the workspace, then one small
// kernel that adds them and applies the epilogue.
#pragma once

#include "realize/common/cutlass_text.h"

namespace tessera::realize {

/// The product of slice s, for s < slices as the batch, into the workspace in the orientation of
/// the result. Needs p.l == 1 and slices that divide k.
GemmProblem sliced(const GemmProblem& p, int64_t slices);
int64_t sliced_scratch_bytes(const GemmProblem& p, int64_t slices);

/// Slice counts worth trying for this tile, best prediction first: divisors of k that keep 16-byte
/// starts and at least 8 K tiles a slice, by the waves that they fill.
std::vector<int64_t> slice_counts(const GemmProblem& p, const Sm90Config& c,
                                  const arch::Arch& arch);

/// What the library around a reduction calls things: the namespace of its `matrix` and `check`, and
/// its element types.
struct ReductionNames {
  const char* host;
  std::string (*type)(DType);
};

/// The kernel `reduce_slices` and its launcher `reduce(launch, workspace, stream)`: sums and
/// epilogue. Reads its integers from `first_int`: slices, slice stride, inner and outer extents,
/// then four for D and each leaf.
std::string reduction_text(const GemmProblem& p, int first_int, const ReductionNames& names);
std::vector<std::string> reduction_ints(const GemmProblem& p);
std::vector<int64_t> reduction_values(const GemmProblem& p, int64_t slices);

}  // namespace tessera::realize
