#include "layout/layout.h"

#include <stdexcept>

#include "layout/modes.h"

namespace tessera {
namespace layout {

std::vector<Mode> flat_modes(const Layout& l) {
  std::vector<int64_t> shape = flatten(l.shape());
  std::vector<int64_t> stride = flatten(l.stride());
  std::vector<Mode> modes;
  for (std::size_t i = 0; i < shape.size(); ++i) modes.push_back({shape[i], stride[i]});
  return modes;
}

std::vector<Mode> coalesced_modes(const Layout& l) {
  std::vector<Mode> modes = flat_modes(coalesce(l));
  std::erase_if(modes, [](const Mode& m) { return m.extent == 1; });
  return modes;
}

Layout from_modes(const std::vector<Mode>& modes) {
  if (modes.empty()) return {1, 0};
  if (modes.size() == 1) return {modes[0].extent, modes[0].stride};
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  for (const Mode& m : modes) {
    shape.emplace_back(m.extent);
    stride.emplace_back(m.stride);
  }
  return {IntTuple::tuple(shape), IntTuple::tuple(stride)};
}

}  // namespace layout

namespace {

using layout::Mode;

constexpr Code bad_layout{"TS0102", "layout.bad_layout"};

int64_t offset(const IntTuple& shape, const IntTuple& stride, int64_t& index) {
  if (shape.is_leaf) {
    int64_t at = (index % shape.value) * stride.value;
    index /= shape.value;
    return at;
  }
  int64_t sum = 0;
  for (std::size_t i = 0; i < shape.items.size(); ++i)
    sum += offset(shape.items[i], stride.items[i], index);
  return sum;
}

IntTuple compact(const IntTuple& shape, int64_t& running) {
  if (shape.is_leaf) {
    int64_t stride = running;
    running *= shape.value;
    return stride;
  }
  std::vector<IntTuple> items;
  for (const IntTuple& i : shape.items) items.push_back(compact(i, running));
  return IntTuple::tuple(std::move(items));
}

}  // namespace

Result<Layout> try_layout(IntTuple shape, IntTuple stride) {
  if (!congruent(shape, stride)) {
    return error(fail(bad_layout, "shape and stride are nested differently")
                     .but_found("{}:{}", to_string(shape), to_string(stride)));
  }
  for (int64_t e : flatten(shape))
    if (e < 1) return error(fail(bad_layout, "an extent is not positive: {}", to_string(shape)));
  for (int64_t d : flatten(stride))
    if (d < 0) return error(fail(bad_layout, "a stride is negative: {}", to_string(stride)));
  return Layout(std::move(shape), std::move(stride));
}

Layout::Layout(IntTuple shape, IntTuple stride)
    : shape_(std::move(shape)), stride_(std::move(stride)) {
  bool good = congruent(shape_, stride_);
  for (int64_t e : flatten(shape_)) good = good && e >= 1;
  for (int64_t d : flatten(stride_)) good = good && d >= 0;
  if (!good)
    throw std::logic_error("invalid layout " + to_string(shape_) + ":" + to_string(stride_));
}

Layout Layout::column_major(const IntTuple& shape) {
  int64_t running = 1;
  return {shape, compact(shape, running)};
}

int64_t Layout::cosize() const {
  int64_t last = 0;
  for (const Mode& m : layout::flat_modes(*this)) last += (m.extent - 1) * m.stride;
  return last + 1;
}

int64_t Layout::operator()(int64_t index) const {
  return offset(shape_, stride_, index);
}

int64_t Layout::at(const std::vector<int64_t>& coordinate) const {
  int64_t sum = 0;
  for (int i = 0; i < rank(); ++i) {
    int64_t index = coordinate.at(i);
    sum += offset(shape_.mode(i), stride_.mode(i), index);
  }
  return sum;
}

std::string to_string(const Layout& l) {
  return to_string(l.shape()) + ":" + to_string(l.stride());
}

Result<Layout> parse_layout(std::string_view text) {
  TESSERA_TRY(shape, parse_int_tuple(text));
  if (text.empty()) return Layout::column_major(shape);
  if (text.front() != ':')
    return error(fail(bad_layout, "not a layout").expect("shape:stride").but_found("`{}`", text));
  text.remove_prefix(1);
  TESSERA_TRY(stride, parse_int_tuple(text));
  if (!text.empty()) return error(fail(bad_layout, "text after a layout: `{}`", text));
  return try_layout(std::move(shape), std::move(stride));
}

Layout concat(const std::vector<Layout>& modes) {
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  for (const Layout& m : modes) {
    shape.push_back(m.shape());
    stride.push_back(m.stride());
  }
  return {IntTuple::tuple(std::move(shape)), IntTuple::tuple(std::move(stride))};
}

Layout coalesce(const Layout& l) {
  std::vector<Mode> out;
  for (const Mode& m : layout::flat_modes(l)) {
    if (m.extent == 1) continue;
    if (!out.empty() && out.back().extent * out.back().stride == m.stride) {
      out.back().extent *= m.extent;
    } else {
      out.push_back(m);
    }
  }
  return layout::from_modes(out);
}

}  // namespace tessera
