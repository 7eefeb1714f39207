// Index terms: integer expressions over the coordinates, loop counters and parameters of a kernel.
//
// A term means an integer of mathematics for every admissible assignment of its symbols; evaluation
// is exact in 64 bits or fails (evaluate.h). Division rounds down and the remainder is never
// negative, as in Python; divisors are at least 1. Bitwise operators read negative integers as
// two's complement without end, as in Python. Predicates are terms whose value is true or false.
// docs/terms.md is the whole of it.
//
// A Pool owns the nodes and holds every node once, so two terms of one pool are the same text
// exactly if they are the same pointer. Terms are immutable, live as long as their pool, and mix
// with no other pool's. A pool belongs to one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "diag/result.h"

#include "term/facts.h"

namespace tessera::term {

inline constexpr Code bad_syntax{"TS0821", "term.bad_syntax"};
inline constexpr Code bad_operand{"TS0822", "term.bad_operand"};
inline constexpr Code bad_symbol{"TS0823", "term.bad_symbol"};
inline constexpr Code overflow{"TS0824", "term.overflow"};
inline constexpr Code inadmissible{"TS0825", "term.inadmissible"};

enum class Op : uint8_t {
  constant,
  truth,       // a constant predicate: value 0 or 1
  coordinate,  // in [0, extent), extent a constant: lane, register, stage slot
  counter,     // of a loop: in [lower, upper), either of which may be a term
  parameter,   // an unknown of the whole kernel: an extent, a stride, a block index
  read,        // name[t, ...]: what a memory holds there; equal arguments give equal values
  add,
  subtract,
  multiply,
  divide,     // floor(a / b), b >= 1
  remainder,  // a - b * floor(a / b), b >= 1
  bit_xor,
  bit_and,
  bit_or,
  shift_left,   // a * 2^b, 0 <= b <= 62
  shift_right,  // floor(a / 2^b), 0 <= b <= 62
  min,
  max,
  select,  // (p, a, b): a where p holds, else b; only that one is evaluated
  equal,
  not_equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  logical_not,
};

struct Node;
class Pool;

/// A handle of a node; == is identity, which within a pool is equality of text.
class Term {
 public:
  Term() = default;
  explicit Term(const Node* node) : node_(node) {}
  const Node* operator->() const { return node_; }
  [[nodiscard]] const Node* node() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  [[nodiscard]] Pool& pool() const;
  friend bool operator==(Term, Term) = default;

 private:
  const Node* node_ = nullptr;
};

/// Where a symbol's values lie: lower <= value < upper, and value = residue modulo `modulus`.
/// Bounds are terms over symbols that were declared before; one that is left out is unknown.
struct Bounds {
  Term lower;
  Term upper;
  int64_t modulus = 1;
  int64_t residue = 0;
};

/// A name of a pool. For Op::read, `bounds` are those of what is read.
struct Symbol {
  std::string name;
  Op kind = Op::parameter;
  Bounds bounds;
  Facts facts;        // the constant part of the bounds
  int arity = 0;      // of a read
  int32_t index = 0;  // in the order of declaration, in which witnesses are least
  bool derived = false;
};

struct Node {
  Op op = Op::constant;
  int64_t value = 0;               // of constant and truth
  const Symbol* symbol = nullptr;  // of coordinate, counter, parameter and read
  std::vector<Term> args;
  Facts facts;       // of predicates: nothing
  int32_t id = 0;    // in the order of making; arguments come before what is made of them
  int32_t size = 1;  // nodes of the term as a tree, at most 2^30
  Pool* pool = nullptr;

