// A host source under AddressSanitizer and UndefinedBehaviorSanitizer: a program of its own that
// runs the kernel once on tensors of exactly their bytes, so that an access beside one is seen with
// the author's line.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "toolchain/toolchain.h"

namespace tessera::toolchain {

/// A tensor of the launch: from its first element to its last.
struct Storage {
  int64_t bytes = 0;
  /// What an element is filled with, as its bytes: a small number, a valid index, true.
  std::string element;
};

struct Sanitized {
  bool ran = false;    // else `why` says why not: no sanitizer on this machine, out of time
  bool clean = false;  // where it ran
  std::string why;
  std::string finding;  // "heap-buffer-overflow: WRITE of size 4"
  int line = 0;         // 0: none is named
  std::string file;     // of the line, as the tool names it; empty: the source
  double seconds = 0;
  std::string forbidden;  // what it tried that the sandbox does not allow
};

/// `source` is C++ for the host (compute_sanitizer.h has the GPU's); `ints` are those of the
/// launch. Compiles and runs in at most `limit`.
Sanitized sanitize(const Toolchain& tools, const Source& source,
                   const std::vector<Storage>& tensors, const std::vector<int64_t>& ints,
                   std::chrono::seconds limit);

}  // namespace tessera::toolchain
