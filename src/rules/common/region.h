// Building blocks of a rule: grow a region around an anchor, restate its outputs over one fixed
// index space, merge them into one expression DAG, and write the pattern down.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rules/common/expression.h"

namespace tessera::rules {

/// A value that the kernel holds per element of the index space before the DAG: an accumulator, a
/// normalized element.
struct Seed {
  ValueId base;
  IndexMap map;  // over the fixed index space
};

/// The fragment with its loops in the order of its first seed's storage (or of what it writes,
/// without seeds), regrouped into `shape`. An error says which tensor does not follow.
Result<Fragment> arrange(const graph::Graph& g, const Fragment& f, std::span<const Seed> seeds,
                         const std::vector<int64_t>& shape);

/// Fragments over one index space as one DAG: seeds are operands 0 .. s-1, other tensors follow.
class Merge {
 public:
  Merge(const Flow& flow, const NodeSet& interior, std::vector<Seed> seeds);
  Status add(const Fragment& f);

  pointwise::Dag dag;
  std::vector<Read> operands;  // without the seeds
  std::vector<Read> writes;    // one a result

 private:
  const Flow& flow_;
  const NodeSet& interior_;
  std::vector<Seed> seeds_;
  std::map<std::string, int> known_;
};

/// Grows `start` by consumers that are pointwise, casts or moves, as long as `attempt` accepts the
/// set and the set stays convex. The first refusals are reported as rejections of `rule`.
NodeSet grow(const Flow& flow, NodeSet start, const std::function<Status(const NodeSet&)>& attempt,
             std::string_view rule, std::vector<Rejection>* rejections);

/// Grows `start` backwards from `value` by the pointwise nodes, casts and moves that make it. The
/// node that makes `value` may have other readers (the value is then stored as well) when
/// `keep_shared`; the others may not.
NodeSet grow_back(const Flow& flow, NodeSet start, ValueId value, bool keep_shared,
                  const std::function<Status(const NodeSet&)>& attempt);

/// Numbers a pattern's tensors: inputs by first use, then outputs.
class Tensors {
 public:
  explicit Tensors(const graph::Graph& g) : g_(g) {}
  TensorView input(const Read& r, const std::vector<int64_t>& shape);
  TensorView input(const graph::Operand& o);
  /// After the last input.
  TensorView output(const Read& r, const std::vector<int64_t>& shape);

  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  /// Bytes that must move at least: every element that some view reaches, once a tensor.
  [[nodiscard]] double min_bytes() const;

 private:
  struct Reach {
    double elements = 0;
    std::set<IndexMap> seen;
  };
  void reach(const Read& r, const std::vector<int64_t>& shape);

  const graph::Graph& g_;
  std::map<ValueId, Reach> reach_;
};

/// The pattern of this region with everything but body, flops and summary details that the rule
/// adds.
Pattern make_pattern(const Flow& flow, std::string_view rule, const NodeSet& set, Tensors tensors,
                     std::shared_ptr<const PatternBody> body, Precision precision);

/// The precision class of arithmetic on this type in a graph; an error for types that no class
/// covers. `matrix`: whether the tensor cores' tf32 mode applies to float32.
Result<Precision> precision_for(const graph::Graph& g, DType type, bool matrix);

/// "bias, gelu, add": the pointwise ops of the set in order, for summaries.
std::string op_list(const Flow& flow, const NodeSet& set);
/// A sentence when no dim is contiguous, or its rows do not start at 16-byte boundaries; empty when
/// all is well.
std::string alignment_note(std::string_view name, const TensorView& view);
std::string dims_text(const std::vector<int64_t>& shape);

}  // namespace tessera::rules
