// What the names of a kernel's text mean where it is being read. For the readers of parse.cpp.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/kernel.h"
#include "syntax/ast.h"

namespace tessera::core {

/// A tuner's constant, which no term may name.
struct Decision {
  int64_t value = 0;
};
using Meaning = std::variant<Term, TensorId, MapId, SharedId, BarriersId, RegistersId, Decision>;
/// "a number of the kernel", "shared memory", ...
std::string_view kind_of(const Meaning& m);

class Scope {
 public:
  explicit Scope(const Source& source) : source_(source) { open(); }
  void open() { levels_.emplace_back(); }
  void close() { levels_.pop_back(); }
  /// TS0812 where the name has a meaning here already.
  Status define(const std::string& name, Meaning m, Span span);
  /// A name of the innermost block whose meaning was not known when it was defined.
  void redefine(const std::string& name, Meaning m) { levels_.back()[name] = m; }
  [[nodiscard]] const Meaning* find(std::string_view name) const;
  /// TS0812 where the name has no meaning here, with the nearest that has one.
  [[nodiscard]] Result<Meaning> at(const std::string& name, Span span) const;

  /// A term; every name in it has to be a number of the kernel. TS0812, TS0822.
  Result<Term> term(term::Pool& pool, const syntax::Expr& e) const;
  Result<std::vector<Term>> terms(term::Pool& pool, const std::vector<syntax::Expr>& all) const;

  /// A whole number that is written out.
  [[nodiscard]] Result<int64_t> number(const syntax::Expr& e, std::string_view what) const;
  /// One of 0 to 2^31: of counts and places, so that their sums fit.
  [[nodiscard]] Result<int64_t> small(const syntax::Expr& e, std::string_view what) const;
  /// `[1, 0]`, small ones
  [[nodiscard]] Result<std::vector<int64_t>> numbers(const syntax::Expr& e,
                                                     std::string_view what) const;
  [[nodiscard]] Result<std::string> string(const syntax::Expr& e, std::string_view what) const;
  /// A layout in quotes, with offsets below 2^31.
  [[nodiscard]] Result<Layout> layout(const syntax::Expr& e) const;
  /// A type by its short name: f32.
  [[nodiscard]] Result<DType> element(const syntax::Expr& e) const;
  /// What stands between the marks of the author's text, for `found`.
  [[nodiscard]] std::string quoted(Span span) const;
  [[nodiscard]] const Source& source() const { return source_; }

 private:
  const Source& source_;
  std::vector<std::map<std::string, Meaning, std::less<>>> levels_;
};

}  // namespace tessera::core
