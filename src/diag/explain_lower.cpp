#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0850", "lower.unsupported",
     R"(A kernel has something that CUDA C++ is not written for yet.)",
     R"(The lowering writes a kernel's text as it stands, or not at all. An index that is read from
     memory, a compute over elements other than f32, bf16 and f16, a loop that is to be unrolled
     without constant bounds and an instruction that writes a part of a register have no text yet.)",
     R"(Load what an index needs into registers, compute in f32, bf16 or f16, and load four bytes or
     more at a time.)",
     R"(
out = registers(i8, ...)       # refused as the result of a compute
out = registers(bf16, ...)     # accepted
)"},
    {"TS0851", "lower.unbounded", R"(An integer of a kernel may not fit its register.)",
     R"(Terms are computed in 32 bits where every launch keeps them there, and else in 64 bits. A term
     that may leave 64 bits, or an index that is to be a number of float32 and may be no such number,
     would be wrong without notice.)",
     R"(Declare upper bounds of the parameters in it; compare indices by a predicate.)",
     R"(
M: Index[1, 1048576]      # bounded: M * 4096 fits
)"},
    {"TS0852", "lower.bad_matrix", R"(wgmma cannot read a matrix where it lies in shared memory.)",
     R"(A descriptor of wgmma names an address, a swizzle and two distances. They describe matrices in
     atoms of 8 rows, as wide as the swizzle, at equal distances. The last two modes of the storage
     are the matrix's: m or n, then k. Every element that the instruction may read is compared with
     what the descriptor says.)",
     R"(Lay the storage out as docs/instructions.md, `Tiles in shared memory`, has it, with the swizzle
     that is as wide as its rows.)",
     R"(
a = shared(bf16, rows_of_64_elements, swizzle=128)     # 64 elements of 2 bytes are 128 bytes
)"},
    {"TS0853", "lower.bad_argument", R"(An argument does not fit the operand that it is for.)",
     R"(Every operand of an instruction has a kind: a place in shared memory, a tensor's address, a
     register, a constant. Constants of an instruction are numbers or counters of unrolled loops.)",
     R"(docs/instructions.md lists the operands of every instruction in their order.)",
     R"(
issue("wgmma.wait", k)     # refused: the number of groups is a constant
issue("wgmma.wait", 1)     # accepted
)"},
    {"TS0854", "lower.bad_slice", R"(Registers are named by a number that is no constant.)",
     R"(A thread's registers have no addresses: which of them an instruction uses is in the
     instruction. So a slice begins at a number, or at a term of counters of unrolled loops, at the
     first element of a register, and ends within the array.)",
     R"(Unroll the loop that counts the registers.)",
     R"(
for c in range(n):           # refused: acc[c * 32] has another register in every trip
for c in unroll(4):          # accepted
)"},
    {"TS0855", "lower.bad_launch", R"(A kernel cannot be launched as it is declared.)",
     R"(A block has at most 1024 threads, whole warps of them, and as much shared memory as the
     architecture gives one block. A tensor map's first dimension is the contiguous one, and its box
     keeps the limits of docs/instructions.md, `Tensor maps`.)",
     R"(Use fewer stages or smaller tiles, or change the tensor map as the message says.)",
     R"(
error[TS0855]: `gemm` takes 237648 bytes of shared memory
)"},
};

}  // namespace

std::span<const Explanation> explained_lower() {
  return records;
}

}  // namespace tessera
