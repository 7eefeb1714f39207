// What a built kernel's machine code says about when it waits for the kernel before it, and about
// who issues its loads.
#pragma once

#include <filesystem>
#include <string>

#include "toolchain/toolchain.h"

namespace tessera::realize::testing {

/// Every kernel of a listing waits (ACQBULK) before it touches global memory; the first that does
/// not, else "". A kernel with CUTLASS' own waits (device_kernel) lists the warps that run after
/// the others' loads first: there, what loads tiles must stand behind a wait.
std::string kernel_without_wait(const std::string& listing);

/// The first kernel of a listing where the compiler does not know that one thread issues the TMA
/// loads, else "": it then puts a loop over threads, which elects one, around each.
std::string kernel_with_loops_of_loads(const std::string& listing);

/// Expects both of a cubin, the latter of kernels in plain CUDA C++ (`plain`), whose only election
/// is their own; not checked, and said so, where there is no disassembler.
void expect_machine_code(const toolchain::Toolchain& tools, const std::filesystem::path& cubin,
                         bool plain);

}  // namespace tessera::realize::testing
