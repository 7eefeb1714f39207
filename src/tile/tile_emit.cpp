// Prints the source of one kernel of the tile builders, so that a script can compile and race it.
//
//   tile_emit rows      {"kind", "rows", "columns", "dtype", "affine"}
//   tile_emit pointwise {"function", "numel", "dtype"}
//   tile_emit attention {"batch", "heads", "kv_heads", "queries", "keys", "head_dim", "causal",
//   "mask",
//                        "dtype", "precision"}
//
// each with "target" ("host", "cuda") and "config" (without it: the first of the list). With
// "list": true the configs as a JSON array.
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/json.h"
#include "tile/build/attention.h"
#include "tile/build/pointwise.h"

namespace tessera::tile::build {
namespace {

struct Made {
  Json configs = Json::array();
  Result<Program> program;
};

template <class C>
Json list(const std::vector<C>& configs) {
  Json out = Json::array();
  for (const C& c : configs) out.push_back(to_json(c));
  return out;
}

RowProblem row_problem(const Json& j, RowKind kind, DType t) {
  RowProblem p;
  p.name = std::string(name_of(kind));
  p.kind = kind;
  int64_t rows = j.at("rows");
  p.columns = j.at("columns");
  p.row_shape = {rows};
  p.tensors = {row_major_tensor("x", t, {rows, p.columns}, tile::Access::input)};
  p.operands = {{0, {p.columns, 1}, 0}};
  if (j.value("affine", false)) {
    bool bias = kind == RowKind::layer_norm;
    p.tensors.push_back(row_major_tensor("w", t, {p.columns}, tile::Access::input));
    p.operands.push_back({1, {0, 1}, 0});
    int y = p.post.add_call("mul", {p.post.add_operand(0), p.post.add_operand(3)});
    if (bias) {
      p.tensors.push_back(row_major_tensor("b", t, {p.columns}, tile::Access::input));
      p.operands.push_back({2, {0, 1}, 0});
      y = p.post.add_call("add", {y, p.post.add_operand(4)});
    }
    p.post.results = {y};
  }
  p.outputs = {{static_cast<int>(p.tensors.size()), {p.columns, 1}, 0}};
  p.tensors.push_back(row_major_tensor("y", t, {rows, p.columns}, tile::Access::output));
  return p;
}

PointwiseProblem pointwise_problem(const Json& j, DType t) {
  PointwiseProblem p;
  int64_t n = j.at("numel");
  p.name = j.at("function");
  p.shape = {n};
  p.tensors = {row_major_tensor("x", t, {n}, tile::Access::input),
               row_major_tensor("y", t, {n}, tile::Access::output)};
  p.operands = {{0, {1}, 0}};
  p.outputs = {{1, {1}, 0}};
  p.dag.results = {p.dag.add_call(p.name, {p.dag.add_operand(0)})};
  return p;
}

AttentionProblem attention_problem(const Json& j, DType t) {
  AttentionProblem p;
  p.batch = j.at("batch"), p.heads = j.at("heads"), p.kv_heads = j.value("kv_heads", p.heads);
  p.queries = j.at("queries"), p.keys = j.at("keys"), p.head_dim = p.value_dim = j.at("head_dim");
  p.scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
  p.causal = j.value("causal", false);
  p.empty_rows_are_zero = true;
  p.precision = parse_precision(j.value("precision", "fp32")).value();
  auto add = [&](const char* name, int64_t h, int64_t n, tile::Access a) {
    p.tensors.push_back(row_major_tensor(name, t, {p.batch, h, n, p.head_dim}, a));
    return StridedView{static_cast<int>(p.tensors.size()) - 1, p.tensors.back().strides, 0};
  };
  p.q = add("q", p.heads, p.queries, tile::Access::input);
  p.k = add("k", p.kv_heads, p.keys, tile::Access::input);
  p.v = add("v", p.kv_heads, p.keys, tile::Access::input);
  if (j.value("mask", false)) {
    p.tensors.push_back(row_major_tensor("mask", t, {p.queries, p.keys}, tile::Access::input));
    p.mask = StridedView{3, {0, 0, p.keys, 1}, 0};
  }
  p.o = add("o", p.heads, p.queries, tile::Access::output);
  return p;
}

Made make(const std::string& what, const Json& j, Target target) {
  Limits limits = limits_of(**arch::find(target == Target::cuda ? "sm_90a" : "host"));
  DType t = parse_dtype(j.value("dtype", "f32")).value();
  Json c = j.value("config", Json::object());
  if (what == "rows") {
    RowProblem p = row_problem(j, parse_row_kind(j.at("kind").get<std::string>()).value(), t);
    auto configs = row_configs(p, limits);
    return {list(configs), rows(p, c.empty() ? configs.at(0) : row_config_from_json(c), target)};
  }
  if (what == "pointwise") {
    PointwiseProblem p = pointwise_problem(j, t);
    auto configs = pointwise_configs(p, limits);
    return {list(configs),
            pointwise(p, c.empty() ? configs.at(0) : pointwise_config_from_json(c), target)};
  }
  AttentionProblem p = attention_problem(j, t);
  auto configs = attention_configs(p, limits);
  return {
      list(configs),
      attention(p, c.empty() && !configs.empty() ? configs.at(0) : attention_config_from_json(c),
                target)};
}

int run(const std::string& what, const Json& j) {
  Target target = j.value("target", "host") == "cuda" ? Target::cuda : Target::host;
  Made m = make(what, j, target);
  if (j.value("list", false)) return std::cout << m.configs.dump() << "\n", 0;
  Result<Emitted> e =
      m.program ? emit(*m.program, target) : Result<Emitted>(error(m.program.error()));
  if (!e) return std::cerr << to_text(e.error()), 3;
  std::cout << e->source;
  return 0;
}

}  // namespace
}  // namespace tessera::tile::build

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: tile_emit rows|pointwise|attention JSON\n", stderr), 3;
  return tessera::tile::build::run(argv[1], tessera::parse_json(argv[2]));
}
