#include "tile/build/row_statistics.h"

#include <limits>

namespace tessera::tile::build {

Nodes join_moments(pointwise::Dag& d, const Nodes& v) {
  const int mean = v[0], m2 = v[1], n = v[2], chunk_mean = v[3], chunk_m2 = v[4], chunk_n = v[5];
  const int delta = d.add_call("sub", {chunk_mean, mean});
  const int count = d.add_call("add", {n, chunk_n});
  const int part = d.add_call("div", {chunk_n, count});
  const int mean_all = d.add_call("add", {mean, d.add_call("mul", {delta, part})});
  // The square of a difference may be infinite where the first chunk gives it no weight.
  const int weighted = d.add_call("mul", {delta, d.add_call("mul", {n, part})});
  const int cross = d.add_call("mul", {delta, weighted});
  return {mean_all, d.add_call("add", {d.add_call("add", {m2, chunk_m2}), cross}), count};
}

int exponent_base(pointwise::Dag& d, const Nodes& v) {
  const int lowest = d.add_constant(-std::numeric_limits<double>::infinity());
  return d.add_call("where", {d.add_call("eq", {v[0], lowest}), d.add_constant(0), v[0]});
}

int join_exponentials(pointwise::Dag& d, const Nodes& v) {
  const int scale = d.add_call("exp", {d.add_call("sub", {v[0], v[1]})});
  return d.add_call("add", {d.add_call("mul", {v[2], scale}), v[3]});
}

int nearer_to_zero(pointwise::Dag& d, const Nodes& v) {
  const int first = d.add_call("le", {d.add_call("abs", {v[0]}), d.add_call("abs", {v[1]})});
  return d.add_call("where", {first, v[0], v[1]});
}

}  // namespace tessera::tile::build
