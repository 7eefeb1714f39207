// Boxes of tensors by the tensor memory accelerator. Maps are made of tensors and boxes.
#include <algorithm>

#include "language/elaborator.h"

namespace tessera::language {
namespace {

/// A dimension of the box, and the mode of the shared memory that has it.
struct Pair {
  std::size_t dim;
  std::size_t mode;
  int64_t extent;
};

/// A box and its part of shared memory. An instruction copies one panel of it: what lies in shared
/// memory as a box does.
struct Copy {
  BoxRef box;
  SharedRef part;
  std::vector<Pair> pairs;        // dimensions of more than one element
  std::optional<std::size_t> at;  // of pairs: the contiguous one
  int64_t width = 1;              // elements of a panel along it
  int64_t panels = 1;
  core::MapId map;
  std::vector<int> dims;  // of the tensor, in the map's order
  bool rounded = false;   // to tf32 on the way
};

Term sum(Term a, Term b) {
  return a->op == term::Op::constant && a->value == 0 ? b : a + b;
}

/// The tensor's dimensions, the contiguous one first, the others from the last on.
Result<std::vector<int>> dims_of(Call& c, const core::Tensor& tensor) {
  const Elaborator& e = c.e;
  const auto rank = static_cast<int>(tensor.extents.size());
  std::vector<int> out;
  for (int i = rank; i-- > 0;)
    if (out.empty() && tensor.strides[static_cast<std::size_t>(i)]->facts.constant() == 1)
      out.push_back(i);
  if (out.empty())
    return error(fail(no_instruction, "TMA takes tensors of which one dimension is contiguous")
                     .label(e.label(c.span))
                     .expect("a stride of 1")
                     .but_found("{}", to_string(tensor.strides.back()))
                     .help("declare it: `strides(\"S\", 1)`"));
  for (int i = rank; i-- > 0;) {
    if (i == out.front()) continue;
    out.push_back(i);
    const Term stride = tensor.strides[static_cast<std::size_t>(i)];
    if (!stride->facts.multiple_of(16 / size_of(tensor.element)))
      return error(
          fail(no_instruction, "rows of `{}` may begin between 16 bytes", tensor.name)
              .label(e.label(c.span))
              .expect("strides that are multiples of {} elements", 16 / size_of(tensor.element))
              .but_found("{}", to_string(stride))
              .help("declare it: `{}: index(multiple={})`", to_string(stride),
                    16 / size_of(tensor.element)));
  }
  return out;
}

/// The map of boxes like this one: one for all boxes of the same extents.
Result<core::MapId> map_of(Call& c, const Copy& copy) {
  Elaborator& e = c.e;
  core::Builder& b = e.builder();
  const core::Shared& shared = b.kernel()[copy.part.id];
  core::TensorMap map{.tensor = copy.box.id, .dims = copy.dims, .swizzle = shared.swizzle};
  map.rounded = copy.rounded;
  std::string key = fmt::format("{} {} {}", copy.box.id.index, static_cast<int>(shared.swizzle),
                                copy.rounded ? "rounded" : "");
  for (const int d : copy.dims) {
    const int64_t extent = copy.box.dims[static_cast<std::size_t>(d)].extent;
    map.box.push_back(extent);
    key += fmt::format(" {}", extent);
    if (extent > arch::tma_limits.max_box_extent)
      return error(fail(no_instruction, "a box of TMA has at most {} elements along a dimension",
                        arch::tma_limits.max_box_extent)
                       .label(e.label(c.span))
                       .but_found("{}", shape_text(shape_of(copy.box)))
                       .help("load it in parts"));
  }
  if (const auto known = e.maps.find(key); known != e.maps.end()) return known->second;
  map.name = e.fresh(b.kernel()[copy.box.id].name + "_map");
  map.span = c.span;
  return e.maps[key] = b.map(std::move(map));
}

/// Dimensions of one element are in every shape.
Result<std::vector<Pair>> pairs_of(Call& c, const BoxRef& box, const SharedRef& part,
                                   std::string_view box_name, std::string_view part_name) {
  std::vector<Pair> out;
  std::vector<int64_t> of_part;
  for (std::size_t d = 0; d < box.dims.size(); ++d)
    if (box.dims[d].extent != 1) out.push_back({d, 0, box.dims[d].extent});
  for (std::size_t i = 0; i < part.extents.size(); ++i) {
    if (part.extents[i] == 1) continue;
    if (of_part.size() < out.size())
      out[of_part.size()].mode = static_cast<std::size_t>(part.kept[i]);
    of_part.push_back(part.extents[i]);
  }
  const bool same = std::equal(out.begin(), out.end(), of_part.begin(), of_part.end(),
                               [](const Pair& p, int64_t extent) { return p.extent == extent; });
  if (same) return out;
  return error(
      fail(wrong_shape, "the box and the shared memory have different shapes")
          .label(c.e.label(c.span_of(box_name), "a box of " + shape_text(shape_of(box))))
          .label(c.e.label(c.span_of(part_name), "shared memory of " + shape_text(shape_of(part))))
          .expect("{}", shape_text(shape_of(box)))
          .but_found("{}", shape_text(shape_of(part)))
          .help("give both the same extents"));
}

/// Finds the contiguous dimension, which box and shared memory have in common, and its panels.
Status find_panels(Call& c, Copy& copy, std::string_view part_name) {
  const core::Kernel& k = c.e.builder().kernel();
  const core::Shared& shared = k[copy.part.id];
  const core::Tensor& tensor = k[copy.box.id];
  for (std::size_t i = 0; i < copy.pairs.size(); ++i) {
    const auto mode = static_cast<int>(copy.pairs[i].mode);
    if (flatten(shared.layout.mode(mode).stride()).front() != 1) continue;
    copy.at = i;
    copy.width = std::min(flatten(shared.layout.mode(mode).shape()).front(), copy.pairs[i].extent);
  }
  if (!copy.at) return {};
  const Pair& contiguous = copy.pairs[*copy.at];
  const auto first = static_cast<std::size_t>(copy.dims.front());
  if (contiguous.dim != first && copy.box.dims[first].extent != 1)
    return error(fail(no_instruction,
                      "the box and the shared memory are contiguous along "
                      "different dimensions")
                     .label(c.e.label(c.span_of(part_name)))
                     .expect("dimension {} of `{}` side by side, as in memory", first, tensor.name)
                     .but_found("\"{}\"", to_string(shared.layout))
                     .help("a copy turns nothing: say `contiguous=` of the shared memory"));
  if (contiguous.extent % copy.width != 0)
    return error(fail(wrong_shape, "the part is not made of whole panels")
                     .label(c.e.label(c.span_of(part_name)))
                     .expect("a multiple of {}, the elements of a panel", copy.width)
                     .but_found("{}", contiguous.extent)
                     .help("copy whole panels"));
  copy.panels = contiguous.extent / copy.width;
  copy.box.dims[contiguous.dim].extent = copy.width;
  return {};
}

Result<Copy> copy_of(Call& c, std::string_view box_name, std::string_view part_name) {
  Elaborator& e = c.e;
  Copy out;
  TESSERA_TRY(box, c.the<BoxRef>(box_name, "a box of a tensor: A[m, k]"));
  TESSERA_TRY(part, c.the<SharedRef>(part_name, "shared memory: a[k]"));
  const core::Tensor& tensor = e.builder().kernel()[box.id];
  const core::Shared& shared = e.builder().kernel()[part.id];
  if (part.transposed) {  // the same memory, its dimensions in the other order
    std::swap(part.kept[0], part.kept[1]);
    std::swap(part.extents[0], part.extents[1]);
    part.transposed = false;
  }
  TESSERA_TRY(pairs, pairs_of(c, box, part, box_name, part_name));
  if (tensor.element != shared.element)
    return error(fail(wrong_kind, "the box and the shared memory have elements of different types")
                     .label(e.label(c.span_of(box_name), std::string(short_name(tensor.element))))
                     .label(e.label(c.span_of(part_name), std::string(short_name(shared.element))))
                     .expect("{}", short_name(tensor.element))
                     .but_found("{}", short_name(shared.element))
                     .help("a copy converts nothing: give both one type"));
  TESSERA_TRY(dims, dims_of(c, tensor));
  out.box = box;
  out.part = part;
  out.pairs = pairs;
  out.dims = dims;
  TESSERA_CHECK(find_panels(c, out, part_name));
  return out;
}

void shift(Copy& copy, const Pair& p, Term by) {
  Term& at = copy.part.at[p.mode];
  Term& start = copy.box.dims[p.dim].start;
  at = sum(at, by);
  start = sum(start, by);
}

/// This block's share of a box that `blocks` need: of its first dimension, and of panels where that
/// is the contiguous one.
Status take_share(Call& c, Copy& copy, int64_t blocks) {
  core::Builder& b = c.e.builder();
  const Term rank = b.at().rank;
  std::size_t along = 0;
  if (copy.at == 0 && copy.panels % blocks == 0 && copy.panels > 1) {
    copy.panels /= blocks;
    shift(copy, copy.pairs[0], rank * (copy.panels * copy.width));
    return {};
  }
  if (copy.at == 0) along = 1;
  if (along >= copy.pairs.size() || copy.pairs[along].extent % blocks != 0)
    return error(fail(wrong_shape, "the blocks of the cluster cannot share the box")
                     .label(c.e.label(c.span_of("box")))
                     .expect("a dimension that {} divides", blocks)
                     .but_found("{}", shape_text(shape_of(copy.box)))
                     .help("let each block load the box: take `share` away"));
  const int64_t share = copy.pairs[along].extent / blocks;
  shift(copy, copy.pairs[along], rank * share);
  copy.box.dims[copy.pairs[along].dim].extent = share;
  return {};
}

/// Calls issue(place, coordinates, rank) for each panel.
Status each_panel(Call& c, const Copy& copy,
                  const std::function<void(core::SharedAt, core::Integers, std::string)>& issue) {
  TESSERA_TRY(b, c.e.emit(c.span));
  const auto one = [&](const Copy& panel) {
    core::Integers at;
    for (const int d : panel.dims)
      at.values.push_back(panel.box.dims[static_cast<std::size_t>(d)].start);
    issue({panel.part.id, panel.part.at}, at, std::to_string(panel.dims.size()));
  };
  if (copy.panels == 1) {
    one(copy);
    return {};
  }
  const std::string counter = c.e.counter_name("panel", b->number(0), b->number(copy.panels));
  b->unrolled(counter, copy.panels, [&](Term p) {
    Copy panel = copy;
    shift(panel, panel.pairs[*panel.at], p * panel.width);
    one(panel);
  });
  return {};
}

Result<Value> load(Call& c) {
  TESSERA_TRY(copy, copy_of(c, "box", "to"));
  TESSERA_TRY(barrier, c.the<BarrierRef>("barrier", "a barrier: full[k]"));
  TESSERA_TRY(shares, c.flag("share", false));
  TESSERA_TRY(rounds, c.flag("round", false));
  const DType element = c.e.builder().kernel()[copy.box.id].element;
  if (rounds && element != DType::float32)
    return error(fail(wrong_kind, "copies round f32 to tf32, and nothing else")
                     .label(c.e.label(c.span_of("box"), std::string(short_name(element))))
                     .expect("a tensor of f32")
                     .but_found("{}", short_name(element))
                     .help("take `round` away"));
  copy.rounded = rounds;
  const int64_t blocks = shares ? c.e.builder().kernel().cluster : 1;
  const std::string form = blocks > 1 ? "tma.load_multicast" : "tma.load";
  TESSERA_CHECK(c.e.may_issue(*arch::find_form(form), c.span));
  if (blocks > 1) TESSERA_CHECK(take_share(c, copy, blocks));
  TESSERA_TRY(map, map_of(c, copy));
  core::Builder& b = c.e.builder();
  TESSERA_CHECK(
      each_panel(c, copy, [&](core::SharedAt to, core::Integers at, const std::string& rank) {
        std::vector<core::Argument> arguments = {std::move(to), core::MapRef{map}, std::move(at),
                                                 core::BarrierAt{barrier.id, barrier.slot}};
        if (blocks > 1)
          arguments.emplace_back(core::Integers{{b.number((int64_t{1} << blocks) - 1)}});
        b.issue(form, std::move(arguments), {{"rank", rank}});
      }));
  return Value{};
}

Result<Value> store(Call& c) {
  TESSERA_TRY(copy, copy_of(c, "box", "from"));
  TESSERA_CHECK(c.e.may_issue(*arch::find_form("tma.store"), c.span));
  TESSERA_TRY(map, map_of(c, copy));
  core::Builder& b = c.e.builder();
  TESSERA_CHECK(
      each_panel(c, copy, [&](core::SharedAt from, core::Integers at, const std::string& rank) {
        b.issue("tma.store", {core::MapRef{map}, std::move(at), std::move(from)}, {{"rank", rank}});
      }));
  return Value{};
}

Result<Value> tensor_map(Call& c) {
  TESSERA_TRY(copy, copy_of(c, "box", "part"));
  TESSERA_TRY(map, map_of(c, copy));
  return Value{MapValue{map}};
}

constexpr Builtin records[] = {
    {"tma.load", "box, to, barrier, share=, round=",
     "A box of a tensor to shared memory, counted at a barrier; or a share of it for the cluster",
     load},
    {"tma.store", "from, box", "Shared memory to a box of a tensor, in the thread's bulk group",
     store},
    {"tensor_map", "box, part", "The tensor map for boxes like this one, for `issue`", tensor_map},
};

}  // namespace

namespace groups {
extern const Group tma = {records};
}

}  // namespace tessera::language
