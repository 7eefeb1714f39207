// How integers of terms are written for Z3: as bit vectors, or as Z3's integers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "smt/session.h"
#include "term/term.h"

namespace tessera::smt {

class Numbers {
 public:
  explicit Numbers(Session& session) : session_(session) {}
  virtual ~Numbers() = default;
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  /// The logic of SMT-LIB that conditions belong to; `reads`: with functions.
  [[nodiscard]] virtual const char* logic(bool reads) const = 0;
  [[nodiscard]] virtual Sort sort() const = 0;
  virtual Expr constant(int64_t value) = 0;
  /// A new unknown that agrees with the facts.
  virtual Expr unknown(const std::string& name, const term::Facts& facts) = 0;
  /// The condition that a value, which some expression has, agrees with the facts.
  virtual Expr agrees(Expr value, const term::Facts& facts) = 0;
  /// The value of t, from Op::add to Op::shift_right, by those of its arguments. `encode` gives the
  /// values of other terms over the same symbols.
  using Encode = std::function<Expr(term::Term)>;
  virtual Expr arithmetic(term::Term t, const std::vector<Expr>& arguments,
                          const Encode& encode) = 0;
  virtual Expr less(Expr a, Expr b) = 0;
  virtual Expr less_equal(Expr a, Expr b) = 0;
  /// In the model of the session's last check; nullopt if it does not fit 64 bits.
  virtual std::optional<int64_t> value(Expr e) = 0;

  /// Conditions that hold of all that was made.
  std::vector<Expr> conditions;
  /// Whether something was made of which less is known than there is: then a model may be none of
  /// the terms.
  bool abstract = false;

 protected:
  Session& session_;
};

/// The bits of two's complement that every term among `terms`, every bound of their symbols and
/// every part of these fits in; nullopt if one has no bounds within 64 bits.
std::optional<unsigned> common_width(const std::vector<term::Term>& terms);

/// Bit vectors of `width` bits, which no value may leave: then arithmetic does not wrap.
std::unique_ptr<Numbers> bit_vectors(Session& session, unsigned width);

/// Z3's integers. Division by constants is Z3's own; a term as divisor gives quotient and rest as
/// unknowns. So do bitwise operators give bits, where an operand has at most 32; where both are
/// wider, the operator is a function of which nothing is known.
std::unique_ptr<Numbers> integers(Session& session);

}  // namespace tessera::smt
