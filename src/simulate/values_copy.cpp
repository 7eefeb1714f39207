// cp.async and bulk copies: runs of bytes.
#include <cstring>

#include "simulate/domain.h"
#include "simulate/machine.h"
#include "simulate/update.h"
#include "simulate/value_families.h"

namespace tessera::simulate {
namespace {

using arch::Space;

void copy_lanes(Call& call) {
  const int to = call.code->operand("to");
  const int from = call.code->operand("from");
  const AccessCode& read = call.code->accesses[0];
  const int64_t width = call.code->accesses[1].fixed_bytes;
  const int tensor = call.code->operands[from].storage;
  for (uint32_t rest = call.lanes; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    uint8_t* at = call.machine->memory(Space::shared, call.block, call.given[to](lane));
    const int64_t filled = read.bytes >= 0 ? call.given[read.bytes](lane) : width;
    std::memset(at, 0, call.machine->held(width));
    if (filled > 0)
      std::memcpy(at, call.machine->read_memory(Space::global, tensor, call.given[from](lane)),
                  call.machine->held(filled));
  }
}

/// The run that an operand names.
const uint8_t* source(const Call& call, int64_t* bytes) {
  const int lane = __builtin_ctz(call.lanes);
  const int from = call.code->operand("from");
  const OperandCode& o = call.code->operands[from];
  *bytes = call.given[call.code->operand("bytes")](lane);
  const bool global = o.kind == OperandCode::Kind::global;
  return call.machine->read_memory(global ? Space::global : Space::shared,
                                   global ? o.storage : call.block, call.given[from](lane));
}

void take(Call& call) {
  int64_t bytes = 0;
  const uint8_t* from = source(call, &bytes);
  call.taken.assign(from, from + call.machine->held(bytes));
}

uint8_t* global_target(const Call& call) {
  const int to = call.code->operand("to");
  return call.machine->memory(Space::global, call.code->operands[to].storage,
                              call.given[to](__builtin_ctz(call.lanes)));
}

void put(Call& call) {
  const int to = call.code->operand("to");
  if (call.code->operands[to].kind == OperandCode::Kind::global) {
    std::memcpy(global_target(call), call.taken.data(), call.taken.size());
    return;
  }
  for (int block : call.machine->targets(call, call.code->accesses[1].blocks))
    std::memcpy(
        call.machine->memory(Space::shared, block, call.given[to](__builtin_ctz(call.lanes))),
        call.taken.data(), call.taken.size());
}

void put_update(Call& call) {
  const DType type = element_of_update(call.code->form->name);
  const std::string op = call.code->issue->choices.front().second;
  uint8_t* at = global_target(call);
  with_values(call.machine->program(), [&](auto values) {
    for (std::size_t i = 0; i < call.taken.size(); i += call.machine->held(size_of(type)))
      update_element(values, type, op, call.taken.data() + i, at + i);
  });
}

}  // namespace

std::span<const Semantics> copy_values() {
  static constexpr Semantics all[] = {
      {"cp_async.4", nullptr, copy_lanes},
      {"cp_async.8", nullptr, copy_lanes},
      {"cp_async.16", nullptr, copy_lanes},
      {"bulk.load", take, put},
      {"bulk.store", take, put},
      {"bulk.reduce.f16", take, put_update, false},
      {"bulk.reduce.bf16", take, put_update, false},
      {"bulk.reduce.f32", take, put_update, false},
      {"bulk.reduce.f64", take, put_update, false},
      {"bulk.reduce.s32", take, put_update, false},
  };
  return all;
}

}  // namespace tessera::simulate