  [[nodiscard]] bool predicate() const { return op >= Op::equal || op == Op::truth; }
  [[nodiscard]] bool leaf() const { return op <= Op::parameter; }
};

struct Rule;

class Pool {
 public:
  Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// In [0, extent). TS0823 if extent < 1, if the name is no name, or if it means something else
  /// already. Declaring the same again gives the same term; so for all symbols.
  Result<Term> coordinate(std::string_view name, int64_t extent);
  /// In [lower, upper); the range may be empty.
  Result<Term> counter(std::string_view name, Term lower, Term upper);
  Result<Term> parameter(std::string_view name, const Bounds& bounds = {});
  /// A parameter or coordinate that a decision procedure makes for itself. TS0823 if the name was
  /// declared otherwise: it is never a user's symbol.
  Result<Term> derive(std::string_view name, Op kind, const Bounds& bounds);
  /// A memory that `read` reads, with the bounds of what it holds.
  Result<const Symbol*> memory(std::string_view name, int arity, const Bounds& bounds = {});
  [[nodiscard]] const Symbol* find(std::string_view name) const;
  /// The term of a coordinate, counter or parameter.
  Term symbol(const Symbol* s);

  Term constant(int64_t value);
  Term truth(bool value);
  /// TS0822 if an operand has the wrong kind (number or predicate), if a divisor may be below 1, or
  /// if a shift's amount may lie outside of [0, 62].
  Result<Term> make(Op op, std::vector<Term> args);
  /// TS0822 if the number of arguments is not the memory's arity.
  Result<Term> read(const Symbol* memory, std::vector<Term> args);
  /// As make, for operands known to be right; wrong ones are our fault and throw std::logic_error.
  Term must(Op op, std::vector<Term> args);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  /// What simplify knows of a node: `next` has the same value; `rule` is what made it of `before`,
  /// the node with simplified arguments. Without `next` nothing is known yet; next == the node
  /// itself: it is in normal form.
  struct Step {
    Term before;
    const Rule* rule = nullptr;
    Term next;
    Term normal;
  };
  Step& step(Term t);
  int64_t gave_up = 0;  // how often simplify reached its limit of steps

 private:
  Result<const Symbol*> declare(Symbol symbol);
  Term intern(Node node);

  struct Hash {
    std::size_t operator()(const Node* n) const;
  };
  struct Same {
    bool operator()(const Node* a, const Node* b) const;
  };
  std::deque<Node> nodes_;
  std::unordered_set<const Node*, Hash, Same> known_;
  std::deque<Symbol> symbols_;
  std::map<std::string, const Symbol*, std::less<>> names_;
  std::deque<Step> steps_;
};

/// Operators on terms of one pool. Divisors are constants >= 1 or terms whose facts say so; see
/// Pool::must.
Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b) = delete;  // say floor_div
Term operator+(Term a, int64_t b);
Term operator-(Term a, int64_t b);
Term operator*(Term a, int64_t b);
Term floor_div(Term a, Term b);
Term floor_div(Term a, int64_t b);
Term floor_mod(Term a, Term b);
Term floor_mod(Term a, int64_t b);
Term bit_xor(Term a, Term b);
Term less(Term a, Term b);
Term less_equal(Term a, Term b);
Term equals(Term a, Term b);
Term logical_and(Term a, Term b);
Term logical_or(Term a, Term b);
Term logical_not(Term a);

/// Python syntax with the fewest brackets: `(m * 128 + lane // 4) % 8 ^ r`, `min(a, b)`, `select(p,
/// a, b)`, `perm[i, j]`.
std::string to_string(Term t);
/// The inverse of to_string for terms over the pool's names; beyond it: chained comparisons, > and
/// >=, `a if p else b`. TS0821 with the column, TS0822, TS0823 for a name that is not declared.
Result<Term> parse(Pool& pool, std::string_view text);

/// The coordinates, counters and parameters of a term, and of the bounds of these, in the order of
/// declaration.
std::vector<Term> symbols_of(const std::vector<Term>& terms);
/// True if `t` has a node for which `test` is true.
template <class Test>
bool any_node(Term t, Test&& test) {
  if (test(t)) return true;
  for (Term a : t->args)
    if (any_node(a, test)) return true;
  return false;
}

}  // namespace tessera::term
