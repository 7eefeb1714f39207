#include "check/reading.h"

#include <algorithm>

namespace tessera::check {

const Place* place_of(const std::vector<Place>& all, const core::Op* op) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Place& p) { return p.op == op; });
  return found == all.end() ? nullptr : &*found;
}

Reading reading_of(const core::Kernel& kernel, const Means& means, bool left, const Place& reader,
                   const core::SharedAt& at, std::vector<const Place*> writers) {
  const ElementAt &a = means.a, &b = means.b.front();
  Reading out{kernel, reader, at,           std::move(writers), 0,
              0,      {},     left ? a : b, left ? b : a,       left ? Axis::row : Axis::column};
  if (!left) out.more.assign(means.b.begin() + 1, means.b.end());
  return out;
}

}  // namespace tessera::check
