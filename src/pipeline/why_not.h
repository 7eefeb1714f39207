// Why a pattern that was found has no kernel in the plan.
#pragma once

#include <string>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// What became of the kernels that tessera writes for this work: how many failed at which gate,
/// with the commonest reason of each gate; that none was tried, or that no realizer takes the
/// pattern here, with the reasons. "" where one is among the winners, where libraries' alone are
/// asked for, and where nothing is known.
std::string fate_of_ours(const Session& s, const Work& w);

/// What decided against pattern `index` of the discovery, which is not active: one reason, for
/// people. `chosen` without options: the run composed nothing.
std::string what_decided(const Session& s, const Chosen& chosen, int index);

/// The same, and fate_of_ours() where a kernel of ours was not there to be chosen.
std::string why_not(const Session& s, const Chosen& chosen, int index);

/// A kernel that an earlier run or a person won with, and that is not the first now.
struct PassedOver {
  std::string label;
  std::string reason;
};
/// The first winner of the registry's entry, and kernels by hand among the others.
std::vector<PassedOver> passed_over(const Work& w);

}  // namespace tessera::pipeline
