// ldmatrix and stmatrix.
#include <cstring>

#include "arch/ldmatrix.h"

#include "simulate/machine.h"
#include "simulate/value_families.h"

namespace tessera::simulate {
namespace {

/// move(lane, byte of the lane's registers, byte in shared memory), 2 bytes at a time.
template <class Move>
void each_element(const Call& call, bool stores, std::string_view address, const Move& move) {
  arch::MatrixMove record{.stores = stores};
  for (const auto& [name, value] : call.code->issue->choices)
    if (name == "matrices") record.matrices = std::stoi(value);
  record.transposed = call.code->form->name.ends_with(".trans");
  const Given& at = call.given[call.code->operand(address)];
  const Layout elements = record.elements();
  const Layout lanes = record.lane_of_row();
  for (int lane = 0; lane < 32; ++lane)
    for (int64_t e = 0; e < 2 * record.matrices; ++e) {
      const int64_t place = elements(lane + 32 * e);
      const auto row_lane = static_cast<int>(lanes(place / 8));
      move(lane, 2 * e, at(row_lane) + 2 * (place % 8));
    }
}

int64_t size_of_registers(const Call& call, int operand) {
  const int storage = call.code->operands[operand].storage;
  return size_of(call.machine->program().kernel.registers[storage].element);
}

void load(Call& call) {
  const int to = call.code->operand("to");
  const int64_t size = size_of_registers(call, to);
  each_element(call, false, "from", [&](int lane, int64_t byte, int64_t at) {
    std::memcpy(call.machine->write_registers(call, to, lane, byte / size) + byte % size,
                call.machine->read_memory(arch::Space::shared, call.block, at), 2);
  });
}

void store(Call& call) {
  const int from = call.code->operand("from");
  const int64_t size = size_of_registers(call, from);
  each_element(call, true, "to", [&](int lane, int64_t byte, int64_t at) {
    std::memcpy(call.machine->memory(arch::Space::shared, call.block, at),
                call.machine->read_registers(call, from, lane, byte / size) + byte % size, 2);
  });
}

}  // namespace

std::span<const Semantics> matrix_values() {
  static constexpr Semantics all[] = {
      {"ldmatrix", load, nullptr},
      {"stmatrix", store, nullptr},
  };
  return all;
}

}  // namespace tessera::simulate
