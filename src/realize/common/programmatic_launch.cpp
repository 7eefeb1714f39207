#include "realize/common/programmatic_launch.h"

namespace tessera::realize {

void add_programmatic_launch(const arch::Arch& arch, toolchain::Source& source) {
  if (!arch.has("programmatic_launch")) return;
  source.flags.emplace_back("-DTESSERA_PROGRAMMATIC_LAUNCH=1");
  if (source.cutlass) source.flags.emplace_back("-DCUTLASS_ENABLE_GDC_FOR_SM90=1");
}

}  // namespace tessera::realize
