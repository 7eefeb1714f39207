#include "tile/build/attention.h"

#include <algorithm>
#include <limits>

#include "base/integers.h"

namespace tessera::tile::build {
namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr int64_t lanes = 16;  // columns are padded to whole vectors

/// A row-major tile in one thread.
Type tile_type(std::vector<Axis> axes, std::vector<int64_t> cover) {
  Type t;
  t.axes = std::move(axes);
  t.cover = std::move(cover);
  Spread s;
  if (t.cover[1] > 1) s.registers.push_back({t.cover[1], 1, 1});
  if (t.cover[0] > 1) s.registers.push_back({t.cover[0], 0, 1});
  t.layout = layout_of(s, t.cover);
  return t;
}

class AttentionWriter {
 public:
  AttentionWriter(const AttentionProblem& p, const AttentionConfig& c)
      : p_(p), c_(c), program_{p.name, p.tensors, {}}, b_(program_, p.name, 1) {}

  Result<Program> write() {
    int64_t group = p_.heads / p_.kv_heads;
    Layout q_heads = heads(p_.q, p_.heads, 1), kv_k = heads(p_.k, p_.kv_heads, group),
           kv_v = heads(p_.v, p_.kv_heads, group);
    ValueId q =
        view(p_.q, {q_heads, {p_.queries, p_.q.strides[2]}, {p_.head_dim, p_.q.strides[3]}}, "q");
    kt_ = view(p_.k, {kv_k, {p_.head_dim, p_.k.strides[3]}, {p_.keys, p_.k.strides[2]}},
               "k_transposed");
    v_ = view(p_.v, {kv_v, {p_.keys, p_.v.strides[2]}, {p_.value_dim, p_.v.strides[3]}}, "v");
    ValueId o = view(
        p_.o,
        {heads(p_.o, p_.heads, 1), {p_.queries, p_.o.strides[2]}, {p_.value_dim, p_.o.strides[3]}},
        "o");
    if (p_.mask)
      mask_ = view(*p_.mask,
                   {heads(*p_.mask, p_.heads, 1),
                    {p_.queries, p_.mask->strides[2]},
                    {p_.keys, p_.mask->strides[3]}},
                   "mask");
    head_ = b_.var("h", p_.batch * p_.heads, 1);
    i_ = b_.var("i", p_.queries, c_.block_queries);
    j_ = p_.causal ? b_.var_until("j", p_.keys, c_.block_keys, i_, p_.causal_offset)
                   : b_.var("j", p_.keys, c_.block_keys);
    b_.open("tiles", {}, Walk{{head_, i_}, 0, p_.causal});
    Type q_type =
        tile_type({{c_.block_queries, i_}, {p_.head_dim, {}}}, {c_.block_queries, p_.head_dim});
    acc_type_ = tile_type({{c_.block_queries, i_}, {p_.value_dim, {}}},
                          {c_.block_queries, round_up(p_.value_dim, lanes)});
    score_type_ =
        tile_type({{c_.block_queries, i_}, {c_.block_keys, j_}}, {c_.block_queries, c_.block_keys});
    row_type_ = tile_type({{c_.block_queries, i_}, {1, {}}}, {c_.block_queries, 1});
    ValueId q_raw = b_.one("load", {q}, at(i_, {}, q_type), "q_raw");
    ValueId scaled = map(
        {q_raw},
        [&](pointwise::Dag& d, auto& x) {
          return std::vector<int>{d.add_call("mul", {x[0], d.add_constant(p_.scale)})};
        },
        "q_scaled")[0];
    ValueId m = b_.one("full", {}, FullOf{row_type_, -inf}, "m");
    ValueId l = b_.one("full", {}, FullOf{row_type_, 0}, "l");
    ValueId acc = b_.one("full", {}, FullOf{acc_type_, 0}, "acc");
    std::vector<ValueId> carried = b_.open("steps", {m, l, acc}, Walk{{j_}});
    std::vector<ValueId> end = b_.close(turn(scaled, carried));
    finish(end[1], end[2], o);
    b_.close();
    TESSERA_CHECK(b_.finish());
    return std::move(program_);
  }

