// Helpers of matrix instructions and asynchronous copies in emitted CUDA sources.
//
// Everything that is inline PTX stands between the #else and the #endif: with TST_EMULATE defined
// the functions of the same names come from tests/emulate, which follow the PTX ISA on the host.
#include "arch/mma.h"
#include "tile/emit.h"

namespace tessera::tile {
namespace {

constexpr std::string_view instructions = R"(
#ifdef TST_EMULATE
#include "tessera_emulate/instructions.h"
#else
extern __shared__ __align__(128) unsigned char tst_shared_bytes[];
TST_FN unsigned char* tst_shared() { return tst_shared_bytes; }
// N elements (4, 8 or 16 bytes) to shared memory, without waiting; zeros where not live.
template <int N, class T>
TST_FN void tst_copy_async(T* to, const T* from, bool live) {
  constexpr int bytes = N * int(sizeof(T));
  const unsigned at = unsigned(__cvta_generic_to_shared(to));
  const int size = live ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(size) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(bytes), "r"(size) : "memory");
}
template <int N, class T>
TST_FN void tst_copy_async(T* to, const T* from) {
  constexpr int bytes = N * int(sizeof(T));
  const unsigned at = unsigned(__cvta_generic_to_shared(to));
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(bytes) : "memory");
}
TST_FN void tst_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
TST_FN void tst_copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
// max(a + b, c) of signed integers: one instruction on sm_90.
TST_FN int tst_add_max(int a, int b, int c) { return __viaddmax_s32(a, b, c); }
template <int WORDS>
TST_FN void tst_read_transposed(uint32_t* to, const void* row) {  // WORDS matrices of 8 x 8, 16 bits
  const unsigned at = unsigned(__cvta_generic_to_shared(row));
  if constexpr (WORDS == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(at) : "memory");
}
)";

/// c += a b by one instruction; accumulators lie E and H registers apart (columns, rows).
std::string instruction(const arch::Mma& by) {
  std::string id(by.name);
  for (char& ch : id)
    if (ch == '.') ch = '_';
  return fmt::format(R"(template <int E, int H>
TST_FN void tst_mma_{}(float* c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {{
  asm("{} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+f"(c[0]), "+f"(c[E]), "+f"(c[H]), "+f"(c[E + H])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}}
)",
                     id, by.ptx);
}

constexpr std::string_view rest = R"(#endif
// To nearest, ties away, as cvt.rna.tf32 does (the product's instruction itself truncates; it ignores
// the 13 bits left below). The maximum keeps inf and the NaN that a GPU makes, 0x7fffffff; cvt.rna
// takes twice the instructions.
TST_FN uint32_t tst_tf32(float x) {
  const int b = int(tst_bits(x));
  return uint32_t(tst_add_max(b, 0x1000, b));
}
template <int WORDS>
TST_FN void tst_read(uint32_t* to, const void* from) {  // 4 * WORDS bytes at once
  struct alignas(4 * WORDS) words { uint32_t item[WORDS]; };
  const words w = *static_cast<const words*>(from);
#pragma unroll
  for (int i = 0; i < WORDS; ++i) to[i] = w.item[i];
}
template <int N>
TST_FN void tst_round_tf32(uint32_t (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = tst_tf32(tst_from_bits(x[i]));
}
// x = high + low, both for tf32: high is rounded to nearest, so low has either sign, and what the
// instruction truncates of it (2^-21 of x at most) cancels in sums. A NaN is in low.
TST_FN void tst_split_tf32(float x, uint32_t& high, uint32_t& low) {
  high = (tst_bits(x) + 0x1000u) & 0xffffe000u;
  low = tst_bits(x - tst_from_bits(high));
}
template <int N>
TST_FN void tst_split_tf32(uint32_t (&x)[N], uint32_t (&low)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) tst_split_tf32(tst_from_bits(x[i]), x[i], low[i]);
}
TST_FN uint32_t tst_pack_bf16(float first, float second) {
  const __nv_bfloat162 p = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&p);
}
TST_FN uint32_t tst_pack_fp16(float first, float second) {
  const __half2 p = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&p);
}
)";

}  // namespace

std::string product_prelude() {
  std::string s =
      "TST_FN float tst_from_bits(uint32_t b) { return __uint_as_float(b); }\n"
      "TST_FN uint32_t tst_bits(float x) { return __float_as_uint(x); }\n";
  s += instructions;
  for (const arch::Mma& by : arch::mma_sync()) s += instruction(by);
  return s + std::string(rest);
}

}  // namespace tessera::tile
