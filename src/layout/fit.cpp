#include "layout/fit.h"

#include "layout/modes.h"

namespace tessera::layout {

std::optional<Layout> fit(int64_t size, const std::function<int64_t(int64_t)>& f) {
  if (f(0) != 0) return std::nullopt;
  std::vector<Mode> modes;
  for (int64_t step = 1; step < size;) {
    const int64_t stride = f(step);
    const int64_t rest = size / step;
    int64_t run = 2;
    while (run < rest && f(run * step) == run * stride) ++run;
    if (stride < 0 || rest % run != 0) return std::nullopt;
    modes.push_back({run, stride});
    step *= run;
  }
  const Layout found = from_modes(modes);
  for (int64_t i = 0; i < size; ++i)
    if (found(i) != f(i)) return std::nullopt;
  return found;
}

}  // namespace tessera::layout
