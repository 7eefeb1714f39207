// Boxes of tensor maps in the shared memory that they come to or leave: the same elements, the same
// swizzle, and the modes of the layout where TMA lays the box's dimensions.
#include <algorithm>
#include <fmt/ranges.h>

#include "core/print.h"
#include "core/verifier.h"

namespace tessera::core {
namespace {

/// A mode of a layout without nesting: its coordinate is index // before % extent.
struct Leaf {
  int mode;
  int64_t extent, stride;
  int64_t before;  // product of the extents of the mode's earlier leaves
  bool last;       // of its mode
};

std::vector<Leaf> leaves_of(const Layout& l) {
  std::vector<Leaf> out;
  for (int m = 0; m < l.rank(); ++m) {
    const std::vector<int64_t> extents = flatten(l.shape().mode(m)),
                               strides = flatten(l.stride().mode(m));
    int64_t before = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      out.push_back({m, extents[i], strides[i], before, i + 1 == extents.size()});
      before *= extents[i];
    }
  }
  std::erase_if(out, [](const Leaf& leaf) { return leaf.extent == 1; });
  return out;
}

bool is_subset(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return std::all_of(a.begin(), a.end(),
                     [&](int64_t x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

struct Box {
  const Issued& i;
  const Shared& shared;
  const SharedAt& at;
  const TensorMap& map;
  Span span;

  void report(Diagnostic d) const { i.site.report(std::move(d), span); }
  [[nodiscard]] std::string name() const {
    return fmt::format("the box of `{}` does not lie in `{}` as TMA lays it", map.name,
                       shared.name);
  }

  void verify() const {
    const DType element = i.site.kernel[map.tensor].element;
    if (element != shared.element)
      return report(
          fail(bad_matrix, "`{}` and `{}` have different element types", map.name, shared.name)
              .expect("{}, as `{}` has", short_name(element), i.site.kernel[map.tensor].name)
              .but_found("{}", short_name(shared.element)));
    if (map.swizzle != shared.swizzle)
      return report(fail(bad_matrix, "`{}` and `{}` have different swizzles", map.name, shared.name)
                        .expect("swizzle={}, as the map has", swizzle_text(map.swizzle))
                        .but_found("swizzle={}", swizzle_text(shared.swizzle)));
    if (lies()) start();
  }

  /// Element e of the box lies e elements behind its start: leaves by rising stride have to be its
  /// dimensions.
  [[nodiscard]] bool lies() const {
    std::vector<int64_t> of_box, of_layout;
    int64_t size = 1;
    for (const int64_t e : map.box) of_box.push_back(size *= e);
    std::vector<Leaf> leaves = leaves_of(shared.layout);
    int64_t filled = 1;
    while (filled < size) {
      const auto next = std::find_if(leaves.begin(), leaves.end(),
                                     [&](const Leaf& leaf) { return leaf.stride == filled; });
      if (next == leaves.end()) {
        report(
            fail(bad_matrix, "{}", name())
                .expect("a mode with stride {}: the box is {} elements without gaps", filled, size)
                .but_found("\"{}\"", to_string(shared.layout))
                .help("lay it out with the box's dimensions, [{}], fastest first",
                      fmt::join(map.box, ", ")));
        return false;
      }
      const int64_t take = std::min(next->extent, size / filled);
      if (!within(*next, take)) return false;
      filled *= take;
      of_layout.push_back(filled);
      leaves.erase(next);
    }
    std::erase(of_box, 1);
    if (is_subset(of_box, of_layout) || is_subset(of_layout, of_box)) return true;
    report(fail(bad_matrix, "{}", name())
               .expect("modes of [{}] elements, fastest first", fmt::join(map.box, ", "))
               .but_found("\"{}\"", to_string(shared.layout)));
    return false;
  }

  /// The box takes `take` coordinates of a leaf.
  [[nodiscard]] bool within(const Leaf& leaf, int64_t take) const {
    Term c = at.at[leaf.mode];
    if (leaf.before > 1) c = floor_div(c, leaf.before);
    if (!leaf.last) c = floor_mod(c, leaf.extent);
    return i.site.prove_range(c, take, leaf.extent, bad_matrix,
                              fmt::format("the box of `{}` of {} along mode {} of `{}`", map.name,
                                          take, leaf.mode, shared.name),
                              span);
  }

  void start() const {
    const int64_t alignment = arch::alignment_of(shared.swizzle);
    const Term byte = address_term(i.site.kernel, at);
    if (byte->facts.multiple_of(alignment)) return;
    i.site.prove(
        {.holds = equals(floor_mod(byte, alignment), i.site.pool().constant(0)),
         .code = bad_matrix,
         .wrong = fmt::format("the box of `{}` does not begin where its swizzle does", map.name),
         .expected = fmt::format("a multiple of {} bytes", alignment),
         .found = "byte " + quoted(byte),
         .whether = fmt::format("the box of `{}` begins where its swizzle does", map.name)},
        span);
  }
};

}  // namespace

void verify_boxes(const Issued& i) {
  for (const arch::Access& a : i.form().effects.accesses) {
    if (a.bytes.of != arch::Amount::Of::box) continue;
    const Argument* place = i.argument(a.operand);
    const Argument* of = i.argument(a.bytes.name);
    const auto* at = place == nullptr ? nullptr : std::get_if<SharedAt>(place);
    const auto* map = of == nullptr ? nullptr : std::get_if<MapRef>(of);
    if (at == nullptr || map == nullptr) continue;
    const TensorMap& m = i.site.kernel[map->map];
    const std::size_t index = i.index(a.operand);
    Box{i, i.site.kernel[at->shared], *at, m, i.span(index)}.verify();
    const arch::Modifier* op = i.form().modifier("op");
    if (op == nullptr) continue;
    const auto known = arch::reductions(i.site.kernel[m.tensor].element);
    for (const auto& [name, value] : i.issue.choices)
      if (name == "op" && std::find(known.begin(), known.end(), value) == known.end())
        i.site.report(fail(bad_argument, "`{}` has no `{}` of {}", i.form().name, value,
                           short_name(i.site.kernel[m.tensor].element))
                          .expect("{}", known.empty() ? "another type"
                                                      : fmt::format("{}", fmt::join(known, ", "))));
  }
}

}  // namespace tessera::core
