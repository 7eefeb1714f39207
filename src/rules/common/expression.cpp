#include "rules/common/expression.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/pointwise_import.h"

namespace tessera::rules {

using graph::ArgumentList;
using graph::Node;
using graph::Operand;
using graph::TensorType;

namespace {

/// Dims of size above 1, largest stride first.
std::vector<std::size_t> by_stride(const std::vector<int64_t>& shape,
                                   const std::vector<int64_t>& strides) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1) dims.push_back(d);
  std::stable_sort(dims.begin(), dims.end(),
                   [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  return dims;
}

/// Pointwise values are computed in float: wide integers would lose bits.
Status check_type(DType t) {
  switch (t) {
    case DType::float64:
    case DType::int64:
    case DType::int32:
    case DType::int16:
      return refuse("{} is not computed exactly in float", name_of(t));
    default:
      return {};
  }
}

/// "" of types that hold what float does.
std::string_view rounding_to(DType t) {
  if (t == DType::bfloat16) return "round_bfloat16";
  return t == DType::float16 ? "round_float16" : "";
}

bool is_product(const Node& n) {
  const std::string_view op = base_name(n.op);
  return op == "aten.mul" || op == "aten.square" || op == "aten.pow";
}

int64_t last_index(const Evaluator::Coordinate& c, const std::vector<int64_t>& loops) {
  int64_t last = c.start;
  for (std::size_t l = 0; l < loops.size(); ++l) last += c.steps[l] * (loops[l] - 1);
  return last;
}

}  // namespace

Evaluator::Evaluator(const Flow& flow, const NodeSet& interior, std::map<ValueId, Anchor> anchors)
    : flow_(flow), interior_(interior), anchors_(std::move(anchors)) {}

Result<std::vector<Fragment>> Evaluator::evaluate(ValueId value) {
  const TensorType& type = flow_.g.value(value).type;
  std::vector<int64_t> shape;
  IndexMap map;
  for (std::size_t d : by_stride(type.shape, type.strides)) {
    shape.push_back(type.shape[d]);
    map.strides.push_back(type.strides[d]);
  }
  return run(shape, map, [&](const IndexMap& at) { return element(value, at); }, value);
}

Result<std::vector<Fragment>> Evaluator::evaluate(const Operand& operand) {
  // The loops run over the operand's dims, so the map of the loop nest is one over its logical,
  // row-major order.
  const auto row_major = graph::contiguous_strides(operand.shape);
  return run(
      operand.shape, IndexMap{0, row_major},
      [&](const IndexMap& at) -> Result<int> {
        TESSERA_TRY(where, coordinates(operand.shape, row_major, at));
        return read(operand, where);
      },
      operand.base);
}

Result<std::vector<Fragment>> Evaluator::run(
    std::vector<int64_t> shape, IndexMap write,
    const std::function<Result<int>(const IndexMap&)>& root, ValueId target) {
  std::vector<Fragment> done;
  std::vector<std::pair<std::vector<int64_t>, IndexMap>> todo{{std::move(shape), std::move(write)}};
  for (int steps = 0; !todo.empty(); ++steps) {
    if (steps > 64) return refuse("the region falls into too many pieces");
    auto [loops, map] = todo.back();
    todo.pop_back();
    fragment_ = Fragment{loops, {}, {}, Read{target, map}};
    known_.clear();
    cut_.reset();
    Result<int> result = root(map);
    if (result) {
      fragment_.dag.results = {*result};
      done.push_back(std::move(fragment_));
      continue;
    }
    if (!cut_) return error(std::move(result).error());
    const auto l = static_cast<std::size_t>(cut_->loop);
    if (cut_->refine) {
      const int64_t inner = cut_->at;
      loops[l] /= inner;
      loops.insert(loops.begin() + cut_->loop + 1, inner);
      map.strides.insert(map.strides.begin() + cut_->loop + 1, map.strides[l]);
      map.strides[l] *= inner;
      todo.emplace_back(loops, map);
    } else {
      auto second = std::pair(loops, map);
      second.first[l] -= cut_->at;
      second.second.offset += cut_->at * map.strides[l];
      loops[l] = cut_->at;
      todo.push_back(std::move(second));
      todo.emplace_back(loops, map);
    }
  }
  return done;
}

Result<std::vector<Evaluator::Coordinate>> Evaluator::coordinates(
    const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, const IndexMap& map) {
  const auto& loops = fragment_.shape;
  std::vector<Coordinate> result(shape.size());
  for (Coordinate& c : result) c.steps.assign(loops.size(), 0);
  const auto dims = by_stride(shape, strides);
  int64_t rest = map.offset;
  for (std::size_t d : dims) {
    if (strides[d] == 0) return refuse("a computed tensor repeats its elements");
    result[d].start = rest / strides[d];
    rest %= strides[d];
    if (result[d].start >= shape[d]) return refuse("a view reaches outside its tensor");
  }
  if (rest != 0) return refuse("a view starts between the elements of its tensor");
  for (std::size_t l = 0; l < loops.size(); ++l) {
    const int64_t s = map.strides[l];
    if (s == 0 || loops[l] == 1) continue;
    auto d = std::find_if(dims.begin(), dims.end(), [&](std::size_t i) { return strides[i] <= s; });
    if (d == dims.end() || s % strides[*d] != 0)
      return refuse("a view mixes the dims of its tensor");
    result[*d].steps[l] = s / strides[*d];
  }
  for (std::size_t d : dims) {
    if (last_index(result[d], loops) < shape[d]) continue;
    // A loop runs past this dim into the next one: split it so that its inner part fills the dim.
    for (std::size_t l = 0; l < loops.size(); ++l) {
      const int64_t step = result[d].steps[l];
      if (step == 0 || step * (loops[l] - 1) < shape[d]) continue;
      if (shape[d] % step != 0) break;
      const int64_t inner = shape[d] / step;
      if (inner <= 1 || loops[l] % inner != 0) break;
      cut_ = Cut{static_cast<int>(l), inner, true};
      break;
    }
    return refuse("a view runs over several dims of its tensor unevenly");
  }
  return result;
}

Result<std::vector<Evaluator::Coordinate>> Evaluator::coordinates_of(ValueId value,
                                                                     const IndexMap& map) {
  const TensorType& type = flow_.g.value(value).type;
  return coordinates(type.shape, type.strides, map);
}

Result<int> Evaluator::read(ValueId value, const std::vector<Coordinate>& at) {
  return read(graph::resolve(flow_.g, value), at);
}

Result<int> Evaluator::read(const Operand& o, const std::vector<Coordinate>& at) {
  if (o.shape.size() > at.size()) return refuse("an operand has more dims than its result");
  IndexMap map{o.offset, std::vector<int64_t>(fragment_.shape.size(), 0)};
  const std::size_t lead = at.size() - o.shape.size();
  for (std::size_t d = 0; d < o.shape.size(); ++d) {
    if (o.shape[d] == 1) continue;
    const Coordinate& c = at[d + lead];
    map.offset += c.start * o.strides[d];
    for (std::size_t l = 0; l < map.strides.size(); ++l)
      map.strides[l] += c.steps[l] * o.strides[d];
  }
  return element(o.base, map);
}

int Evaluator::read_storage(ValueId base, const IndexMap& map) {
  const Read r{base, map};
  auto& reads = fragment_.reads;
  const auto at = std::find(reads.begin(), reads.end(), r) - reads.begin();
  if (at == static_cast<std::ptrdiff_t>(reads.size())) reads.push_back(r);
  return fragment_.dag.add_operand(static_cast<int>(at));
}

std::optional<double> Evaluator::constant_of(ValueId base) const {
  const graph::Value& v = flow_.g.value(base);
  std::optional<double> value;
  if (v.facts.contains("scalar") && v.facts["scalar"].is_number()) {
    value = v.facts["scalar"].get<double>();
  } else if (v.producer.valid()) {
    const Node& node = flow_.g.node(v.producer);
    const auto name = base_name(node.op);
    if (name == "aten.full") value = node.number("fill_value");
    if (name == "aten.scalar_tensor") value = node.number("s");
    if (name == "aten.zeros") value = 0.0;
    if (name == "aten.ones") value = 1.0;
  }
  if (!value) return std::nullopt;
  if (v.type.dtype == DType::float32) return static_cast<double>(static_cast<float>(*value));
  const bool exact =
      std::isinf(*value) || (std::trunc(*value) == *value && std::abs(*value) <= 256);
  return exact || v.type.dtype == DType::float64 ? value : std::nullopt;
}

Result<int> Evaluator::element(ValueId base, const IndexMap& map) {
  const auto key = std::pair(base, map);
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  Result<int> result = 0;
  const NodeId from = flow_.producer(base);
  if (auto anchor = anchors_.find(base); anchor != anchors_.end()) {
    result = anchor->second(*this, base, map);
  } else if (from.valid() && interior_.contains(from)) {
    result = compute(from, base, map);
  } else if (auto constant = constant_of(base)) {
    result = fragment_.dag.add_constant(*constant);
  } else {
    TESSERA_CHECK(check_type(flow_.g.value(base).type.dtype));
    result = read_storage(base, map);
  }
  if (result) known_[key] = *result;
  return result;
}

bool Evaluator::is_loaded(ValueId v) const {
  const ValueId base = graph::resolve(flow_.g, v).base;
  const NodeId from = flow_.producer(base);
  return from.valid() && !interior_.contains(from) && !anchors_.contains(base);
}

void Evaluator::round_beside_loaded(const Node& difference,
                                    std::vector<std::pair<ValueId, int>>& arguments) {
  if (base_name(difference.op) != "aten.sub" || arguments.size() != 2) return;
  const auto is_first_loaded = is_loaded(arguments[0].first);
  if (is_first_loaded == is_loaded(arguments[1].first)) return;
  auto& [value, index] = arguments[is_first_loaded ? 1 : 0];
  const NodeId from = flow_.producer(graph::resolve(flow_.g, value).base);
  const std::string_view rounding = rounding_to(flow_.g.value(value).type.dtype);
  if (rounding.empty() || !from.valid() || !interior_.contains(from)) return;
  if (is_product(flow_.g.node(from))) index = fragment_.dag.add_call(rounding, {index});
}

Result<int> Evaluator::compute(NodeId n, ValueId base, const IndexMap& map) {
  const Node& node = flow_.g.node(n);
  const TensorType& type = flow_.g.value(base).type;
  TESSERA_CHECK(check_type(type.dtype));
  TESSERA_TRY(at, coordinates(type.shape, type.strides, map));
  if (is_pointwise(flow_, n) || is_cast(flow_, n)) {
    std::vector<std::pair<ValueId, int>> arguments;
    for (ValueId v : graph::tensor_arguments(node)) {
      TESSERA_TRY(index, read(v, at));
      arguments.emplace_back(v, index);
    }
    round_beside_loaded(node, arguments);
    return graph::append_pointwise(fragment_.dag, flow_.g, node, arguments);
  }
  const auto name = base_name(node.op);
  if (name == "aten.cat" || name == "aten.stack") return concatenation(node, std::move(at));
  if (is_move(flow_, n)) return move(node, at);
  return refuse("`{}` is not computed element by element", name);
}

Result<int> Evaluator::concatenation(const Node& node, std::vector<Coordinate> at) {
  const bool stack = base_name(node.op) == "aten.stack";
  const auto pieces = graph::tensor_arguments(node);
  int64_t dim = node.integer("dim").value_or(0);
  if (dim < 0) dim += static_cast<int64_t>(at.size());
  const auto d = static_cast<std::size_t>(dim);
  int64_t begin = 0;
  for (ValueId piece : pieces) {
    const auto& shape = flow_.g.value(piece).type.shape;
    if (!stack && shape.size() != at.size())
      return refuse("pieces of `{}` differ in rank", node.op);
    const int64_t end = begin + (stack ? 1 : shape[d]);
    if (at[d].start >= end) {
      begin = end;
      continue;
    }
    if (last_index(at[d], fragment_.shape) < end) {
      at[d].start -= begin;
      if (stack) at.erase(at.begin() + dim);
      return read(piece, at);
    }
    // The loop with the widest step along this dim is cut where it leaves the piece.
    const auto widest = std::max_element(at[d].steps.begin(), at[d].steps.end());
    const int64_t room = end - at[d].start;
    const auto loop = widest - at[d].steps.begin();
    if (room % *widest == 0 && room / *widest < fragment_.shape[static_cast<std::size_t>(loop)])
      cut_ = Cut{static_cast<int>(loop), room / *widest, false};
    return refuse("the pieces of `{}` do not follow the loops", node.op);
  }
  return refuse("`{}` is read outside its pieces", node.op);
}

Result<int> Evaluator::move(const Node& node, const std::vector<Coordinate>& at) {
  const ValueId from = graph::tensor_arguments(node).front();
  const auto& to_shape = flow_.g.value(node.outputs[0]).type.shape;
  const auto& from_shape = flow_.g.value(from).type.shape;
  if (to_shape == from_shape) return read(from, at);
  const auto weights = graph::contiguous_strides(to_shape);
  IndexMap linear{0, std::vector<int64_t>(fragment_.shape.size(), 0)};
  for (std::size_t d = 0; d < at.size(); ++d) {
    linear.offset += at[d].start * weights[d];
    for (std::size_t l = 0; l < linear.strides.size(); ++l)
      linear.strides[l] += at[d].steps[l] * weights[d];
  }
  TESSERA_TRY(where, coordinates(from_shape, graph::contiguous_strides(from_shape), linear));
  return read(from, where);
}

}  // namespace tessera::rules
