// Where an op stands, and what is known there: for the files of the verifier alone.
#pragma once

#include <set>

#include "arch/arch.h"

#include "core/verify.h"

namespace tessera::core {

/// What has to hold at a site, and what is told where it does not.
struct Claim {
  Term holds;
  const Code& code;
  std::string wrong;  // the message
  std::string expected;
  std::string found;
  std::string whether;  // "could not decide whether ..."
  std::string help = {};
};

class Site {
 public:
  Site(const Kernel& kernel, const arch::Arch& arch, std::vector<Diagnostic>& out)
      : kernel(kernel), arch(arch), out_(out) {}

  const Kernel& kernel;
  const arch::Arch& arch;
  const Op* op = nullptr;
  const Role* role = nullptr;               // null: the whole block
  const Compute* compute = nullptr;         // whose inputs may name its element
  const std::vector<Term>* over = nullptr;  // what a tag's terms may name besides
  bool elected = false;
  /// Roles that have been told once that they are no whole warpgroups.
  std::shared_ptr<std::set<const Role*>> told = std::make_shared<std::set<const Role*>>();
  std::vector<Term> conditions;       // that hold here
  std::vector<Term> control;          // on which it depends who comes here, how often
  std::vector<const For*> loops;      // the outer ones first
  std::vector<RegistersId> declared;  // that may be named here

  [[nodiscard]] term::Pool& pool() const { return *kernel.pool; }
  /// Threads that share the registers that are declared here.
  [[nodiscard]] int threads() const { return role == nullptr ? kernel.threads : 32 * role->warps; }
  /// The coordinate of the warps here.
  [[nodiscard]] Term warp() const { return role == nullptr ? kernel.at.warp : role->warp; }

  /// With its place, or, where there is no text, with the op's.
  void report(Diagnostic d, Span span) const;
  void report(Diagnostic d) const { report(std::move(d), op == nullptr ? Span() : op->span); }
  /// Reports unless it is proved; true if it is.
  bool prove(const Claim& c, Span span) const;
  /// low <= t and t + count <= high
  bool prove_range(Term t, int64_t count, int64_t high, const Code& code, std::string_view what,
                   Span span) const;
  /// The values of a term of constants and counters of unrolled loops; nothing for other terms.
  [[nodiscard]] std::optional<std::vector<int64_t>> values(Term t) const;
  /// Whether the term may stand here: a number (or a predicate) of names that are known here.
  bool known(Term t, Span span, bool predicate = false) const;
  [[nodiscard]] bool is_declared(RegistersId r) const;
  /// Whether the symbol has a meaning here already.
  [[nodiscard]] bool known_symbol(Term s) const { return may_name(s); }

 private:
  [[nodiscard]] bool may_name(Term symbol) const;

  std::vector<Diagnostic>& out_;
};

/// Whether the value of `t` may change with the symbol.
bool depends_on(Term t, Term symbol);
/// The term with another in the symbol's place.
Term replaced(Term t, Term symbol, Term by);
/// The offset of an index of one mode, in elements.
Term offset_term(term::Pool& pool, const Layout& mode, Term index);
/// The byte of an element of shared memory before its swizzle. The indices are as many as modes.
Term address_term(const Kernel& k, const SharedAt& a);
/// In normal form, between marks.
std::string quoted(Term t);

}  // namespace tessera::core
