#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0812", "core.bad_text", R"(A text is no kernel of the core.)",
     R"(The core's text is Python's syntax with few words: storages, `issue`, `map`, `for`, `if`, roles and
     `elected`. A name means one thing, and only in the block where it is defined and the blocks within.
     The mark stands under what does not fit, and the message says what belongs there.)",
     R"(Write what is expected; docs/core.md is the grammar.)",
     R"(
issue("mbarrier.int", full[0], 1)     # refused: did you mean `mbarrier.init`?
issue("mbarrier.init", full[0], 1)    # right
)"},
    {"TS0813", "core.bad_storage",
     R"(A tensor map, a run of shared memory, an array of mbarriers or a name is not one that the machine
     takes.)",
     R"(Shared memory begins at the alignment of its swizzle and ends within the block's limit; mbarriers lie
     at multiples of 8 bytes, each for itself. TMA asks for a contiguous first dimension, strides that are
     multiples of 16 bytes, boxes of at most 256 elements a dimension, and rows within the swizzle's width.
     What is asked of extents and strides has to hold for every launch that the parameters' bounds admit.)",
     R"(Move the storage to the byte that the message names, choose another box, or declare the modulus of the
     parameter that is a stride.)",
     R"(
K: Index[8, 65536, 4]     # refused where K is a stride of bf16: 8 bytes at K = 12
K: Index[8, 65536, 8]     # right
)"},
    {"TS0814", "core.bad_argument", R"(An argument is not what its instruction takes.)",
     R"(Every form of docs/instructions.md says its operands: how many, of which kind, in which range, at
     which alignment. An immediate is a constant, or made of counters of unrolled loops. Ranges and
     alignments are proved for all values of the parameters; the message has values where one fails.)",
     R"(Pass what is expected; where an address is not aligned, look at the index that the message shows.)",
     R"(
issue("mbarrier.wait", full[k % 2], k // 2)         # refused: a parity is 0 or 1
issue("mbarrier.wait", full[k % 2], k // 2 % 2)     # right
)"},
    {"TS0815", "core.bad_registers",
     R"(Registers are used where they are not declared, outside of their slots, or are laid out otherwise than
     an instruction has them.)",
     R"(Registers belong to the threads that execute the body where they are declared; a role cannot use
     those of the block. Slots are constants or counters of unrolled loops, because registers have no
     addresses. Operands of wgmma and mma.sync have fixed fragments: which thread holds which element.)",
     R"(Declare registers where they are used, with the fragment's layout (docs/instructions.md, Fragments),
     and unroll loops that index them.)",
     R"(
for j in range(0, 4):                                # refused: out[j * 8] is not known
    issue("stmatrix", c[lane, j * 8], out[j * 8], matrices=4)
)"},
    {"TS0816", "core.bad_matrix",
     R"(Shared memory is not laid out as TMA writes it or as wgmma reads it.)",
     R"(A box lies in shared memory without gaps, its first dimension fastest, under the map's swizzle. wgmma
     reads atoms of 8 rows of 16 to 128 bytes; the last two modes of the layout are the rows (m or n) and k,
     and the transpose operands say which one is contiguous. Both begin at the first row of an atom, because
     swizzles act on addresses.)",
     R"(Give the shared memory the map's swizzle and element, and a layout whose rows have the box's first
     extent as their stride.)",
     R"py(
c = shared(bf16, "(64,64):(72,1)", swizzle=128, at=0)     # refused: a box has no gaps
c = shared(bf16, "(64,64):(64,1)", swizzle=128, at=0)     # right
)py"},
    {"TS0817", "core.wrong_issuer",
     R"(Other threads come to an instruction than those that issue it.)",
     R"(Some instructions are issued by one lane (TMA), some by a whole warp (stmatrix, named barriers), some
     by a whole warpgroup (wgmma, setmaxnreg). Branches and loops that depend on the lane divide a warp;
     those that depend on a warp's place in its warpgroup divide that.)",
     R"(Put instructions of one lane into `with elected():`, move those of warps and warpgroups out of it and
     out of branches that divide them.)",
     R"(
if lane < 16:
    issue("barrier.sync", 1, 128)     # refused: half a warp comes here
)"},
    {"TS0818", "core.bad_structure",
     R"(Roles, loops, terms, or the block itself are not as the core has them.)",
     R"(Roles stand in the kernel's own body, share no warp, and lie within the block; the registers that they
     claim by setmaxnreg are at most what the block was launched with. A term names parameters, coordinates
     and counters that are known where it stands. Unrolled loops have constant bounds. The grid is a
     multiple of the cluster.)",
     R"(Do what is expected; the message names the role, the loop or the term.)",
     R"(
with role(producer, warps=[0, 4]) as p:
    issue("setmaxnreg.dec", 40)
with role(consumer, warps=[3, 7]) as w:     # refused: warp 3 is in both
    issue("setmaxnreg.inc", 232)
)"},
    {"TS0819", "core.undecided", R"(Something could be neither proved nor refuted.)",
     R"(A range, an alignment or who comes to an instruction depends on terms that the decision procedures do
     not reach, or on what registers hold. The kernel may be right; nothing is known. It is a warning and
     never passed in silence.)",
     R"(Declare bounds and moduli of the parameters, or write the index so that its range shows.)",
     R"(
issue("mbarrier.expect_tx", full[0], n[0])     # how many bytes is not known
)"},
};

}  // namespace

std::span<const Explanation> explained_core() {
  return records;
}

}  // namespace tessera
