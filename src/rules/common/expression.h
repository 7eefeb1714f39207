// The value of one tensor of a region, as a loop nest that reads tensors outside the region.
//
// An index map sends a point of the loop nest to an element of a storage: offset + sum(stride[i] *
// loop[i]). Going backwards from an output, every pointwise node turns the map of its result into
// maps of its arguments; views vanish in `graph::resolve`; a concatenation picks the piece that the
// loop lies in, and where the loop lies in two pieces it is cut at the boundary into two loop
// nests. A loop that runs over several dims of a tensor at once is split.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rules/common/flow.h"

namespace tessera::rules {

inline constexpr Code not_expressible{"TS0211", "rules.not_expressible"};
/// Why a rule does not take a place: the text of its rejection.
template <class... Args>
tl::unexpected<Diagnostic> refuse(fmt::format_string<Args...> f, Args&&... args) {
  return error(fail(not_expressible, f, std::forward<Args>(args)...));
}

struct IndexMap {
  int64_t offset = 0;
  std::vector<int64_t> strides;  // one a loop
  friend auto operator<=>(const IndexMap&, const IndexMap&) = default;
};

/// A tensor element read at every point of the loop nest.
struct Read {
  ValueId base;
  IndexMap map;  // over base's storage
  friend auto operator<=>(const Read&, const Read&) = default;
};

/// One loop nest: `write` takes the single result of `dag`, whose operand i is reads[i].
struct Fragment {
  std::vector<int64_t> shape;
  std::vector<Read> reads;
  pointwise::Dag dag;
  Read write;
};

class Evaluator {
 public:
  /// What an anchor value is, at the points of this map over its storage: an index into the DAG.
  using Anchor = std::function<Result<int>(Evaluator&, ValueId, const IndexMap&)>;

  /// `interior`: the nodes to look into. `anchors`: values where the descent ends in something of
  /// the rule's own.
  Evaluator(const Flow& flow, const NodeSet& interior, std::map<ValueId, Anchor> anchors);

  /// The loop nests that compute `value` (a base value made by an interior node or an anchor); more
  /// than one where a concatenation cuts them.
  Result<std::vector<Fragment>> evaluate(ValueId value);
  /// The loop nests that read `operand`, with its own shape as loops.
  Result<std::vector<Fragment>> evaluate(const graph::Operand& operand);

  // For anchors.
  /// Coordinates of a map over the storage of a dense tensor, one for each of its dims.
  struct Coordinate {
    int64_t start = 0;
    std::vector<int64_t> steps;  // one a loop
  };
  Result<std::vector<Coordinate>> coordinates(const std::vector<int64_t>& shape,
                                              const std::vector<int64_t>& strides,
                                              const IndexMap& map);
  /// The same for the value itself.
  Result<std::vector<Coordinate>> coordinates_of(ValueId value, const IndexMap& map);
  /// Reads the tensor `value`, broadcast (aligned at the right) to these coordinates.
  Result<int> read(ValueId value, const std::vector<Coordinate>& at);
  Result<int> read(const graph::Operand& operand, const std::vector<Coordinate>& at);
  /// The storage of `base` itself, without looking into its producer.
  int read_storage(ValueId base, const IndexMap& map);
  pointwise::Dag& dag() { return fragment_.dag; }

 private:
  struct Cut {
    int loop = -1;
    int64_t at = 0;       // loop indices below go to the first part
    bool refine = false;  // instead of cutting: split the loop into (n / at, at)
  };
  Result<std::vector<Fragment>> run(std::vector<int64_t> shape, IndexMap write,
                                    const std::function<Result<int>(const IndexMap&)>& root,
                                    ValueId target);
  Result<int> element(ValueId base, const IndexMap& map);
  Result<int> compute(NodeId n, ValueId base, const IndexMap& map);
  Result<int> concatenation(const graph::Node& node, std::vector<Coordinate> at);
  Result<int> move(const graph::Node& node, const std::vector<Coordinate>& at);
  std::optional<double> constant_of(ValueId base) const;
  /// What another kernel, or PyTorch, computed and stored.
  [[nodiscard]] bool is_loaded(ValueId v) const;
  /// A product of 16 bits that is taken from what was loaded, or the reverse, is rounded as eager
  /// rounds it: E[x^2] - E[x]^2 of equal elements is 0 where both are rounded or neither is.
  void round_beside_loaded(const graph::Node& difference,
                           std::vector<std::pair<ValueId, int>>& arguments);

  const Flow& flow_;
  const NodeSet& interior_;
  std::map<ValueId, Anchor> anchors_;
  Fragment fragment_;
  std::map<std::pair<ValueId, IndexMap>, int> known_;
  std::optional<Cut> cut_;
};

}  // namespace tessera::rules
