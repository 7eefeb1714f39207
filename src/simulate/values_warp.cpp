// Values between the lanes of a warp.
#include <algorithm>
#include <cstring>

#include "base/text.h"

#include "simulate/machine.h"
#include "simulate/value_families.h"

namespace tessera::simulate {
namespace {

uint32_t read(Call& call, std::string_view operand, int lane) {
  uint32_t v = 0;
  std::memcpy(&v, call.machine->read_registers(call, call.code->operand(operand), lane, 0), 4);
  return v;
}
void write(Call& call, std::string_view operand, int lane, uint32_t v) {
  std::memcpy(call.machine->write_registers(call, call.code->operand(operand), lane, 0), &v, 4);
}

/// The lane that shfl.sync reads (PTX ISA, "shfl.sync"); the own one where that is outside of the
/// segment.
int source_lane(std::string_view mode, int lane, int64_t by, int64_t clamp) {
  const auto segment = static_cast<int>(clamp >> 8 & 31);
  const auto bound = static_cast<int>(clamp & 31);
  const int highest = (lane & segment) | (bound & ~segment);
  const int lowest = lane & segment;
  const int distance = static_cast<int>(by);
  if (mode == "up") return lane - distance >= highest ? lane - distance : lane;
  if (mode == "down") return lane + distance <= highest ? lane + distance : lane;
  if (mode == "bfly") return (lane ^ distance) <= highest ? lane ^ distance : lane;
  const int at = lowest | (distance & ~segment & 31);
  return at <= highest ? at : lane;
}

void shuffle(Call& call) {
  const std::string mode = call.code->issue->choices.front().second;
  const int from = call.code->operand("from"), to = call.code->operand("to");
  const auto bytes = static_cast<std::size_t>(call.machine->held(4));
  std::vector<uint8_t> values(32 * bytes);
  for (int lane = 0; lane < 32; ++lane)
    std::memcpy(values.data() + lane * bytes, call.machine->read_registers(call, from, lane, 0),
                bytes);
  for (int lane = 0; lane < 32; ++lane) {
    const int source = source_lane(mode, lane, call.given[call.code->operand("by")](lane),
                                   call.given[call.code->operand("clamp")](lane));
    std::memcpy(call.machine->write_registers(call, to, lane, 0), values.data() + source * bytes,
                bytes);
  }
}

void vote(Call& call) {
  const std::string& name = call.code->form->name;
  uint32_t ballot = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (read(call, "from", lane) != 0) ballot |= 1U << lane;
  const uint32_t all = ballot == all_lanes ? 1 : 0;
  const uint32_t any = ballot != 0 ? 1 : 0;
  for (int lane = 0; lane < 32; ++lane)
    write(call, "to", lane, name == "vote.all" ? all : name == "vote.any" ? any : ballot);
}

uint32_t combine(std::string_view op, uint32_t a, uint32_t b) {
  const auto x = static_cast<int32_t>(a);
  const auto y = static_cast<int32_t>(b);
  if (op.starts_with("add")) return a + b;
  if (op.starts_with("and")) return a & b;
  if (op.starts_with("or")) return a | b;
  if (op.starts_with("xor")) return a ^ b;
  const bool is_signed = op.ends_with("s32");
  const bool first = is_signed ? x < y : a < b;
  return first == op.starts_with("min") ? a : b;
}

void reduce(Call& call) {
  const std::string op = call.code->issue->choices.front().second;
  uint32_t sum = read(call, "from", 0);
  for (int lane = 1; lane < 32; ++lane) sum = combine(op, sum, read(call, "from", lane));
  for (int lane = 0; lane < 32; ++lane) write(call, "to", lane, sum);
}

/// Each lane gets what all lanes have.
void mixed(Call& call) {
  TagId all = 0;
  const int from = call.code->operand("from"), to = call.code->operand("to");
  for (int lane = 0; lane < 32; ++lane)
    all = call.machine->tags().join(all, call.machine->register_tag(call, from, lane, 0));
  for (int lane = 0; lane < 32; ++lane) call.machine->set_register_tag(call, to, lane, 0, all);
}

}  // namespace

std::span<const Semantics> warp_values() {
  static constexpr Semantics all[] = {
      {"shuffle", shuffle, nullptr},
      {"vote.", vote, nullptr, false, mixed},
      {"warp.reduce", reduce, nullptr, false, mixed},
  };
  return all;
}

}  // namespace tessera::simulate
