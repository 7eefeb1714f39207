#include "numeric/dtype.h"

#include <array>
#include <string>

namespace tessera {
namespace {

struct Record {
  DType type;
  int bytes;
  bool floating;
  std::string_view name;
  std::string_view short_name;
};

constexpr std::array<Record, 12> records = {{
    {DType::float64, 8, true, "float64", "f64"},
    {DType::float32, 4, true, "float32", "f32"},
    {DType::bfloat16, 2, true, "bfloat16", "bf16"},
    {DType::float16, 2, true, "float16", "f16"},
    {DType::float8_e4m3fn, 1, true, "float8_e4m3fn", "e4m3"},
    {DType::float8_e5m2, 1, true, "float8_e5m2", "e5m2"},
    {DType::int64, 8, false, "int64", "i64"},
    {DType::int32, 4, false, "int32", "i32"},
    {DType::int16, 2, false, "int16", "i16"},
    {DType::int8, 1, false, "int8", "i8"},
    {DType::uint8, 1, false, "uint8", "u8"},
    {DType::boolean, 1, false, "bool", "b1"},
}};

constexpr std::array<std::string_view, 5> precision_names = {"fp32", "tf32", "bf16", "fp16", "fp8"};

inline constexpr Code unknown_dtype{"TS0010", "input.unknown_dtype"};
inline constexpr Code unknown_precision{"TS0011", "input.unknown_precision"};

const Record& record(DType t) {
  return records[static_cast<std::size_t>(t)];
}

}  // namespace

int size_of(DType t) {
  return record(t).bytes;
}
bool is_floating(DType t) {
  return record(t).floating;
}
std::string_view name_of(DType t) {
  return record(t).name;
}
std::string_view short_name(DType t) {
  return record(t).short_name;
}

Result<DType> parse_dtype(std::string_view text) {
  std::string_view t = text;
  if (t.starts_with("torch.")) t.remove_prefix(6);
  for (const Record& r : records) {
    if (t == r.name || t == r.short_name) return r.type;
  }
  return error(
      fail(unknown_dtype, "unsupported element type `{}`", text)
          .expect("one of float64, float32, bfloat16, float16, float8_e4m3fn, float8_e5m2, int64, "
                  "int32, int16, int8, uint8, bool"));
}

std::string_view name_of(Precision p) {
  return precision_names[static_cast<std::size_t>(p)];
}

Result<Precision> parse_precision(std::string_view text) {
  for (std::size_t i = 0; i < precision_names.size(); ++i) {
    if (text == precision_names[i]) return static_cast<Precision>(i);
  }
  return error(fail(unknown_precision, "unknown precision `{}`", text)
                   .expect("one of fp32, tf32, bf16, fp16, fp8"));
}

DType storage_type(Precision p) {
  switch (p) {
    case Precision::fp32:
    case Precision::tf32:
      return DType::float32;
    case Precision::bf16:
      return DType::bfloat16;
    case Precision::fp16:
      return DType::float16;
    case Precision::fp8:
      return DType::float8_e4m3fn;
  }
  return DType::float32;
}

}  // namespace tessera
