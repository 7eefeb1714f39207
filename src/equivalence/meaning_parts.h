// The two families of meanings, a file each.
#pragma once

#include "equivalence/meaning.h"

namespace tessera::equivalence {

void each_product(const core::Kernel& kernel, const check::Means& means,
                  const simulate::Launch& launch, const SeeElement& see);
void each_attention(const core::Kernel& kernel, const check::Attention& means,
                    const simulate::Launch& launch, const SeeElement& see);

}  // namespace tessera::equivalence
