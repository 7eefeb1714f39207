// Element types, by their names in PyTorch.
#pragma once

#include <cstdint>
#include <string_view>

#include "diag/result.h"

namespace tessera {

enum class DType : uint8_t {
  float64,
  float32,
  bfloat16,
  float16,
  float8_e4m3fn,
  float8_e5m2,
  int64,
  int32,
  int16,
  int8,
  uint8,
  boolean,
};

/// Bytes of one element.
int size_of(DType t);
bool is_floating(DType t);
/// The PyTorch name: "float32", "bfloat16", "bool", ...
std::string_view name_of(DType t);
/// Short name used in signatures and the tile language: f64 f32 bf16 f16 e4m3 e5m2 i64 i32 i16 i8
/// u8 b1.
std::string_view short_name(DType t);
/// From the PyTorch name (with or without "torch.") or the short name.
Result<DType> parse_dtype(std::string_view text);

/// What arithmetic a result is held to. The module's dtypes and torch's own flags choose it (fp32
/// against tf32).
enum class Precision : uint8_t { fp32, tf32, bf16, fp16, fp8 };
std::string_view name_of(Precision p);
Result<Precision> parse_precision(std::string_view text);
/// The storage type of activations in this class: float32 for fp32 and tf32.
DType storage_type(Precision p);

}  // namespace tessera
