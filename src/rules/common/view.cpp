// TensorView and the signature: the text that equal computations share.
#include <fmt/ranges.h>

#include "rules/rules.h"

namespace tessera::rules {

int64_t TensorView::numel() const {
  return layout::numel(shape);
}

Json TensorView::to_json() const {
  Json j;
  j["tensor"] = tensor;
  j["dtype"] = name_of(dtype);
  j["shape"] = shape;
  j["strides"] = strides;
  j["offset"] = offset;
  return j;
}

std::string TensorView::to_string() const {
  return fmt::format("t{} {} ({}):({})+{}", tensor, short_name(dtype), fmt::join(shape, ","),
                     fmt::join(strides, ","), offset);
}

std::string Pattern::signature() const {
  return fmt::format("{}/1 {} {}", rule, name_of(precision), body ? body->to_json().dump() : "{}");
}

}  // namespace tessera::rules
