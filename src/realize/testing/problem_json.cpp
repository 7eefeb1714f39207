#include "realize/testing/problem_json.h"

#include <cmath>
#include <memory>
#include <stdexcept>

#include "rules/attention.h"
#include "rules/gated_mlp.h"
#include "rules/gemm.h"

namespace tessera::realize::testing {
namespace {

struct Problem {
  int64_t m, n, k, batch;
  DType dtype, out;
  std::string a_major, b_major, d_major, epilogue;
  bool shared_b;
  int64_t heads;
  int64_t rotated, head_dim, positions;
  Precision precision;
};

Problem parse_problem(const Json& j) {
  Problem p;
  p.m = j.at("m");
  p.n = j.at("n");
  p.k = j.at("k");
  p.batch = j.value("batch", 1);
  p.dtype = parse_dtype(j.value("dtype", "bfloat16")).value();
  p.out = parse_dtype(j.value("out_dtype", std::string(name_of(p.dtype)))).value();
  p.a_major = j.value("a_major", "k");
  p.b_major = j.value("b_major", "k");
  p.d_major = j.value("d_major", "n");
  p.epilogue = j.value("epilogue", "none");
  p.shared_b = j.value("shared_b", false);
  p.heads = j.value("heads", 0);
  p.rotated = j.value("rotated", p.n);
  p.head_dim = j.value("head_dim", int64_t{64});
  p.positions = j.value("positions", p.m);
  p.precision = parse_precision(j.value("precision", "bf16")).value();
  return p;
}

/// [batch, rows, columns]; `columns_contiguous` as stored.
rules::TensorView stored(int tensor, DType t, int64_t l, int64_t rows, int64_t columns,
                         bool columns_contiguous) {
  rules::TensorView v;
  v.tensor = tensor;
  v.dtype = t;
  v.shape = {l, rows, columns};
  v.strides = columns_contiguous ? std::vector<int64_t>{rows * columns, columns, 1}
                                 : std::vector<int64_t>{rows * columns, 1, rows};
  return v;
}

/// [batch / heads, heads, rows, columns] of a storage [batch / heads, rows, heads, columns].
rules::TensorView inside_rows(int tensor, DType t, const Problem& p, int64_t rows,
                              int64_t columns) {
  rules::TensorView v;
  v.tensor = tensor;
  v.dtype = t;
  v.shape = {p.batch / p.heads, p.heads, rows, columns};
  v.strides = {rows * p.heads * columns, columns, p.heads * columns, 1};
  return v;
}

rules::TensorView broadcast(int tensor, DType t, const Problem& p, int64_t row, int64_t column) {
  rules::TensorView v;
  v.tensor = tensor;
  v.dtype = t;
  v.shape = {p.batch, p.m, p.n};
  v.strides = {0, row, column};
  if (p.heads > 0) {
    v.shape = {p.batch / p.heads, p.heads, p.m, p.n};
    v.strides = {0, 0, row, column};
  }
  return v;
}

struct Epilogue {
  pointwise::Dag dag;
  std::vector<rules::TensorView> operands;
};

/// The epilogue of this name; its operands are the tensors from `first` on.
Epilogue epilogue_of(const Problem& p, int first) {
  Epilogue e;
  int x = e.dag.add_operand(0);
  const auto operand = [&](rules::TensorView v) {
    v.tensor = first + static_cast<int>(e.operands.size());
    e.operands.push_back(std::move(v));
    return e.dag.add_operand(static_cast<int>(e.operands.size()));
  };
  const auto full = [&] {
    return p.heads > 0 ? inside_rows(0, p.out, p, p.m, p.n)
                       : stored(0, p.out, p.batch, p.m, p.n, p.d_major == "n");
  };
  const std::string& name = p.epilogue;
  if (name.starts_with("bias"))
    x = e.dag.add_call("add", {x, operand(broadcast(0, p.out, p, 0, 1))});
  if (name == "column_scale") x = e.dag.add_call("mul", {x, operand(broadcast(0, p.out, p, 1, 0))});
  if (name == "scalar") x = e.dag.add_call("mul", {x, operand(broadcast(0, p.out, p, 0, 0))});
  if (name.ends_with("gelu")) x = e.dag.add_call("gelu_tanh", {x});
  if (name.ends_with("silu")) x = e.dag.add_call("silu", {x});
  if (name.ends_with("residual")) x = e.dag.add_call("add", {x, operand(full())});
  if (name == "two_residuals") {
    x = e.dag.add_call("add", {x, operand(full())});
    x = e.dag.add_call("add", {x, operand(full())});
  }
  e.dag.results = {x};
  if (name == "bias_silu_saved") e.dag.results = {e.dag.add_call("silu", {x}), x};
  return e;
}

rules::Pattern gated_pattern(const Problem& p) {
  auto body = std::make_shared<rules::GatedMlpBody>();
  body->m = p.m;
  body->n = p.n;
  body->k = p.k;
  body->a = stored(0, p.dtype, 1, p.m, p.k, true);
  body->b0 = stored(1, p.dtype, 1, p.n, p.k, p.b_major == "k");
  body->b1 = stored(2, p.dtype, 1, p.n, p.k, p.b_major == "k");
  auto& dag = body->epilogue;
  const int gate = dag.add_operand(0);
  const int value = dag.add_operand(1);
  dag.results = {dag.add_call("mul", {dag.add_call("silu", {gate}), value})};
  body->outputs = {stored(3, p.out, 1, p.m, p.n, true)};
  if (p.epilogue == "gated_silu_saved") {
    dag.results.push_back(gate);
    body->outputs.push_back(stored(4, p.out, 1, p.m, p.n, true));
  }
  rules::Pattern pattern;
  pattern.rule = "gated_mlp";
  pattern.precision = p.precision;
  pattern.body = std::move(body);
  return pattern;
}

/// [rows..., groups, half] of a table [positions, width] or of a vector (`row` 0), from `offset`.
rules::TensorView by_groups(int tensor, const Problem& p, int64_t row, int64_t group,
                            int64_t offset) {
  rules::TensorView v;
  v.tensor = tensor;
  v.dtype = p.out;
  v.shape = {p.m, p.rotated / p.head_dim, p.head_dim / 2};
  v.strides = {row, group, 1};
  v.offset = offset;
  if (row != 0 && p.positions < p.m) {
    v.shape.insert(v.shape.begin(), p.m / p.positions);
    v.shape[1] = p.positions;
    v.strides.insert(v.strides.begin(), 0);
  }
  return v;
}

/// The accumulator with the bias or the factor of this view, the tensor 2.
int biased(const Problem& p, rules::ColumnPart& part, int x, rules::TensorView v) {
  const bool scaled = p.epilogue == "scaled_rotary";
  if (scaled) {
    v.dtype = DType::float32;
    v.offset = 0;
    v.strides.assign(v.strides.size(), 0);
    v.strides[0] = 1;
  }
  const bool again = scaled && !part.operands.empty();
  if (!again) part.operands.push_back(std::move(v));
  const int number = part.accumulators() - 1 + static_cast<int>(part.operands.size());
  return part.dag.add_call(scaled ? "mul" : "add", {x, part.dag.add_operand(number)});
}

rules::ColumnPart rotary_part(const Problem& p, bool before, int cos) {
  const int64_t half = p.head_dim / 2;
  rules::ColumnPart part{0, p.rotated, p.head_dim, {}, {}};
  auto& dag = part.dag;
  int low = dag.add_operand(0);
  int high = dag.add_operand(1);
  if (before) low = biased(p, part, low, by_groups(2, p, 0, p.head_dim, 0));
  if (before) high = biased(p, part, high, by_groups(2, p, 0, p.head_dim, half));
  const auto operand = [&](rules::TensorView v) {
    part.operands.push_back(std::move(v));
    return dag.add_operand(1 + static_cast<int>(part.operands.size()));
  };
  const auto turn = [&](int kept, int other, int64_t offset) {
    const int c = operand(by_groups(cos, p, p.head_dim, 0, offset));
    const int s = operand(by_groups(cos + 1, p, p.head_dim, 0, offset));
    return dag.add_call("add", {dag.add_call("mul", {kept, c}), dag.add_call("mul", {other, s})});
  };
  const int turned = turn(low, dag.add_call("neg", {high}), 0);
  dag.results = {turned, turn(high, low, half)};
  return part;
}

/// The rotated columns and, where there are others, the rest as it is or with its bias or factor.
/// The result is the tensor after the tables.
void add_rotary_parts(const Problem& p, rules::GemmBody& body) {
  const bool before = p.epilogue != "rotary";
  const int cos = before ? 3 : 2;
  body.outputs[0].tensor = cos + 2;
  body.parts = {rotary_part(p, before, cos)};
  if (p.rotated == p.n) return;
  rules::ColumnPart rest{p.rotated, p.n - p.rotated, 0, {}, {}};
  int x = rest.dag.add_operand(0);
  if (before) {
    rules::TensorView v = broadcast(2, p.out, p, 0, 1);
    v.shape = {p.m, rest.columns};
    v.strides = {0, 1};
    v.offset = p.rotated;
    x = biased(p, rest, x, v);
  }
  rest.dag.results = {x};
  body.parts.push_back(rest);
}

rules::Pattern pattern_of(const Problem& p) {
  if (p.epilogue.starts_with("gated_silu")) return gated_pattern(p);
  const bool rotary = p.epilogue.ends_with("rotary");
  auto body = std::make_shared<rules::GemmBody>();
  body->batch = p.batch;
  body->m = p.m;
  body->n = p.n;
  body->k = p.k;
  body->a = stored(0, p.dtype, p.batch, p.m, p.k, p.a_major == "k");
  body->b = stored(1, p.dtype, p.batch, p.n, p.k, p.b_major == "k");
  if (p.shared_b) body->b.strides[0] = 0;
  Epilogue e;
  e.dag.results = {e.dag.add_operand(0)};
  if (!rotary) e = epilogue_of(p, 2);
  body->epilogue = std::move(e.dag);
  body->operands = std::move(e.operands);
  const int first = 2 + static_cast<int>(body->operands.size());
  for (std::size_t r = 0; r < body->epilogue.results.size(); ++r) {
    body->outputs.push_back(
        stored(first + static_cast<int>(r), p.out, p.batch, p.m, p.n, p.d_major == "n"));
  }
  if (p.heads > 0) {
    body->a = inside_rows(0, p.dtype, p, p.m, p.k);
    body->b = inside_rows(1, p.dtype, p, p.n, p.k);
    body->outputs = {inside_rows(first, p.out, p, p.m, p.n)};
  }
  if (rotary) add_rotary_parts(p, *body);
  rules::Pattern pattern;
  pattern.rule = "gemm";
  pattern.precision = p.precision;
  pattern.body = std::move(body);
  return pattern;
}

/// [batch, heads, length, dim], stored in that order or with the heads inside the rows.
rules::TensorView by_heads(int tensor, DType t, bool in_rows, const std::vector<int64_t>& shape) {
  const int64_t heads = shape[1], length = shape[2], dim = shape[3];
  rules::TensorView v;
  v.tensor = tensor;
  v.dtype = t;
  v.shape = shape;
  v.strides = {heads * length * dim, length * dim, dim, 1};
  if (in_rows) v.strides = {length * heads * dim, dim, heads * dim, 1};
  return v;
}

Precision precision_of(DType t) {
  if (t == DType::bfloat16) return Precision::bf16;
  return t == DType::float16 ? Precision::fp16 : Precision::fp32;
}

rules::Pattern attention_pattern(const Json& j) {
  auto body = std::make_shared<rules::AttentionBody>();
  body->batch = j.value("batch", int64_t{1});
  body->heads = j.at("heads");
  body->kv_heads = j.value("kv_heads", body->heads);
  body->q_length = j.at("queries");
  body->kv_length = j.value("keys", body->q_length);
  body->head_dim = j.at("head_dim");
  body->value_dim = j.value("value_dim", body->head_dim);
  body->scale = 1 / std::sqrt(static_cast<double>(body->head_dim));
  body->causal = j.value("causal", false);
  body->softcap = j.value("softcap", 0.0);
  const DType t = parse_dtype(j.value("dtype", "bfloat16")).value();
  const std::string layout = j.value("layout", "bhld");
  if (layout != "bhld" && layout != "blhd") throw std::invalid_argument("layout " + layout);
  const auto view = [&](int tensor, int64_t heads, int64_t length, int64_t dim) {
    return by_heads(tensor, t, layout == "blhd", {body->batch, heads, length, dim});
  };
  body->q = view(0, body->heads, body->q_length, body->head_dim);
  body->k = view(1, body->kv_heads, body->kv_length, body->head_dim);
  body->v = view(2, body->kv_heads, body->kv_length, body->value_dim);
  body->output = view(3, body->heads, body->q_length, body->value_dim);
  rules::Pattern pattern;
  pattern.rule = "attention";
  pattern.inputs = {graph::ValueId{0}, graph::ValueId{1}, graph::ValueId{2}};
  if (j.contains("band") && !j.at("band").is_null()) {
    body->band = {j.at("band").at(0).get<int64_t>(), j.at("band").at(1).get<int64_t>()};
    body->mask = view(4, body->heads, body->q_length, body->kv_length);
    body->mask->dtype = DType::boolean;
  }
  if (j.contains("mask")) {  // an element type; "mask_strides": by batch, head, query and key
    body->mask = view(4, body->heads, body->q_length, body->kv_length);
    body->mask->dtype = parse_dtype(j.at("mask").get<std::string>()).value();
    if (j.contains("mask_strides"))
      body->mask->strides = j.at("mask_strides").get<std::vector<int64_t>>();
  }
  pattern.outputs = {graph::ValueId{3}};
  pattern.precision = precision_of(t);
  pattern.body = std::move(body);
  return pattern;
}

}  // namespace

rules::Pattern pattern_of(const Json& j) {
  if (j.value("rule", "") == "attention") return attention_pattern(j);
  return pattern_of(parse_problem(j));
}

}  // namespace tessera::realize::testing
