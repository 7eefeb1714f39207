// `tessera bench FILE.py --size M=512`: a kernel file on the GPU.
#include "commands/common/kernel_process.h"

namespace tessera::commands {
namespace {

Result<Outcome> on_gpu(const Json& arguments, Context& context) {
  return on_the_gpu("bench", arguments, context);
}

}  // namespace

extern const Command bench;
const Command bench = {
    .name = "bench",
    .doc = "time a kernel file on the GPU, beside torch.matmul where it means a plain product",
    .details =
        "tessera bench kernels/gemm.py --size M=4096 --size N=4096 --size K=4096\nCalls in turns "
        "on a flushed L2 cache, and back to back (docs/measuring.md). Exit code 1: the result is "
        "wrong, and nothing is timed.",
    .parameters = running_parameters(),
    .run = on_gpu,
    .schemas = {"tessera.built/1", "tessera.benched/1"},
};

}  // namespace tessera::commands