 private:
  /// batch x heads as one mode; the queries of a group share a head of k and v by a stride of 0.
  Layout heads(const StridedView& v, int64_t heads, int64_t group) const {
    return coalesce(Layout(IntTuple::flat({group, heads, p_.batch}),
                           IntTuple::flat({0, v.strides[1], v.strides[0]})));
  }
  ValueId view(const StridedView& v, const std::vector<Layout>& modes, std::string_view name) {
    return b_.one("view", {}, ViewOf{v.tensor, concat(modes), v.offset},
                  std::string(name) + "_view");
  }
  LoadAt at(VarId first, VarId second, const Type& t) const {
    auto index = [](VarId v) { return v.valid() ? Index{Index::Kind::tile, v} : Index{}; };
    return {{{Index::Kind::pick, head_}, index(first), index(second)}, t.cover, t.layout};
  }
  template <class F>
  std::vector<ValueId> map(std::vector<ValueId> operands, F f, std::string_view hint) {
    return add_map(b_, std::move(operands), f, hint);
  }
  using Nodes = std::vector<int>;

  ValueId masked(ValueId s) {
    if (p_.mask) {
      ValueId mask = b_.one("load", {mask_}, at(i_, j_, score_type_), "mask_tile");
      s = map(
          {s, mask},
          [&](pointwise::Dag& d, auto& x) {
            // PyTorch makes numbers of a boolean mask: a score that is NaN stays so.
            const int added =
                p_.mask_is_boolean
                    ? d.add_call("where", {x[1], d.add_constant(0), d.add_constant(-inf)})
                    : x[1];
            return Nodes{d.add_call("add", {x[0], added})};
          },
          "s_masked")[0];
    }
    if (p_.causal) {
      ValueId row = b_.one("iota", {}, IotaAlong{score_type_, 0}, "row");
      ValueId column = b_.one("iota", {}, IotaAlong{score_type_, 1}, "column");
      s = map(
          {s, row, column},
          [&](pointwise::Dag& d, auto& x) {
            int last =
                d.add_call("add", {x[1], d.add_constant(static_cast<double>(p_.causal_offset))});
            return Nodes{
                d.add_call("where", {d.add_call("le", {x[2], last}), x[0], d.add_constant(-inf)})};
          },
          "s_causal")[0];
    }
    return s;
  }

  /// One block of keys: (m, l, acc) to the next (m, l, acc).
  std::vector<ValueId> turn(ValueId q, const std::vector<ValueId>& carried) {
    Type kt_type =
        tile_type({{p_.head_dim, {}}, {c_.block_keys, j_}}, {p_.head_dim, c_.block_keys});
    Type v_type = tile_type({{c_.block_keys, j_}, {p_.value_dim, {}}},
                            {c_.block_keys, round_up(p_.value_dim, lanes)});
    ValueId kt = b_.one("load", {kt_}, at({}, j_, kt_type), "kt");
    ValueId zero = b_.one("full", {}, FullOf{score_type_, 0}, "zero");
    ValueId s = masked(b_.one("dot", {q, kt, zero}, {}, "s"));
    ValueId most = b_.one("reduce", {s}, Fold{Fold::Kind::max, 1}, "most");
    // Rows without a visible key so far keep the maximum -inf; 0 stands in for it, so that exp
    // gives 0, not NaN.
    std::vector<ValueId> r = map(
        {carried[0], most},
        [](pointwise::Dag& d, auto& x) {
          int next = d.add_call("maximum", {x[0], x[1]});
          int none = d.add_call("eq", {next, d.add_constant(-inf)});
          int base = d.add_call("where", {none, d.add_constant(0), next});
          return Nodes{next, base, d.add_call("exp", {d.add_call("sub", {x[0], base})})};
        },
        "m_next");
    ValueId base_row = b_.one("broadcast", {r[1]}, Like{score_type_}, "base_row");
    ValueId e = map(
        {s, base_row},
        [](pointwise::Dag& d, auto& x) {
          return Nodes{d.add_call("exp", {d.add_call("sub", {x[0], x[1]})})};
        },
        "p")[0];
    ValueId part = b_.one("reduce", {e}, Fold{Fold::Kind::sum, 1}, "part");
    ValueId l = map(
        {carried[1], r[2], part},
        [](pointwise::Dag& d, auto& x) {
          return Nodes{d.add_call("add", {d.add_call("mul", {x[0], x[1]}), x[2]})};
        },
        "l_next")[0];
    ValueId scale_row = b_.one("broadcast", {r[2]}, Like{acc_type_}, "scale_row");
    ValueId acc = map(
        {carried[2], scale_row},
        [](pointwise::Dag& d, auto& x) { return Nodes{d.add_call("mul", {x[0], x[1]})}; },
        "acc_scaled")[0];
    ValueId v = b_.one("load", {v_}, at(j_, {}, v_type), "v_tile");
    return {r[0], l, b_.one("dot", {e, v, acc}, {}, "acc_next")};
  }

