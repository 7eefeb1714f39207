#include "rewrite/special_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tessera::rewrite {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct Range {
  double least;  // above zero
  double most;
};

Range range_of(DType type) {
  switch (type) {
    case DType::float64:
      return {0x1p-1074, std::numeric_limits<double>::max()};
    case DType::bfloat16:
      return {0x1p-133, 0x1.fep127};
    case DType::float16:
      return {0x1p-24, 65504};
    default:
      return {0x1p-149, 0x1.fffffep127};
  }
}

/// Some forty magnitudes, from the smallest to the largest.
std::vector<double> magnitudes(const Range& range) {
  constexpr int count = 40;
  const double from = std::log2(range.least);
  const double step = (std::log2(range.most) - from) / count;
  std::vector<double> out;
  for (int k = 0; k <= count; ++k) out.push_back(std::exp2(from + k * step));
  return out;
}

Row clipped(Row row, const Range& range) {
  for (double& v : row)
    if (std::isfinite(v)) v = std::clamp(v, -range.most, range.most);
  return row;
}

}  // namespace

Row random_row(std::size_t length, double scale, double shift, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Row row(length);
  for (double& v : row) v = scale * normal(generator) + shift;
  return row;
}

std::vector<Row> special_rows(DType type, std::size_t length, double columns) {
  const Range range = range_of(type);
  std::vector<Row> out;
  for (const double m : magnitudes(range)) out.push_back(random_row(length, m, 0, 3));
  const double about = std::sqrt(range.most / columns);
  for (const double m : {0.6, 0.9, 1.1, 2.0}) {
    Row row(length);
    for (std::size_t i = 0; i < length; ++i) row[i] = (i % 2 == 0 ? m : -m) * about;
    out.push_back(std::move(row));
  }
  for (const double v : {0.0, -0.0, 1.0, 2.5, -2.5, 0x1p-12, range.least, range.most, -range.most,
                         inf, -inf, std::nan("")})
    out.emplace_back(length, v);
  for (const double v : {inf, -inf, std::nan(""), 200.0, -200.0, range.most, -range.most}) {
    out.push_back(random_row(length, 1, 0, 5));
    out.back().front() = v;
  }
  out.emplace_back(length, -inf).back() = 1;
  out.push_back(random_row(length, 1, 0, 5));
  out.back().front() = inf;
  out.back().back() = -inf;
  for (Row& row : out) row = held(clipped(std::move(row), range), type);
  return out;
}

Row special_numbers(DType type) {
  const Range range = range_of(type);
  Row out = {0.0,        -0.0,        inf,         -inf,        std::nan(""),
             range.most, -range.most, range.least, -range.least};
  for (const double m : magnitudes(range))
    for (const double v : random_row(4, m, 0, 3)) out.push_back(v);
  for (const double v : {1.0, 3.0, 6.0, 6.5, 10.0, 20.0, 30.0, 88.0, 89.0, 104.0, 1e3})
    out.insert(out.end(), {v, -v});
  return held(clipped(std::move(out), range), type);
}

}  // namespace tessera::rewrite
