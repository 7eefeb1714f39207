// The C text of the `tsr_*` helper functions.
//
// Host bodies are branch-free, so that gcc vectorizes loops over them without -ffast-math; the
// exceptions (pow, fmod, remainder, div_floor, atan, atan2, tan; sin and cos of what is beyond 1e6)
// call the C library. For the others two
// options are needed that keep every value: -fno-math-errno from the command line (sqrt's errno is
// a branch) and no trapping comparisons, set here by pragma. Ranges are reduced as by Cody and
// Waite; polynomial coefficients are minimax fits, rounded to float one by one. Errors over all
// floats are at most 2 ulp for exp, exp2, expm1, log, log1p, tanh, erf, sigmoid, sin, cos.
#include "pointwise/pointwise.h"

namespace tessera::pointwise {
namespace {

constexpr std::string_view host_head = R"(#pragma GCC optimize("no-trapping-math")
#include <cmath>
#define TSR_FN static inline __attribute__((always_inline, unused))
TSR_FN float tsr_as_float(unsigned u) { float f; __builtin_memcpy(&f, &u, 4); return f; }
TSR_FN unsigned tsr_as_uint(float f) { unsigned u; __builtin_memcpy(&u, &f, 4); return u; }
TSR_FN float tsr_inf() { return __builtin_inff(); }
TSR_FN float tsr_nan() { return __builtin_nanf(""); }
TSR_FN float tsr_abs(float x) { return __builtin_fabsf(x); }
// By its bit: g++ makes -fma(a, b, c) a -(a * b) - c, whose zero has the other sign.
TSR_FN float tsr_neg(float x) { return tsr_as_float(tsr_as_uint(x) ^ 0x80000000u); }
TSR_FN float tsr_copysign(float x, float s) { return __builtin_copysignf(x, s); }
TSR_FN float tsr_sqrt(float x) { return __builtin_sqrtf(x); }
TSR_FN float tsr_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
TSR_FN float tsr_floor(float x) { return __builtin_floorf(x); }
TSR_FN float tsr_ceil(float x) { return __builtin_ceilf(x); }
TSR_FN float tsr_trunc(float x) { return __builtin_truncf(x); }
TSR_FN float tsr_round(float x) { return __builtin_rintf(x); }
TSR_FN float tsr_pow(float x, float y) { return __builtin_powf(x, y); }
TSR_FN float tsr_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TSR_FN float tsr_fmod(float x, float y) { return __builtin_fmodf(x, y); }
TSR_FN float tsr_atan(float x) { return __builtin_atanf(x); }
TSR_FN float tsr_atan2(float x, float y) { return __builtin_atan2f(x, y); }
TSR_FN float tsr_hypot(float x, float y) {
  const double squares = (double)x * x + (double)y * y;
  const float size = (float)__builtin_sqrt(squares);
  return tsr_abs(x) == tsr_inf() || tsr_abs(y) == tsr_inf() ? tsr_inf() : size;
}
TSR_FN float tsr_tan(float x) { return __builtin_tanf(x); }
TSR_FN float tsr_minimum(float a, float b) { const float m = a < b ? a : b; return a != a ? a : m; }
TSR_FN float tsr_maximum(float a, float b) { const float m = a > b ? a : b; return a != a ? a : m; }
)";

// exp: x = n ln2 + r, e^r by a polynomial, 2^n as two factors so that subnormal and overflowing
// results come out right. Adding 1.5 * 2^23 leaves round(x) in the low bits of the sum.
constexpr std::string_view host_exp = R"(
TSR_FN float tsr_scale(float p, unsigned n) {
  const int half = (int)n >> 1;
  return p * tsr_as_float((unsigned)(half + 127) << 23) * tsr_as_float((n - (unsigned)half + 127u) << 23);
}
TSR_FN float tsr_exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float big = x * 1.44269504f + 12582912.0f;
  const float n = big - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 0x1.6d4292p-10f + r * 0x1.a242f8p-13f;
  p = 0x1.111004p-7f + r * p;
  p = 0x1.5554f2p-5f + r * p;
  p = 0x1.555556p-3f + r * p;
  p = 0.5f + r * p;
  p = 1.0f + (r + r * r * p);
  return tsr_scale(p, tsr_as_uint(big) - 0x4b400000u);
}
TSR_FN float tsr_exp2(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  const float big = x + 12582912.0f;
  const float r = x - (big - 12582912.0f);
  float p = 0x1.441448p-13f + r * 0x1.ecfa50p-17f;
  p = 0x1.5d9c8ap-10f + r * p;
  p = 0x1.3b2a58p-7f + r * p;
  p = 0x1.c6b074p-5f + r * p;
  p = 0x1.ebfbe0p-3f + r * p;
  p = 0x1.62e430p-1f + r * p;
  p = 1.0f + r * p;
  return tsr_scale(p, tsr_as_uint(big) - 0x4b400000u);
}
TSR_FN float tsr_round_tf32(float x) { return x - x == 0.0f ? tsr_as_float((tsr_as_uint(x) + 0x1000u) & 0xffffe000u) : x; }
TSR_FN float tsr_round_tf32_finite(float x) { return tsr_as_float((tsr_as_uint(x) + 0x1000u) & 0xffffe000u); }
TSR_FN float tsr_exp2_flushed(float x) { const float y = tsr_exp2(x); return y < 0x1p-126f ? 0.0f : y; }
TSR_FN float tsr_expm1(float given) {
  float x = given;
  x = x > 89.0f ? 89.0f : x;
  x = x < -25.0f ? -25.0f : x;
  const float big = x * 1.44269504f + 12582912.0f;
  const float n = big - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 0x1.6d4292p-10f + r * 0x1.a242f8p-13f;
  p = 0x1.111004p-7f + r * p;
  p = 0x1.5554f2p-5f + r * p;
  p = 0x1.555556p-3f + r * p;
  p = 0.5f + r * p;
  p = r + r * r * p;
  const float half = tsr_as_float((tsr_as_uint(big) - 0x4b400000u + 126u) << 23);  // 2^(n-1): 2^128 is no float
  const float m = 2.0f * (half * p + (half - 0.5f));
  return given == 0.0f ? given : n == 0.0f ? p : m;  // -0 as it is
}
)";

