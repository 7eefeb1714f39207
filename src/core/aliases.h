// Names for index terms that a body's text would write more than once: `i0 = (K + 63) // 64`.
//
// Names are of the text alone: reading puts the term in their place. A term of five nodes or more
// gets one in the innermost body that has all its uses, before the first of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/kernel.h"

namespace tessera::core {

/// An op's place: for each body around it, from the kernel's own on, the number of the op in it
/// that leads on; its own number last. Ops of a branch's second body count from `otherwise_from`
/// on.
using Path = std::vector<int>;
inline constexpr int otherwise_from = 1 << 20;

class Aliases {
 public:
  explicit Aliases(const Kernel& k);

  /// The terms that get names right before this op, those that others are made of first.
  [[nodiscard]] const std::vector<Term>& before(const Path& op) const;
  /// A fresh name for the term in all texts until `end`, and what it stands for.
  std::pair<std::string, std::string> begin(Term t);
  /// Ends the use of the latest `count` names.
  void end(std::size_t count);
  /// The term by the names that are in use.
  [[nodiscard]] std::string text(Term t) const;

 private:
  std::map<Path, std::vector<Term>> before_;
  std::vector<std::pair<Term, std::string>> used_;
  std::set<std::string> taken_;
  int next_ = 0;
};

}  // namespace tessera::core
