#include "rewrite/score_mask.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/operand.h"

namespace tessera::rewrite {
namespace {

/// Whether facts (python/tessera/common/facts.py) give every element.
bool says_all(const Json& facts) {
  return facts.contains("scalar") || facts.contains("diagonal") || facts.contains("upper");
}

/// Whether the last two dims are the base's: other dims may repeat or choose.
bool has_whole_matrices(const Operand& o, const TensorType& base) {
  const std::size_t r = o.shape.size(), b = base.shape.size();
  bool whole = r >= 2 && b >= 2 && o.offset == 0;
  for (std::size_t d = 1; whole && d <= 2; ++d)
    whole = o.shape[r - d] == base.shape[b - d] && o.strides[r - d] == base.strides[b - d];
  return whole;
}

/// Whether score (row, column) is masked by this term; nullopt when the mask is not known, or adds
/// something finite.
std::optional<bool> masks_out(const Graph& g, const MaskTerm& term, int64_t row, int64_t column) {
  const auto& shape = g.value(term.value).type.shape;
  std::vector<int64_t> index(shape.size(), 0);
  const std::size_t r = shape.size();
  // What facts say of numbers and masks holds for all batches and heads.
  const Json& facts = facts_of_mask(g, term.value);
  const bool said =
      facts.contains("scalar") || facts.contains("diagonal") || facts.contains("upper");
  for (std::size_t i = 0; i + 2 < r && !said; ++i) {
    if (shape[i] != 1) return std::nullopt;  // differs by batch or head
  }
  if (r > 0) index[r - 1] = shape[r - 1] == 1 ? 0 : column;
  if (r > 1) index[r - 2] = shape[r - 2] == 1 ? 0 : row;
  const auto value = element(g, term.value, index);
  if (!value) return std::nullopt;
  if (term.replaces) return (*value != 0) == term.where;
  if (*value == 0) return false;
  return *value <= low_enough ? std::optional(true) : std::nullopt;
}

bool is_small(int64_t rows, int64_t columns) {
  return rows * columns <= 65536;
}

/// Looks at all positions of small masks; of large ones at the borders, along the diagonal and at
/// random ones.
std::vector<std::pair<int64_t, int64_t>> positions(int64_t rows, int64_t columns) {
  std::vector<std::pair<int64_t, int64_t>> out;
  if (is_small(rows, columns)) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) out.emplace_back(i, j);
    }
    return out;
  }
  const auto add = [&](int64_t i, int64_t j) {
    if (i >= 0 && i < rows && j >= 0 && j < columns) out.emplace_back(i, j);
  };
  for (int64_t i = 0; i < rows; i += std::max<int64_t>(1, rows / 4096)) {
    for (const int64_t j : {int64_t{0}, i - 2, i - 1, i, i + 1, i + 2, columns - 1}) add(i, j);
  }
  for (int64_t j = 0; j < columns; j += std::max<int64_t>(1, columns / 4096))
    add(0, j), add(rows - 1, j);
  std::mt19937 generator(1);
  for (int k = 0; k < 20000; ++k)
    add(static_cast<int64_t>(generator() % static_cast<uint64_t>(rows)),
        static_cast<int64_t>(generator() % static_cast<uint64_t>(columns)));
  return out;
}

}  // namespace

const Json& facts_of_mask(const Graph& g, ValueId mask) {
  static const Json none = Json::object();
  const Operand o = resolve(g, mask);
  const Value& base = g.value(o.base);
  return has_whole_matrices(o, base.type) ? base.facts : none;
}

void tell_base(Graph& g, ValueId mask) {
  const Json& facts = g.value(mask).facts;
  const Operand o = resolve(g, mask);
  Value& base = g.value(o.base);
  if (!says_all(facts) || says_all(base.facts) || !has_whole_matrices(o, base.type)) return;
  const std::size_t r = o.shape.size();
  if (base.type.numel() == o.shape[r - 1] * o.shape[r - 2]) base.facts.update(facts);
}

Json negated(const Json& facts) {
  const auto kept = [&](const char* kind) {
    Json out = {{kind, true}};
    for (const char* bound : {"lower", "upper"})
      if (facts.contains(bound)) out[bound] = facts.at(bound);
    return out;
  };
  const auto diagonal = [&](const char* kind, int64_t further) {
    return Json{{kind, true}, {"diagonal", facts.at("diagonal").get<int64_t>() + further}};
  };
  if (facts.contains("lower_triangular")) return diagonal("upper_triangular", 1);
  if (facts.contains("upper_triangular")) return diagonal("lower_triangular", -1);
  if (facts.contains("band")) return kept("outside_band");
  if (facts.contains("outside_band")) return kept("band");
  return Json::object();
}

MaskKind classify(const Graph& g, const std::vector<MaskTerm>& masks, int64_t rows,
                  int64_t columns) {
  bool any = false;
  bool causal = true;
  for (const auto& [i, j] : positions(rows, columns)) {
    bool masked = false;
    for (const MaskTerm& term : masks) {
      const auto m = masks_out(g, term, i, j);
      if (!m) return MaskKind::unknown;
      masked |= *m;
    }
    any |= masked;
    causal &= masked == (j > i);
  }
  return !any ? MaskKind::none : causal ? MaskKind::causal : MaskKind::other;
}

bool may_leave_no_key(const Graph& g, const std::vector<MaskTerm>& masks, MaskKind kind,
                      int64_t rows, int64_t columns) {
  if (kind == MaskKind::none || kind == MaskKind::causal) return false;
  const bool infinite = std::any_of(masks.begin(), masks.end(), [&](const MaskTerm& term) {
    return term.replaces ? !std::isfinite(term.masked)
                         : is_floating(g.value(term.value).type.dtype);
  });
  if (!infinite) return false;
  if (kind == MaskKind::unknown || !is_small(rows, columns)) return true;
  for (int64_t i = 0; i < rows; ++i) {
    bool left = false;
    for (int64_t j = 0; j < columns && !left; ++j) {
      left = std::none_of(masks.begin(), masks.end(), [&](const MaskTerm& term) {
        return masks_out(g, term, i, j).value_or(true);
      });
    }
    if (!left) return true;
  }
  return false;
}

}  // namespace tessera::rewrite
