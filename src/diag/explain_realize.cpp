#include "diag/explain_families.h"

namespace tessera {
namespace {

// Most of these are no errors of a run: a realizer says why it writes no kernel for a pattern, the
// report keeps it, and other realizers or PyTorch take the pattern.
constexpr Explanation records[] = {
    {"TS0401", "tile.unsupported", R"(The tile language cannot lower a program to this target.)",
     R"(A tile is spread over threads or registers in a way for which no code is written, or the
     target lacks what the program uses: the host has no shared memory and no threads.)",
     R"(Nothing has to be done: the candidate is left out, and its reason stands in the report under
     `tuning.unsupported`.)",
     R"(
unsupported: tile_attention  host tiles need one row-major register mode an axis
)"},
    {"TS0410", "realize.unsupported_gemm", R"(A product cannot be taken by a product kernel.)",
     R"(An operand has no contiguous direction, the operands differ in type, or rows start at
     addresses that the copy engine cannot follow.)",
     R"(Nothing has to be done: PyTorch or another realizer takes it. Where the message names
     strides, calling .contiguous() on a weight before optimizing may give it a kernel.)",
     R"(
unsupported: wgmma_gemm  A has no contiguous direction
)"},
    {"TS0411", "tile.bad_program",
     R"(A tile program breaks a rule of the language: a wrong number of operands, types that do not
     fit, a value used outside its block.)",
     R"(A builder of the program has a fault. Users do not write tile programs.)",
     R"(Please report it. The candidate is left out.)",
     R"(
error[TS0411]: `add` takes tiles of one shape
)"},
    {"TS0412", "tile.bad_type",
     R"(A tile's type is impossible: its layout does not cover its shape.)",
     R"(A schedule gives fewer or more elements to threads and registers than the tile has.)",
     R"(Please report it. The candidate is left out.)",
     R"(
error[TS0412]: the layout of bf16[64,32] covers 1024 elements
)"},
    {"TS0415", "realize.unproved",
     R"(The checker could not decide an invariant of a kernel, so that the kernel is not compiled.)",
     R"(The kernel has something that the checker does not model, or its proof takes more than the
     effort that a search allows.)",
     R"(Nothing has to be done: the candidate is left out. `tessera check` on the kernel's file says
     what could not be decided.)",
     R"(
error[TS0415]: `placement` of kernel `gemm` is unknown: a store whose address is no term
)"},
    {"TS0420", "tile.out_of_bounds",
     R"(The interpreter saw a tile program read or write outside a tensor.)",
     R"(A mask at the tensor's edge is missing. Programs are interpreted in tests only.)",
     R"(For those who write tile programs: guard the access by the extent.)",
     R"(
error[TS0420]: element 4096 of `y` is written; expected 0 <= element < 4096
)"},
    {"TS0421", "tile.uninitialized_read",
     R"(The interpreter saw a tile program use a value that was never written.)",
     R"(A load was masked, and the masked elements take part in a reduction or a store.)",
     R"(For those who write tile programs: give masked elements a neutral value.)",
     R"(
error[TS0421]: a live slot of `scores` is empty where it is reduced
)"},
    {"TS0422", "tile.double_write",
     R"(The interpreter saw two writes to the same element of an output.)",
     R"(Two tiles overlap, or a program was started with too many blocks.)",
     R"(For those who write tile programs: let every element belong to one tile.)",
     R"(
error[TS0422]: row_norm writes element 17 of `y` a second time
)"},
    {"TS0423", "tile.race",
     R"(The interpreter saw a tile of shared memory read before its copy has arrived, or written
     while others may still read it.)",
     R"(A wait or a barrier is missing between the stages of a ring of tiles.)",
     R"(For those who write tile programs: wait for the copy before the tile is read, and let the
     block meet after the last read.)",
     R"(
error[TS0423]: `a` is read at tile 3 of `k`, whose slot is still being filled
)"},
    {"TS0430", "realize.library_unsupported", R"(A library's function does not take this problem.)",
     R"(cuDNN, flash attention or cuBLASLt refuse the shape, the type or the mask, or this torch was
     built without them.)",
     R"(Nothing has to be done: other kernels are tried, and PyTorch stays.)",
     R"(
