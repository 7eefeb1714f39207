// Rules find the subgraphs that deserve a kernel of their own.
//
// A Pattern is a rule matched at a place in a graph. Its meaning is the ATen nodes that it covers,
// executed from its inputs to its outputs; in fp64 that is what every kernel for it is verified
// against. Its body restates the same for realizers, free of the graph: views over numbered
// tensors, and expression DAGs. The body's signature is the registry's key, so equal signatures
// must mean interchangeable kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/arch.h"
#include "graph/graph.h"
#include "graph/operand.h"

#include "kernel/library_call.h"
#include "pointwise/pointwise.h"

namespace tessera::rules {

using graph::NodeId;
using graph::ValueId;

/// A strided view on one of a pattern's tensors: `tensor` counts the inputs first, then the
/// outputs.
struct TensorView {
  int tensor = -1;
  DType dtype = DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; 0 where broadcast
  int64_t offset = 0;            // in elements
  [[nodiscard]] int64_t numel() const;
  [[nodiscard]] Json to_json() const;
  /// `t0 bf16 (128,512,768):(393216,768,1)+0`.
  [[nodiscard]] std::string to_string() const;
};

/// The part of a pattern that realizers read; one derived struct a rule, in the rule's header.
struct PatternBody {
  virtual ~PatternBody() = default;
  [[nodiscard]] virtual Json to_json() const = 0;
};

/// How verification fills a pattern's inputs, where that follows from the pattern's meaning.
struct InputRoles {
  /// Over how many elements of a weight one result sums: weights are scaled by its root, so that
  /// activations stay in range. 0: over all dims of the weight but the first.
  int64_t fan_in = 0;
  /// The views that infinities and NaN are put into; empty: all activations.
  std::vector<TensorView> non_finite;
  [[nodiscard]] Json to_json() const;
};

enum class Reuse : uint8_t { fresh, adapt, reuse };  // NEW, ADAPT, REUSE

/// Who has a kernel for a pattern on an architecture: realizers, by name.
struct Makers {
  std::vector<std::string> synthesized;  // write one
  std::vector<std::string> library;      // call a vendor's
  /// Realizers that would write one, with why they do not.
  std::vector<std::pair<std::string, std::string>> refused;
};
/// "wgmma_gemm, wgmma_split_k: host has no wgmma and TMA": a line a reason, in the order given.
std::vector<std::string> by_reason(const std::vector<std::pair<std::string, std::string>>& refused);

struct Pattern {
  std::string id;       // "p03", unique in its discovery
  std::string rule;     // "gemm"
  std::string summary;  // "65536x3072x768 bf16, + bias, gelu(tanh)": for people
  /// What it covers, in execution order: with values for `inputs` (and `constants`) these nodes
  /// compute `outputs`. Views that it folds are among them even when others use them too.
  std::vector<NodeId> nodes;
  /// The nodes of these that do work. Two patterns overlap when they share one.
  std::vector<NodeId> computing;
  /// Inputs of the module whose content the body holds as numbers (guarded by their facts); not
  /// tensors of the kernel.
  std::vector<ValueId> constants;
  std::vector<ValueId> inputs;  // values that exist before it, in the order of the kernel's tensors
  std::vector<ValueId> outputs;  // values that it must produce, with the graph's shapes and strides
  std::shared_ptr<const PatternBody> body;
  InputRoles roles;
  Precision precision = Precision::fp32;

  // The roofline: what the arithmetic and the bytes alone cost, and what the unfused ops cost at
  // the same rates.
  double flops = 0;
  double min_bytes = 0;      // each input and output once
  double unfused_bytes = 0;  // sum over the covered ops
  double floor_ms = 0;
  double unfused_ms = 0;  // estimate for op-by-op execution
  double priority = 0;    // estimated ms to win

  std::optional<Makers> makers;  // none: nobody was asked

  // Registry and examples.
  Reuse reuse = Reuse::fresh;
  std::string reuse_detail;
  std::vector<std::string> examples;
  std::vector<std::string> challenges;

  /// Canonical text of what must be computed: rule, shapes, layouts, dtypes, expression, precision.
  /// The registry's key.
  [[nodiscard]] std::string signature() const;
};

/// A region looked at and not taken.
struct Rejection {
  std::string rule;
  std::vector<NodeId> nodes;
  std::string reason;
};

struct Matches {
  std::vector<Pattern> patterns;  // may overlap; the composer chooses
  std::vector<Rejection> rejections;
};

using kernel::LibraryCall;

/// What a body means is said once more, in torch, by `src/rules/<name>_reference.py`: tests hold
/// every body that is found to the nodes that it covers.
struct Rule {
  std::string_view name;
  std::string_view doc;
  /// All places in the graph, each with its legality settled. Fills nodes, inputs, outputs, body,
  /// roles, summary, flops.
  Matches (*match)(const graph::Graph&);
  /// Regions that look like its pattern and are none, with what stands in the way; may be nullptr.
  std::vector<Rejection> (*near_misses)(const graph::Graph&) = nullptr;
  /// Calls of PyTorch's ops that compute the pattern in other ways than its own nodes; each becomes
  /// a candidate. nullptr where there are none, or where a realizer of its own makes them.
  std::vector<LibraryCall> (*library)(const Pattern&) = nullptr;
};

std::span<const Rule* const> all();
/// The rule of this name; nullptr when there is none.
const Rule* find(std::string_view name);
/// The call of one ATen op. `arguments`: by schema name, numbers and texts as they are, a tensor as
/// {"view": TensorView} on one of the pattern's inputs. Its results are the pattern's outputs, in
/// order.
LibraryCall op_call(std::string_view op, Json arguments);

struct Discovery {
  std::string arch;               // the architecture that figures and examples are for
  std::vector<Pattern> patterns;  // by falling priority; overlapping alternatives included
  std::vector<Rejection> rejections;
  /// Computing nodes that no pattern covers, with the reason, for the plan's leftover list.
  std::vector<std::pair<NodeId, std::string>> uncovered;
  /// Groups of them, with their neighbours, that `discover --propose` would take
  /// (proposable.h).
  std::vector<std::vector<NodeId>> proposable;
  /// What could not be looked up: a missing examples index, rules without a vetted example.
  std::vector<std::string> notes;
};

/// Runs every rule and fills the roofline figures and priorities.
Discovery discover(const graph::Graph& g, const arch::Arch& arch);

/// The discovery as JSON (schema tessera.discovery/1) and as a table for people.
Json to_json(const graph::Graph& g, const Discovery& d);
std::string to_table(const graph::Graph& g, const Discovery& d);
/// A pattern as the evaluator and composer need it: id, rule, nodes, inputs, outputs, signature,
/// body.
Json to_json(const graph::Graph& g, const Pattern& p);

}  // namespace tessera::rules
