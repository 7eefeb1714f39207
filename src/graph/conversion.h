// What a conversion between floating types does to values.
//
// Most conversions only say in which type PyTorch computes: what computes in float need not round
// at them (docs/measuring.md). A conversion is a rounding by its own meaning where it gives up what
// the module's class of precision holds, and nothing was to be computed in the narrower type:
//
//  * to float8 from any wider type: nothing but products computes in float8, which have operands of
//    it;
//  * to a type of 16 bits that holds fewer digits or a smaller range than the class does, or than
//    all from an input of the module to here, where what reads the result is of a wider one: it is
//    converted back, or promoted.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace tessera::graph {

/// The pointwise function that rounds as the conversion does; empty where it keeps the value, and
/// for every other node.
std::string_view rounding_of(const Graph& g, const Node& n);

}  // namespace tessera::graph
