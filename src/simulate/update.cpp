#include "simulate/update.h"

#include <stdexcept>
#include <string>

#include "base/text.h"

namespace tessera::simulate {

DType element_of_update(std::string_view form) {
  for (const std::string& part : split(std::string(form), '.')) {
    if (part == "f16") return DType::float16;
    if (part == "bf16") return DType::bfloat16;
    if (part == "f32") return DType::float32;
    if (part == "f64") return DType::float64;
    if (part == "s32") return DType::int32;
  }
  throw std::logic_error("no element type in " + std::string(form));
}

}  // namespace tessera::simulate
