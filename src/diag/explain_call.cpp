#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0890", "kernel.unproved",
     R"(The checker could not decide an invariant of a kernel file, so that it is not built.)",
     R"(The kernel has something that the checker does not model, says no meaning that the checker
     could hold it to, or its proof takes more than the effort that is allowed.)",
     R"(See what `tessera check` says. `--unproved` (in Python `unproved=True`) builds the kernel
     anyway; races, deadlocks and wrong results are then not excluded.)",
     R"(
tessera build kernels/rows.py:rms_norm --unproved
)"},
    {"TS0891", "call.wrong_arguments",
     R"(A kernel of a kernel file was called with other arguments than it has.)",
     R"(Its inputs are tensors, in the order of the file or by their names; `out=` takes its outputs.
     An integer of the launch is given only where it does not follow from the tensors.)",
     R"(Call it with the names that the message shows.)",
     R"(
gemm = tessera.kernel("kernels/gemm.py:gemm")
c = gemm(a, b)
gemm(A=a, B=b, out=c)
)"},
    {"TS0892", "call.wrong_tensor",
     R"(A tensor has another element type, number of dimensions or device than the kernel takes.)",
     R"(A kernel is built for element types, which its constants choose, and for a Hopper GPU. All
     tensors of a call lie on one device.)",
     R"(Convert the tensor, or build the kernel with other constants.)",
     R"(
gemm = tessera.kernel("kernels/gemm.py:gemm", ELEMENT=torch.float16)
c = gemm(a.half().cuda(), b.half().cuda())
)"},
    {"TS0893", "call.contradiction",
     R"(The tensors of a call do not fit each other, or do not lie as the kernel says.)",
     R"(An extent or a stride that follows from one tensor is another one in a second tensor, or is
     not what the kernel's text says, as with a transposed matrix where a row-major one is wanted.)",
     R"(Make the extents agree. Where strides differ, copy the tensor with `.contiguous()`, or build
     the kernel with constants that take such strides.)",
     R"(
gemm(a, b.T)                 # b: [K, N]; wanted: [N, K], row-major
gemm(a, b.T.contiguous())
)"},
    {"TS0894", "call.out_of_range",
     R"(An integer of a launch lies outside of what the kernel's file declares.)",
     R"(`index(multiple=8, below=1 << 20)` is what the kernel was proved with.)",
     R"(Pad the tensor, or build the kernel with constants that allow this size.)",
     R"(
gemm(a, b)      # K = 100; expected a multiple of 8
)"},
    {"TS0895", "call.wrong_memory",
     R"(A tensor begins at an address that is no multiple of 16 bytes, or an output shares memory with
     another tensor or with itself.)",
     R"(TMA and vectors need aligned addresses, and a kernel is proved for tensors that do not
     overlap.)",
     R"(Copy the tensor with `.clone()`, or give another output.)",
     R"(
gemm(a, b, out=a)             # C would be written over A
)"},
    {"TS0896", "call.unsolved",
     R"(An integer of a launch does not follow from the shapes and strides of the tensors.)",
     R"(It is the extent of an output that no input has, or stands in an expression only.)",
     R"(Give it by name, or give the output with `out=`.)",
     R"(
y = spread(x, N=512)
)"},
    {"TS0897", "call.no_gradient", R"(A kernel was called with tensors that are differentiated.)",
     R"(A kernel file has no rules for derivatives: gradients and tangents would be lost without a word.)",
     R"(Call it under torch.no_grad(), or wrap it in a torch.autograd.Function of your own.)",
     R"(
with torch.no_grad():
    c = gemm(a, b)
)"},
    {"TS0899", "kernel.no_reference",
     R"(What a kernel means cannot be computed by PyTorch, so that its result is compared with nothing.)",
     R"(The kernel says no meaning, or its meaning has a function that has no counterpart here.)",
     R"(Say the meaning by `means` of `@kernel`, or by `--means`.)",
     R"(
tessera run kernels/gemm.py --size M=512 --size N=512 --size K=256
)"},
};

}  // namespace

std::span<const Explanation> explained_call() {
  return records;
}

}  // namespace tessera