// log: x = 2^e m with m in [sqrt(1/2), sqrt(2)). log1p adds what 1 + x rounded off.
constexpr std::string_view host_log = R"(
TSR_FN float tsr_log_parts(float x, float* exponent) {
  const float scaled = x < 0x1p-126f ? x * 0x1p23f : x;
  const unsigned bits = tsr_as_uint(scaled) - 0x3f3504f3u;
  const float e = (float)((int)bits >> 23);
  *exponent = x < 0x1p-126f ? e - 23.0f : e;
  return tsr_as_float((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}
TSR_FN float tsr_log_tail(float m) {  // log(1 + m) - m
  float p = -0x1.e006dcp-4f + m * 0x1.148442p-4f;
  p = 0x1.e7d1c0p-4f + m * p;
  p = -0x1.fbea32p-4f + m * p;
  p = 0x1.232592p-3f + m * p;
  p = -0x1.555d26p-3f + m * p;
  p = 0x1.99a58cp-3f + m * p;
  p = -0x1.000006p-2f + m * p;
  p = 0x1.555546p-2f + m * p;
  const float q = m * m;
  return q * m * p - 0.5f * q;
}
TSR_FN float tsr_log_special(float x, float y) {
  y = x == 0.0f ? -tsr_inf() : y;
  y = x < tsr_inf() ? y : x;  // inf and NaN
  return x < 0.0f ? tsr_nan() : y;
}
TSR_FN float tsr_log(float x) {
  float e;
  const float m = tsr_log_parts(x, &e);
  const float tail = tsr_log_tail(m) - e * 2.12194440e-4f;
  return tsr_log_special(x, (m + tail) + e * 0.693359375f);
}
TSR_FN float tsr_log2(float x) {
  float e;
  const float m = tsr_log_parts(x, &e);
  const float tail = tsr_log_tail(m);  // log2(e) = 1.4423828125 + 3.1222749e-4
  const float y = ((m + tail) * 3.1222749e-4f + tail * 1.4423828125f) + m * 1.4423828125f + e;
  return tsr_log_special(x, y);
}
TSR_FN float tsr_log10(float x) { return tsr_log(x) * 0.434294482f; }
TSR_FN float tsr_log1p(float x) {
  const float u = 1.0f + x;
  const float lost = (x - (u - 1.0f)) / u;
  const float y = tsr_log(u) + (u > 0.0f && u < tsr_inf() ? lost : 0.0f);
  return x == 0.0f ? x : y;  // -0 as it is
}
)";

constexpr std::string_view host_rest = R"(
TSR_FN float tsr_tanh(float x) {
  const float a = tsr_abs(x);
  const float t = tsr_expm1(2.0f * (a > 10.0f ? 10.0f : a));
  return tsr_copysign(t / (t + 2.0f), x);
}
TSR_FN float tsr_tanh_approx(float x) { return tsr_tanh(x); }
TSR_FN float tsr_erf(float x) {  // an odd polynomial near 0, 1 - e^q(|x|) beyond
  const float a = tsr_abs(x);
  const float s = x * x;
  float p = -0x1.a614d8p-11f + s * 0x1.4f993ep-14f;
  p = 0x1.544ad4p-8f + s * p;
  p = -0x1.b80122p-6f + s * p;
  p = 0x1.ce2d64p-4f + s * p;
  p = -0x1.812740p-2f + s * p;
  p = 0x1.06eba8p-3f + s * p;
  const float near = x + x * p;
  const float t = a > 4.0f ? 4.0f : a;
  float q = -0x1.3af202p-15f + t * 0x1.3cf448p-19f;
  q = 0x1.f2fea0p-13f + t * q;
  q = -0x1.321ccap-11f + t * q;
  q = -0x1.b2233ap-10f + t * q;
  q = 0x1.5938ecp-6f + t * q;
  q = -0x1.aa1a22p-4f + t * q;
  q = -0x1.45b64cp-1f + t * q;
  q = -0x1.20e258p+0f + t * q;
  const float far = tsr_copysign(1.0f - tsr_exp(t * q), x);
  return a < 0.93f ? near : far;
}
TSR_FN float tsr_sin_quadrant(float x, unsigned quadrant) {  // sin(x + quadrant * pi/2)
  const double big = (double)x * 0.63661977236758134 + 6755399441055744.0;
  const double n = big - 6755399441055744.0;
  const float r = (float)(((double)x - n * 1.5707963267341256) - n * 6.0771005065061922e-11);
  unsigned long long bits;
  __builtin_memcpy(&bits, &big, 8);
  const unsigned k = (unsigned)bits + quadrant;
  const float s = r * r;
  float p = -0x1.a058e4p-13f + s * 0x1.7bf19cp-19f;
  p = 0x1.111174p-7f + s * p;
  p = -0x1.555556p-3f + s * p;
  const float sine = s == 0.0f ? r : r + r * s * p;  // -0 as it is
  float q = -0x1.6c0c1cp-10f + s * 0x1.99e1d6p-16f;
  q = 0x1.55554ap-5f + s * q;
  const float cosine = 1.0f + (s * s * q - 0.5f * s);
  const float y = (k & 1u) != 0u ? cosine : sine;
  return (k & 2u) != 0u ? -y : y;
}
TSR_FN float tsr_sin(float x) { return tsr_abs(x) < 1e6f ? tsr_sin_quadrant(x, 0u) : __builtin_sinf(x); }
TSR_FN float tsr_cos(float x) { return tsr_abs(x) < 1e6f ? tsr_sin_quadrant(x, 1u) : __builtin_cosf(x); }
TSR_FN float tsr_sigmoid(float x) { return 1.0f / (1.0f + tsr_exp(-x)); }
TSR_FN float tsr_silu(float x) { return x / (1.0f + tsr_exp(-x)); }
TSR_FN float tsr_gelu_tanh(float x) {
  const float u = 0.797884561f * (x + 0.044715f * (x * x * x));
  return x * tsr_sigmoid(2.0f * u);
}
)";

