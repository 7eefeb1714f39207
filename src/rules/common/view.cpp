// TensorView, the roles of inputs, calls of ops, and the signature: the text that equal
// computations share.
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

Json InputRoles::to_json() const {
  Json j = Json::object();
  if (fan_in > 0) j["fan_in"] = fan_in;
  for (const TensorView& v : non_finite) j["non_finite"].push_back(v.to_json());
  return j;
}

LibraryCall op_call(std::string_view op, Json arguments) {
  return {.function = "op", .arguments = {{"op", op}, {"arguments", std::move(arguments)}}};
}

std::string Pattern::signature() const {
  return fmt::format("{}/1 {} {}", rule, name_of(precision), body ? body->to_json().dump() : "{}");
}

}  // namespace tessera::rules
