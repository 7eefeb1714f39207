// The longest vector that two layouts see alike: what one instruction may copy between them.
#pragma once

#include "layout/layout.h"

namespace tessera {

/// a(result(i)) == i and b(result(i)) == i for all i < size(result): the indices at which offsets
/// 0, 1, 2, ... lie in both. When neither layout repeats an offset, stride 0 aside, it is the
/// longest such layout.
Layout max_common_layout(const Layout& a, const Layout& b);

/// The size of max_common_layout, at least 1.
int64_t max_common_vector(const Layout& a, const Layout& b);

}  // namespace tessera
