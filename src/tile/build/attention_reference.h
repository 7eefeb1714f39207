// For tests: attention problems by their sizes, and the formula in fp64.
#pragma once

#include <cmath>

#include "tile/build/attention.h"
#include "tile/test_support.h"

namespace tessera::tile::build {

inline std::vector<std::vector<double>> inputs_of(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> in;
  for (const Tensor& t : tensors) in.push_back(noise(t.extent(), in.size() + 7));
  return in;
}

inline AttentionProblem attention_problem(int64_t b, int64_t h, int64_t hk, int64_t t, int64_t s,
                                          int64_t d, int64_t dv, DType type = DType::float32) {
  AttentionProblem p;
  p.batch = b, p.heads = h, p.kv_heads = hk, p.queries = t, p.keys = s, p.head_dim = d,
  p.value_dim = dv;
  p.scale = 1 / std::sqrt(static_cast<double>(d));
  // q and o are [B, T, H, D] in memory, as after a projection; k and v are [B, Hk, S, D].
  p.tensors = {row_major_tensor("q", type, {b, t, h, d}, tile::Access::input),
               row_major_tensor("k", type, {b, hk, s, d}, tile::Access::input),
               row_major_tensor("v", type, {b, hk, s, dv}, tile::Access::input)};
  p.q = {0, {t * h * d, d, h * d, 1}, 0};
  p.k = {1, {hk * s * d, s * d, d, 1}, 0};
  p.v = {2, {hk * s * dv, s * dv, dv, 1}, 0};
  return p;
}

inline void finish_problem(AttentionProblem& p) {
  p.o = {static_cast<int>(p.tensors.size()),
         {p.queries * p.heads * p.value_dim, p.value_dim, p.heads * p.value_dim, 1},
         0};
  p.tensors.push_back(row_major_tensor(
      "o", p.tensors[0].element, {p.batch, p.queries, p.heads, p.value_dim}, tile::Access::output));
}

inline std::vector<double> attention_formula(const AttentionProblem& p,
                                             const std::vector<std::vector<double>>& in) {
  std::vector<double> o(p.tensors.back().extent());
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t t = 0; t < p.queries; ++t) {
        int64_t hk = h / (p.heads / p.kv_heads);
        std::vector<double> e(p.keys);
        double sum = 0;
        for (int64_t s = 0; s < p.keys; ++s) {
          double x = 0;
          for (int64_t d = 0; d < p.head_dim; ++d)
            x += in[0][b * p.q.strides[0] + h * p.q.strides[1] + t * p.q.strides[2] + d] *
                 in[1][b * p.k.strides[0] + hk * p.k.strides[1] + s * p.k.strides[2] + d];
          x *= p.scale;
          if (p.mask)
            x +=
                in[3][b * p.mask->strides[0] + h * p.mask->strides[1] + t * p.mask->strides[2] + s];
          e[s] = p.causal && s > t + p.causal_offset ? 0 : std::exp(x);
          sum += e[s];
        }
        for (int64_t c = 0; c < p.value_dim; ++c) {
          double y = 0;
          for (int64_t s = 0; s < p.keys; ++s)
            y += e[s] / sum *
                 in[2][b * p.v.strides[0] + hk * p.v.strides[1] + s * p.v.strides[2] + c];
          o[b * p.o.strides[0] + h * p.o.strides[1] + t * p.o.strides[2] + c] =
              sum == 0 && p.empty_rows_are_zero ? 0 : y;
        }
      }
  return o;
}

}  // namespace tessera::tile::build
