// The tables of explanations, a file each.
#pragma once

#include <span>

#include "diag/explain.h"

namespace tessera {

std::span<const Explanation> explained_input();      // TS00: explain_input.cpp
std::span<const Explanation> explained_layout();     // TS01
std::span<const Explanation> explained_graph();      // TS02
std::span<const Explanation> explained_build();      // TS03
std::span<const Explanation> explained_realize();    // TS04
std::span<const Explanation> explained_verify();     // TS05
std::span<const Explanation> explained_registry();   // TS06
std::span<const Explanation> explained_language();   // TS080, TS081
std::span<const Explanation> explained_lower();      // TS085: explain_lower.cpp
std::span<const Explanation> explained_core();       // TS0812 to TS0819
std::span<const Explanation> explained_process();    // TS07, TS09
std::span<const Explanation> explained_mind();       // TS073, TS074: explain_mind.cpp
std::span<const Explanation> explained_term();       // TS082
std::span<const Explanation> explained_simulate();   // TS084
std::span<const Explanation> explained_smt();        // TS088
std::span<const Explanation> explained_elaborate();  // TS0826 to TS0839
std::span<const Explanation> explained_check();      // TS086, TS087
std::span<const Explanation> explained_call();       // TS089: explain_call.cpp

}  // namespace tessera
