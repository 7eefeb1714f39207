// Kernels with one edit each that an author might make by mistake, for measuring what finds them.
#pragma once

#include "core/kernel.h"

namespace tessera::core::testing {

/// What the edit breaks.
enum class Breaks : uint8_t {
  synchronization,  // order, completion, counts
  data,             // which element goes where
  nothing,          // an equivalent kernel: finding something is a false alarm
};

struct Mutant {
  std::string name;  // of the operator: "drop_wait"
  Breaks breaks = Breaks::synchronization;
  int site = 0;      // the operator's n-th place, in the order of the text
  std::string edit;  // what was done there: "`mbarrier.wait` in role `producer` is gone"
  Kernel kernel;
};

/// Every operator at every place that it applies to. The kernels share the original's pool.
std::vector<Mutant> mutants(const Kernel& kernel);

/// The same of what becomes of results: of functions of elements, of addresses of single threads,
/// of batches, and of operands that several copies fill. All break data.
std::vector<Mutant> result_mutants(const Kernel& kernel);

/// Edits of what a softmax computes; of other results what of these applies.
std::vector<Mutant> power_mutants(const Kernel& kernel);

/// Edits of where storages lie and of what tensor maps are made of, loops that leave out the last
/// part of an extent, waits whose phases begin anew with an outer loop.
std::vector<Mutant> storage_mutants(const Kernel& kernel);

}  // namespace tessera::core::testing
