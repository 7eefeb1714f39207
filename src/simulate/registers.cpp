// Registers: which have a value, and which a wgmma under way still uses.
#include <algorithm>

#include "simulate/machine.h"

namespace tessera::simulate {

void Machine::declare(Strand& s, int registers) {
  const core::Registers& r = program_.kernel.registers[registers];
  RegisterFile& f = warps_[s.warp].registers[registers];
  const auto slots = static_cast<std::size_t>(program_.slots[registers]);
  if (!f.declared) {
    f.bytes.assign(slots * 32 * held(size_of(r.element)), 0xff);
    f.has.assign(slots, 0);
    f.locked.assign(slots, 0);
    f.touched.assign(slots, 0);
    f.shape.assign(slots, 0);
    f.declared = true;
    begin_tags(f);
  }
  for (uint32_t& lanes : f.has) lanes &= ~s.mask;
  const int64_t bytes = program_.slots[registers] * size_of(r.element);  // of a lane
  for (std::vector<uint8_t>& tags : f.tags)
    for (uint32_t rest = tags.empty() ? 0 : s.mask; rest != 0; rest &= rest - 1)
      std::fill_n(tags.begin() + first_lane(rest) * bytes, bytes, 0);
}

RegisterFile& Machine::file(const Call& call, int registers) {
  RegisterFile& f = warps_[call.warp].registers[registers];
  if (!f.declared)
    report_and_end(fail(uninitialized, "registers `{}` are used where they are not declared",
                        program_.kernel.registers[registers].name)
                       .help("declare them in a body around the use"),
                   call.event);
  return f;
}

const uint8_t* Machine::read_slot(const Call& call, int registers, int lane, int64_t slot) {
  RegisterFile& f = warps_[call.warp].registers[registers];
  const core::Registers& r = program_.kernel.registers[registers];
  if (plane_ >= 0)
    return f.tags[static_cast<std::size_t>(plane_)].data() +
           (lane * program_.slots[registers] + slot) * size_of(r.element);
  if ((f.has[slot] >> lane & 1) == 0) {
    report(fail(uninitialized, "element {} of registers `{}` is read before it has a value", slot,
                r.name)
               .but_found("lane {} of warp {}", lane, warps_[call.warp].index)
               .help("write it first; a wgmma that begins a sum takes accumulate = 0"),
           call.event);
    f.has[slot] |= 1U << lane;  // said once
  }
  return f.bytes.data() + held((lane * program_.slots[registers] + slot) * size_of(r.element));
}

uint8_t* Machine::write_slot(const Call& call, int registers, int lane, int64_t slot) {
  RegisterFile& f = warps_[call.warp].registers[registers];
  const core::Registers& r = program_.kernel.registers[registers];
  if (plane_ >= 0)
    return f.tags[static_cast<std::size_t>(plane_)].data() +
           (lane * program_.slots[registers] + slot) * size_of(r.element);
  f.has[slot] |= 1U << lane;
  return f.bytes.data() + held((lane * program_.slots[registers] + slot) * size_of(r.element));
}

/// An access by the warp itself, at once.
void Machine::touch_registers(const Call& call, int registers, int64_t first, int64_t count,
                              bool write) {
  RegisterFile& f = file(call, registers);
  const core::Registers& r = program_.kernel.registers[registers];
  if (first < 0 || first + count > program_.slots[registers])
    report_and_end(fail(bad_access, "elements {} to {} of registers `{}` are used", first,
                        first + count - 1, r.name)
                       .expect("0 to {}", program_.slots[registers] - 1),
                   call.event);
  const Queue& q = warps_[call.warp].queue;
  for (int64_t i = first; i < first + count; ++i) {
    if (f.locked[i] > q.seen) {
      const uint32_t other = q.events[f.locked[i] - 1];
      report(fail(registers_in_flight, "element {} of registers `{}` is {} while a wgmma uses it",
                  i, r.name, write ? "written" : "read")
                 .expect("`wgmma.wait` between both, with so few groups pending that this one is "
                         "complete")
                 .help("commit the products and wait for them first"),
             call.event, other);
      f.locked[i] = 0;  // said once
    }
    f.touched[i] = q.fences + 1;
  }
}

/// The slices of an instruction that is no wgmma.
void Machine::touch_operands(const Call& call) {
  for (std::size_t i = 0; i < call.code->operands.size(); ++i) {
    const OperandCode& o = call.code->operands[i];
    if (o.kind != OperandCode::Kind::registers) continue;
    const bool write = o.form->direction != arch::Direction::in;
    touch_registers(call, o.storage, call.given[i](first_lane(call.lanes)), o.elements, write);
  }
}

/// All warps of a warpgroup issue the same products in the same order.
void Machine::compare_products(const Call& call) {
  const Warp& w = warps_[call.warp];
  const std::vector<uint32_t>& mine = w.queue.events;
  const int first = call.warp - w.index % 4;
  for (int other = first; other < first + 4 && other < static_cast<int>(warps_.size()); ++other) {
    const std::vector<uint32_t>& its = warps_[other].queue.events;
    if (other == call.warp || its.size() < mine.size()) continue;
    const uint32_t theirs = its[mine.size() - 1];
    if (events_[theirs].pc == events_[call.event].pc) continue;
    report_and_end(fail(stuck, "the warps of a warpgroup issue different products")
                       .expect("the same instruction by all four")
                       .but_found("{} and {}", what(call.event), what(theirs)),
                   call.event, theirs);
  }
}

void Machine::issue_product(const Call& call) {
  Queue& q = warps_[call.warp].queue;
  q.events.push_back(call.event);
  compare_products(call);
  const uint32_t number = q.issued + 1;
  if (q.fences == 0)
    report(fail(registers_in_flight, "a wgmma is issued before any `wgmma.fence`")
               .expect("`wgmma.fence` before the first product")
               .help("put `wgmma.fence` before it"),
           call.event);
  for (const NeedCode& n : call.code->needs) {
    if (n.fence != arch::FenceKind::wgmma_registers) continue;
    const OperandCode& o = call.code->operands[n.operand];
    const bool sums = o.form->direction == arch::Direction::inout;
    const int shape = sums ? static_cast<int>(call.code->wgmma->n) : 0;
    RegisterFile& f = file(call, o.storage);
    const std::string& name = program_.kernel.registers[o.storage].name;
    const int64_t first = call.given[n.operand](0);
    for (int64_t i = first; i < first + o.elements; ++i) {
      if (f.touched[i] > q.fences) {
        report(fail(registers_in_flight,
                    "element {} of registers `{}` goes into a wgmma without a fence since its last "
                    "use",
                    i, name)
                   .expect("`wgmma.fence` between both")
                   .help("put `wgmma.fence` before the products"),
               call.event);
        f.touched[i] = 0;  // said once
      }
      if (sums && f.locked[i] > q.seen && f.shape[i] != shape)
        report(fail(registers_in_flight,
                    "element {} of registers `{}` is in two wgmma of different shapes at a time", i,
                    name)
                   .expect("`wgmma.wait` between both"),
               call.event, q.events[f.locked[i] - 1]);
      f.locked[i] = number;
      if (sums) f.shape[i] = shape;
    }
  }
}

}  // namespace tessera::simulate
