#include "arch/tma.h"

#include <numeric>

#include "arch/instruction.h"

namespace tessera::arch {
namespace {

constexpr Code bad_map{"TS0452", "arch.bad_tensor_map"};

const std::vector<std::string> ranks = {"1", "2", "3", "4", "5"};

Operand map_operand() {
  return {.name = "map", .kind = OperandKind::tensor_map, .alignment = tma_limits.map_alignment};
}
/// Signed: a box may begin before its tensor.
Operand coordinates() {
  return {.name = "at", .kind = OperandKind::b32, .registers = Amount::modifier("rank")};
}
Operand policy() {
  return {.name = "policy", .kind = OperandKind::b64};  // of createpolicy
}
Access map_read() {
  return {Action::read, Space::global, Proxy::tensormap,
          "map",        Place::once,   Amount::number(tma_limits.map_bytes)};
}
Access box_access(Action action, Completion until) {
  return {action, Space::global, Proxy::async, "map", Place::box, Amount::box("map"), until};
}
Access shared_box(Action action, std::string_view operand, Completion until) {
  const Space space = action == Action::read ? Space::shared : Space::cluster_shared;
  return {action, space, Proxy::async, operand, Place::once, Amount::box("map"), until};
}

/// A box comes to shared memory; the bytes of the whole box are counted at the mbarrier, in each
/// block of `blocks` at its own.
Form load(bool multicast, bool hint) {
  Form f;
  f.name = std::string("tma.load") + (multicast ? "_multicast" : "") + (hint ? ".hint" : "");
  f.doc = multicast ? "A box to the same place in every block of the cluster whose bit is set"
                    : "A box to shared memory; a place outside the tensor gets the map's fill";
  if (hint) f.doc += ", with a cache policy";
  f.capability = "tma";
  f.modifiers = {{"rank", ranks}};
  f.operands = {{.name = "to", .kind = OperandKind::cluster_shared, .alignment = 128},
                map_operand(),
                coordinates(),
                {.name = "barrier", .kind = OperandKind::cluster_shared, .alignment = 8}};
  if (multicast) f.operands.push_back({.name = "blocks", .kind = OperandKind::b16});
  if (hint) f.operands.push_back(policy());
  f.ptx = "cp.async.bulk.tensor.<rank>d.shared::cluster.global.mbarrier::complete_tx::bytes" +
          std::string(multicast ? ".multicast::cluster" : "") + (hint ? ".L2::cache_hint" : "") +
          " [$to], [$map, $at], [$barrier]" + (multicast ? ", $blocks" : "") +
          (hint ? ", $policy" : "") + ";";
  Access write = shared_box(Action::write, "to", Completion::barrier_bytes);
  Event bytes{.verb = Verb::signals,
              .kind = EventKind::bytes,
              .operand = "barrier",
              .amount = Amount::box("map"),
              .when = When::with_accesses,
              .order = Ordering::release,
              .scope = Scope::cluster};
  if (multicast) write.blocks = bytes.blocks = "blocks";
  f.effects = {.issuer = Issuer::elected,
               .accesses = {map_read(), box_access(Action::read, Completion::barrier_bytes), write},
               .events = {bytes},
               .needs = {{FenceKind::tensormap_acquire, "map"},
                         {FenceKind::async_proxy, "to"},
                         {FenceKind::barrier_init, "barrier"}}};
  return f;
}

/// A box leaves shared memory; what lies outside of the tensor is not written.
Form store(bool reducing, bool hint) {
  Form f;
  f.name = std::string(reducing ? "tma.reduce" : "tma.store") + (hint ? ".hint" : "");
  f.doc = reducing ? "A box of shared memory into the tensor's by an operation; no element twice "
                     "at a time, in no order"
                   : "A box of shared memory to the tensor; nothing is written outside of it";
  if (hint) f.doc += ", with a cache policy";
  f.capability = "tma";
  f.modifiers = {{"rank", ranks}};
  if (reducing)
    f.modifiers.push_back({"op", {"add", "min", "max", "inc", "dec", "and", "or", "xor"}});
  f.operands = {map_operand(),
                coordinates(),
                {.name = "from", .kind = OperandKind::shared, .alignment = 128}};
  if (hint) f.operands.push_back(policy());
  f.ptx = std::string(reducing ? "cp.reduce" : "cp") +
          ".async.bulk.tensor.<rank>d.global.shared::cta" + (reducing ? ".<op>" : "") +
          ".tile.bulk_group" + (hint ? ".L2::cache_hint" : "") + " [$map, $at], [$from]" +
          (hint ? ", $policy" : "") + ";";
  f.effects = {
      .issuer = Issuer::elected,
      .accesses = {map_read(), shared_box(Action::read, "from", Completion::bulk_group_read),
                   box_access(reducing ? Action::update : Action::write, Completion::bulk_group)},
      .needs = {{FenceKind::tensormap_acquire, "map"}, {FenceKind::async_proxy, "from"}}};
  if (reducing) f.effects.accesses.back().atomic = Scope::gpu;
  return f;
}

Form prefetch() {
  Form f;
  f.name = "tma.prefetch";
  f.doc = "A box to the L2 cache: a hint without a completion";
  f.capability = "tma";
  f.modifiers = {{"rank", ranks}};
  f.operands = {map_operand(), coordinates()};
  f.ptx = "cp.async.bulk.prefetch.tensor.<rank>d.L2.global.tile [$map, $at];";
  f.effects = {.issuer = Issuer::elected,
               .accesses = {map_read()},
               .needs = {{FenceKind::tensormap_acquire, "map"}}};
  return f;
}

Form prefetch_map() {
  return {.name = "tma.prefetch_map",
          .doc = "The tensor map to the cache that the accelerator reads: a hint",
          .capability = "tma",
          .operands = {map_operand()},
          .ptx = "prefetch.tensormap [$map];",
          .effects = {.issuer = Issuer::elected,
                      .accesses = {map_read()},
                      .needs = {{FenceKind::tensormap_acquire, "map"}}}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {load(false, false), load(true, false),   load(false, true),
                                        load(true, true),   store(false, false), store(false, true),
                                        store(true, false), store(true, true),   prefetch(),
                                        prefetch_map()};
  return all;
}

Status check_box(const TensorMap& map) {
  const TmaLimits& limits = tma_limits;
  for (int i = 0; i < map.rank(); ++i)
    if (map.box[i] < 1 || map.box[i] > limits.max_box_extent)
      return error(fail(bad_map, "dimension {} of a box has {} elements", i, map.box[i])
                       .expect("1 to {}", limits.max_box_extent)
                       .help("copy it by several boxes"));
  const int64_t inner = map.box[0] * size_of(map.element);
  if (inner % limits.inner_box_multiple != 0)
    return error(fail(bad_map, "a row of a box has {} bytes", inner)
                     .expect("a multiple of {}", limits.inner_box_multiple));
  if (map.swizzle != SwizzleMode::none && inner > width_of(map.swizzle))
    return error(
        fail(bad_map, "a row of a box has {} bytes in swizzle {}", inner, name_of(map.swizzle))
            .expect("at most {}", width_of(map.swizzle))
            .help("copy it by several boxes, or without a swizzle"));
  if (map.fill == OutOfBounds::nan && !is_floating(map.element))
    return error(fail(bad_map, "{} has no NaN to fill with", name_of(map.element)));
  return {};
}

}  // namespace

int64_t TensorMap::box_bytes() const {
  return std::accumulate(box.begin(), box.end(), int64_t{size_of(element)}, std::multiplies<>());
}

Layout TensorMap::box_layout() const {
  return Layout::column_major(IntTuple::flat(box));
}

Status check(const TensorMap& map, int64_t base) {
  const TmaLimits& limits = tma_limits;
  const auto rank = static_cast<std::size_t>(map.rank());
  if (rank < 1 || map.rank() > limits.max_rank || map.box.size() != rank ||
      map.strides.size() + 1 != rank)
    return error(
        fail(bad_map, "a tensor map has {} extents, {} strides and {} box extents", rank,
             map.strides.size(), map.box.size())
            .expect("1 to {} extents, one stride less, as many box extents", limits.max_rank));
  if (base % limits.base_alignment != 0)
    return error(fail(bad_map, "the tensor's address is a multiple of {} bytes", base)
                     .expect("of {}", limits.base_alignment));
  for (std::size_t i = 0; i < rank; ++i)
    if (map.extents[i] < 1 || map.extents[i] > limits.max_extent)
      return error(
          fail(bad_map, "dimension {} has {} elements", i, map.extents[i]).expect("1 to 2^32"));
  for (std::size_t i = 0; i + 1 < rank; ++i)
    if (map.strides[i] % limits.stride_multiple != 0 || map.strides[i] < 0 ||
        map.strides[i] >= limits.max_stride)
      return error(fail(bad_map, "dimension {} has a stride of {} bytes", i + 1, map.strides[i])
                       .expect("a multiple of {} below 2^40", limits.stride_multiple));
  return check_box(map);
}

std::string_view driver_type(DType element, bool rounded) {
  switch (element) {
    case DType::float64:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT64";
    case DType::float32:
      return rounded ? "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32" : "CU_TENSOR_MAP_DATA_TYPE_FLOAT32";
    case DType::bfloat16:
      return "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
    case DType::float16:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT16";
    case DType::int64:
      return "CU_TENSOR_MAP_DATA_TYPE_INT64";
    case DType::int32:
      return "CU_TENSOR_MAP_DATA_TYPE_INT32";
    case DType::int16:
      return "CU_TENSOR_MAP_DATA_TYPE_UINT16";
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return "CU_TENSOR_MAP_DATA_TYPE_UINT8";
  }
  return "";
}

std::vector<std::string_view> reductions(DType element) {
  switch (element) {
    case DType::float64:
    case DType::float32:
      return {"add"};
    case DType::bfloat16:
    case DType::float16:
      return {"add", "min", "max"};
    case DType::int32:
      return {"add", "min", "max", "and", "or", "xor"};
    case DType::int64:
      return {"min", "max", "and", "or", "xor"};
    default:
      return {};
  }
}

namespace instructions {
extern const Family tma = {
    .name = "tma",
    .doc = "Boxes of tensors between global and shared memory by the tensor memory accelerator",
    .section = "Data Movement and Conversion Instructions: Tensor copy",
    .forms = forms,
};
}

}  // namespace tessera::arch
