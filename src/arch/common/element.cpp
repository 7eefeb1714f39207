#include "arch/element.h"

namespace tessera::arch {

std::string_view name_of(Element e) {
  switch (e) {
    case Element::f16:
      return "f16";
    case Element::bf16:
      return "bf16";
    case Element::tf32:
      return "tf32";
    case Element::e4m3:
      return "e4m3";
    case Element::e5m2:
      return "e5m2";
    case Element::s8:
      return "s8";
    case Element::u8:
      return "u8";
    case Element::f32:
      return "f32";
    case Element::s32:
      return "s32";
  }
  return "";
}

DType storage_of(Element e) {
  switch (e) {
    case Element::f16:
      return DType::float16;
    case Element::bf16:
      return DType::bfloat16;
    case Element::e4m3:
      return DType::float8_e4m3fn;
    case Element::e5m2:
      return DType::float8_e5m2;
    case Element::s8:
      return DType::int8;
    case Element::u8:
      return DType::uint8;
    case Element::s32:
      return DType::int32;
    case Element::tf32:
    case Element::f32:
      return DType::float32;
  }
  return DType::float32;
}

int bytes_of(Element e) {
  return size_of(storage_of(e));
}

}  // namespace tessera::arch
