// What a kernel means, computed for a small launch: every element of its outputs, in double.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/means.h"
#include "simulate/simulate.h"

namespace tessera::replay {

class Reference {
 public:
  /// Elements that the meaning makes of more than the tensors have are left out.
  Reference(const core::Kernel& kernel, const check::Means& means, const simulate::Launch& launch);

  /// "C[0, 3, 5] is 4, not 7" of the first element that is not what is meant, rounded to the
  /// tensor's type (with room for functions in float32); nothing: all are.
  [[nodiscard]] std::optional<std::string> wrong_element(const simulate::Outcome& outcome) const;

 private:
  struct Element {
    std::string name;  // "C[0, 3, 5]"
    std::string tensor;
    std::vector<std::size_t> at;  // in the order of memory: of slices several, which are added
    double value = 0;
    double room = 0;  // by how much what is stored may differ
  };
  void attention(const core::Kernel& kernel, const check::Attention& means,
                 const simulate::Launch& launch);
  std::vector<Element> elements_;
};

}  // namespace tessera::replay
