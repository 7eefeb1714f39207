// Meanings that have a file of their own.
#pragma once

#include "equivalence/meaning.h"

namespace tessera::equivalence {

void each_attention(const core::Kernel& kernel, const check::Attention& means,
                    const simulate::Launch& launch, const SeeElement& see);

}  // namespace tessera::equivalence
