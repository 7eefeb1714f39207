// Loads, stores and atomic updates of single threads.
#include <algorithm>
#include <cstring>

#include "simulate/domain.h"
#include "simulate/machine.h"
#include "simulate/update.h"
#include "simulate/value_families.h"

namespace tessera::simulate {
namespace {

struct Moved {
  int registers, address;  // operands
  arch::Space space;
  int place;
  int64_t elements, size;
};

Moved moved(const Call& call, std::string_view registers, std::string_view address) {
  const IssueCode& code = *call.code;
  Moved m{code.operand(registers), code.operand(address), arch::Space::shared, call.block, 1, 1};
  const OperandCode& at = code.operands[m.address];
  if (at.kind == OperandCode::Kind::global) {
    m.space = arch::Space::global;
    m.place = at.storage;
  }
  const OperandCode& slice = code.operands[m.registers];
  m.elements = slice.elements;
  m.size = size_of(call.machine->program().kernel.registers[slice.storage].element);
  return m;
}

template <class Lane>
void each_lane(const Call& call, const Lane& lane) {
  for (uint32_t rest = call.lanes; rest != 0; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    if (Machine::happens(call, call.code->accesses.front(), l)) lane(l);
  }
}

void load(Call& call) {
  const Moved m = moved(call, "to", "from");
  each_lane(call, [&](int lane) {
    const int64_t at = call.given[m.address](lane);
    const uint8_t* from = call.machine->read_memory(m.space, m.place, at);
    for (int64_t e = 0; e < m.elements; ++e)
      std::memcpy(call.machine->write_registers(call, m.registers, lane, e),
                  from + call.machine->held(e * m.size), call.machine->held(m.size));
  });
}

void store(Call& call) {
  const Moved m = moved(call, "from", "to");
  each_lane(call, [&](int lane) {
    uint8_t* to = call.machine->memory(m.space, m.place, call.given[m.address](lane));
    for (int64_t e = 0; e < m.elements; ++e)
      std::memcpy(to + call.machine->held(e * m.size),
                  call.machine->read_registers(call, m.registers, lane, e),
                  call.machine->held(m.size));
  });
}

/// reduce.<space>.<type> and atomic.<space>.<type>, lane by lane.
void update(Call& call) {
  const Moved m = moved(call, "by", "at");
  const DType type = element_of_update(call.code->form->name);
  const std::string op = call.code->issue->choices.front().second;
  const bool returns = call.code->form->operand("old") != nullptr;
  each_lane(call, [&](int lane) {
    uint8_t* at = call.machine->memory(m.space, m.place, call.given[m.address](lane));
    if (returns)
      std::memcpy(call.machine->write_registers(call, call.code->operand("old"), lane, 0), at,
                  call.machine->held(size_of(type)));
    with_values(call.machine->program(), [&](auto values) {
      for (int64_t e = 0; e < m.elements; ++e)
        update_element(values, type, op, call.machine->read_registers(call, m.registers, lane, e),
                       at + call.machine->held(e * size_of(type)));
    });
  });
}

/// What lies outside of its tensor, and is not loaded, carries the tags of its index all the same.
void loaded(Call& call) {
  const Moved m = moved(call, "to", "from");
  if (m.space == arch::Space::shared) return call.machine->move_tags(call, load);
  for (uint32_t rest = call.lanes; rest != 0; rest &= rest - 1)
    call.machine->load_tags(call, m.registers, m.address, __builtin_ctz(rest));
}

void updated(Call& call) {
  const Moved m = moved(call, "by", "at");
  const int64_t size = size_of(element_of_update(call.code->form->name));
  const int old = call.code->form->operand("old") != nullptr ? call.code->operand("old") : -1;
  each_lane(call, [&](int lane) {
    const int64_t at = call.given[m.address](lane);
    for (int64_t e = 0; e < m.elements; ++e) {
      const TagId before = call.machine->memory_tag(m.space, m.place, at + e * size, size);
      if (old >= 0 && e == 0) call.machine->set_register_tag(call, old, lane, 0, before);
      call.machine->set_memory_tag(
          m.space, m.place, at + e * size, size,
          call.machine->tags().join(before,
                                    call.machine->register_tag(call, m.registers, lane, e)));
    }
  });
}

}  // namespace

std::span<const Semantics> memory_values() {
  static constexpr Semantics all[] = {
      {"load.", load, nullptr, true, loaded},
      {"store.", store, nullptr},
      {"reduce.global.f32", update, nullptr, false, updated},
      {"reduce.shared.f32", update, nullptr, false, updated},
      {"reduce.global.s32", update, nullptr, false, updated},
      {"reduce.shared.s32", update, nullptr, false, updated},
      {"atomic.global.f32", update, nullptr, false, updated},
      {"atomic.shared.f32", update, nullptr, false, updated},
      {"atomic.global.s32", update, nullptr, false, updated},
      {"atomic.shared.s32", update, nullptr, false, updated},
  };
  return all;
}

}  // namespace tessera::simulate