unsupported: library_sdpa  torch takes a causal flag or a mask, not both
)"},
    {"TS0431", "realize.no_such_function",
     R"(A plan calls a library function that this version of tessera does not have.)",
     R"(The plan was written by another version.)", R"(Optimize the module again.)",
     R"(
error[TS0431]: there is no library function `addmm_v2`
)"},
    {"TS0432", "realize.no_vendor_gemm",
     R"(PyTorch's own fused product (addmm) does not cover this pattern.)",
     R"(It takes one product without a batch, a bias and at most one activation, all in one type.)",
     R"(Nothing has to be done: other kernels are tried.)",
     R"(
unsupported: library_linear  addmm takes no batch
)"},
    {"TS0440", "realize.no_tile_schedule",
     R"(The tile compiler has no schedule for this pattern on this architecture.)",
     R"(No way to cut the problem into tiles fits registers and shared memory, or divides its
     extents.)",
     R"(Nothing has to be done: other kernels are tried, and PyTorch stays.)",
     R"(
unsupported: tile_row  the tile compiler has no schedule for it on host
)"},
    {"TS0441", "realize.tile_row_unsupported",
     R"(The tile language's row kernel does not take this pattern.)",
     R"(It takes norms, softmax and similar functions of the last dims of a tensor.)",
     R"(Nothing has to be done: PyTorch takes the ops.)",
     R"(
unsupported: tile_row  the pattern has no row_norm body
)"},
    {"TS0442", "realize.tile_pointwise_unsupported",
     R"(The tile language's pointwise kernel does not take this pattern.)",
     R"(A reduction in it is none that the tile compiler has (it has sum, mean and max), has several
     results, or runs over dims that are not one stride.)",
     R"(Nothing has to be done: PyTorch takes the ops.)",
     R"(
unsupported: tile_pointwise  the tile compiler has no `prod` reduction yet
)"},
    {"TS0443", "realize.tile_attention_unsupported",
     R"(The tile language's attention kernel does not take this attention.)",
     R"(Its head dim, its types or its strides are none that the kernel has tiles for.)",
     R"(Nothing has to be done: libraries and PyTorch's own attention are tried.)",
     R"(
unsupported: tile_attention  the pattern has no attention body
)"},
    {"TS0447", "realize.wgmma_attention_unsupported",
     R"(The attention kernel for Hopper's matrix instructions does not take this attention.)",
     R"(It takes bfloat16 or float16, full or causal, head dims up to 256, and tensors whose rows
     start at multiples of 16 bytes. A mask tensor whose content is known when the module is traced
     and is a band (a sliding window, or a part of a prompt behind a cache) is not read. Any other is
     read by tile_flash_attention alone: truth values, or numbers of the queries' type or float32,
     keys side by side, from a multiple of 16 bytes on.)",
     R"(Nothing has to be done: the tile language's kernel and libraries are tried. Make the mask from
     positions alone (torch.arange), or hold it as a buffer, so that its content is known.)",
     R"(
unsupported: wgmma_attention  a mask tensor; expected causal or full attention, or a mask of known content that is a band
)"},
    {"TS0450", "arch.no_such_form",
     R"(An instruction does not exist in this shape, with these types or with this qualifier.)",
     R"(Matrix instructions take certain types together and certain widths; other instructions have
     a few values for each qualifier. docs/instructions.md lists them.)",
     R"(Choose one that the message names.)",
     R"(
error[TS0450]: there is no wgmma of s8 with n = 40; expected 8, 24 or a multiple of 16 up to 256
)"},
    {"TS0451", "arch.no_such_tile",
     R"(A tile in shared memory has a form that matrix instructions cannot read.)",
     R"(A tile is made of atoms, 8 rows of as many bytes as its swizzle has, and operands that are
     not 16 bits wide have k contiguous.)",
     R"(Choose extents that are multiples of those in the message, a narrower swizzle, or the other
     direction.)",
     R"(
error[TS0451]: a tile of 60 x 32 is not made of whole atoms; expected multiples of 8 x 32
)"},
    {"TS0452", "arch.bad_tensor_map",
     R"(A tensor, or a box of it, breaks a limit of the tensor memory accelerator.)",
     R"(Extents of a box, the bytes of its rows, strides and addresses have limits, which
     docs/instructions.md lists.)",
     R"(Copy the box in several parts, or read the tensor by plain loads where its strides do not
     fit.)",
     R"(
error[TS0452]: dimension 1 has a stride of 8200 bytes; expected a multiple of 16 below 2^40
)"},
    {"TS0460", "tune.time_is_up",
     R"(The total seconds were over before the module was decided on or checked.)",
     R"(--total-seconds bounds all of a run. It keeps enough for what follows the search, as far as
     the time of a call tells; a step that takes longer is given up. `tessera.optimize` then returns
     the module as it is, and `status()` has this reason.)",
     R"(Give more seconds. Kernels that were found are in the registry, so the same call goes on from
     there.)",
     R"(
error[TS0460]: the time was over during `verify_module`
)"},
};

}  // namespace

std::span<const Explanation> explained_realize() {
  return records;
}

}  // namespace tessera