// Logistic functions are 1 / (1 + 2^t) by the special function unit, which is good to 2^-22 and
// flushes what is below 2^-126, where the result is 1 or less than 1e-36. t is rounded: at x = -10,
// where sigmoid is 5e-5, that is 1e-6 of it, and less where the result is larger.
constexpr std::string_view cuda_head = R"(#define TSR_FN __device__ __forceinline__
TSR_FN float tsr_as_float(unsigned u) { return __uint_as_float(u); }
TSR_FN unsigned tsr_as_uint(float f) { return __float_as_uint(f); }
TSR_FN float tsr_inf() { return __int_as_float(0x7f800000); }
TSR_FN float tsr_nan() { return __int_as_float(0x7fffffff); }
TSR_FN float tsr_abs(float x) { return fabsf(x); }
TSR_FN float tsr_neg(float x) { return -x; }
TSR_FN float tsr_copysign(float x, float s) { return copysignf(x, s); }
TSR_FN float tsr_sqrt(float x) { return sqrtf(x); }
TSR_FN float tsr_rsqrt(float x) { return rsqrtf(x); }
TSR_FN float tsr_floor(float x) { return floorf(x); }
TSR_FN float tsr_ceil(float x) { return ceilf(x); }
TSR_FN float tsr_trunc(float x) { return truncf(x); }
TSR_FN float tsr_round(float x) { return rintf(x); }
TSR_FN float tsr_pow(float x, float y) { return powf(x, y); }
TSR_FN float tsr_fma(float x, float y, float z) { return fmaf(x, y, z); }
TSR_FN float tsr_fmod(float x, float y) { return fmodf(x, y); }
TSR_FN float tsr_atan(float x) { return atanf(x); }
TSR_FN float tsr_atan2(float x, float y) { return atan2f(x, y); }
TSR_FN float tsr_hypot(float x, float y) { return hypotf(x, y); }
TSR_FN float tsr_tan(float x) { return tanf(x); }
TSR_FN float tsr_exp(float x) { return expf(x); }
TSR_FN float tsr_exp2(float x) { return exp2f(x); }
TSR_FN float tsr_round_tf32(float x) { return x - x == 0.0f ? __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u) : x; }
TSR_FN float tsr_round_tf32_finite(float x) { return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u); }
#ifdef __CUDACC__
TSR_FN float tsr_exp2_flushed(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TSR_FN float tsr_reciprocal_flushed(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else  // the same text on a host that emulates the GPU
TSR_FN float tsr_exp2_flushed(float x) { const float y = exp2f(x); return y < 0x1p-126f ? 0.0f : y; }
TSR_FN float tsr_reciprocal_flushed(float x) { const float y = 1.0f / x; return y < 0x1p-126f ? 0.0f : y; }
#endif
TSR_FN float tsr_expm1(float x) { return expm1f(x); }
TSR_FN float tsr_log(float x) { return logf(x); }
TSR_FN float tsr_log2(float x) { return log2f(x); }
TSR_FN float tsr_log10(float x) { return log10f(x); }
TSR_FN float tsr_log1p(float x) { return log1pf(x); }
TSR_FN float tsr_tanh(float x) { return tanhf(x); }
TSR_FN float tsr_erf(float x) { return erff(x); }
TSR_FN float tsr_sin(float x) { return sinf(x); }
TSR_FN float tsr_cos(float x) { return cosf(x); }
TSR_FN float tsr_sigmoid(float x) {
  return tsr_reciprocal_flushed(1.0f + tsr_exp2_flushed(x * -1.44269504f));
}
TSR_FN float tsr_silu(float x) { return x * tsr_sigmoid(x); }
TSR_FN float tsr_gelu_tanh(float x) {  // -2 u log2(e) = x (a + b x^2)
  const float t = x * fmaf(x * x, -0.102943240f, -2.30220819f);
  return x * tsr_reciprocal_flushed(1.0f + tsr_exp2_flushed(t));
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
TSR_FN float tsr_minimum(float a, float b) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
TSR_FN float tsr_maximum(float a, float b) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#else
TSR_FN float tsr_minimum(float a, float b) { return a != a || a < b ? a : b; }
TSR_FN float tsr_maximum(float a, float b) { return a != a || a > b ? a : b; }
#endif
)";

// gelu_tanh: 0.5 x (1 + tanh u) = x sigmoid(2u), without the cancellation. mish: tanh(log(1 + e)) =
// e (e + 2) / (e (e + 2) + 2).
constexpr std::string_view common = R"(
TSR_FN float tsr_square(float x) { return x * x; }
TSR_FN float tsr_cube(float x) { return x * x * x; }
TSR_FN float tsr_and(float a, float b) { const float t = b != 0.0f ? 1.0f : 0.0f; return a != 0.0f ? t : 0.0f; }
TSR_FN float tsr_or(float a, float b) { const float t = b != 0.0f ? 1.0f : 0.0f; return a != 0.0f ? 1.0f : t; }
TSR_FN float tsr_xor(float a, float b) {
  const float s = a != 0.0f ? 1.0f : 0.0f;
  const float t = b != 0.0f ? 1.0f : 0.0f;
  return s != t ? 1.0f : 0.0f;
}
TSR_FN float tsr_sign(float x) { return (x > 0.0f ? 1.0f : 0.0f) - (x < 0.0f ? 1.0f : 0.0f); }
TSR_FN float tsr_remainder(float a, float b) {
  const float m = tsr_fmod(a, b);
  return m != 0.0f && (m < 0.0f) != (b < 0.0f) ? m + b : m;
}
TSR_FN float tsr_logaddexp(float a, float b) {
  const float m = tsr_maximum(a, b);
  const float d = tsr_abs(a - b);
  const float y = m + tsr_log1p(tsr_exp(-d));
  return a == b && tsr_abs(a) == tsr_inf() ? a : y;
}
TSR_FN float tsr_log_sigmoid(float x) { return (x > 0.0f ? 0.0f : x) - tsr_log1p(tsr_exp(-tsr_abs(x))); }
TSR_FN float tsr_gelu_erf(float x) { return 0.5f * x * (1.0f + tsr_erf(x * 0.707106781f)); }
TSR_FN float tsr_relu(float x) { return x < 0.0f ? 0.0f : x; }
TSR_FN float tsr_leaky_relu(float x, float slope) { const float n = x * slope; return x > 0.0f ? x : n; }
TSR_FN float tsr_elu(float x, float alpha) { const float n = alpha * tsr_expm1(x); return x > 0.0f ? x : n; }
TSR_FN float tsr_selu(float x) {
  const float n = 1.75809934f * tsr_expm1(x);
  const float p = 1.05070099f * x;
  return x > 0.0f ? p : n;
}
TSR_FN float tsr_softplus(float x, float beta, float threshold) {
  const float b = x * beta;
  const float y = tsr_log1p(tsr_exp(b)) / beta;
  return b > threshold ? x : y;
}
TSR_FN float tsr_softsign(float x) { return x / (1.0f + tsr_abs(x)); }
TSR_FN float tsr_mish(float x) {
  const float e = tsr_exp(x > 20.0f ? 20.0f : x);
  const float w = e * (e + 2.0f);
  return x * (w / (w + 2.0f));
}
TSR_FN float tsr_clamp(float x, float low, float high) {
  const float t = x < low ? low : x;
  return t > high ? high : t;
}
TSR_FN float tsr_hardsigmoid(float x) { return tsr_clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f); }
TSR_FN float tsr_hardswish(float x) { return x * tsr_clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f); }
TSR_FN float tsr_softshrink(float x, float l) {
  const float n = x < -l ? x + l : x * 0.0f;
  return x > l ? x - l : n;
}
TSR_FN float tsr_hardshrink(float x, float l) { const float t = x <= l ? 0.0f : x; return x >= -l ? t : x; }
TSR_FN float tsr_threshold(float x, float t, float value) { return x <= t ? value : x; }
)";

}  // namespace

std::string prelude(Target target) {
  std::string out;
  if (target == Target::host) {
    for (const std::string_view part : {host_head, host_exp, host_log, host_rest}) out += part;
  } else {
    out += cuda_head;
  }
  out += common;
  for (const Function& f : functions()) out += f.helper;
  return out;
}

}  // namespace tessera::pointwise
