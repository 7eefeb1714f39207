// What is wrong, in words: who did what to which bytes, and the schedule that leads there.
#include <algorithm>

#include "arch/shared_tile.h"
#include "base/text.h"

#include "simulate/machine.h"

namespace tessera::simulate {
namespace {

/// The coordinates of the element of `layout` at this offset; empty: none is there.
std::string coordinates(const Layout& layout, int64_t offset) {
  for (int64_t i = 0; i < layout.size(); ++i) {
    if (layout(i) != offset) continue;
    std::vector<std::string> out;
    int64_t rest = i;
    for (int m = 0; m < layout.rank(); ++m) {
      const int64_t size = layout.mode(m).size();
      out.push_back(std::to_string(rest % size));
      rest /= size;
    }
    return join(out, ", ");
  }
  return "";
}

std::string lanes_text(uint32_t lanes) {
  if (lanes == all_lanes) return "";
  if ((lanes & (lanes - 1)) == 0) return fmt::format(", lane {}", __builtin_ctz(lanes));
  return fmt::format(", lanes {:#x}", lanes);
}

}  // namespace

uint32_t Machine::log(const Strand& s) {
  events_.push_back({s.pc, s.warp, s.mask, s.frame});
  return static_cast<uint32_t>(events_.size()) - 1;
}

std::string Machine::what(uint32_t event) const {
  const Instruction& i = program_.code[events_[event].pc];
  if (i.kind == CodeKind::compute) return "a pointwise function";
  if (i.kind == CodeKind::tags) return "an assertion";
  if (i.kind != CodeKind::issue) return "the body";
  const IssueCode& code = program_.issues[i.index];
  std::vector<std::string> names;
  const core::Kernel& k = program_.kernel;
  for (const OperandCode& o : code.operands) {
    if (o.kind == OperandCode::Kind::shared) names.push_back(k.shared[o.storage].name);
    if (o.kind == OperandCode::Kind::barrier) names.push_back(k.barriers[o.storage].name);
    if (o.kind == OperandCode::Kind::global) names.push_back(k.tensors[o.storage].name);
    if (o.kind == OperandCode::Kind::map) names.push_back(k.maps[o.storage].name);
    if (o.kind == OperandCode::Kind::registers) names.push_back(k.registers[o.storage].name);
  }
  return fmt::format("`{}`{}", code.form->name, names.empty() ? "" : " of " + join(names, ", "));
}

std::string Machine::who(uint32_t event) const {
  const Event& e = events_[event];
  const Warp& w = warps_[e.warp];
  std::string role;
  for (const core::Op& op : program_.kernel.body)
    if (const auto* r = op.as<core::Role>();
        r != nullptr && w.index >= r->first_warp && w.index < r->first_warp + r->warps)
      role = fmt::format(" ({})", r->name);
  std::string out =
      fmt::format("block {}, warp {}{}{}", w.block, w.index, role, lanes_text(e.lanes));
  for (const auto& [name, place] : program_.scopes[program_.code[e.pc].scope])
    out += fmt::format(", {} = {}", name, e.frame[place]);
  return out;
}

std::string Machine::barrier_text(int block, int64_t slot) const {
  const core::Kernel& k = program_.kernel;
  for (std::size_t i = k.barriers.size(); i-- > 0;)
    if (slot >= program_.first_barrier[i])
      return fmt::format("`{}[{}]`{}", k.barriers[i].name, slot - program_.first_barrier[i],
                         blocks_.size() > 1 ? fmt::format(" of block {}", block) : "");
  return "";
}

std::string Machine::bytes_text(const Range& r, int64_t byte) const {
  const core::Kernel& k = program_.kernel;
  if (r.space == arch::Space::global) {
    const core::Tensor& t = k.tensors[r.place];
    const TensorCode& code = program_.tensors[r.place];
    int64_t rest = byte / size_of(t.element);
    std::vector<std::string> at(code.extents.size());
    for (std::size_t d = 0; d < code.extents.size(); ++d) {
      at[d] = std::to_string(code.strides[d] > 0 ? rest / code.strides[d] : 0);
      if (code.strides[d] > 0) rest %= code.strides[d];
    }
    return fmt::format("`{}[{}]`", t.name, join(at, ", "));
  }
  std::string out = fmt::format("byte {} of shared memory of block {}", byte, r.place);
  for (const core::Shared& s : k.shared) {
    if (byte < s.at || byte >= s.at + s.bytes()) continue;
    const int64_t offset = (arch::swizzle_of(s.swizzle)(byte) - s.at) / size_of(s.element);
    const std::string at = coordinates(s.layout, offset);
    if (!at.empty()) return fmt::format("`{}[{}]` ({})", s.name, at, out);
  }
  return out;
}

void Machine::add_label(Diagnostic& d, uint32_t event, const std::string& text) const {
  if (!program_.kernel.source) return;
  const core::Op* op = program_.code[events_[event].pc].op;
  if (op != nullptr && op->span.end > op->span.begin)
    d.labels.push_back(program_.kernel.source->label(op->span, text));
}

void Machine::report(Diagnostic d, uint32_t event, std::optional<uint32_t> earlier) {
  const int pc = events_[event].pc;
  const int other = earlier ? events_[*earlier].pc : -1;
  if (!said_.insert(fmt::format("{} {} {}", d.code, pc, other)).second) return;
  const bool labelled = d.labels.empty();
  if (labelled) add_label(d, event, "");
  if (!d.labels.empty()) d.place = d.labels.front().from;
  std::vector<std::string> notes = {fmt::format("{}: {}", what(event), who(event))};
  if (earlier) {
    notes.push_back(fmt::format("before it, {}: {}", what(*earlier), who(*earlier)));
    add_label(d, *earlier, "before it");
  }
  d.notes.insert(d.notes.begin(), notes.begin(), notes.end());
  d.data["warp"] = warps_[events_[event].warp].index;
  d.data["block"] = warps_[events_[event].warp].block;
  d.data["lanes"] = events_[event].lanes;
  keep(std::move(d));
}

void Machine::keep(Diagnostic d) {
  d.data["step"] = out_.steps;
  d.data["seed"] = out_.schedule.seed;
  d.data["choices"] = out_.schedule.choices;
  out_.findings.push_back(std::move(d));
  if (static_cast<int>(out_.findings.size()) >= Simulator::most_findings) throw Ended{};
}

void Machine::report_and_end(Diagnostic d, uint32_t event, std::optional<uint32_t> earlier) {
  report(std::move(d), event, earlier);
  throw Ended{};
}

void Machine::report(const Conflict& c, const Call& call, const AccessCode& access,
                     const Range& r) {
  const std::string& name = call.code->form->name;
  const bool reads = access.effect->action == arch::Action::read;
  const std::string verb = reads ? "reads" : "writes";
  const std::string bytes = bytes_text(r, c.byte);
  if (c.kind == Conflict::Kind::uninitialized)
    return report(fail(uninitialized, "`{}` reads {}, which nobody has written", name, bytes)
                      .expect("a write that is complete before the read")
                      .help("wait for what fills it")
                      .with("byte", c.byte),
                  call.event);
  const std::string before = c.earlier_writes ? "written" : "read";
  if (c.kind == Conflict::Kind::proxy)
    return report(
        fail(no_proxy_fence, "`{}` {} {} by the async proxy, {} before by the generic one", name,
             verb, bytes, before)
            .expect("a proxy fence by the threads that did the first, before they hand over")
            .help("put `fence.async.shared::cta` before the barrier that hands over")
            .with("byte", c.byte),
        call.event, c.earlier.event);
  report(fail(race, "`{}` {} {} while it may still be {}", name, verb, bytes, before)
             .expect("an order between both, in every schedule")
             .help("wait, before the {}, until the other access is over", reads ? "read" : "write")
             .with("byte", c.byte),
         call.event, c.earlier.event);
}

}  // namespace tessera::simulate