  void finish(ValueId l, ValueId acc, ValueId o) {
    ValueId l_row = b_.one("broadcast", {l}, Like{acc_type_}, "l_row");
    ValueId y = map(
        {acc, l_row},
        [&](pointwise::Dag& d, auto& x) {
          int y = d.add_call("div", {x[0], x[1]});
          if (!p_.empty_rows_are_zero) return Nodes{y};
          // Then the sum is 0 too, or NaN of a value that is none or infinite, as in eager.
          int none = d.add_call("eq", {x[1], d.add_constant(0)});
          return Nodes{d.add_call("where", {none, x[0], y})};
        },
        "y")[0];
    ValueId out = b_.one("cast", {y}, CastTo{p_.tensors[p_.o.tensor].element}, "out");
    LoadAt where = at(i_, {}, acc_type_);
    b_.add("store", {out, o}, StoreAt{where.indices});
  }

  const AttentionProblem& p_;
  const AttentionConfig& c_;
  Program program_;
  KernelBuilder b_;
  Type acc_type_, score_type_, row_type_;
  ValueId kt_, v_, mask_;
  VarId head_, i_, j_;
};

}  // namespace

Json to_json(const AttentionConfig& c) {
  Json j = {{"block_queries", c.block_queries}, {"block_keys", c.block_keys}};
  if (c.row_tiles == 0) return j;
  j["row_tiles"] = c.row_tiles;
  j["stages"] = c.stages;
  j["min_blocks"] = c.min_blocks;
  j["shared_queries"] = c.shared_queries;
  j["longest_first"] = c.longest_first;
  return j;
}

AttentionConfig attention_config_from_json(const Json& j) {
  AttentionConfig c;
  c.block_queries = j.value("block_queries", c.block_queries);
  c.block_keys = j.value("block_keys", c.block_keys);
  c.row_tiles = j.value("row_tiles", c.row_tiles);
  c.stages = j.value("stages", c.stages);
  c.min_blocks = j.value("min_blocks", c.min_blocks);
  c.shared_queries = j.value("shared_queries", c.shared_queries);
  c.longest_first = j.value("longest_first", c.longest_first);
  return c;
}

Result<Program> attention(const AttentionProblem& p, const AttentionConfig& c, Target target) {
  if (p.heads % p.kv_heads != 0)
    return error(
        fail(bad_program, "{} heads do not share {} heads of keys evenly", p.heads, p.kv_heads));
  if (c.block_keys % lanes != 0 || c.block_queries < 2)
    return error(
        fail(unsupported, "blocks of {} queries and {} keys", c.block_queries, c.block_keys)
            .expect("at least 2 queries and a multiple of {} keys", lanes));
  if (p.causal && p.causal_offset < 0)
    return error(fail(unsupported, "a causal offset of {}", p.causal_offset).expect("at least 0"));
  if (target != Target::host) return attention_gpu(p, c);
  return AttentionWriter(p, c).write();
}

std::vector<AttentionConfig> attention_configs(const AttentionProblem& p, const Limits& limits) {
  if (limits.target != Target::host) return attention_gpu_configs(p, limits);
  std::vector<AttentionConfig> out;
  // 128 x 128 of scores and the tiles beside it stay in a second-level cache of 512 KiB and more.
  for (int64_t keys : {128, 64, 256})
    for (int64_t queries : {128, 64, 32})
      if (queries <= round_up(p.queries, 32) && keys <= round_up(p.keys, 64))
        out.push_back({queries, keys});
  if (out.empty()) out.push_back({16, 64});
  return out;
}

}  // namespace tessera::tile::build
