// The element types that matrix instructions and TMA know, by their names in PTX.
#pragma once

#include <cstdint>
#include <string_view>

#include "numeric/dtype.h"

namespace tessera::arch {

enum class Element : uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, f32, s32 };

/// As PTX spells it after a dot: "f16", "bf16", "tf32", ...
std::string_view name_of(Element e);
/// Bytes of one element in memory; 4 for tf32.
int bytes_of(Element e);
/// How a tensor of it is stored: tf32 as float32.
DType storage_of(Element e);

}  // namespace tessera::arch
