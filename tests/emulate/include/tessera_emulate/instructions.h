// What the inline PTX of emitted sources does (PTX ISA 8.x), in the names of their helpers.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace tessera_emulate {

/// cp.async: the bytes move when the thread waits for their group.
inline void copy_async(void* to, const void* from, int bytes, bool live) {
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0 ||
      (live && reinterpret_cast<uintptr_t>(from) % bytes != 0))
    stop("cp.async of unaligned addresses");
  Fiber& f = Block::now().self();
  f.copies.push_back({to, from, bytes, live, f.groups});
}

inline void copy_wait(int64_t pending) {
  Fiber& f = Block::now().self();
  std::erase_if(f.copies, [&](const Copy& c) {
    if (c.group >= f.groups - pending) return false;
    if (c.live)
      std::memcpy(c.to, c.from, c.bytes);
    else
      std::memset(c.to, 0, c.bytes);
    return true;
  });
}

struct Operands {
  const uint32_t* a;
  uint32_t b[2];
};

/// What one element of a multiplicand is: tf32 in 32 bits (the low 13 are ignored), or one of two
/// 16-bit numbers.
inline double tf32_of(const uint32_t* r, int i) {
  return __uint_as_float(r[i] & ~0x1fffu);
}
inline double bf16_of(const uint32_t* r, int i) {
  return __bfloat162float({uint16_t(r[i / 2] >> (16 * (i % 2)))});
}
inline double fp16_of(const uint32_t* r, int i) {
  const auto bits = uint16_t(r[i / 2] >> (16 * (i % 2)));
  _Float16 h;
  std::memcpy(&h, &bits, 2);
  return double(float(h));
}

/// mma.sync.m16n8kK: this lane's four accumulators. Where an element lies is "Matrix Fragments for
/// mma.m16n8k8 with .tf32" and "mma.m16n8k16 with .f16 and .bf16" of the ISA, solved for the lane.
template <int K, double (*ELEMENT)(const uint32_t*, int)>
void mma(const char* name, float* (&c)[4], const uint32_t* a, uint32_t b0, uint32_t b1) {
  const unsigned lane = Block::now().thread % 32;
  const Operands mine{a, {b0, b1}};
  struct Four {
    double v[4];
  };
  const Four sums = among_lanes(name, mine, [&](auto of) {
    Four s;
    for (int i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      s.v[i] = *c[i];
      for (unsigned k = 0; k < K; ++k) {
        // Who holds A[row][k] and B[k][column], and at which place.
        const unsigned group = K == 8 ? k % 4 : k % 8 / 2;
        const unsigned high = K == 8 ? k / 4 : k / 8;
        const unsigned a_at = K == 8 ? row / 8 + 2 * high : (row / 8 + 2 * high) * 2 + k % 2;
        const unsigned b_at = K == 8 ? high : high * 2 + k % 2;
        s.v[i] += ELEMENT(of(row % 8 * 4 + group).a, int(a_at)) *
                  ELEMENT(of(column * 4 + group).b, int(b_at));
      }
    }
    return s;
  });
  for (int i = 0; i < 4; ++i) *c[i] = float(sums.v[i]);
}

/// ldmatrix.x2/.x4.trans: lanes 8 m to 8 m + 7 point at the rows of matrix m; register m of a lane
/// gets elements (2 (lane % 4), lane / 4) and the one below.
inline void read_transposed(uint32_t* to, const void* row, int matrices) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) stop("ldmatrix of an unaligned row");
  const unsigned lane = Block::now().thread % 32;
  struct Four {
    uint32_t v[4];
  };
  const Four got = among_lanes("ldmatrix", row, [&](auto of) {
    Four r{};
    for (int m = 0; m < matrices; ++m)
      for (unsigned i = 0; i < 2; ++i) {
        uint16_t x;
        const void* from = of(unsigned(8 * m) + lane % 4 * 2 + i);
        std::memcpy(&x, static_cast<const char*>(from) + lane / 4 * 2, 2);
        r.v[m] |= uint32_t(x) << (16 * i);
      }
    return r;
  });
  for (int m = 0; m < matrices; ++m) to[m] = got.v[m];
}

}  // namespace tessera_emulate

inline unsigned char* tst_shared() {
  return tessera_emulate::Block::now().shared;
}
template <int N, class T>
void tst_copy_async(T* to, const T* from, bool live = true) {
  tessera_emulate::copy_async(to, from, N * int(sizeof(T)), live);
}
inline void tst_copy_commit() {
  ++tessera_emulate::Block::now().self().groups;
}
template <int N>
void tst_copy_wait() {
  tessera_emulate::copy_wait(N);
}
inline int tst_add_max(int a, int b, int c) {
  return std::max(int(unsigned(a) + unsigned(b)), c);
}
template <int WORDS>
void tst_read_transposed(uint32_t* to, const void* row) {
  tessera_emulate::read_transposed(to, row, WORDS);
}
#define TST_EMULATED_MMA(NAME, K, ELEMENT)                                   \
  template <int E, int H>                                                    \
  void NAME(float* c, const uint32_t(&a)[4], uint32_t b0, uint32_t b1) {     \
    float* at[4] = {c, c + E, c + H, c + E + H};                             \
    tessera_emulate::mma<K, tessera_emulate::ELEMENT>(#NAME, at, a, b0, b1); \
  }
TST_EMULATED_MMA(tst_mma_m16n8k8_tf32, 8, tf32_of)
TST_EMULATED_MMA(tst_mma_m16n8k16_bf16, 16, bf16_of)
TST_EMULATED_MMA(tst_mma_m16n8k16_fp16, 16, fp16_of)
