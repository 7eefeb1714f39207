// Compiles sources with nvcc: a generated kernel's device code only (half of the time of a
// library), or a program that runs on the host.
#pragma once

#include <string>

#include "toolchain/toolchain.h"

namespace tessera::realize::testing {

/// `spill_bytes`: what ptxas may store of registers. Where kernels may start early, the machine
/// code waits before it touches memory. Skips the test on a machine without nvcc or the headers.
void expect_compiles(const toolchain::Source& source, int spill_bytes = 0);

/// The host side of a source whose sides are compiled apart, by the toolchain's own command, around
/// no cubin. Skips the test where the sides are compiled together.
void expect_host_side_compiles(const toolchain::Source& source);

/// Whether it is built with CuTe's usual wgmma shapes only: all of them take 25 s more to read, and
/// one test with them is enough.
bool quick_to_compile(const toolchain::Source& source);

/// Builds `file` (under tests/cutlass) for the host and runs it.
/// `plain`: its headers are C++ without the compiler of device code, which takes three times as
/// long.
void expect_runs_on_host(const std::string& file, bool plain = false);

}  // namespace tessera::realize::testing
