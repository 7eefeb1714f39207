// Patterns made by hand from a short JSON description, for tests and GPU checks of the realizers.
//
//   {"m":4096,"n":4096,"k":4096,"batch":1,"dtype":"bfloat16","precision":"bf16","a_major":"k","b_major":"k",
//    "d_major":"n","epilogue":"bias_gelu","out_dtype":"bfloat16","shared_b":false,"heads":0}
//
// `heads` above 0: the batches are batch / heads x heads, the heads inside the rows of the storage.
//
// Epilogues: none, bias, bias_gelu, bias_silu, residual, bias_residual, two_residuals,
// column_scale, scalar; bias_silu_saved, whose second result is the activation's argument; and
// gated_silu, gated_silu_saved (the second result is the gate's product), gated_mlp patterns.
// rotary, bias_rotary, scaled_rotary: of the first `rotated` columns, in heads of `head_dim`,
// halves of each head rotated; `positions` (m unless given) rows of the tables. Operands are bias
// [n] or a float factor a row [m], then cos and sin [positions, head_dim]. Tensors are A, B (or B0,
// B1), the operands in the epilogue's order, then the results.
//
//   {"rule":"attention","batch":1,"heads":32,"kv_heads":8,"queries":2048,"keys":2048,"head_dim":128,
//    "value_dim":128,"causal":true,"softcap":50.0,"dtype":"bfloat16","layout":"bhld"}
//
// "band":[-255,0]: a mask whose content is known, the keys from 255 before a query to its own; it
// is the tensor behind the others, which kernels that go by the band do not read. Else attention
// without a mask, scaled by 1 / sqrt(head_dim), at the precision of its dtype. Defaults: batch 1,
// kv_heads as heads, keys as queries, value_dim as head_dim, not causal, bfloat16. Tensors are q,
// k, v, o, each stored as `layout` says: "bhld" (default) row-major [batch, heads, length, dim],
// "blhd" the heads inside the rows, as a projection leaves them. No graph stands behind it:
// realizers that read the tensors' types there (tile_attention) cannot take it.
#pragma once

#include "rules/rules.h"

namespace tessera::realize::testing {

rules::Pattern pattern_of(const Json& j);

}  // namespace tessera::realize::testing
