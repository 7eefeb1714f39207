// Updates of memory by an operation.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "numeric/dtype.h"

namespace tessera::simulate {

/// The element type that a form's name has as a component: "reduce.global.f32.v2". Types that no
/// update here has are a fault of ours.
DType element_of_update(std::string_view form);
/// at = at `op` by: add, min, max. The values' kind is simulate/domain.h's.
template <class Values>
void update_element(Values values, DType type, std::string_view op, const unsigned char* by,
                    unsigned char* at) {
  const auto x = values.decode(type, at);
  const auto y = values.decode(type, by);
  if (op == "add")
    values.encode(type, values.add(x, y), at);
  else if (op == "min")
    values.encode(type, values.least(x, y), at);
  else if (op == "max")
    values.encode(type, values.greatest(x, y), at);
  else
    throw std::logic_error("no update by " + std::string(op));
}

}  // namespace tessera::simulate
