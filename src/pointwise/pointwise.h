// Pointwise expressions: the part of a pattern that is computed element by element, as a DAG over
// operands.
//
// One record a function states everything about it: its arity, its value in double, a C expression
// that is valid in CUDA C++ and in host C++ alike, over float operands, and the ATen op that it is.
// The records lie in pointwise/functions/, a family a file. Emitted kernels include the helper
// functions of `prelude` (gelu, erf, sigmoid, ... under the prefix `tsr_`).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::pointwise {

struct Function {
  std::string_view name;  // "add", "mul", "gelu_tanh", "silu", "where", ...
  int arity;
  double (*eval)(std::span<const double>);
  std::string_view expression;  // "({0} + {1})", "tsr_gelu_tanh({0})"
  /// The ATen op that is this function of `self` and, with two arguments, `other`: "aten.mul". Ops
  /// whose arguments need more are in graph/ops/.
  std::string_view aten = "";
  /// C text of a helper that `expression` calls and that prelude.cpp lacks, for both targets:
  /// "TSR_FN float tsr_twice(float x) { return x + x; }\n". It may call the helpers of prelude.cpp.
  std::string_view helper = "";
};

/// One file of pointwise/functions/: its records.
struct Family {
  std::span<const Function> functions;
};

namespace families {
std::span<const Family* const> all();
}

std::span<const Function> functions();
const Function* find(std::string_view name);

/// A DAG in topological order; the last entries may be several results.
struct Dag {
  struct Node {
    enum class Kind : uint8_t { operand, constant, call } kind = Kind::call;
    int operand = -1;                    // Kind::operand: index into the operand list of its owner
    double constant = 0;                 // Kind::constant
    const Function* function = nullptr;  // Kind::call
    std::vector<int> arguments;          // Kind::call: indices of earlier nodes
  };
  std::vector<Node> nodes;
  std::vector<int> results;  // node indices, one an output

  int add_operand(int operand);
  int add_constant(double value);
  int add_call(std::string_view function, std::vector<int> arguments);
  [[nodiscard]] bool empty() const { return nodes.empty(); }
  [[nodiscard]] int operand_count() const;  // highest operand index + 1
  /// The same with nodes in one order: the operands, then what each result needs, depth first.
  [[nodiscard]] Dag ordered() const;
  /// The results for these operand values.
  [[nodiscard]] std::vector<double> eval(std::span<const double> operands) const;
  /// `add(gelu_tanh(%0), mul(%1, 0.5))`, one result after the other; canonical: equal text means
  /// equal meaning.
  [[nodiscard]] std::string to_string() const;
};

/// C source text with the helper functions `tsr_*`, `static inline` (host) or `__device__
/// __forceinline__` (CUDA).
enum class Target : uint8_t { host, cuda };
std::string prelude(Target target);
/// The DAG as C statements over float variables: operand i is the text operands[i]; returns the
/// statements, and the expressions of the results in `results`.
std::string emit(const Dag& dag, std::span<const std::string> operands, std::string_view prefix,
                 std::vector<std::string>* results);

}  // namespace tessera::pointwise
