// ldmatrix and stmatrix.
#include <array>
#include <cstring>

#include "arch/ldmatrix.h"

#include "simulate/machine.h"
#include "simulate/value_families.h"

namespace tessera::simulate {
namespace {

/// (lane + 32 e) to the lane whose address is that of the element's row, and the element's place in
/// the row.
struct Places {
  std::vector<std::pair<int, int>> at;
  Places(int matrices, bool transposed) {
    const arch::MatrixMove record{.matrices = matrices, .transposed = transposed};
    const Layout elements = record.elements();
    const Layout lanes = record.lane_of_row();
    for (int64_t i = 0; i < int64_t{64} * matrices; ++i) {
      const int64_t place = elements(i);
      at.emplace_back(static_cast<int>(lanes(place / 8)), static_cast<int>(place % 8));
    }
  }
};
const Places& places(int matrices, bool transposed) {
  static const std::array<Places, 3> plain = {Places(1, false), Places(2, false), Places(4, false)};
  static const std::array<Places, 3> turned = {Places(1, true), Places(2, true), Places(4, true)};
  return (transposed ? turned : plain)[static_cast<std::size_t>(matrices / 2)];
}

/// move(lane, byte of the lane's registers, byte in shared memory), 2 bytes at a time.
template <class Move>
void each_element(const Call& call, std::string_view address, const Move& move) {
  int matrices = 0;
  for (const auto& [name, value] : call.code->issue->choices)
    if (name == "matrices") matrices = std::stoi(value);
  const Places& p = places(matrices, call.code->form->name.ends_with(".trans"));
  const Given& at = call.given[call.code->operand(address)];
  for (int e = 0; e < 2 * matrices; ++e)
    for (int lane = 0; lane < 32; ++lane) {
      const auto& [row_lane, column] = p.at[lane + 32 * e];
      move(lane, 2 * e, at(row_lane) + int64_t{2} * column);
    }
}

int64_t size_of_registers(const Call& call, int operand) {
  const int storage = call.code->operands[operand].storage;
  return size_of(call.machine->program().kernel.registers[storage].element);
}

void load(Call& call) {
  const int to = call.code->operand("to");
  const int64_t size = size_of_registers(call, to);
  each_element(call, "from", [&](int lane, int64_t byte, int64_t at) {
    std::memcpy(call.machine->write_registers(call, to, lane, byte / size) +
                    call.machine->held(byte % size),
                call.machine->read_memory(arch::Space::shared, call.block, at),
                call.machine->held(2));
  });
}

void store(Call& call) {
  const int from = call.code->operand("from");
  const int64_t size = size_of_registers(call, from);
  each_element(call, "to", [&](int lane, int64_t byte, int64_t at) {
    std::memcpy(call.machine->memory(arch::Space::shared, call.block, at),
                call.machine->read_registers(call, from, lane, byte / size) +
                    call.machine->held(byte % size),
                call.machine->held(2));
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
