// A built CUDA library under NVIDIA's compute-sanitizer: a program of its own loads it and launches
// it once on tensors of exactly their bytes, by each tool of the sanitizer in turn.
#pragma once

#include <optional>

#include "toolchain/sanitize.h"

namespace tessera::toolchain {

/// What a tool of the sanitizer reports first.
struct GpuFinding {
  std::string text;  // "Invalid __global__ read of size 4 bytes, 1 bytes after tensor 0"
  std::string file;  // of the place, as the line table has it; empty where there is none
  int line = 0;
};

/// From the output of the tool and of the program under it, which prints where each tensor lies;
/// empty where the tool found nothing.
std::optional<GpuFinding> finding_in(const std::string& output);

/// memcheck, synccheck and racecheck, until one has a finding; each has `limit`. `library` is what
/// build() made of a CUDA source; lines are named where it was compiled with -lineinfo. It did not
/// run (`why`): there is no compute-sanitizer, the sandbox has no network namespace in which its
/// two processes could talk, or the program's own launch was refused.
Sanitized compute_sanitize(const Toolchain& tools, const std::filesystem::path& library,
                           const std::vector<Storage>& tensors, const std::vector<int64_t>& ints,
                           std::chrono::seconds limit);

}  // namespace tessera::toolchain
