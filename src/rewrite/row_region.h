// A region of a graph that computes each row of its result from the same row of one value: what may
// be inside, where it may start, and what it computes for given rows.
#pragma once

#include <optional>
#include <vector>

#include "rewrite/rewrite.h"

namespace tessera::rewrite {

/// The different elements of a row, or 1: a statistic of it.
using Row = std::vector<double>;

/// How often each of the different elements stands in the row: sums weigh them, so that a row may
/// be long and cheap.
using Counts = std::vector<double>;

/// exact: in double, as if nothing were rounded. own: every op's result is rounded to its type, and
/// what it computes inside to float, so that it overflows where PyTorch's op does. own_high,
/// own_low: as own, and every sum is off by a rounding of its largest partial sum, as in another
/// order of its terms: up and down in turn, from up or from down. What is left of a difference of
/// sums then shows.
enum class Arithmetic { exact, own, own_high, own_low };

/// A number as ops compute with it inside, which is in float but for float64; a row's numbers as
/// values of the type.
double computed(double x, DType type);
Row held(Row row, DType type);

struct RowRegion {
  ValueId x;
  NodeId last;
  std::vector<NodeId> nodes;     // in execution order
  std::vector<ValueId> weights;  // [C] values from outside
  bool reduces = false;
  std::size_t dim = 0;  // that rows lie along; the last one until a reduction says another
};

/// The element i of a row; a statistic is the same everywhere.
double at(const Row& row, std::size_t i);

/// The op may belong to a region: pointwise, a reduction, or one that keeps every value.
bool may_be_inside(const Graph& g, const Node& n);

/// Every value above the node that could be x, nearest last: larger regions are tried first.
std::vector<ValueId> region_starts(const Graph& g, NodeId last);

/// The dims that reductions near above the node reduce, the last dim first.
std::vector<std::size_t> region_dims(const Graph& g, NodeId last);

/// Fills the region between its x and its last node; false when it is none.
bool fill_region(const Graph& g, RowRegion& r);

/// The region's result for this x and these weights, each of as many elements as `counts`; nullopt
/// where an op inside has no meaning on numbers.
std::optional<Row> evaluate_rows(const Graph& g, const RowRegion& r, const Row& x,
                                 const std::vector<Row>& weights, const Counts& counts,
                                 Arithmetic arithmetic);

}  // namespace tessera::rewrite
