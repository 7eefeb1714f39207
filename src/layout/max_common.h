// The longest vector that two layouts see alike: what one instruction may copy between them.
#pragma once

#include "layout/swizzled_layout.h"

namespace tessera {

/// a(result(i)) == i and b(result(i)) == i for all i < size(result): the indices at which offsets
/// 0, 1, 2, ... lie in both. When neither layout repeats an offset, stride 0 aside, it is the
/// longest such layout.
Layout max_common_layout(const Layout& a, const Layout& b);

/// The size of max_common_layout, at least 1.
int64_t max_common_vector(const Layout& a, const Layout& b);

/// The same for swizzled layouts, from where they begin: a(result(i)) == a(0) + i and b(result(i))
/// == b(0) + i. Ends where the swizzle with the finest grain may begin to move elements, after at
/// most 2^base of them; a longer vector that no swizzle happens to touch is not looked for.
Layout max_common_layout(const SwizzledLayout& a, const SwizzledLayout& b);
int64_t max_common_vector(const SwizzledLayout& a, const SwizzledLayout& b);

}  // namespace tessera
