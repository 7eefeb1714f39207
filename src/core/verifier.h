// The parts of the verifier, an idea a file; nobody but verify.cpp includes this.
#pragma once

#include "arch/wgmma.h"

#include "core/site.h"

namespace tessera::core {

/// An instruction at its site.
struct Issued {
  const Site& site;
  const Issue& issue;
  /// The place of an argument, or of the op.
  [[nodiscard]] Span span(std::size_t argument) const {
    return argument < issue.spans.size() ? issue.spans[argument] : site.op->span;
  }
  [[nodiscard]] const arch::Form& form() const { return *issue.form; }
  /// The argument of an operand; null where the form has none of this name.
  [[nodiscard]] const Argument* argument(std::string_view operand) const;
  [[nodiscard]] std::size_t index(std::string_view operand) const;
};

// verify_storage.cpp
/// The block, the grid and the tensors; where one of them is wrong, nothing else can be asked.
void verify_head(const Site& site);
void verify_storages(const Site& site);
bool is_name(std::string_view name);

// verify_argument.cpp: true if all arguments are of the kinds that the operands have.
bool verify_arguments(const Issued& i);

// verify_registers.cpp
void verify_declared(const Site& site, RegistersId id);
/// Registers that may be named here; with the values of a first slot that is known before the
/// kernel runs, as Site::values says it.
std::optional<std::vector<int64_t>> verify_slots(const Site& site, RegistersId id, Term first,
                                                 Span span);
bool verify_slice(const Issued& i, std::size_t operand, const Slice& s);
void verify_compute(const Site& site, const Compute& c);

// verify_tags.cpp
void verify_tag(const Site& site, const Tag& t);
void verify_assertion(const Site& site, const AssertTag& a);

// verify_issuer.cpp
void verify_issuer(const Issued& i);
/// What the threads of a warp or a warpgroup have to pass alike. The arguments are of right kinds.
void verify_common(const Issued& i);

// verify_box.cpp
void verify_boxes(const Issued& i);

// verify_matrix.cpp
void verify_matrices(const Issued& i);

// verify_fragment.cpp
void verify_fragments(const Issued& i);

/// What the product is, where the form is a wgmma with legal choices.
std::optional<arch::Wgmma> wgmma_of(const Issue& i);

/// A change of the registers a thread, by setmaxnreg.
struct RegisterChange {
  const Op* op;
  const Role* role;
  bool claims;        // .inc
  bool always;        // every warp of the role comes there, once
  int64_t registers;  // a thread
};
// verify_budget.cpp
void verify_budget(const Site& site, const std::vector<RegisterChange>& changes);

}  // namespace tessera::core
