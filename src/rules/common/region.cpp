#include "rules/common/region.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <numeric>

#include "base/text.h"

#include "rewrite/equal_halves.h"

namespace tessera::rules {

using graph::Operand;

namespace {

constexpr Code unsupported_type{"TS0212", "rules.unsupported_type"};

Result<Read> regroup(const graph::Graph& g, const Read& r, const std::vector<int64_t>& loops,
                     const std::vector<std::size_t>& order, const std::vector<int64_t>& shape) {
  Operand o;
  o.base = r.base;
  o.offset = r.map.offset;
  for (std::size_t l : order) {
    o.shape.push_back(loops[l]);
    o.strides.push_back(r.map.strides[l]);
  }
  auto moved = graph::reshaped(o, shape);
  if (!moved)
    return refuse("%{} does not map to {} with one stride a dim", g.value(r.base).name,
                  dims_text(shape));
  Read result{r.base, {moved->offset, moved->strides}};
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == 1) result.map.strides[d] = 0;
  return result;
}

}  // namespace

Result<Fragment> arrange(const graph::Graph& g, const Fragment& f, std::span<const Seed> seeds,
                         const std::vector<int64_t>& shape) {
  const Read* leader = &f.write;
  const Seed* led_by = nullptr;
  for (const Read& r : f.reads) {
    const auto seed =
        std::find_if(seeds.begin(), seeds.end(), [&](const Seed& s) { return s.base == r.base; });
    if (seed == seeds.end()) continue;
    leader = &r;
    led_by = &*seed;
    break;
  }
  // The dim of `shape` that a loop belongs to: where the seed has the largest stride that the
  // loop's stride holds.
  const auto dim_of = [&](int64_t stride) {
    std::size_t best = 0;
    int64_t best_stride = -1;
    for (std::size_t d = 0; led_by != nullptr && d < shape.size(); ++d) {
      const int64_t s = led_by->map.strides[d];
      if (shape[d] == 1 || s > stride || s <= best_stride) continue;
      best = d;
      best_stride = s;
    }
    return best;
  };
  std::vector<std::size_t> order;
  for (std::size_t l = 0; l < f.shape.size(); ++l) {
    if (f.shape[l] == 1) continue;
    if (leader->map.strides[l] == 0) return refuse("%{} is repeated", g.value(leader->base).name);
    order.push_back(l);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int64_t x = leader->map.strides[a];
    const int64_t y = leader->map.strides[b];
    const std::size_t dx = dim_of(x);
    const std::size_t dy = dim_of(y);
    return dx != dy ? dx < dy : x > y;
  });
  const auto count = [](const std::vector<int64_t>& v) {
    return std::accumulate(v.begin(), v.end(), int64_t{1}, std::multiplies<>());
  };
  if (count(f.shape) != count(shape))
    return refuse(
        "it covers {} elements, the region {}: a part of the result, or a repetition of it, is not "
        "written by the same loop",
        count(f.shape), count(shape));
  Fragment result{shape, {}, f.dag, {}};
  for (const Read& r : f.reads) {
    TESSERA_TRY(moved, regroup(g, r, f.shape, order, shape));
    result.reads.push_back(std::move(moved));
  }
  TESSERA_TRY(write, regroup(g, f.write, f.shape, order, shape));
  result.write = std::move(write);
  return result;
}

/// What is read in the second of two equal halves of a row is read in the first, so that both are
/// one operand.
Read in_first_half(const graph::Graph& g, Read r, const std::vector<int64_t>& shape) {
  const graph::Value& base = g.value(r.base);
  if (!base.facts.contains(rewrite::halves_equal) || !base.type.contiguous()) return r;
  const int64_t width = base.type.shape.back();
  const int64_t first = r.map.offset % width;
  int64_t last = first;
  for (std::size_t l = 0; l < shape.size(); ++l)
    if (r.map.strides[l] % width != 0) last += (shape[l] - 1) * r.map.strides[l];
  if (first >= width / 2 && last >= width / 2 && last < width) r.map.offset -= width / 2;
  return r;
}

Merge::Merge(const Flow& flow, const NodeSet& interior, std::vector<Seed> seeds)
    : flow_(flow), interior_(interior), seeds_(std::move(seeds)) {}

