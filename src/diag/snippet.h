// The author's lines under a diagnostic, with what is wrong underlined, in rustc's shape:
//
//     |
//   4 |     acc = wgmma(a[k], , acc)
//     |                       ^ no expression here
#pragma once

#include "diag/diagnostic.h"

namespace tessera {

/// Empty without labels. The first label is underlined by `^`, the others by `-`; labels of one
/// line share it, and a gap between lines is `...`.
std::string snippet(const std::vector<Label>& labels);

}  // namespace tessera
