// Where kernels may be launched before the one before them has ended.
#pragma once

#include "arch/arch.h"
#include "toolchain/toolchain.h"

namespace tessera::realize {

/// On an architecture with the ability "programmatic_launch": the flags that turn on what
/// include/tessera/programmatic_launch.h declares, and CUTLASS' half of it. Nothing elsewhere. Only
/// for sources all of whose kernels begin by that header's wait.
void add_programmatic_launch(const arch::Arch& arch, toolchain::Source& source);

}  // namespace tessera::realize
