// Terms as expressions of C++: `int` where the value fits 32 bits in every launch, else
// `int64_t`.
//
// A power of two divides by a shift and leaves its remainder by a mask, which round down also below
// zero. Other divisors of numbers that are not negative divide unsigned.
#pragma once

#include <functional>

#include "lower/range.h"

namespace tessera::lower {

/// What is wrong with a term, for whoever knows where it stands.
using Refuse = std::function<void(Diagnostic)>;

class Expressions {
 public:
  /// Where `long_alone`, every number is an `int64_t`: for the host side, whose parameters are.
  Expressions(Ranges& ranges, Refuse refuse, bool long_alone = false)
      : ranges_(ranges), refuse_(std::move(refuse)), long_alone_(long_alone) {}

  /// From here on the term's value has this name in the text, in the type of the term.
  void name(term::Term t, std::string text) { names_[t.node()] = std::move(text); }
  using Named = std::unordered_map<const term::Node*, std::string>;
  [[nodiscard]] const Named& named() const { return names_; }
  /// The names of an earlier time: at the end of the block that the others belong to.
  void restore(Named names) { names_ = std::move(names); }
  [[nodiscard]] bool is_long(term::Term t);
  /// A division by what is no constant, and never 0.
  [[nodiscard]] bool is_costly(term::Term t);
  /// "int", "int64_t", "bool"
  std::string type_of(term::Term t);
  /// Of the term's type, without brackets around it.
  std::string text(term::Term t);
  /// The same in brackets where it is more than a name, a number or a call.
  std::string operand(term::Term t);

 private:
  struct Typed {
    std::string text;
    bool is_long = false;
  };
  std::string in(const Typed& x, bool as_long) const;
  Typed typed(term::Term t);
  Typed leaf(term::Term t);
  Typed converted(term::Term t, const Typed& computed);
  Typed division(term::Term t);
  Typed arithmetic(term::Term t);
  std::string logic(term::Term t);

  Ranges& ranges_;
  Refuse refuse_;
  bool long_alone_;
  Named names_;
};

/// `(x)` without its brackets, where they belong together.
std::string without_brackets(std::string text);

}  // namespace tessera::lower