Status Merge::add(const Fragment& f) {
  std::vector<int> operand_of;
  for (const Read& read : f.reads) {
    const Read r = in_first_half(flow_.g, read, f.shape);
    auto seed = std::find_if(seeds_.begin(), seeds_.end(),
                             [&](const Seed& s) { return s.base == r.base && s.map == r.map; });
    if (seed != seeds_.end()) {
      operand_of.push_back(static_cast<int>(seed - seeds_.begin()));
      continue;
    }
    if (const NodeId from = flow_.producer(r.base); from.valid() && interior_.contains(from))
      return refuse("%{} is read in another order than it is computed", flow_.g.value(r.base).name);
    auto at = std::find(operands.begin(), operands.end(), r);
    if (at == operands.end()) at = operands.insert(operands.end(), r);
    operand_of.push_back(
        static_cast<int>(seeds_.size() + static_cast<std::size_t>(at - operands.begin())));
  }
  std::vector<int> node_of;
  for (const pointwise::Dag::Node& node : f.dag.nodes) {
    pointwise::Dag::Node copy = node;
    std::string key;
    switch (node.kind) {
      case pointwise::Dag::Node::Kind::operand:
        copy.operand = operand_of.at(static_cast<std::size_t>(node.operand));
        key = fmt::format("%{}", copy.operand);
        break;
      case pointwise::Dag::Node::Kind::constant:
        key = fmt::format("{}", node.constant);
        break;
      case pointwise::Dag::Node::Kind::call:
        key = std::string(node.function->name);
        for (int& a : copy.arguments) {
          a = node_of.at(static_cast<std::size_t>(a));
          key += fmt::format(",{}", a);
        }
        break;
    }
    auto [it, fresh] = known_.try_emplace(key, static_cast<int>(dag.nodes.size()));
    if (fresh) dag.nodes.push_back(std::move(copy));
    node_of.push_back(it->second);
  }
  dag.results.push_back(node_of.at(static_cast<std::size_t>(f.dag.results.at(0))));
  writes.push_back(f.write);
  return {};
}

NodeSet grow(const Flow& flow, NodeSet start, const std::function<Status(const NodeSet&)>& attempt,
             std::string_view rule, std::vector<Rejection>* rejections) {
  NodeSet set = std::move(start);
  std::map<NodeId, std::string> refused;
  for (bool changed = true; changed;) {
    changed = false;
    refused.clear();
    NodeSet frontier;
    for (NodeId n : set)
      for (NodeId next : flow.after(n))
        if (!set.contains(next)) frontier.insert(next);
    for (NodeId next : flow.in_order(frontier)) {
      if (!is_pointwise(flow, next) && !is_cast(flow, next) && !is_move(flow, next)) continue;
      NodeSet wider = set;
      wider.insert(next);
      if (!flow.convex(wider)) {
        refused[next] =
            "another operand depends on the result through nodes outside the region, which must "
            "run in between";
      } else if (Status ok = attempt(wider); !ok) {
        refused[next] = ok.error().message;
      } else {
        set = std::move(wider);
        changed = true;
        break;
      }
    }
  }
  if (rejections != nullptr)
    for (const auto& [n, reason] : refused)
      rejections->push_back({std::string(rule), {n}, fmt::format("not fused: {}", reason)});
  return set;
}

NodeSet grow_back(const Flow& flow, NodeSet start, ValueId value, bool keep_shared,
                  const std::function<Status(const NodeSet&)>& attempt) {
  NodeSet set = std::move(start);
  std::vector<ValueId> todo{value};
  while (!todo.empty()) {
    const ValueId base = todo.back();
    todo.pop_back();
    const NodeId n = flow.producer(base);
    if (!n.valid() || set.contains(n)) continue;
    if (!is_pointwise(flow, n) && !is_cast(flow, n) && !is_move(flow, n)) continue;
    const auto readers = flow.readers(base);
    const bool shared =
        flow.escapes(base) ||
        std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !set.contains(r); });
    if (shared && !(keep_shared && base == value)) continue;
    NodeSet wider = set;
    wider.insert(n);
    if (!flow.convex(wider) || !attempt(wider)) continue;
    set = std::move(wider);
    for (ValueId v : graph::tensor_arguments(flow.g.node(n)))
      todo.push_back(graph::resolve(flow.g, v).base);
  }
  return set;
}

