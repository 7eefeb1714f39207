// What an author says and asserts of tags, done for one strand: for all values of its symbols, and
// for each lane where lanes differ.
#include <algorithm>
#include <functional>
#include <map>

#include "arch/shared_tile.h"

#include "simulate/machine.h"

namespace tessera::simulate {
namespace {

/// f() for all values of the symbols.
void each(const std::vector<TagCode::Symbol>& symbols, Frame& frame,
          const std::function<void()>& f) {
  for (const TagCode::Symbol& s : symbols) frame[s.place] = 0;
  for (;;) {
    f();
    std::size_t i = 0;
    for (; i < symbols.size() && ++frame[symbols[i].place] == symbols[i].extent; ++i)
      frame[symbols[i].place] = 0;
    if (i == symbols.size()) return;
  }
}

std::string text(int64_t value) {
  if (value == Tags::none) return "nothing";
  if (value == Tags::several) return "several values that met in it";
  return std::to_string(value);
}

}  // namespace

/// The byte in shared memory of a block.
std::pair<arch::Space, int64_t> Machine::byte_at(const TagCode::At& at, const Frame& frame) const {
  const core::Shared& s = program_.kernel.shared[at.storage];
  const std::vector<Mode>& modes = program_.shared[at.storage];
  int64_t element = 0;
  for (std::size_t i = 0; i < modes.size(); ++i) element += modes[i](at.at[i](frame));
  return {arch::Space::shared,
          arch::swizzle_of(s.swizzle)(s.at + element * int64_t{size_of(s.element)})};
}

Machine::Carried Machine::carried(const Call& call, const TagCode& code, const TagCode::At& at,
                                  const Frame& frame, int lane) {
  TagId tag = 0;
  Carried out{.at = &at};
  if (at.registers) {
    out.place = at.at[0](frame);
    tag = slot_tag(call, at.storage, lane, out.place);
  } else {
    const auto [space, byte] = byte_at(at, frame);
    const int64_t size = size_of(program_.kernel.shared[at.storage].element);
    out.place = byte;
    tag = memory_tag(space, call.block, byte, size);
  }
  out.value = tags_->under(tag, code.name);
  return out;
}

/// `acc[3]`, `a[0, 1, 2]`; empty: a value alone.
std::string Machine::place_text(const Call& call, const Carried& c) const {
  const core::Kernel& k = program_.kernel;
  if (c.at == nullptr) return "";
  if (c.at->registers) return fmt::format("`{}[{}]`", k.registers[c.at->storage].name, c.place);
  return bytes_text({arch::Space::shared, call.block, c.place, 1}, c.place);
}

void Machine::say(const Call& call, const TagCode& code, Frame& frame, int lane) {
  std::vector<TagCode::Symbol> symbols = code.here;
  symbols.insert(symbols.end(), code.both.begin(), code.both.end());
  symbols.insert(symbols.end(), code.there.begin(), code.there.end());
  each(symbols, frame, [&] {
    const int64_t value = code.says->value ? code.value(frame) : Tags::none;
    if (code.at.registers) {
      const int64_t slot = code.at.at[0](frame);
      set_slot_tag(call, code.at.storage, lane, slot,
                   tags_->with(slot_tag(call, code.at.storage, lane, slot), code.name, value));
      return;
    }
    const int64_t size = size_of(program_.kernel.shared[code.at.storage].element);
    const auto [space, byte] = byte_at(code.at, frame);
    set_memory_tag(space, call.block, byte, size,
                   tags_->with(memory_tag(space, call.block, byte, size), code.name, value));
  });
}

/// Reports the first pair that contradicts the assertion. Of one that says `apart`, no value may
/// be on both sides; else all are one.
bool Machine::agrees(const Call& call, const TagCode& code, int lane,
                     const std::vector<Carried>& here, const std::vector<Carried>& there) {
  const auto is_value = [](const Carried& c) {
    return c.value != Tags::none && c.value != Tags::several;
  };
  const Carried *bad = nullptr, *against = nullptr;
  const bool apart = code.asserts->apart;
  for (const std::vector<Carried>* side : {&here, &there})
    for (const Carried& c : *side)
      if (bad == nullptr && !is_value(c)) bad = &c, against = side == &here ? &there[0] : &here[0];
  if (bad == nullptr && !apart) {
    for (const std::vector<Carried>* side : {&there, &here})
      for (const Carried& c : *side)
        if (bad == nullptr && c.value != (side == &there ? here[0] : there[0]).value)
          bad = side == &here ? &c : &here[0], against = side == &here ? &there[0] : &c;
  } else if (bad == nullptr) {
    std::map<int64_t, const Carried*> values;
    for (const Carried& c : here) values.emplace(c.value, &c);
    for (const Carried& c : there)
      if (const auto found = values.find(c.value); found != values.end() && bad == nullptr)
        bad = found->second, against = &c;
  }
  if (bad == nullptr) return true;
  const std::string& name = program_.tag_names[static_cast<std::size_t>(code.name)];
  const std::string place = place_text(call, *bad);
  const std::string other =
      against->at == nullptr
          ? text(against->value)
          : fmt::format("{}, which carries {}", place_text(call, *against), text(against->value));
  Diagnostic d =
      fail(bad_tag, "an element carries another `{}` than is asserted", name)
          .expect("{} carries {}{}", place,
                  apart                    ? "one other than "
                  : against->at == nullptr ? ""
                                           : "the same as ",
                  other)
          .but_found("{}", text(bad->value))
          .help("{}",
                bad->value == Tags::none
                    ? "tag the tensor that it comes from, or what was computed"
                    : "follow the element back to where it was loaded: another one was meant");
  if (code.by_lane) d.notes.push_back(fmt::format("in lane {}", lane));
  report(std::move(d).with("tag", name).with("element", place), call.event);
  return false;
}

bool Machine::holds(const Call& call, const TagCode& code, Frame& frame, int lane) {
  bool fine = true;
  each(code.both, frame, [&] {
    if (!fine) return;
    std::vector<Carried> here, there;
    each(code.here, frame, [&] { here.push_back(carried(call, code, code.at, frame, lane)); });
    for (const TagCode::Symbol& s : code.here) frame[s.place] = 0;
    each(code.there, frame, [&] {
      there.push_back(code.other ? carried(call, code, *code.other, frame, lane)
                                 : Carried{.value = code.value(frame)});
    });
    fine = agrees(call, code, lane, here, there);
  });
  return fine;
}

void Machine::tag(Strand& s, const Instruction& i) {
  const TagCode& code = program_.tags[i.index];
  const Call call{.machine = this,
                  .block = warps_[s.warp].block,
                  .warp = s.warp,
                  .lanes = s.mask,
                  .event = log(s)};
  Frame frame = s.frame;
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
    const int lane = first_lane(rest);
    frame[program_.lane] = lane;
    if (code.says != nullptr)
      say(call, code, frame, lane);
    else if (!holds(call, code, frame, lane))
      return;
    if (!code.by_lane) return;
  }
}

}  // namespace tessera::simulate
