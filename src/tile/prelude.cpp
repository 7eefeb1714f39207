// Helper functions of emitted sources.
#include "tile/emit.h"

namespace tessera::tile {
namespace {

constexpr std::string_view host = R"(#include <cstdint>
#include <cstring>

#define TST_FN static inline __attribute__((always_inline, unused))
struct tst_bf16 { uint16_t bits; };
struct tst_f16 { uint16_t bits; };
TST_FN float tst_float(uint32_t b) { float f; memcpy(&f, &b, 4); return f; }
TST_FN uint32_t tst_bits(float f) { uint32_t b; memcpy(&b, &f, 4); return b; }
TST_FN float tst_load(float x) { return x; }
TST_FN float tst_load(uint8_t x) { return x != 0 ? 1.0f : 0.0f; }
TST_FN float tst_load(tst_bf16 x) { return tst_float(uint32_t(x.bits) << 16); }
TST_FN float tst_load(tst_f16 x) {  // branch-free, so that loops over it vectorize
  const uint32_t h = x.bits, sign = (h & 0x8000u) << 16, body = (h & 0x7fffu) << 13;
  const float normal = tst_float(body + (112u << 23)), special = tst_float(body | 0x7f800000u);
  const float subnormal = tst_float(body + (113u << 23)) - tst_float(113u << 23);
  const float v = body >= (31u << 23) ? special : body < (1u << 23) ? subnormal : normal;
  return tst_float(tst_bits(v) | sign);
}
TST_FN uint16_t tst_to_bf16(float f) {
  const uint32_t b = tst_bits(f);
  return f != f ? uint16_t((b >> 16) | 0x40u) : uint16_t((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}
TST_FN uint16_t tst_to_f16(float f) {
  const uint32_t b = tst_bits(f), sign = (b >> 16) & 0x8000u, a = b & 0x7fffffffu;
  const uint32_t normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
  const uint32_t subnormal = tst_bits(tst_float(a) + 0.5f) - tst_bits(0.5f);
  uint32_t h = a < (113u << 23) ? subnormal : normal;
  h = a >= 0x47800000u ? (a > 0x7f800000u ? 0x7e00u : 0x7c00u) : h;
  return uint16_t(h | sign);
}
TST_FN float tst_round_bf16(float f) { return tst_load(tst_bf16{tst_to_bf16(f)}); }
TST_FN float tst_round_f16(float f) { return tst_load(tst_f16{tst_to_f16(f)}); }
TST_FN float tst_round_b1(float f) { return f != 0.0f ? 1.0f : 0.0f; }
TST_FN void tst_store(float& p, float v) { p = v; }
TST_FN void tst_store(uint8_t& p, float v) { p = v != 0.0f; }
TST_FN void tst_store(tst_bf16& p, float v) { p.bits = tst_to_bf16(v); }
TST_FN void tst_store(tst_f16& p, float v) { p.bits = tst_to_f16(v); }
// Integers in the order of floats; a NaN shows in the largest magnitude (all but the sign's bit).
TST_FN int tst_order(float f) { const int b = int(tst_bits(f)); return b ^ int(uint32_t(b >> 31) >> 1); }
TST_FN void tst_put_max(int& most, uint32_t& size, float f) {
  const int k = tst_order(f);
  const uint32_t s = tst_bits(f) & 0x7fffffffu;
  most = most > k ? most : k;
  size = size > s ? size : s;
}
TST_FN float tst_unorder(int k, uint32_t size) {
  return size > 0x7f800000u ? __builtin_nanf("") : tst_float(uint32_t(k ^ int(uint32_t(k >> 31) >> 1)));
}
TST_FN long tst_min(long a, long b) { return a < b ? a : b; }
TST_FN long tst_clamp(long x, long low, long high) { return x < low ? low : x > high ? high : x; }
template <class T>
TST_FN void tst_expect_write(const T* to, long n) {
  for (long i = 0; i < n; i += 64 / long(sizeof(T))) __builtin_prefetch(to + i, 1, 2);
}
TST_FN void tst_copy(float* __restrict__ to, const float* __restrict__ from, long n) {
#pragma omp simd
  for (long i = 0; i < n; ++i) to[i] = from[i];
}

// c[m,N] += a[m,k] b[k,N]: MR rows by NV vectors of c stay in registers while k runs. As in every
// library of products, a product is rounded with its sum.
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#if defined(__AVX512F__)
enum { tst_lanes = 16, tst_rows = 8 };
#else
enum { tst_lanes = 8, tst_rows = 4 };
#endif
typedef float tst_vec __attribute__((vector_size(tst_lanes * 4), aligned(4), may_alias));
template <int MR, int NV, int LA, int LB, int LC>
TST_FN void tst_dot_block(const float* a, const float* b, float* c, long k) {
  tst_vec acc[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) acc[i][j] = *(const tst_vec*)(c + i * LC + j * tst_lanes);
  for (long p = 0; p < k; ++p) {
    tst_vec row[NV];
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) row[j] = *(const tst_vec*)(b + p * LB + j * tst_lanes);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < NV; ++j) acc[i][j] += a[i * LA + p] * row[j];
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) *(tst_vec*)(c + i * LC + j * tst_lanes) = acc[i][j];
}
template <int NV, int LA, int LB, int LC>
TST_FN void tst_dot_columns(const float* a, const float* b, float* c, long m, long k) {
  for (; m >= tst_rows; m -= tst_rows, a += tst_rows * LA, c += tst_rows * LC) tst_dot_block<tst_rows, NV, LA, LB, LC>(a, b, c, k);
  for (; m > 0; --m, a += LA, c += LC) tst_dot_block<1, NV, LA, LB, LC>(a, b, c, k);
}
template <int LA, int LB, int LC>
static __attribute__((noinline, unused)) void tst_dot(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long m, long k) {
  static_assert(LC % 16 == 0 && LB == LC, "pad the columns to whole vectors");
  int n = 0;
  for (; n + 2 * tst_lanes <= LC; n += 2 * tst_lanes) tst_dot_columns<2, LA, LB, LC>(a, b + n, c + n, m, k);
  for (; n < LC; n += tst_lanes) tst_dot_columns<1, LA, LB, LC>(a, b + n, c + n, m, k);
}
#pragma GCC pop_options
)";

constexpr std::string_view cuda = R"(#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define TST_FN __device__ __forceinline__
using tst_bf16 = __nv_bfloat16;
using tst_f16 = __half;
TST_FN float tst_value(float x) { return x; }
TST_FN float tst_value(uint8_t x) { return x != 0 ? 1.0f : 0.0f; }
TST_FN float tst_value(tst_bf16 x) { return __bfloat162float(x); }
TST_FN float tst_value(tst_f16 x) { return __half2float(x); }
TST_FN void tst_assign(float& p, float v) { p = v; }
TST_FN void tst_assign(uint8_t& p, float v) { p = v != 0.0f; }
TST_FN void tst_assign(tst_bf16& p, float v) { p = __float2bfloat16_rn(v); }
TST_FN void tst_assign(tst_f16& p, float v) { p = __float2half_rn(v); }
TST_FN float tst_round_bf16(float v) { return __bfloat162float(__float2bfloat16_rn(v)); }
TST_FN float tst_round_f16(float v) { return __half2float(__float2half_rn(v)); }
TST_FN float tst_round_b1(float v) { return v != 0.0f ? 1.0f : 0.0f; }
template <class T, int N> struct alignas(sizeof(T) * N) tst_pack { T items[N]; };
template <int N, class T>
TST_FN void tst_load(float* to, const T* from) {  // N elements, one access
  const tst_pack<T, N> p = *reinterpret_cast<const tst_pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = tst_value(p.items[i]);
}
template <int N, class T>
TST_FN void tst_repeat(float* to, const T* from) {  // one element N times
  const float v = tst_value(*from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = v;
}
template <int N>
TST_FN void tst_clear(float* to) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = 0.0f;
}
template <int N, class T>
TST_FN void tst_store(T* to, const float* from) {
  tst_pack<T, N> p;
#pragma unroll
  for (int i = 0; i < N; ++i) tst_assign(p.items[i], from[i]);
  *reinterpret_cast<tst_pack<T, N>*>(to) = p;
}
template <class I> TST_FN I tst_min(long long a, I b) { return I(a) < b ? I(a) : b; }
TST_FN long tst_clamp(long x, long low, long high) { return x < low ? low : x > high ? high : x; }
TST_FN float tst_max(float a, float b) { return tsr_maximum(a, b); }  // a NaN stays
template <class A> TST_FN void tst_copy(A& to, const A& from, int) {
#pragma unroll
  for (int i = 0; i < int(sizeof(A) / 4); ++i) to[i] = from[i];
}
struct tst_sum_of {
  static TST_FN float with(float a, float b) { return a + b; }
  static TST_FN float neutral() { return 0.0f; }
};
struct tst_max_of {
  static TST_FN float with(float a, float b) { return tst_max(a, b); }
  static TST_FN float neutral() { return -tsr_inf(); }
};
template <class F, int W>
TST_FN float tst_over_lanes(float v) {
#pragma unroll
  for (int d = W / 2; d > 0; d /= 2) v = F::with(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
template <class F, int W, int N>
TST_FN void tst_exchange_lanes(float (&v)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = tst_over_lanes<F, W>(v[i]);
}
// Lines of W threads, W / 32 whole warps: warps by shuffles, then one slot a warp in shared memory.
template <class F, int W, int N, int THREADS>
TST_FN void tst_exchange_warps(float (&v)[N], float* slots, unsigned thread) {
  constexpr int warps = W / 32;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    v[i] = tst_over_lanes<F, 32>(v[i]);
    if (thread % 32 == 0) slots[i * (THREADS / 32) + thread / 32] = v[i];
  }
  __syncthreads();
  const unsigned first = thread / W * warps;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if constexpr (warps <= 8) {
      v[i] = slots[i * (THREADS / 32) + first];
#pragma unroll
      for (int w = 1; w < warps; ++w) v[i] = F::with(v[i], slots[i * (THREADS / 32) + first + w]);
    } else {
      const unsigned lane = thread % 32;
      v[i] = tst_over_lanes<F, 32>(lane < warps ? slots[i * (THREADS / 32) + first + lane] : F::neutral());
    }
  }
}
)";

}  // namespace

std::string tile_prelude(Target target) {
  return std::string(target == Target::cuda ? cuda : host);
}

}  // namespace tessera::tile
