#include "simulate/update.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/text.h"

#include "simulate/encode.h"

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

void update_element(DType type, std::string_view op, const unsigned char* by, unsigned char* at) {
  const double x = decode(type, at);
  const double y = decode(type, by);
  if (op == "add")
    encode(type, x + y, at);
  else if (op == "min")
    encode(type, std::min(x, y), at);
  else if (op == "max")
    encode(type, std::max(x, y), at);
  else
    throw std::logic_error("no update by " + std::string(op));
}

}  // namespace tessera::simulate
