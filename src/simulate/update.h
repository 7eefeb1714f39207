// Updates of memory by an operation.
#pragma once

#include <string_view>

#include "numeric/dtype.h"

namespace tessera::simulate {

/// The element type that a form's name has as a component: "reduce.global.f32.v2". Types that no
/// update here has are a fault of ours.
DType element_of_update(std::string_view form);
/// at = at `op` by: add, min, max.
void update_element(DType type, std::string_view op, const unsigned char* by, unsigned char* at);

}  // namespace tessera::simulate