TensorView Tensors::input(const Read& r, const std::vector<int64_t>& shape) {
  auto it = std::find(inputs.begin(), inputs.end(), r.base);
  if (it == inputs.end()) it = inputs.insert(inputs.end(), r.base);
  TensorView view;
  view.tensor = static_cast<int>(it - inputs.begin());
  view.dtype = g_.value(r.base).type.dtype;
  view.shape = shape;
  view.strides = r.map.strides;
  view.offset = r.map.offset;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == 1) view.strides[d] = 0;
  reach(r, shape);
  return view;
}

TensorView Tensors::input(const Operand& o) {
  return input(Read{o.base, {o.offset, o.strides}}, o.shape);
}

TensorView Tensors::output(const Read& r, const std::vector<int64_t>& shape) {
  auto it = std::find(outputs.begin(), outputs.end(), r.base);
  if (it == outputs.end()) it = outputs.insert(outputs.end(), r.base);
  TensorView view;
  view.tensor = static_cast<int>(inputs.size()) + static_cast<int>(it - outputs.begin());
  view.dtype = g_.value(r.base).type.dtype;
  view.shape = shape;
  view.strides = r.map.strides;
  view.offset = r.map.offset;
  reach(r, shape);
  return view;
}

void Tensors::reach(const Read& r, const std::vector<int64_t>& shape) {
  Reach& to = reach_[r.base];
  if (!to.seen.insert(r.map).second) return;
  double elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (r.map.strides[d] != 0) elements *= static_cast<double>(shape[d]);
  to.elements += elements;
}

double Tensors::min_bytes() const {
  double bytes = 0;
  for (const auto& [base, to] : reach_) {
    const auto& type = g_.value(base).type;
    bytes += std::min(to.elements, static_cast<double>(type.numel())) * size_of(type.dtype);
  }
  return bytes;
}

Pattern make_pattern(const Flow& flow, std::string_view rule, const NodeSet& set, Tensors tensors,
                     std::shared_ptr<const PatternBody> body, Precision precision) {
  Pattern p;
  p.rule = rule;
  p.nodes = flow.in_order(flow.closure(set, tensors.inputs, &p.constants));
  p.computing = flow.in_order(set);
  p.min_bytes = tensors.min_bytes();
  p.inputs = std::move(tensors.inputs);
  p.outputs = std::move(tensors.outputs);
  p.body = std::move(body);
  p.precision = precision;
  for (NodeId n : set) p.flops += graph::flops_of(flow.g, flow.g.node(n));
  return p;
}

Result<Precision> precision_for(const graph::Graph& g, DType type, bool matrix) {
  switch (type) {
    case DType::float32:
      return matrix && g.precision == Precision::tf32 ? Precision::tf32 : Precision::fp32;
    case DType::bfloat16:
      return Precision::bf16;
    case DType::float16:
      return Precision::fp16;
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return Precision::fp8;
    default:
      break;
  }
  return error(fail(unsupported_type, "element type {} has no kernels", name_of(type))
                   .expect("float32, bfloat16, float16 or an 8-bit float"));
}

std::string op_list(const Flow& flow, const NodeSet& set) {
  std::vector<std::string> names;
  for (NodeId n : flow.in_order(set)) {
    if (!is_pointwise(flow, n) && !is_cast(flow, n)) continue;
    names.emplace_back(is_cast(flow, n) ? "cast" : base_name(flow.g.node(n).op).substr(5));
  }
  return join(names, ", ");
}

std::string alignment_note(std::string_view name, const TensorView& view) {
  const int64_t size = size_of(view.dtype);
  bool contiguous = false;
  bool aligned = view.offset * size % 16 == 0;
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 1) continue;
    if (view.strides[d] == 1) {
      contiguous = true;
    } else if (view.strides[d] * size % 16 != 0) {
      aligned = false;
    }
  }
  if (view.numel() > 1 && !contiguous) return fmt::format("{} has no contiguous dim", name);
  if (!aligned) return fmt::format("rows of {} are not 16-byte aligned", name);
  return "";
}

std::string dims_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace tessera::rules
