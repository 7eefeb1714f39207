// `tessera run FILE.py --size M=512`: a kernel file on the GPU.
#include "commands/common/kernel_process.h"

namespace tessera::commands {
namespace {

Result<Outcome> on_gpu(const Json& arguments, Context& context) {
  return on_the_gpu("run", arguments, context);
}

}  // namespace

extern const Command run;
const Command run = {
    .name = "run",
    .doc = "run a kernel file once on the GPU, and compare it with what it means in fp64",
    .details =
        "tessera run kernels/gemm.py --size M=512 --size N=512 --size K=256\nInputs are drawn from "
        "a normal distribution by the seed. Prints the largest error and where it is. Exit code 1: "
        "the result is wrong. 2: the checker could not decide the kernel (see --unproved). 3: no "
        "GPU.",
    .parameters = running_parameters(),
    .run = on_gpu,
    .schemas = {"tessera.built/1", "tessera.ran/1"},
};

}  // namespace tessera::commands
