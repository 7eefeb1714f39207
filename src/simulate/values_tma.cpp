// Boxes of tensors. A box lies in shared memory without gaps, dimension 0 fastest, under its map's
// swizzle of byte addresses.
#include <cstring>

#include "arch/shared_tile.h"

#include "simulate/domain.h"
#include "simulate/machine.h"
#include "simulate/update.h"
#include "simulate/value_families.h"

namespace tessera::simulate {
namespace {

using arch::Space;

struct Box {
  const core::TensorMap& map;
  const MapCode& code;
  DType element;
  int64_t size;
};

Box box_of(const Call& call) {
  const Program& p = call.machine->program();
  const int map = call.code->operands[call.code->operand("map")].storage;
  const core::TensorMap& m = p.kernel.maps[map];
  const DType element = p.kernel[m.tensor].element;
  return {m, p.maps[map], element, size_of(element)};
}

/// row(first, count, global element, box element): runs of a row of the box, those within the
/// tensor with the place of their first element; -1 where it is outside.
template <class Run>
void each_run(const Call& call, const Box& b, const Run& run) {
  const Given& at = call.given[call.code->operand("at")];
  const std::size_t rank = b.code.box.size();
  const int64_t width = b.code.box[0];
  const int64_t x = at(0, 0);
  const int64_t begin = std::clamp<int64_t>(-x, 0, width);
  const int64_t end = std::clamp<int64_t>(b.code.extents[0] - x, begin, width);
  std::vector<int64_t> c(rank, 0);
  for (int64_t row = 0;; row += width) {
    bool inside = end > begin;
    int64_t element = x + begin;
    for (std::size_t d = 1; d < rank; ++d) {
      const int64_t y = at(0, static_cast<int64_t>(d)) + c[d];
      inside = inside && y >= 0 && y < b.code.extents[d];
      element += y * b.code.strides[d];
    }
    if (inside) {
      if (begin > 0) run(row, begin, -1);
      run(row + begin, end - begin, element);
      if (end < width) run(row + end, width - end, -1);
    } else {
      run(row, width, -1);
    }
    std::size_t d = 1;
    while (d < rank && ++c[d] == b.code.box[d]) c[d++] = 0;
    if (d >= rank) return;
  }
}

template <class Values>
void gather(Call& call, Values values) {
  const Box b = box_of(call);
  const int64_t size = call.machine->held(b.size);
  call.taken.assign(static_cast<std::size_t>(call.machine->held(b.code.bytes)), 0);
  std::vector<uint8_t> outside(static_cast<std::size_t>(size), 0);
  if (b.map.fill == arch::OutOfBounds::nan)
    values.encode(b.element, values.nothing(), outside.data());
  each_run(call, b, [&](int64_t first, int64_t count, int64_t element) {
    uint8_t* to = call.taken.data() + first * size;
    if (element >= 0)
      std::memcpy(to,
                  call.machine->read_memory(Space::global, b.map.tensor.index, element * b.size),
                  count * size);
    else
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * size, outside.data(), size);
  });
  if (b.map.rounded) values.round_to_tf32(call.taken);
}
void gather(Call& call) {
  with_values(call.machine->program(), [&](auto values) { gather(call, values); });
}

/// An element of the box carries the tags of its index, outside of the tensor too.
void gather_tags(Call& call) {
  const Box b = box_of(call);
  const Given& at = call.given[call.code->operand("at")];
  const auto rank = b.map.dims.size();
  std::vector<int64_t> index(rank);
  call.machine->begin_tags(call, b.code.bytes);
  each_run(call, b, [&](int64_t first, int64_t count, int64_t element) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = first + i;
      for (std::size_t d = 0; element < 0 && d < rank; rest /= b.code.box[d++])
        index[static_cast<std::size_t>(b.map.dims[d])] =
            at(0, static_cast<int64_t>(d)) + rest % b.code.box[d];
      const TagId tag = element >= 0 ? call.machine->tensor_tag(b.map.tensor.index, element + i)
                                     : call.machine->tensor_tag(b.map.tensor.index, index);
      call.machine->take_tag(call, (first + i) * b.size, b.size, tag);
    }
  });
}

/// 16 bytes at a time, which no swizzle parts.
template <class Piece>
void each_piece(const Box& b, int64_t at, const Piece& piece) {
  const Swizzle swizzle = arch::swizzle_of(b.map.swizzle);
  for (int64_t i = 0; i < b.code.bytes; i += 16) piece(i, swizzle(at + i));
}

void fill_shared(Call& call) {
  const Box b = box_of(call);
  const int64_t at = call.given[call.code->operand("to")](0);
  for (int block : call.machine->targets(call, call.code->accesses.back().blocks))
    each_piece(b, at, [&](int64_t i, int64_t to) {
      std::memcpy(call.machine->memory(Space::shared, block, to),
                  call.taken.data() + call.machine->held(i), call.machine->held(16));
    });
}

void take_shared(Call& call) {
  const Box b = box_of(call);
  const int64_t at = call.given[call.code->operand("from")](0);
  call.taken.resize(static_cast<std::size_t>(call.machine->held(b.code.bytes)));
  each_piece(b, at, [&](int64_t i, int64_t from) {
    std::memcpy(call.taken.data() + call.machine->held(i),
                call.machine->read_memory(Space::shared, call.block, from), call.machine->held(16));
  });
}

void scatter(Call& call) {
  const Box b = box_of(call);
  each_run(call, b, [&](int64_t first, int64_t count, int64_t element) {
    if (element >= 0)
      std::memcpy(call.machine->memory(Space::global, b.map.tensor.index, element * b.size),
                  call.taken.data() + call.machine->held(first * b.size),
                  call.machine->held(count * b.size));
  });
}

void scatter_update(Call& call) {
  const Box b = box_of(call);
  std::string op;
  for (const auto& [name, value] : call.code->issue->choices)
    if (name == "op") op = value;
  each_run(call, b, [&](int64_t first, int64_t count, int64_t element) {
    with_values(call.machine->program(), [&](auto values) {
      for (int64_t i = 0; element >= 0 && i < count; ++i)
        update_element(
            values, b.element, op, call.taken.data() + call.machine->held((first + i) * b.size),
            call.machine->memory(Space::global, b.map.tensor.index, (element + i) * b.size));
    });
  });
}

}  // namespace

std::span<const Semantics> tma_values() {
  static constexpr Semantics all[] = {
      {"tma.load", gather, fill_shared, true, gather_tags},
      {"tma.store", take_shared, scatter},
      {"tma.reduce", take_shared, scatter_update, false},
  };
  return all;
}

}  // namespace tessera::simulate
