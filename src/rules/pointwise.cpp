// Chains of pointwise ops, copies and concatenations, with a reduction at the end where there is
// one.
#include "rules/pointwise.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "rules/common/reduction.h"
#include "rules/common/region.h"

namespace tessera::rules {
namespace {

using Group = PointwiseBody::Group;
using graph::OpKind;

/// A lone op that moves less than this is all launch overhead: a kernel of ours cannot win on it.
constexpr double least_lone_bytes = 64 << 10;

bool is_piecewise(const Flow& flow, NodeId n) {
  const auto name = base_name(flow.g.node(n).op);
  return name == "aten.cat" || name == "aten.stack";
}

bool fusible(const Flow& flow, NodeId n) {
  return is_pointwise(flow, n) || is_cast(flow, n) || is_move(flow, n) || is_piecewise(flow, n);
}

int64_t elements(const Flow& flow, NodeId n) {
  return flow.g.value(flow.g.node(n).outputs.at(0)).type.numel();
}

/// Whether joining producer and consumer in one loop nest computes no element twice.
bool joins(const Flow& flow, NodeId producer, NodeId consumer) {
  return elements(flow, producer) == elements(flow, consumer) || is_piecewise(flow, consumer);
}

/// One loop nest and the fragments that it computes.
struct Nest {
  std::vector<int64_t> shape;
  std::vector<Fragment> fragments;
};

/// Merges neighbouring loops that every tensor walks with one stride; keeps a boundary at `keep`
/// (the first reduced loop; -1 for none).
void coalesce(Nest& nest, std::ptrdiff_t* keep) {
  auto views = [&](auto&& visit) {
    for (Fragment& f : nest.fragments) {
      for (Read& r : f.reads) visit(r.map.strides);
      visit(f.write.map.strides);
    }
  };
  auto erase = [&](std::ptrdiff_t at) {
    nest.shape.erase(nest.shape.begin() + at);
    views([&](std::vector<int64_t>& s) { s.erase(s.begin() + at); });
    if (*keep > at) --*keep;
  };
  for (auto l = static_cast<std::ptrdiff_t>(nest.shape.size()) - 1; l >= 0; --l)
    if (nest.shape[static_cast<std::size_t>(l)] == 1) erase(l);
  for (auto l = static_cast<std::ptrdiff_t>(nest.shape.size()) - 2; l >= 0; --l) {
    const auto outer = static_cast<std::size_t>(l);
    bool merges = l + 1 != *keep;
    views([&](std::vector<int64_t>& s) {
      merges = merges && s[outer] == s[outer + 1] * nest.shape[outer + 1];
    });
    if (!merges) continue;
    nest.shape[outer + 1] *= nest.shape[outer];
    erase(l);
  }
  for (Fragment& f : nest.fragments) f.shape = nest.shape;
}

std::vector<Nest> nests_of(const Flow& flow, std::vector<Fragment> fragments) {
  std::stable_sort(fragments.begin(), fragments.end(), [](const Fragment& a, const Fragment& b) {
    return a.shape.size() > b.shape.size();
  });
  std::vector<Nest> nests;
  for (Fragment& f : fragments) {
    bool placed = false;
    for (Nest& nest : nests) {
      auto same = arrange(flow.g, f, {}, nest.shape);
      if (!same) continue;
      nest.fragments.push_back(std::move(*same));
      placed = true;
      break;
    }
    if (!placed) {
      const auto shape = f.shape;
      nests.push_back({shape, {std::move(f)}});
    }
  }
  return nests;
}

/// The fragment's loop `dim` in pieces of `extent`.
void cut(const Fragment& f, std::size_t dim, int64_t extent, std::vector<Fragment>& out) {
  for (int64_t at = 0; at < f.shape[dim]; at += extent) {
    Fragment piece = f;
    piece.shape[dim] = extent;
    const auto move = [&](Read& r) { r.map.offset += at * r.map.strides[dim]; };
    for (Read& r : piece.reads) move(r);
    move(piece.write);
    out.push_back(std::move(piece));
  }
}

/// Nests that differ by the extent of one loop as one nest: the loop runs to the greatest common
/// divisor, and every point computes several results (heads of queries, keys and values). Inner
/// loops stay whole. Nothing where the nests are of other shapes, or the results too many.
std::optional<Nest> united(const Flow& flow, const std::vector<Nest>& nests) {
  constexpr std::size_t most_results = 16;
  const std::vector<int64_t>& widest = nests.front().shape;
  for (std::size_t dim = 0; dim + 1 < widest.size(); ++dim) {
    std::vector<Fragment> same;
    int64_t common = widest[dim];
    for (const Nest& nest : nests) {
      const auto count = [](const std::vector<int64_t>& v) {
        return std::accumulate(v.begin(), v.end(), int64_t{1}, std::multiplies<>());
      };
      std::vector<int64_t> shape = widest;
      shape[dim] = std::max<int64_t>(1, count(nest.shape) * widest[dim] / count(widest));
      common = std::gcd(common, shape[dim]);
      for (const Fragment& f : nest.fragments)
        if (auto arranged = arrange(flow.g, f, {}, shape)) same.push_back(std::move(*arranged));
    }
    Nest all{widest, {}};
    all.shape[dim] = common;
    for (const Fragment& f : same) cut(f, dim, common, all.fragments);
    std::size_t expected = 0;
    for (const Nest& nest : nests) expected += nest.fragments.size();
    if (same.size() == expected && all.fragments.size() <= most_results) return all;
  }
  return std::nullopt;
}

Result<Group> group_of(const Flow& flow, const NodeSet& set, const Nest& nest, Tensors& tensors,
                       std::vector<Read>& writes) {
  Merge merge(flow, set, {});
  for (const Fragment& f : nest.fragments) TESSERA_CHECK(merge.add(f));
  Group group;
  group.shape = nest.shape;
  for (const Read& r : merge.operands) group.operands.push_back(tensors.input(r, nest.shape));
  group.dag = std::move(merge.dag);
  writes = std::move(merge.writes);
  return group;
}

Result<Precision> precision_of(const Flow& flow, const Tensors& tensors) {
  for (const auto* list : {&tensors.inputs, &tensors.outputs})
    for (ValueId v : *list)
      if (is_floating(flow.g.value(v).type.dtype))
        return precision_for(flow.g, flow.g.value(v).type.dtype, false);
  return Precision::fp32;
}

std::string summary_of(const Flow& flow, const NodeSet& set, const PointwiseBody& body,
                       Precision precision) {
  std::string text = op_list(flow, set);
  int moves = 0;
  for (NodeId n : set) moves += is_move(flow, n) || is_piecewise(flow, n) ? 1 : 0;
  if (moves > 0) text += fmt::format("{}{} copies", text.empty() ? "" : ", ", moves);
  if (!body.reduction.empty()) text += (text.empty() ? "" : ", ") + body.reduction;
  return fmt::format("{} {}: {}", dims_text(body.groups[0].shape), name_of(precision), text);
}

Result<Pattern> finish(const Flow& flow, const NodeSet& set, Tensors tensors,
                       const std::shared_ptr<PointwiseBody>& body) {
  TESSERA_TRY(precision, precision_of(flow, tensors));
  Pattern p = make_pattern(flow, "pointwise", set, std::move(tensors), body, precision);
  p.summary = summary_of(flow, set, *body, precision);
  for (const Group& g : body->groups)
    for (const TensorView& v : g.operands)
      if (v.numel() > 1 && v.strides.size() > 0 && v.strides.back() > 1) {
        p.challenges.push_back(
            fmt::format("strided reads of %{}",
                        flow.g.value(p.inputs[static_cast<std::size_t>(v.tensor)]).name));
        return p;
      }
  return p;
}

Result<Pattern> build(const Flow& flow, const NodeSet& set) {
  Evaluator evaluator(flow, set, {});
  std::vector<Fragment> fragments;
  for (ValueId out : flow.outputs(set)) {
    if (flow.g.value(out).type.numel() == 0) return refuse("an empty tensor");
    TESSERA_TRY(pieces, evaluator.evaluate(out));
    std::move(pieces.begin(), pieces.end(), std::back_inserter(fragments));
  }
  if (fragments.empty()) return refuse("nobody uses the result");
  auto body = std::make_shared<PointwiseBody>();
  Tensors tensors(flow.g);
  std::vector<std::vector<Read>> writes;
  std::vector<Nest> nests = nests_of(flow, std::move(fragments));
  if (nests.size() > 1)
    if (auto one = united(flow, nests)) nests = {std::move(*one)};
  for (Nest& nest : nests) {
    std::ptrdiff_t keep = -1;
    coalesce(nest, &keep);
    TESSERA_TRY(group, group_of(flow, set, nest, tensors, writes.emplace_back()));
    body->groups.push_back(std::move(group));
  }
  for (std::size_t i = 0; i < body->groups.size(); ++i)
    for (const Read& w : writes[i])
      body->groups[i].outputs.push_back(tensors.output(w, body->groups[i].shape));
  // An operator of no tensors has no device to run on.
  if (tensors.inputs.empty()) return refuse("it computes with numbers alone");
  return finish(flow, set, std::move(tensors), body);
}

/// Where the reduction's result goes, through the pointwise nodes of the set behind it: `dag` takes
/// them, and stays empty without any.
Result<Read> finish_of(const Flow& flow, const Reduction& r, const NodeSet& set,
                       const std::vector<int64_t>& kept_shape, pointwise::Dag& dag) {
  const auto& type = flow.g.value(r.result).type;
  auto out = graph::reshaped({r.result, type.shape, type.strides, 0, {}}, kept_shape);
  if (!out) return refuse("the result's strides do not follow the kept dims");
  Read reduced{r.result, {0, out->strides}};
  const std::vector<ValueId> results = flow.outputs(set);
  if (results.size() != 1) return refuse("the reduced value is needed too");
  if (results[0] == r.result) return reduced;
  const Evaluator::Anchor itself = [](Evaluator& e, ValueId v, const IndexMap& map) -> Result<int> {
    return e.read_storage(v, map);
  };
  Evaluator evaluator(flow, set, {{r.result, itself}});
  TESSERA_TRY(fragments, evaluator.evaluate(results[0]));
  if (fragments.size() != 1) return refuse("a concatenation cuts the reduced value");
  const std::vector<Seed> seeds{{reduced.base, reduced.map}};
  TESSERA_TRY(fragment, arrange(flow.g, fragments[0], seeds, kept_shape));
  Merge merge(flow, set, seeds);
  TESSERA_CHECK(merge.add(fragment));
  if (!merge.operands.empty()) return refuse("another tensor meets the reduced value");
  dag = std::move(merge.dag);
  return merge.writes[0];
}

Result<Pattern> build_reduction(const Flow& flow, const Reduction& r, const NodeSet& set) {
  Evaluator evaluator(flow, set, {});
  TESSERA_TRY(fragments, evaluator.evaluate(r.operand));
  if (fragments.size() != 1) return refuse("a concatenation cuts the reduced dims");
  Nest nest{fragments[0].shape, {fragments[0]}};
  std::ptrdiff_t keep = 0;
  for (int64_t kept = 1; kept < r.kept_elements; ++keep)
    kept *= nest.shape[static_cast<std::size_t>(keep)];
  // The write map counts the kept elements in order: the output is contiguous or has its own
  // strides below.
  coalesce(nest, &keep);
  auto body = std::make_shared<PointwiseBody>();
  body->reduction = r.kind;
  body->reduced_dims = static_cast<int>(nest.shape.size()) - static_cast<int>(keep);
  if (body->reduced_dims == 0) return refuse("it reduces over one element");
  Tensors tensors(flow.g);
  std::vector<Read> writes;
  TESSERA_TRY(group, group_of(flow, set, nest, tensors, writes));
  if (group.operands.empty()) return refuse("it reduces numbers alone");
  const std::vector<int64_t> kept_shape(nest.shape.begin(), nest.shape.begin() + keep);
  TESSERA_TRY(write, finish_of(flow, r, set, kept_shape, body->finish));
  group.outputs.push_back(tensors.output(write, kept_shape));
  body->groups.push_back(std::move(group));
  return finish(flow, set, std::move(tensors), body);
}

NodeSet component(const Flow& flow, NodeId seed, const NodeSet& taken) {
  NodeSet set{seed};
  for (bool changed = true; changed;) {
    changed = false;
    NodeSet frontier;
    for (NodeId n : set) {
      for (NodeId next : flow.after(n))
        if (joins(flow, n, next)) frontier.insert(next);
      for (NodeId previous : flow.before(n))
        if (joins(flow, previous, n)) frontier.insert(previous);
    }
    for (NodeId next : flow.in_order(frontier)) {
      if (set.contains(next) || taken.contains(next) || !fusible(flow, next)) continue;
      NodeSet wider = set;
      wider.insert(next);
      if (!flow.convex(wider) || !build(flow, wider)) continue;
      set = std::move(wider);
      changed = true;
    }
  }
  return set;
}

/// Why a lone op is not taken, or "".
std::string refuse_alone(const Flow& flow, NodeId n, double bytes) {
  if (bytes < least_lone_bytes)
    return fmt::format("a lone op on {} bytes is bound by its launch", bytes);
  // Attention's pattern takes the copy along, and the composed module makes none where none is
  // needed.
  const auto attends = [&](NodeId from) {
    return graph::kind_of(flow.g.node(from)) == OpKind::attention;
  };
  const std::vector<NodeId>& sources = flow.before(n);
  if (is_move(flow, n) && std::any_of(sources.begin(), sources.end(), attends))
    return "attention may have written its result in this layout already";
  return "";
}

void match_chains(const Flow& flow, Matches& found) {
  NodeSet taken;
  for (NodeId n : flow.g.order) {
    if (!flow.computes(n) || taken.contains(n) || !fusible(flow, n)) continue;
    auto alone = build(flow, {n});
    if (!alone) {
      found.rejections.push_back({"pointwise", {n}, alone.error().message});
      continue;
    }
    const NodeSet set = component(flow, n, taken);
    taken.insert(set.begin(), set.end());
    const std::string refused = set.size() == 1 ? refuse_alone(flow, n, alone->min_bytes) : "";
    if (!refused.empty()) {
      found.rejections.push_back({"pointwise", {n}, refused});
      continue;
    }
    found.patterns.push_back(std::move(*build(flow, set)));
  }
}

void match_reductions(const Flow& flow, Matches& found) {
  for (NodeId n : flow.g.order) {
    if (!flow.computes(n) || graph::kind_of(flow.g.node(n)) != OpKind::reduction) continue;
    auto reduction = find_reduction(flow, n);
    auto alone = reduction ? build_reduction(flow, *reduction, {n})
                           : Result<Pattern>(error(reduction.error()));
    if (!alone) {
      found.rejections.push_back({"pointwise", {n}, alone.error().message});
      continue;
    }
    auto attempt = [&](const NodeSet& set) -> Status {
      TESSERA_TRY(ok, build_reduction(flow, *reduction, set));
      return {};
    };
    const NodeSet before = grow_back(flow, {n}, reduction->operand.base, false, attempt);
    const NodeSet set = grow(flow, before, attempt, "pointwise", nullptr);
    found.patterns.push_back(std::move(*build_reduction(flow, *reduction, set)));
  }
}

Matches match(const graph::Graph& g) {
  const Flow flow(g);
  Matches found;
  match_chains(flow, found);
  match_reductions(flow, found);
  return found;
}

}  // namespace

Json PointwiseBody::to_json() const {
  Json j;
  j["groups"] = Json::array();
  for (const Group& g : groups) {
    Json entry;
    entry["shape"] = g.shape;
    entry["operands"] = Json::array();
    for (const TensorView& v : g.operands) entry["operands"].push_back(v.to_json());
    entry["dag"] = g.dag.to_string();
    entry["outputs"] = Json::array();
    for (const TensorView& v : g.outputs) entry["outputs"].push_back(v.to_json());
    j["groups"].push_back(std::move(entry));
  }
  j["reduction"] = reduction;
  j["reduced_dims"] = reduced_dims;
  if (!finish.empty()) j["finish"] = finish.to_string();
  return j;
}

extern const Rule pointwise = {
    .name = "pointwise",
    .doc =
        "chains of pointwise ops, copies and concatenations; sum, mean, amax, amin, prod of them, "
        "and what follows on the reduced values",
    .match = match,
};

}  // namespace tessera::rules
