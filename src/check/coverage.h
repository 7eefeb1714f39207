// How much of a kernel its proofs speak of, so that one that proves nothing shows.
#pragma once

#include <string>

namespace tessera::check {

/// Ops of the kernel, and those that all kinds prove.
struct Coverage {
  int stores = 0, loads = 0, products = 0, waits = 0;
  int reached = 0;  // of all these: executed in some run
  /// Stores to tensors of the launch, and those that are held to a meaning and proved.
  int outputs = 0, outputs_proved = 0;
  /// Loads from tensors of the launch, and those of tensors that neither a proved meaning nor a tag
  /// speaks of: that other elements were loaded would not show.
  int inputs = 0, untagged = 0;
  int assertions = 0, assertions_proved = 0;
  [[nodiscard]] int all() const { return stores + loads + products + waits; }
};

/// A line what was executed, a line what is proved.
std::string to_text(const Coverage& c);

}  // namespace tessera::check
