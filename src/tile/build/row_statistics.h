// How the statistics of parts of a row are joined: arithmetic on one number a row, written into a
// DAG.
#pragma once

#include <vector>

#include "pointwise/pointwise.h"

namespace tessera::tile::build {

/// Each takes nodes of the DAG and returns those that it adds.
using Nodes = std::vector<int>;

/// Mean, sum of squared distances from it and count of what came before, then of a chunk: of both
/// (Chan, Golub, LeVeque 1979).
Nodes join_moments(pointwise::Dag& d, const Nodes& v);

/// The maximum so far: what exponents are taken off. Rows that are -inf so far have no finite
/// maximum; 0 stands in for it, so that their terms are exp(-inf) = 0.
int exponent_base(pointwise::Dag& d, const Nodes& v);

/// Maximum before, base now, sum of exponentials before and of a chunk: the sum of both.
int join_exponentials(pointwise::Dag& d, const Nodes& v);

/// Of two numbers the one nearer to 0.
int nearer_to_zero(pointwise::Dag& d, const Nodes& v);

}  // namespace tessera::tile::build
