#include "layout/layout.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <unordered_set>

namespace tessera {
namespace {

constexpr Code bad_layout{"TS0102", "layout.bad_layout"};
constexpr Code not_composable{"TS0103", "layout.not_composable"};
constexpr Code no_complement{"TS0104", "layout.no_complement"};

struct Mode {
  int64_t extent;
  int64_t stride;
};

std::vector<Mode> flat_modes(const Layout& l) {
  std::vector<int64_t> shape = flatten(l.shape());
  std::vector<int64_t> stride = flatten(l.stride());
  std::vector<Mode> modes;
  for (std::size_t i = 0; i < shape.size(); ++i) modes.push_back({shape[i], stride[i]});
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

/// a composed with the single mode extent:stride.
Result<Layout> compose_mode(const std::vector<Mode>& a, Mode b) {
  if (b.stride == 0) return Layout(b.extent, 0);
  std::vector<Mode> out;
  int64_t rest_extent = b.extent;
  int64_t rest_stride = b.stride;
  auto refuse = [&](const Mode& m) {
    return error(fail(not_composable, "{}:{} cannot be walked through a mode {}:{}", b.extent,
                      b.stride, m.extent, m.stride)
                     .help("choose extents and strides that divide each other"));
  };
  for (std::size_t i = 0; i < a.size() && rest_extent > 1; ++i) {
    const Mode& m = a[i];
    bool last = i + 1 == a.size();
    if (!last && rest_stride % m.extent == 0) {
      rest_stride /= m.extent;
      continue;
    }
    if (!last && m.extent % rest_stride != 0) return refuse(m);
    int64_t room = last ? rest_extent : m.extent / rest_stride;
    int64_t take = std::min(room, rest_extent);
    if (rest_extent % take != 0) return refuse(m);
    if (last && (rest_extent - 1) * rest_stride >= m.extent) return refuse(m);
    out.push_back({take, m.stride * rest_stride});
    rest_extent /= take;
    rest_stride = 1;
  }
  if (rest_extent > 1) return refuse(a.back());
  return coalesce(from_modes(out));
}

Result<Layout> compose_nested(const std::vector<Mode>& a, const IntTuple& shape,
                              const IntTuple& stride) {
  if (shape.is_leaf) return compose_mode(a, {shape.value, stride.value});
  std::vector<Layout> modes;
  for (std::size_t i = 0; i < shape.items.size(); ++i) {
    TESSERA_TRY(m, compose_nested(a, shape.items[i], stride.items[i]));
    modes.push_back(std::move(m));
  }
  return concat(modes);
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

Layout Layout::row_major(const std::vector<int64_t>& extents) {
  std::vector<int64_t> stride(extents.size());
  int64_t running = 1;
  for (std::size_t i = extents.size(); i-- > 0; running *= extents[i]) stride[i] = running;
  return {IntTuple::flat(extents), IntTuple::flat(stride)};
}

int64_t Layout::cosize() const {
  int64_t last = 0;
  for (const Mode& m : flat_modes(*this)) last += (m.extent - 1) * m.stride;
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
  for (const Mode& m : flat_modes(l)) {
    if (m.extent == 1) continue;
    if (!out.empty() && out.back().extent * out.back().stride == m.stride) {
      out.back().extent *= m.extent;
    } else {
      out.push_back(m);
    }
  }
  return from_modes(out);
}

Result<Layout> compose(const Layout& a, const Layout& b) {
  return compose_nested(flat_modes(coalesce(a)), b.shape(), b.stride());
}

Result<Layout> complement(const Layout& l, int64_t cotarget) {
  std::vector<Mode> modes = flat_modes(coalesce(l));
  std::erase_if(modes, [](const Mode& m) { return m.extent == 1; });
  std::sort(modes.begin(), modes.end(), [](auto& x, auto& y) { return x.stride < y.stride; });
  std::vector<Mode> out;
  int64_t covered = 1;
  for (const Mode& m : modes) {
    if (m.stride == 0 || m.stride % covered != 0) {
      return error(fail(no_complement, "{} has no complement in {}", to_string(l), cotarget)
                       .note("its modes overlap or repeat an offset"));
    }
    out.push_back({m.stride / covered, covered});
    covered = m.stride * m.extent;
  }
  out.push_back({(cotarget + covered - 1) / covered, covered});
  return coalesce(from_modes(out));
}

Result<Layout> logical_divide(const Layout& a, const Layout& tiler) {
  if (a.size() % tiler.size() != 0) {
    return error(
        fail(not_composable, "a tile of {} elements does not divide {}", tiler.size(), a.size()));
  }
  TESSERA_TRY(rest, complement(tiler, a.size()));
  return compose(a, concat({tiler, rest}));
}

Result<Layout> logical_product(const Layout& block, const Layout& copies) {
  TESSERA_TRY(rest, complement(block, block.size() * copies.cosize()));
  TESSERA_TRY(placed, compose(rest, copies));
  return concat({block, placed});
}

Layout right_inverse(const Layout& l) {
  std::vector<Mode> modes = flat_modes(l);
  std::vector<int64_t> prefix(modes.size());
  int64_t running = 1;
  for (std::size_t i = 0; i < modes.size(); running *= modes[i].extent, ++i) prefix[i] = running;
  std::vector<std::size_t> order(modes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto x, auto y) { return modes[x].stride < modes[y].stride; });
  std::vector<Mode> out;
  int64_t next = 1;
  for (std::size_t i : order) {
    if (modes[i].extent == 1 || modes[i].stride != next) continue;
    out.push_back({modes[i].extent, prefix[i]});
    next *= modes[i].extent;
  }
  return coalesce(from_modes(out));
}

bool is_injective(const Layout& l) {
  std::unordered_set<int64_t> seen;
  for (int64_t i = 0; i < l.size(); ++i)
    if (!seen.insert(l(i)).second) return false;
  return true;
}

}  // namespace tessera
