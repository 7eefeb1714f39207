#include "tile/build/pointwise.h"

#include <algorithm>

namespace tessera::tile::build {
namespace {

/// Fewest dims: sizes of 1 dropped, neighbours merged where every view steps through both as
/// through one.
struct Space {
  std::vector<int64_t> shape;
  std::vector<std::vector<int64_t>> strides;  // a view each
};

Space collapse(const PointwiseProblem& p) {
  std::vector<const StridedView*> views;
  for (const StridedView& v : p.operands) views.push_back(&v);
  for (const StridedView& v : p.outputs) views.push_back(&v);
  Space s;
  s.strides.resize(views.size());
  for (std::size_t d = 0; d < p.shape.size(); ++d) {
    if (p.shape[d] == 1) continue;
    bool merges = !s.shape.empty();
    for (std::size_t v = 0; merges && v < views.size(); ++v)
      merges = s.strides[v].back() == views[v]->strides[d] * p.shape[d];
    if (merges) {
      s.shape.back() *= p.shape[d];
    } else {
      s.shape.push_back(p.shape[d]);
    }
    for (std::size_t v = 0; v < views.size(); ++v) {
      if (merges) {
        s.strides[v].back() = views[v]->strides[d];
      } else {
        s.strides[v].push_back(views[v]->strides[d]);
      }
    }
  }
  return s;
}

}  // namespace

Json to_json(const PointwiseConfig& c) {
  return {{"threads", c.threads},
          {"vector", c.vector},
          {"unroll", c.unroll},
          {"blocks_per_multiprocessor", c.blocks_per_multiprocessor},
          {"columns", c.columns}};
}

PointwiseConfig pointwise_config_from_json(const Json& j) {
  PointwiseConfig c;
  c.threads = j.value("threads", c.threads);
  c.vector = j.value("vector", c.vector);
  c.unroll = j.value("unroll", c.unroll);
  c.blocks_per_multiprocessor = j.value("blocks_per_multiprocessor", c.blocks_per_multiprocessor);
  c.columns = j.value("columns", c.columns);
  return c;
}

namespace {

/// Of a tile's one axis, which stays where the tile has one element.
Spread spread_of(const PointwiseConfig& c, bool host, int64_t tile) {
  Spread s;
  if (host)
    s.registers = {{tile, 0, 1}};
  else
    s = {{{c.threads, 0, c.vector}},
         {{c.vector, 0, 1}, {c.unroll, 0, int64_t{c.threads} * c.vector}}};
  return s;
}

/// What a mean's sum passes through: divided by `total`, then as `post` says.
pointwise::Dag after_mean(const pointwise::Dag& post, int64_t total) {
  pointwise::Dag d;
  int mean = d.add_call("div", {d.add_operand(0), d.add_constant(static_cast<double>(total))});
  std::vector<int> at;
  for (const auto& node : post.nodes) {
    using Kind = pointwise::Dag::Node::Kind;
    std::vector<int> arguments;
    for (int a : node.arguments) arguments.push_back(at[a]);
    at.push_back(node.kind == Kind::operand    ? mean
                 : node.kind == Kind::constant ? d.add_constant(node.constant)
                                               : d.add_call(node.function->name, arguments));
  }
  for (int r : post.results) d.results.push_back(at[r]);
  return d;
}

}  // namespace

Result<Program> pointwise(const PointwiseProblem& p, const PointwiseConfig& c, Target target) {
  bool host = target == Target::host;
  if (p.outputs.size() != p.dag.results.size())
    return error(
        fail(bad_program, "{} results for {} outputs", p.dag.results.size(), p.outputs.size()));
  Space space = collapse(p);
  std::size_t dims = space.shape.size();
  Program program{p.name, p.tensors, {}};
  KernelBuilder b(program, p.name, host ? 1 : c.threads);
  // On host the innermost dim is a mode of its own, so that its loop is a plain stride; on a GPU an
  // element number is taken apart by every thread, so one flat mode serves every shape.
  std::size_t split = host && dims > 0 ? dims - 1 : 0;
  std::vector<ValueId> views;
  auto view = [&](const StridedView& v, const std::vector<int64_t>& strides) {
    std::vector<Layout> modes;
    if (split > 0) modes.push_back(mode_of(space.shape, strides, 0, split));
    modes.push_back(mode_of(space.shape, strides, split, dims));
    views.push_back(b.one("view", {}, ViewOf{v.tensor, concat(modes), v.offset},
                          p.tensors[v.tensor].name + "_view"));
  };
  std::size_t n = p.operands.size();
  for (std::size_t i = 0; i < n; ++i) view(p.operands[i], space.strides[i]);
  for (std::size_t i = 0; i < p.outputs.size(); ++i) view(p.outputs[i], space.strides[n + i]);
  int64_t outer = 1;
  int64_t inner = 1;
  for (std::size_t d = 0; d < dims; ++d) (d < split ? outer : inner) *= space.shape[d];
  int64_t tile = host ? std::min(inner, c.columns) : int64_t{c.threads} * c.vector * c.unroll;
  VarId column = b.var("i", inner, tile);
  Walk walk{{column}, c.blocks_per_multiprocessor, false};
  LoadAt at{{{Index::Kind::tile, column}}, {tile}, {}};
  if (split > 0) {
    VarId row = b.var("r", outer, 1);
    walk.vars = {row, column};
    at.indices.insert(at.indices.begin(), Index{Index::Kind::pick, row});
  }
  at.layout = layout_of(spread_of(c, host, tile), at.cover);
  b.open("tiles", {}, walk);
  std::vector<ValueId> loaded;
  for (std::size_t i = 0; i < n; ++i)
    loaded.push_back(b.one("load", {views[i]}, at, p.tensors[p.operands[i].tensor].name));
  if (loaded.empty()) {
    Type t{.element = DType::float32,
           .axes = {{tile, column}},
           .cover = at.cover,
           .layout = at.layout};
    loaded.push_back(b.one("full", {}, FullOf{t, 0}, "zero"));
  }
  std::vector<ValueId> results = b.add("map", loaded, map_of(p.dag), "y");
  for (std::size_t i = 0; i < p.outputs.size(); ++i) {
    ValueId out =
        b.one("cast", {results.at(i)}, CastTo{p.tensors[p.outputs[i].tensor].element}, "out");
    b.add("store", {out, views[n + i]}, StoreAt{at.indices});
  }
  b.close();
  TESSERA_CHECK(b.finish());
  return program;
}

std::vector<PointwiseConfig> pointwise_configs(const PointwiseProblem& p, const Limits& limits) {
  if (limits.target == Target::host)
    return {{.columns = 8192}, {.columns = 2048}, {.columns = 32768}};
  std::vector<PointwiseConfig> out;
  int most = vector_elements(p.tensors);
  for (int vector : {most, most / 2})
    for (int unroll : {2, 4, 1})
      for (int threads : {256, 128, 512})
        for (int blocks : {0, 2048 / threads}) out.push_back({threads, vector, unroll, blocks});
  return out;
}

Result<Program> full_reduction(const PointwiseProblem& p, RowKind kind, const pointwise::Dag& post,
                               const RowConfig& c, Target target) {
  int64_t total = 1;
  for (int64_t e : p.shape) total *= e;
  // Leading dims become the rows of the first kernel while there are few of them; each row gives
  // one partial result.
  int64_t parts = 1;
  std::size_t split = 0;
  while (split < p.shape.size() && parts * p.shape[split] <= 65536) parts *= p.shape[split++];
  if (split != p.shape.size() && split + 1 != p.shape.size())
    return error(fail(unsupported,
                      "a full reduction over {} dims of which the inner {} do not merge",
                      p.shape.size(), p.shape.size() - split));
  RowProblem first;
  first.name = p.name + "_parts";
  first.kind = kind == RowKind::max ? RowKind::max : RowKind::sum;
  first.row_shape.assign(p.shape.begin(),
                         p.shape.begin() + static_cast<long>(std::min(split, p.shape.size() - 1)));
  first.columns = p.shape.back();
  parts = total / first.columns;
  first.tensors = p.tensors;
  int partial = static_cast<int>(p.tensors.size());
  first.tensors.push_back(
      row_major_tensor("partial", DType::float32, {parts}, tile::Access::workspace));
  first.operands = p.operands;
  first.pre = p.dag;
  std::vector<int64_t> rows_of(first.row_shape.size() + 1, 1);
  for (std::size_t i = first.row_shape.size(); i-- > 1;)
    rows_of[i - 1] = rows_of[i] * first.row_shape[i];
  first.outputs = {{partial, rows_of, 0}};
  RowProblem second;
  second.name = p.name;
  second.kind = first.kind;
  second.columns = parts;
  second.tensors = first.tensors;
  second.operands = {{partial, {1}, 0}};
  second.post = post.empty() ? identity_dag() : post;
  if (kind == RowKind::mean) second.post = after_mean(second.post, total);
  second.outputs = {{p.outputs.at(0).tensor, {1}, p.outputs[0].offset}};
  TESSERA_TRY(program, rows(first, c, target));
  RowConfig one = target == Target::host
                      ? RowConfig{.threads_per_row = 1, .rows_per_block = 1}
                      : RowConfig{.threads_per_row = 1024, .rows_per_block = 1, .vector = 1};
  if (parts > 32768) one.chunk = target == Target::host ? 8192 : 16384;
  TESSERA_TRY(end, rows(second, one, target));
  program.name = p.name;
  program.kernels.push_back(std::move(end.kernels[0]));
  return program;
}

}  // namespace tessera::tile::build
