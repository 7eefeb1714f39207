#include "rules/common/column_parts.h"

#include <algorithm>
#include <numeric>
#include <ranges>

namespace tessera::rules {
namespace {

bool concatenates(const Flow& flow, NodeId n) {
  return base_name(flow.g.node(n).op) == "aten.cat";
}

bool fusible(const Flow& flow, NodeId n) {
  return is_pointwise(flow, n) || is_cast(flow, n) || is_move(flow, n) || concatenates(flow, n);
}

/// Where a fragment writes: column = first + sum of its column loops.
struct Place {
  Fragment fragment;
  int64_t first = 0;
  std::vector<int64_t> rows;  // extents of the loops over rows, outermost first
  int64_t run = 1;            // adjacent columns
  int64_t runs = 1;           // so many, `distance` apart
  int64_t distance = 0;
};

/// An error where the fragment writes no columns of all rows, or runs of several distances.
Result<Place> place_of(Fragment f, int64_t m, int64_t n) {
  Place p;
  p.first = f.write.map.offset;
  if (p.first >= n) return refuse("a concatenation cuts the rows");
  std::vector<std::size_t> order(f.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto& strides = f.write.map.strides;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  int64_t row = n;  // the stride of the next loop over rows
  for (const std::size_t l : order) {
    const int64_t extent = f.shape[l];
    if (extent == 1) continue;
    if (strides[l] >= n) {
      if (strides[l] != row) return refuse("a concatenation cuts the rows");
      row *= extent;
      p.rows.insert(p.rows.begin(), extent);
    } else if (p.runs == 1 && strides[l] == p.run) {
      p.run *= extent;
    } else if (p.runs == 1 || strides[l] == p.distance * p.runs) {
      if (p.runs == 1) p.distance = strides[l];
      p.runs *= extent;
    } else {
      return refuse("the pieces of a row have no one distance");
    }
  }
  if (row != m * n) return refuse("a concatenation cuts the rows");
  p.fragment = std::move(f);
  return p;
}

struct Expression {
  pointwise::Dag dag;
  std::vector<Read> operands;
};

/// The fragments, whose seeds are the product's result at these columns, as one DAG over `shape`.
Result<Expression> merged(const Flow& flow, const Product& p, const NodeSet& set,
                          const std::vector<const Place*>& places, const std::vector<int64_t>& rows,
                          bool grouped) {
  const Place& head = *places.front();
  const std::size_t rank = p.map.strides.size();
  const int64_t row = p.map.strides[rank - 2];
  const int64_t column = p.map.strides[rank - 1];
  std::vector<int64_t> shape = rows;
  std::vector<int64_t> strides = graph::contiguous_strides(rows);
  for (int64_t& s : strides) s *= row;
  if (grouped) {
    shape.push_back(head.runs);
    strides.push_back(2 * head.run * column);
  }
  shape.push_back(head.run);
  strides.push_back(column);
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == 1) strides[d] = 0;
  std::vector<Seed> seeds;
  for (const Place* at : places)
    seeds.push_back({p.result, {p.map.offset + at->first * column, strides}});
  Merge merge(flow, set, seeds);
  for (const Place* at : places) {
    TESSERA_TRY(f, arrange(flow.g, at->fragment, seeds, shape));
    TESSERA_CHECK(merge.add(f));
  }
  return Expression{std::move(merge.dag), std::move(merge.operands)};
}

/// The same over rows as one dim, or as two where an operand repeats after some.
Result<Expression> merged(const Flow& flow, const Product& p, const NodeSet& set,
                          const std::vector<const Place*>& places, bool grouped,
                          std::vector<int64_t>& rows) {
  rows = {p.m};
  auto one = merged(flow, p, set, places, rows, grouped);
  const std::vector<int64_t>& loops = places.front()->rows;
  if (one || loops.size() != 2) return one;
  rows = loops;
  return merged(flow, p, set, places, rows, grouped);
}

bool pairs(const Place& low, const Place& high) {
  return high.first == low.first + low.run && high.run == low.run && high.runs == low.runs &&
         high.distance == low.distance && high.rows == low.rows &&
         (low.runs == 1 || low.distance == 2 * low.run);
}

}  // namespace

std::vector<NodeSet> concatenating_regions(const Flow& flow, const Product& p) {
  if (p.batch != 1) return {};
  NodeSet reached;
  std::vector<NodeId> todo{p.node};
  bool any = false;
  while (!todo.empty()) {
    const NodeId n = todo.back();
    todo.pop_back();
    for (const NodeId next : flow.after(n)) {
      if (!fusible(flow, next) || !reached.insert(next).second) continue;
      any = any || concatenates(flow, next);
      todo.push_back(next);
    }
  }
  if (!any) return {};
  std::vector<NodeSet> found;
  const std::vector<NodeId> order = flow.in_order(reached);
  for (const NodeId last : std::views::reverse(order)) {
    if (flow.g.value(flow.g.node(last).outputs.at(0)).type.numel() != p.m * p.n) continue;
    NodeSet set{last};
    todo = {last};
    while (!todo.empty()) {
      const NodeId n = todo.back();
      todo.pop_back();
      for (const NodeId previous : flow.before(n))
        if (reached.contains(previous) && set.insert(previous).second) todo.push_back(previous);
    }
    if (std::none_of(set.begin(), set.end(), [&](NodeId n) { return concatenates(flow, n); }))
      continue;
    set.insert(p.node);
    if (flow.outputs(set).size() == 1 && flow.convex(set)) found.push_back(std::move(set));
  }
  return found;
}

Result<ColumnParts> column_parts(const Flow& flow, const Product& p, const NodeSet& set) {
  ColumnParts found;
  found.output = flow.outputs(set).at(0);
  Evaluator evaluator(flow, set, {{p.result, p.anchor()}});
  TESSERA_TRY(fragments, evaluator.evaluate(found.output));
  std::vector<Place> places;
  for (Fragment& f : fragments) {
    TESSERA_TRY(place, place_of(std::move(f), p.m, p.n));
    places.push_back(std::move(place));
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.first < b.first; });
  int64_t column = 0;
  for (std::size_t i = 0; i < places.size();) {
    const Place& at = places[i];
    if (at.first != column) return refuse("the columns are written in another order");
    std::vector<int64_t> rows;
    auto whole = at.runs == 1 ? merged(flow, p, set, {&at}, false, rows)
                              : Result<Expression>(refuse("the pieces of a row read one another"));
    const bool paired = !whole && i + 1 < places.size() && pairs(at, places[i + 1]);
    if (paired) whole = merged(flow, p, set, {&at, &places[i + 1]}, true, rows);
    if (!whole) return error(whole.error());
    ColumnPart part;
    part.first = column;
    part.columns = at.runs * at.run * (paired ? 2 : 1);
    part.period = paired ? 2 * at.run : 0;
    part.dag = std::move(whole->dag);
    if (paired) rows.push_back(at.runs);
    rows.push_back(at.run);
    column += part.columns;
    found.parts.push_back(std::move(part));
    found.reads.push_back(std::move(whole->operands));
    found.shapes.push_back(std::move(rows));
    i += paired ? 2 : 1;
  }
  if (column != p.n) return refuse("the columns are not all written");
  return found;
}

}  // namespace tessera::rules
