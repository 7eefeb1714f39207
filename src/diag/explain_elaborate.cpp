#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0826", "language.no_such_name", R"(A name in a kernel file means nothing where it stands.)",
     R"(A name is used before it gets a value, it is misspelled, or what stands before a dot has no such
     attribute. The same code tells of a kernel or an instruction that does not exist.)",
     R"(The message names the nearest name where one is near. Words of the language are in
     docs/language.md, instructions in docs/instructions.md.)",
     R"(
full[k].wiat()     # refused: `barrier` has no `wiat`
full[k].wait()     # right
)"},
    {"TS0827", "language.wrong_call",
     R"(A call is told something that it does not take, or is not told something that it needs.)",
     R"(Words of the language, instructions and functions of the file say which arguments they take. The
     message shows the signature.)",
     R"(Give the arguments that the signature names.)",
     R"(
tma.load(A[m, k], a[k])             # refused: without its barrier
tma.load(A[m, k], a[k], full[k])    # right
)"},
    {"TS0828", "language.wrong_kind", R"(A value of another kind is needed where this one stands.)",
     R"(An instruction is given an integer in the place of shared memory, a turn of a loop is used as an
     integer, or two values have no operator in common.)",
     R"(The message says what is expected and what was found. A turn of a loop is made an integer by
     `.index` or `.start`.)",
     R"(
if k > 0:          # refused: k is a turn of a ring
if k.index > 0:    # right
)"},
    {"TS0829", "language.wrong_shape", R"(Two shapes do not go together, or a part is not inside.)",
     R"(A box of a tensor is copied to shared memory of another shape, the operands of a product do not
     fit, or an index leaves its extent.)",
     R"(The message shows both shapes. Give both the same extents.)",
     R"(
a = shared(bf16, [4, 128, 32])
for m in tiles(M, 128):
    tma.load(A[m, part(0, 64)], a[0], full[0])    # refused: [128, 64] into [128, 32]
)"},
    {"TS0830", "language.not_constant",
     R"(A number has to be known before the launch, and this one is not.)",
     R"(Extents of storage, counts of barriers and warps, and sizes of tiles are part of the kernel.
     Integers of the launch, loop counters and places of threads are not known while it is made.)",
     R"(Write a number, or make it a constant of the kernel: `BM: const = 128`.)",
     R"(
a = shared(bf16, [M, 64])      # refused: the launch chooses M
a = shared(bf16, [BM, 64])     # right, with BM: const = 128
)"},
    {"TS0831", "language.assertion", R"(An assertion of the kernel file does not hold.)",
     R"(`assert` states what a kernel needs of its constants, or of the integers of every launch. The first
     are computed; the second have to follow from what is declared of the integers.)",
     R"(Set the constants so that it holds, or declare what is known: `K: index(multiple=8)`.)",
     R"(
assert BM % 64 == 0, "a consumer warpgroup makes 64 rows"     # refuses BM=96
)"},
    {"TS0832", "language.wrong_place", R"(A construct stands where it cannot.)",
     R"(Roles stand in the kernel's own body; storage is made before them; instructions of a whole warp do
     not stand under `one_thread`; a name does not change its value inside of a loop of the machine.)",
     R"(The help says where it belongs.)",
     R"(
with role("loader", warpgroups=1):
    tma.load(A[m, k], a[k], full[k])        # refused: 128 threads are here
with role("loader", warpgroups=1), one_thread():
    tma.load(A[m, k], a[k], full[k])        # right
)"},
    {"TS0833", "language.recursion", R"(A function of a kernel file calls itself.)",
     R"(Functions are put in the place of their calls, so that a kernel has no stack. A function that calls
     itself would never end.)",
     R"(Write a loop, or `for i in static_range(n)` where each turn is to be another one.)",
     R"(
def total(x): return x + total(x)    # refused
)"},
    {"TS0834", "language.no_layout",
     R"(How elements lie in the registers of the threads is not known, or does not suit.)",
     R"(The first instruction that takes a tile of registers says how it lies. Elements that are computed
     together lie alike, and a part of a tile is the same registers in every thread.)",
     R"(Use the tile in an instruction before its parts are taken, or say how it lies by `layout=` or
     `like=`. Elements move between threads through shared memory.)",
     R"(
acc = registers(f32, [128, 256])
y = acc[:, part(0, 64)]     # refused: before wgmma has taken acc
)"},
    {"TS0835", "language.no_instruction", R"(No instruction does this with these operands.)",
     R"(The types, widths or strides are none that the machine's instruction has: wgmma's types, TMA's
     strides of 16 bytes, the registers that stmatrix stores.)",
     R"(The message says what the instruction takes. docs/instructions.md lists all of them.)",
     R"(
A: Tensor[bf16, "M", "K"]                     # refused for TMA: K may be 7
K: index(multiple=8), A: Tensor[bf16, "M", "K"]   # right: rows begin at multiples of 16 bytes
)"},
    {"TS0836", "language.bad_constant", R"(A constant has a value that it cannot have.)",
     R"(A constant of the kernel is set to something of another kind, or has no value, or there is none of
     that name; or a number stands outside of the range that a word takes.)",
     R"(The message says which values there are.)",
     R"(
with role("loader", warpgroups=1, registers=50):    # refused: no multiple of 8
with role("loader", warpgroups=1, registers=48):    # right
)"},
    {"TS0837", "language.wrong_arrivals",
     R"(A barrier waits for another number of arrivals than its phases get.)",
     R"(Each `arrive` is one arrival per warp that comes there, or one under `one_thread`; `expect` is one.
     A barrier that waits for more never completes its phase, one that waits for fewer completes it
     too early.)",
     R"(Leave `arrivals` out: they are counted. Where a condition chooses the threads, they cannot be
     counted and have to be written.)",
     R"(
empty = barrier(STAGES, arrivals=1)     # refused where eight warps arrive
empty = barrier(STAGES)                 # right
)"},
    {"TS0838", "language.stale_value",
     R"(Elements are used after the registers that they are computed of have changed.)",
     R"(A name of computed elements stands for the computation, which is done where the name is used. If the
     registers are written in between, it would see other values than the text says.)",
     R"(Use the elements before, or assign them to registers of their own: `y[:] = ...`.)",
     R"(
y = acc * 0.5
acc[:] = 0.0
out[:] = y        # refused
)"},
    {"TS0839", "language.wrong_ring", R"(A ring, its slots and its turns do not belong together.)",
     R"(A turn of a ring names a slot of storage with another number of slots, a barrier is waited for
     without a turn, the ring has another number of turns each time, or two loops over tiles ask for
     different grids.)",
     R"(Give rings, buffers and barriers the same number of slots, and roles the same loops.)",
     R"(
full = barrier(3)
for k in ring(K, 64, 4):
    full[k].wait()        # refused: the ring turns over 4 slots, `full` has 3
)"},
};

}  // namespace

std::span<const Explanation> explained_elaborate() {
  return records;
}

}  // namespace tessera
