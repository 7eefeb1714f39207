// What a built kernel's machine code says about when it waits for the kernel before it.
#pragma once

#include <filesystem>
#include <string>

#include "toolchain/toolchain.h"

namespace tessera::realize::testing {

/// Every kernel of a listing waits (ACQBULK) before it touches global memory; the first that does
/// not, else "". A kernel with CUTLASS' own waits (device_kernel) lists the warps that run after
/// the others' loads first: there, what loads tiles must stand behind a wait.
std::string kernel_without_wait(const std::string& listing);

/// Expects the same of a cubin; not checked, and said so, where there is no disassembler.
void expect_waits(const toolchain::Toolchain& tools, const std::filesystem::path& cubin);

}  // namespace tessera::realize::testing
