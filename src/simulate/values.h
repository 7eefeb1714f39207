// What instructions do with values: the bytes that they move and compute with. Which bytes they
// touch, and whether they may, is the machine's business.
#pragma once

#include <string_view>

namespace tessera::simulate {

struct Call;

/// Of all forms whose name begins with `prefix`, the longest prefix first.
struct Semantics {
  std::string_view prefix;
  /// At once; or, of an asynchronous form, what it takes from its sources; null: nothing.
  void (*take)(Call&);
  /// Of an asynchronous form: what it puts into its destinations.
  void (*put)(Call&);
  /// What becomes of tags: where elements are moved, that is done again with the bytes of their
  /// tags; where they are computed, `computed`, if any, says it.
  bool moves = true;
  void (*computed)(Call&) = nullptr;
};

/// Null: no instruction of that name has a meaning here.
const Semantics* semantics_of(std::string_view form);

}  // namespace tessera::simulate
