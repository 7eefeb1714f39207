#include "graph/digits.h"

#include <algorithm>

namespace tessera::graph {

DigitLayout DigitLayout::of(const Operand& o) {
  DigitLayout out;
  for (std::size_t i = 0; i < o.shape.size(); ++i) out.dims.push_back({{o.shape[i], o.strides[i]}});
  return out;
}

std::vector<int64_t> DigitLayout::shape() const {
  std::vector<int64_t> out;
  for (const auto& dim : dims) {
    int64_t size = 1;
    for (const Digit& d : dim) size *= d.size;
    out.push_back(size);
  }
  return out;
}

std::optional<std::vector<int64_t>> DigitLayout::strides() const {
  std::vector<int64_t> out;
  for (const auto& dim : dims) {
    Digit merged;
    for (const Digit& d : dim) {
      if (d.size == 1) continue;
      if (merged.size != 1 && merged.stride != d.size * d.stride) return std::nullopt;
      merged = {merged.size * d.size, d.stride};
    }
    out.push_back(merged.size == 1 ? 0 : merged.stride);
  }
  return out;
}

std::optional<DigitLayout> DigitLayout::reshaped(const std::vector<int64_t>& shape) const {
  std::vector<Digit> left;  // the innermost last
  for (const auto& dim : dims)
    std::copy_if(dim.begin(), dim.end(), std::back_inserter(left),
                 [](const Digit& d) { return d.size != 1; });
  DigitLayout out;
  out.dims.resize(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    int64_t wanted = shape[i];
    while (wanted > 1) {
      if (left.empty()) return std::nullopt;
      Digit& d = left.back();
      if (wanted % d.size == 0) {
        out.dims[i].insert(out.dims[i].begin(), d);
        wanted /= d.size;
        left.pop_back();
      } else if (d.size % wanted == 0) {
        out.dims[i].insert(out.dims[i].begin(), {wanted, d.stride});
        d = {d.size / wanted, d.stride * wanted};
        wanted = 1;
      } else {
        return std::nullopt;
      }
    }
    if (wanted != 1) return std::nullopt;
  }
  if (!left.empty()) return std::nullopt;
  return out;
}

}  // namespace tessera::graph
