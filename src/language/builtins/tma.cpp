// Boxes of tensors by the tensor memory accelerator. Maps are made of tensors and boxes.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

/// The map of the box: one for all boxes of the same extents.
Result<core::MapId> map_of(Call& c, const BoxRef& box, const SharedRef& part) {
  Elaborator& e = c.e;
  core::Builder& b = e.builder();
  const core::Tensor& tensor = b.kernel()[box.id];
  const core::Shared& shared = b.kernel()[part.id];
  const std::size_t rank = box.dims.size();
  if (const auto inner = tensor.strides[rank - 1]->facts.constant(); inner != 1)
    return error(fail(no_instruction, "TMA takes tensors whose last dimension is contiguous")
                     .label(e.label(c.span))
                     .but_found("a stride of {} elements", to_string(tensor.strides[rank - 1]))
                     .help("name the dimensions in the order of their strides"));
  for (std::size_t i = 0; i + 1 < rank; ++i)
    if (!tensor.strides[i]->facts.multiple_of(16 / size_of(tensor.element)))
      return error(
          fail(no_instruction, "rows of `{}` may begin between 16 bytes", tensor.name)
              .label(e.label(c.span))
              .expect("strides that are multiples of {} elements", 16 / size_of(tensor.element))
              .but_found("{}", to_string(tensor.strides[i]))
              .help("declare it: `{}: index(multiple={})`", to_string(tensor.strides[i]),
                    16 / size_of(tensor.element)));
  core::TensorMap map{.tensor = box.id, .swizzle = shared.swizzle};
  std::string key = fmt::format("{} {}", box.id.index, static_cast<int>(shared.swizzle));
  for (std::size_t i = rank; i-- > 0;) {
    map.dims.push_back(static_cast<int>(i));
    map.box.push_back(box.dims[i].extent);
    key += fmt::format(" {}", box.dims[i].extent);
    if (box.dims[i].extent > arch::tma_limits.max_box_extent)
      return error(fail(no_instruction, "a box of TMA has at most {} elements along a dimension",
                        arch::tma_limits.max_box_extent)
                       .label(e.label(c.span))
                       .but_found("{}", shape_text(shape_of(box)))
                       .help("load it in parts"));
  }
  if (const auto known = e.maps.find(key); known != e.maps.end()) return known->second;
  map.name = e.fresh(tensor.name + "_map");
  map.span = c.span;
  return e.maps[key] = b.map(std::move(map));
}

struct Copy {
  BoxRef box;
  SharedRef part;
  core::MapId map;
  core::Integers at;
  std::string rank;
};

Result<Copy> copy(Call& c, std::string_view box_name, std::string_view part_name) {
  Elaborator& e = c.e;
  TESSERA_TRY(box, c.the<BoxRef>(box_name, "a box of a tensor: A[m, k]"));
  TESSERA_TRY(part, c.the<SharedRef>(part_name, "shared memory: a[k]"));
  const core::Kernel& kernel = e.builder().kernel();
  const core::Tensor& tensor = kernel[box.id];
  const core::Shared& shared = kernel[part.id];
  if (part.transposed)
    return error(fail(wrong_place, "TMA copies no transposed matrix")
                     .label(e.label(c.span_of(part_name)))
                     .expect("shared memory as it lies")
                     .but_found("a transposed matrix")
                     .help("take the `.T` away: what reads it says how"));
  if (shape_of(box) != shape_of(part))
    return error(
        fail(wrong_shape, "the box and the shared memory have different shapes")
            .label(e.label(c.span_of(box_name), "a box of " + shape_text(shape_of(box))))
            .label(e.label(c.span_of(part_name), "shared memory of " + shape_text(shape_of(part))))
            .expect("{}", shape_text(shape_of(box)))
            .but_found("{}", shape_text(shape_of(part)))
            .help("give both the same extents"));
  if (tensor.element != shared.element)
    return error(fail(wrong_kind, "the box and the shared memory have elements of different types")
                     .label(e.label(c.span_of(box_name), std::string(short_name(tensor.element))))
                     .label(e.label(c.span_of(part_name), std::string(short_name(shared.element))))
                     .expect("{}", short_name(tensor.element))
                     .but_found("{}", short_name(shared.element))
                     .help("a copy converts nothing: give both one type"));
  TESSERA_TRY(map, map_of(c, box, part));
  Copy out{box, part, map, {}, std::to_string(box.dims.size())};
  for (std::size_t i = box.dims.size(); i-- > 0;) out.at.values.push_back(box.dims[i].start);
  return out;
}

Result<Value> load(Call& c) {
  TESSERA_TRY(copied, copy(c, "box", "to"));
  TESSERA_TRY(barrier, c.the<BarrierRef>("barrier", "a barrier: full[k]"));
  TESSERA_CHECK(c.e.may_issue(*arch::find_form("tma.load"), c.span));
  TESSERA_TRY(b, c.e.emit(c.span));
  b->issue("tma.load",
           {core::SharedAt{copied.part.id, copied.part.at}, core::MapRef{copied.map}, copied.at,
            core::BarrierAt{barrier.id, barrier.slot}},
           {{"rank", copied.rank}});
  return Value{};
}

Result<Value> store(Call& c) {
  TESSERA_TRY(copied, copy(c, "box", "from"));
  TESSERA_CHECK(c.e.may_issue(*arch::find_form("tma.store"), c.span));
  TESSERA_TRY(b, c.e.emit(c.span));
  b->issue("tma.store",
           {core::MapRef{copied.map}, copied.at, core::SharedAt{copied.part.id, copied.part.at}},
           {{"rank", copied.rank}});
  return Value{};
}

Result<Value> tensor_map(Call& c) {
  TESSERA_TRY(copied, copy(c, "box", "part"));
  return Value{MapValue{copied.map}};
}

constexpr Builtin records[] = {
    {"tma.load", "box, to, barrier", "A box of a tensor to shared memory, counted at a barrier",
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
