#include "lower/helpers.h"

#include <stdexcept>

namespace tessera::lower {
namespace {

struct Helper {
  std::string_view name;
  std::string_view text;
};

constexpr Helper helpers[] = {
    {"matrix", R"(/// A matrix descriptor of its two words.
__device__ __forceinline__ uint64_t matrix(uint32_t low, uint32_t high) {
  return static_cast<uint64_t>(high) << 32 | low;
}
)"},
    {"pin",
     R"(/// The compiler moves no use of these registers across, which it would across a wgmma.
template <int n>
__device__ __forceinline__ void pin(float (&registers)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}
template <int n>
__device__ __forceinline__ void pin(uint32_t (&registers)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}
)"},
    {"now",
     R"(/// Computed where it stands; the compiler would move a division to its use, where others wait.
__device__ __forceinline__ int now(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ int64_t now(int64_t value) {
  asm volatile("" : "+l"(value));
  return value;
}
)"},
    {"two_bfloat16", R"(/// Two values rounded, the first in the low half.
__device__ __forceinline__ uint32_t two_bfloat16(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
)"},
    {"two_float16", R"(/// Two values rounded, the first in the low half.
__device__ __forceinline__ uint32_t two_float16(float low, float high) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
)"},
    {"of_bfloat16", R"(/// The value of half `at` of a register.
__device__ __forceinline__ float of_bfloat16(uint32_t both, int at) {
  return __uint_as_float(at == 0 ? both << 16 : both & 0xffff0000u);
}
)"},
    {"of_float16", R"(/// The value of half `at` of a register.
__device__ __forceinline__ float of_float16(uint32_t both, int at) {
  float value;
  const uint16_t half = static_cast<uint16_t>(at == 0 ? both : both >> 16);
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}
)"},
    {"field", R"(/// Bits [bits * at, bits * (at + 1)) of a register.
template <int bits>
__device__ __forceinline__ uint16_t field(uint32_t word, int at) {
  return static_cast<uint16_t>(word >> (bits * at) & ((1u << bits) - 1));
}
)"},
    {"set_field", R"(template <int bits>
__device__ __forceinline__ void set_field(uint32_t& word, int at, uint32_t value) {
  const uint32_t mask = ((1u << bits) - 1) << (bits * at);
  word = (word & ~mask) | (value << (bits * at) & mask);
}
)"},
};

}  // namespace

std::string helper_functions(const std::set<std::string>& names) {
  std::string out;
  std::size_t found = 0;
  for (const Helper& h : helpers)
    if (names.count(std::string(h.name)) != 0) {
      out += h.text;
      ++found;
    }
  if (found != names.size()) throw std::logic_error("a helper that there is not");
  return out;
}

}  // namespace tessera::lower
