#include "layout/fit.h"

#include "layout/modes.h"

namespace tessera::layout {
namespace {

using Function = std::function<int64_t(int64_t)>;

/// Each leaf as the function says it is when all others are at 0; `step` is the index step of the
/// first leaf.
std::optional<Layout> fit_leaves(const IntTuple& shape, const Function& f, int64_t& step) {
  if (shape.is_leaf) {
    const int64_t own = step;
    step *= shape.value;
    return fit(shape.value, [&](int64_t i) { return f(own * i); });
  }
  std::vector<Layout> modes;
  for (const IntTuple& item : shape.items) {
    std::optional<Layout> m = fit_leaves(item, f, step);
    if (!m) return std::nullopt;
    modes.push_back(*std::move(m));
  }
  return concat(modes);
}

}  // namespace

std::optional<Layout> fit(int64_t size, const Function& f) {
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
  Layout found = from_modes(modes);
  for (int64_t i = 0; i < size; ++i)
    if (found(i) != f(i)) return std::nullopt;
  return found;
}

std::optional<Layout> fit(const IntTuple& shape, const Function& f) {
  int64_t step = 1;
  std::optional<Layout> found = fit_leaves(shape, f, step);
  for (int64_t i = 0; found && i < step; ++i)
    if ((*found)(i) != f(i)) return std::nullopt;
  return found;
}

}  // namespace tessera::layout
