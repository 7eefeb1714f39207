// Attention: scaled dot products with causal, boolean or additive masks and shared key/value heads.
#include "rules/attention.h"

#include <cmath>

#include "rules/common/attention_near_misses.h"
#include "rules/common/region.h"

#include "rewrite/written_attention.h"

namespace tessera::rules {
namespace {

using graph::Node;
using graph::Operand;

/// [batch, length, dim] counts as one head.
Result<Operand> with_heads(Operand o) {
  if (o.shape.size() == 3) {
    o.shape.insert(o.shape.begin() + 1, 1);
    o.strides.insert(o.strides.begin() + 1, 0);
  }
  if (o.shape.size() != 4) return refuse("rank {} is neither 3 nor 4", o.shape.size());
  return o;
}

/// `o` read beneath the copy that makes it, regrouped to `shape`; nothing when the copy serves
/// others too or the source has no such strides.
std::optional<Operand> beneath_copy(const Flow& flow, const Operand& o, NodeId reader,
                                    const std::vector<int64_t>& shape, NodeId* copy) {
  const NodeId from = flow.producer(o.base);
  if (!from.valid() || !is_move(flow, from) || flow.escapes(o.base)) return std::nullopt;
  if (flow.readers(o.base) != std::vector<NodeId>{reader}) return std::nullopt;
  const NodeSet interior{from};
  Evaluator evaluator(flow, interior, {});
  auto fragments = evaluator.evaluate(o);
  if (!fragments || fragments->size() != 1 || (*fragments)[0].reads.size() != 1)
    return std::nullopt;
  auto f = arrange(flow.g, (*fragments)[0], {}, shape);
  if (!f) return std::nullopt;
  *copy = from;
  return Operand{f->reads[0].base, shape, f->reads[0].map.strides, f->reads[0].map.offset, {}};
}

/// Keys or values without the repetition that was written out, and the number of query heads that
/// share one.
struct SharedHeads {
  Operand operand;  // [batch, kv_heads, length, dim]
  int64_t group = 1;
  NodeId copy;  // folded, when valid
};

SharedHeads without_repetition(const Flow& flow, const Operand& o, NodeId reader, int64_t heads) {
  if (heads > 1 && o.shape[1] == heads && o.strides[1] == 0) {
    Operand one = o;
    one.shape[1] = 1;
    return {one, heads, {}};
  }
  for (int64_t group = o.shape[1]; group >= 1; --group) {
    if (o.shape[1] % group != 0) continue;
    NodeId copy;
    auto split = beneath_copy(
        flow, o, reader, {o.shape[0], o.shape[1] / group, group, o.shape[2], o.shape[3]}, &copy);
    if (!split || (group > 1 && split->strides[2] != 0)) continue;
    split->shape.erase(split->shape.begin() + 2);
    split->strides.erase(split->strides.begin() + 2);
    return {*split, group, copy};
  }
  return {o, 1, {}};
}

/// The band that a mask [queries, keys] is by its facts: truth values, true where attended, or
/// numbers that are added, low enough to mask.
std::optional<Band> band_of(const Json& facts, DType type, int64_t queries, int64_t keys) {
  const std::string prefix = type == DType::boolean ? "" : "additive_";
  const auto number = [&](const char* name) { return facts.at(name).get<int64_t>(); };
  Band b;
  if (facts.contains(prefix + "lower_triangular"))
    b.upper = number("diagonal");
  else if (facts.contains(prefix + "upper_triangular"))
    b.lower = number("diagonal");
  else if (facts.contains(prefix + "band"))
    b = {number("lower"), number("upper")};
  else
    return std::nullopt;
  if (facts.contains("masked") && facts.at("masked").is_number() &&
      facts.at("masked").get<double>() > rewrite::low_enough)
    return std::nullopt;
  // Each bound cuts the first query or the last most. Where a query sees nothing, masks of -inf and
  // of low numbers differ.
  const bool all_see = b.upper.value_or(0) >= 0 && queries - 1 + b.lower.value_or(-queries) < keys;
  return all_see ? std::optional(b) : std::nullopt;
}

std::optional<Band> band_of(const graph::Graph& g, ValueId mask, int64_t queries, int64_t keys) {
  const graph::TensorType& type = g.value(mask).type;
  const std::size_t r = type.shape.size();
  if (r < 2 || type.shape[r - 2] != queries || type.shape[r - 1] != keys) return std::nullopt;
  return band_of(rewrite::facts_of_mask(g, mask), type.dtype, queries, keys);
}

struct Site {
  NodeId node;
  NodeId reader;  // of queries and keys: another than the node where scores are written out
  ValueId result;
  AttentionBody body;  // without views
  Operand q;
  Operand k;
  Operand v;
  std::optional<Operand> mask;
  NodeSet set;  // the node and the copies before it
};

Status fold_heads(const Flow& flow, Site& s) {
  const auto k = without_repetition(flow, s.k, s.reader, s.body.heads);
  const auto v = without_repetition(flow, s.v, s.node, s.body.heads);
  if (k.operand.shape[1] == v.operand.shape[1]) {
    s.k = k.operand;
    s.v = v.operand;
    for (NodeId copy : {k.copy, v.copy})
      if (copy.valid()) s.set.insert(copy);
  }
  if (s.k.shape[1] != s.v.shape[1] || s.body.heads % s.k.shape[1] != 0)
    return refuse("{} query heads do not share {} key heads", s.body.heads, s.k.shape[1]);
  NodeId copy;
  if (auto q = beneath_copy(flow, s.q, s.reader, s.q.shape, &copy)) {
    s.q = *q;
    s.set.insert(copy);
  }
  return {};
}

/// The body's sizes from the operands; repeated heads are folded.
Status fill_sizes(const Flow& flow, Site& s) {
  if (s.k.shape[0] != s.q.shape[0] || s.v.shape[0] != s.q.shape[0])
    return refuse("the batch dims of query, key and value differ");
  s.body.batch = s.q.shape[0];
  s.body.heads = s.q.shape[1];
  s.body.q_length = s.q.shape[2];
  s.body.kv_length = s.k.shape[2];
  s.body.head_dim = s.q.shape[3];
  s.body.value_dim = s.v.shape[3];
  if (flow.g.value(s.result).type.numel() == 0 || s.body.kv_length == 0)
    return refuse("an empty tensor");
  TESSERA_CHECK(fold_heads(flow, s));
  s.body.kv_heads = s.k.shape[1];
  return {};
}

/// A mask of the last dims, broadcast to batches and heads.
Status take_mask(const Flow& flow, Site& s, ValueId mask) {
  Operand m = graph::resolve(flow.g, mask);
  const std::vector<int64_t> full{s.body.batch, s.body.heads, s.body.q_length, s.body.kv_length};
  if (m.shape.size() > 4) return refuse("the mask has rank {}", m.shape.size());
  while (m.shape.size() < 4) {
    m.shape.insert(m.shape.begin(), 1);
    m.strides.insert(m.strides.begin(), 0);
  }
  for (std::size_t d = 0; d < 4; ++d) {
    if (m.shape[d] == 1) m.strides[d] = 0;
    m.shape[d] = full[d];
  }
  s.mask = m;
  return {};
}

Result<Site> find_site(const Flow& flow, NodeId id) {
  const Node& node = flow.g.node(id);
  if (base_name(node.op) != "aten.scaled_dot_product_attention")
    return refuse("`{}` is one backend's own form", node.op);
  if (node.number("dropout_p").value_or(0) != 0) return refuse("dropout draws random numbers");
  Site s;
  s.node = s.reader = id;
  s.result = node.outputs.at(0);
  s.set = {id};
  auto operand = [&](std::string_view a) {
    return with_heads(graph::resolve(flow.g, node.tensor(a)));
  };
  TESSERA_TRY(q, operand("query"));
  TESSERA_TRY(k, operand("key"));
  TESSERA_TRY(v, operand("value"));
  s.q = q;
  s.k = k;
  s.v = v;
  s.body.causal = node.flag("is_causal").value_or(false);
  s.body.scale = node.number("scale").value_or(1 / std::sqrt(static_cast<double>(q.shape[3])));
  TESSERA_CHECK(fill_sizes(flow, s));
  if (const ValueId mask = node.tensor("attn_mask"); mask.valid()) {
    TESSERA_CHECK(take_mask(flow, s, mask));
    s.body.band = band_of(flow.g, mask, s.body.q_length, s.body.kv_length);
  }
  return s;
}

/// The masks of scores that are capped: causal, a band, or one tensor that is added.
Status settle_masks(const Flow& flow, const rewrite::WrittenAttention& w, Site& s) {
  if (w.masks.empty()) return {};
  const auto kind = rewrite::classify(flow.g, w.masks, w.queries, w.keys);
  s.body.causal = kind == rewrite::MaskKind::causal;
  if (s.body.causal || kind == rewrite::MaskKind::none) return {};
  if (w.masks.size() != 1) return refuse("one mask follows another");
  const rewrite::MaskTerm& m = w.masks.front();
  if (!m.replaces) {
    s.body.band = band_of(flow.g, m.value, w.queries, w.keys);
    return take_mask(flow, s, m.value);
  }
  const Json& facts = rewrite::facts_of_mask(flow.g, m.value);
  if (flow.g.value(m.value).type.dtype == DType::boolean)
    s.body.band =
        band_of(m.where ? rewrite::negated(facts) : facts, DType::boolean, w.queries, w.keys);
  if (!s.body.band) return refuse("a mask whose content is not known is filled into capped scores");
  return {};
}

/// Scores that a tanh caps, which no op of ATen does: written out, from the product with the values
/// up to queries and keys.
Result<Site> find_capped(const Flow& flow, const rewrite::WrittenAttention& w) {
  Site s;
  s.node = w.nodes.front();
  s.reader = w.product;
  s.result = flow.g.node(s.node).outputs.at(0);
  s.set.insert(w.nodes.begin(), w.nodes.end());
  Operand keys = graph::resolve(flow.g, w.k);
  if (w.k_is_transposed) {
    const std::size_t r = keys.shape.size();
    std::swap(keys.shape[r - 1], keys.shape[r - 2]);
    std::swap(keys.strides[r - 1], keys.strides[r - 2]);
  }
  TESSERA_TRY(q, with_heads(graph::resolve(flow.g, w.q)));
  TESSERA_TRY(k, with_heads(keys));
  TESSERA_TRY(v, with_heads(graph::resolve(flow.g, w.v)));
  s.q = q;
  s.k = k;
  s.v = v;
  s.body.scale = w.scale;
  s.body.softcap = w.cap;
  TESSERA_CHECK(fill_sizes(flow, s));
  TESSERA_CHECK(settle_masks(flow, w, s));
  return s;
}

Result<Pattern> build(const Flow& flow, const Site& s, const NodeSet& set) {
  auto body = std::make_shared<AttentionBody>(s.body);
  const std::vector<int64_t> shape{body->batch, body->heads, body->q_length, body->value_dim};
  const auto& type = flow.g.value(s.result).type;
  const auto whole = graph::reshaped(Operand{s.result, type.shape, type.strides, 0, {}}, shape);
  if (!whole) return refuse("the result's strides do not follow batch, heads, length");
  const std::vector<Seed> seeds{{s.result, {0, whole->strides}}};
  Evaluator evaluator(flow, set,
                      {{s.result, [](Evaluator& e, ValueId v, const IndexMap& m) -> Result<int> {
                          return e.read_storage(v, m);
                        }}});
  const auto outputs = flow.outputs(set);
  if (outputs.size() != 1) return refuse("the result is needed in two layouts");
  TESSERA_TRY(fragments, evaluator.evaluate(outputs[0]));
  if (fragments.size() != 1) return refuse("the result is cut");
  TESSERA_TRY(fragment, arrange(flow.g, fragments[0], seeds, shape));
  Tensors tensors(flow.g);
  body->q = tensors.input(s.q);
  body->k = tensors.input(s.k);
  body->v = tensors.input(s.v);
  if (s.mask) body->mask = tensors.input(*s.mask);
  body->output = tensors.output(fragment.write, shape);
  TESSERA_TRY(precision, precision_for(flow.g, body->q.dtype, true));
  Pattern p = make_pattern(flow, "attention", set, std::move(tensors), body, precision);
  // What a masked key holds must not contribute, so eager and a fused kernel rightly differ there.
  p.roles.non_finite = {body->q};
  const double pairs = static_cast<double>(body->batch * body->heads) *
                       static_cast<double>(body->q_length) * static_cast<double>(body->kv_length);
  p.flops = 2 * pairs * static_cast<double>(body->head_dim + body->value_dim) *
            (body->causal ? 0.5 : seen_share(*body));
  p.summary = fmt::format("{}x{}{} {}->{} d{} {}{}{}", body->batch, body->heads,
                          body->kv_heads != body->heads ? fmt::format("/{}", body->kv_heads) : "",
                          body->q_length, body->kv_length, body->head_dim, name_of(precision),
                          body->causal ? ", causal" : "",
                          body->band   ? ", " + body->band->text()
                          : body->mask ? ", mask"
                                       : "");
  if (body->softcap > 0) p.summary += fmt::format(", capped at {}", body->softcap);
  for (const std::string& note :
       {alignment_note("Q", body->q), alignment_note("K", body->k), alignment_note("V", body->v)})
    if (!note.empty()) p.challenges.push_back(note);
  if (body->head_dim > 256) p.challenges.push_back("head dim above 256 exceeds known kernels");
  if (body->head_dim % 16 != 0) p.challenges.push_back("head dim is not a multiple of 16");
  return p;
}

Matches match(const graph::Graph& g) {
  const Flow flow(g);
  Matches found;
  for (NodeId id : g.order) {
    if (!flow.computes(id)) continue;
    const bool call = graph::kind_of(g.node(id)) == graph::OpKind::attention;
    const auto written = call ? std::nullopt : rewrite::read_attention(g, id);
    if (!call && (!written || written->cap == 0)) continue;
    auto site = call ? find_site(flow, id) : find_capped(flow, *written);
    auto pattern = site ? build(flow, *site, site->set) : Result<Pattern>(error(site.error()));
    if (!pattern) {
      found.rejections.push_back({"attention", {id}, pattern.error().message});
      continue;
    }
    // The kernel writes straight into the layout that the next op wants, when the copy serves only
    // that.
    NodeSet set = site->set;
    for (ValueId at = site->result;;) {
      const auto readers = flow.readers(at);
      if (readers.size() != 1 || flow.escapes(at) || !is_move(flow, readers[0])) break;
      NodeSet wider = set;
      wider.insert(readers[0]);
      auto moved = build(flow, *site, wider);
      if (!moved) break;
      pattern = std::move(moved);
      set = std::move(wider);
      at = g.node(readers[0]).outputs[0];
    }
    found.patterns.push_back(std::move(*pattern));
  }
  return found;
}

}  // namespace

Json Band::to_json() const {
  return {{"lower", lower ? Json(*lower) : Json(nullptr)},
          {"upper", upper ? Json(*upper) : Json(nullptr)}};
}

std::string Band::text() const {
  const auto bound = [](std::optional<int64_t> b) { return b ? fmt::format("{}", *b) : ""; };
  return fmt::format("band {}..{}", bound(lower), bound(upper));
}

std::pair<int64_t, int64_t> Band::keys_of(int64_t query, int64_t keys) const {
  return {lower ? std::max<int64_t>(0, query + *lower) : 0,
          upper ? std::min(keys, query + *upper + 1) : keys};
}

double seen_share(const AttentionBody& body) {
  if (!body.band) return 1;
  double seen = 0;
  for (int64_t i = 0; i < body.q_length; ++i) {
    const auto [first, end] = body.band->keys_of(i, body.kv_length);
    seen += static_cast<double>(end - first);
  }
  return seen / static_cast<double>(body.q_length) / static_cast<double>(body.kv_length);
}

Json AttentionBody::to_json() const {
  Json j = {{"batch", batch},         {"heads", heads},         {"kv_heads", kv_heads},
            {"q_length", q_length},   {"kv_length", kv_length}, {"head_dim", head_dim},
            {"value_dim", value_dim}, {"scale", scale},         {"causal", causal},
            {"softcap", softcap}};
  j["q"] = q.to_json();
  j["k"] = k.to_json();
  j["v"] = v.to_json();
  j["mask"] = mask ? mask->to_json() : Json(nullptr);
  j["band"] = band ? band->to_json() : Json(nullptr);
  j["output"] = output.to_json();
  return j;
}

extern const Rule attention = {
    .name = "attention",
    .doc =
        "softmax(scale Q K^T + mask) V: causal, boolean or additive mask, capped scores, shared "
        "key/value heads",
    .match = match,
    .near_misses = near_attention,
};

}  // namespace tessera::rules
