#include "check/machine.h"

#include <algorithm>

#include "base/text.h"

namespace tessera::check {
namespace {

using arch::Issuer;
using arch::Verb;

bool collective(const arch::Form& form) {
  return form.effects.issuer == Issuer::warp || form.effects.issuer == Issuer::warpgroup;
}

std::size_t symbols_of(const Program& program, const Sizes& sizes) {
  int most = 0;
  const auto see = [&](const Value& v) {
    for (const Expression* e : {&v.exact, &v.shifted})
      for (int s : e->symbols()) most = std::max(most, s);
  };
  for (const Piece& c : program.codes) {
    most = std::max(most, c.warp_symbol);
    for (const Instruction& i : c.instructions) {
      most = std::max(most, i.counter);
      for (const Value& v : i.values) see(v);
      for (const auto& a : i.arguments)
        for (const Value& v : a) see(v);
    }
  }
  for (const Size& s : sizes.all())
    most = std::max({most, s.symbol->symbol->index, s.count->symbol->index});
  return static_cast<std::size_t>(most) + 1;
}

}  // namespace

Machine::Machine(const core::Kernel& kernel, const Program& program, const Sizes& sizes,
                 Footprints& footprints)
    : kernel_(kernel), program_(program), sizes_(sizes), footprints_(footprints) {
  warps_ = kernel.threads / 32;
  blocks_ = kernel.cluster;
  for (const core::Barriers& b : kernel.barriers) {
    first_barrier_.push_back(barriers_);
    barriers_ += static_cast<int>(b.count);
  }
  first_seen_ = 4 * warps() + (barriers_ + 16) * blocks_;
}

void Machine::learn(Clock& into, const Clock& from, bool seen) const {
  const std::size_t end = seen ? into.size() : static_cast<std::size_t>(first_seen_);
  for (std::size_t c = 0; c < end; ++c) into[c] = std::max(into[c], from[c]);
}

void Machine::start(const std::optional<std::vector<int64_t>>& sizes) {
  shifted_ = !sizes;
  size_values_ = sizes.value_or(std::vector<int64_t>());
  state = {};
  const Clock zero(static_cast<std::size_t>(components()), 0);
  const std::size_t size_count = sizes_.all().size();
  state.warps.resize(static_cast<std::size_t>(warps()));
  for (int block = 0; block < blocks_; ++block) start_warps(block, zero);
  const auto blocks = static_cast<std::size_t>(blocks_);
  state.running.assign(blocks, warps_);
  state.barriers.assign(blocks * static_cast<std::size_t>(barriers_), {});
  for (Barrier& b : state.barriers) b.coming = b.done = zero;
  state.named.assign(blocks * 16, {});
  for (Named& n : state.named) n.coming = n.done = zero;
  state.cluster.coming = state.cluster.done = zero;
  state.cells.assign(blocks * static_cast<std::size_t>(footprints_.cell_count()), {});
  state.tapes.assign(size_count, {});
  state.turns.assign(size_count, 0);
}

void Machine::start_warps(int block, const Clock& zero) {
  const auto warp_index = static_cast<std::size_t>(kernel_.at.warp->symbol->index);
  const auto rank_index = static_cast<std::size_t>(kernel_.at.rank->symbol->index);
  const std::size_t symbols =
      std::max({symbols_of(program_, sizes_), warp_index + 1, rank_index + 1});
  for (std::size_t c = 0; c < program_.codes.size(); ++c) {
    const Piece& code = program_.codes[c];
    for (int k = 0; k < code.warps && code.first_warp + k < warps_; ++k) {
      const int at = block * warps_ + code.first_warp + k;
      Warp& w = state.warps[static_cast<std::size_t>(at)];
      w.code = static_cast<int>(c);
      w.values.assign(symbols, 0);
      w.values[warp_index] = code.first_warp + k;
      w.values[rank_index] = block;
      if (code.warp_symbol >= 0) w.values[static_cast<std::size_t>(code.warp_symbol)] = k;
      for (std::size_t s = 0; s < size_values_.size(); ++s)
        w.values[static_cast<std::size_t>(sizes_.all()[s].symbol->symbol->index)] = size_values_[s];
      w.tape.assign(sizes_.all().size(), 0);
      w.finished.assign(sizes_.all().size(), 0);
      w.elected = w.others = zero;
    }
  }
}

Machine::Stop Machine::run() {
  for (;;) {
    bool went = false;
    undecided_ = -1;
    for (int w = 0; w < warps(); ++w)
      while (failed.empty() && step(w)) went = true;
    if (!failed.empty()) return Stop::stuck;
    if (went) continue;
    if (undecided_ >= 0) return Stop::undecided;
    const bool all =
        std::all_of(state.warps.begin(), state.warps.end(), [](const Warp& w) { return w.ended; });
    return all ? Stop::ended : Stop::stuck;
  }
}

int64_t Machine::value(const Warp& w, const Value& v) {
  const std::optional<int64_t> n = (shifted_ ? v.shifted : v.exact)(w.values);
  if (!n) failed = "an index has no value within 64 bits";
  return n.value_or(0);
}

/// In a buffer that the next call reuses.
const std::vector<int64_t>& Machine::values(const Warp& w, const std::vector<Value>& v) {
  coordinates_.clear();
  for (const Value& x : v) coordinates_.push_back(value(w, x));
  return coordinates_;
}

void Machine::enter(Warp& w, const Instruction& i) {
  w.values[static_cast<std::size_t>(i.counter)] =
      shifted_ && i.size >= 0 ? 0 : value(w, i.values[0]);
}

void Machine::next(Warp& w, const Instruction& i) {
  int64_t& counter = w.values[static_cast<std::size_t>(i.counter)];
  if (i.size >= 0) {
    const auto size = static_cast<std::size_t>(i.size);
    ++w.finished[size];
    int64_t& count = w.values[static_cast<std::size_t>(sizes_.all()[size].count->symbol->index)];
    count = shifted_ ? (count + 1) % program_.periods[size] : count + 1;
    if (shifted_) {
      counter = std::min(counter + 1, program_.steady);
      return;
    }
  }
  counter += value(w, i.values[2]);
}

/// False where a decision is missing.
bool Machine::test(int at, const Instruction& i) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  bool more = false;
  if (shifted_ && i.size >= 0) {
    const auto size = static_cast<std::size_t>(i.size);
    if (w.tape[size] >= state.tapes[size].size()) {
      if (undecided_ < 0) undecided_ = i.size;
      return false;
    }
    more = state.tapes[size][w.tape[size]++];
  } else {
    const int64_t end = value(w, i.values[0]) + value(w, i.values[1]) * value(w, i.values[2]);
    more = w.values[static_cast<std::size_t>(i.counter)] < end;
  }
  w.pc = more ? w.pc + 1 : static_cast<std::size_t>(i.target);
  return true;
}

bool Machine::step(int at) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  if (w.ended) return false;
  const Instruction& i = program_.codes[static_cast<std::size_t>(w.code)].instructions[w.pc];
  using Kind = Instruction::Kind;
  switch (i.kind) {
    case Kind::end:
      end_warp(at);
      return true;
    case Kind::enter:
      enter(w, i);
      break;
    case Kind::test:
      return test(at, i);
    case Kind::next:
      next(w, i);
      w.pc = static_cast<std::size_t>(i.target);
      return true;
    case Kind::branch:
      w.pc = value(w, i.values[0]) != 0 ? w.pc + 1 : static_cast<std::size_t>(i.target);
      return true;
    case Kind::jump:
      w.pc = static_cast<std::size_t>(i.target);
      return true;
    case Kind::elect:
      meet(at);
      break;
    case Kind::declare:
      w.holds.remove(i.op->as<core::Declare>()->registers);
      w.touched.add({i.op->as<core::Declare>()->registers, 0,
                     kernel_[i.op->as<core::Declare>()->registers].slots()});
      break;
    case Kind::compute:
      tick(at, i.elected);
      computes(at, i);
      break;
    case Kind::issue:
      // Coming to a named barrier is a step, though the warp stays.
      if (const bool waits = w.waits_named; !issue(at, i)) return w.waits_named && !waits;
      break;
  }
  ++w.pc;
  return true;
}

/// The lanes of a warp come together: each knows what the others have done.
void Machine::meet(int at) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  if (!w.together) {
    learn(w.elected, w.others);
    learn(w.others, w.elected);
    w.together = true;
  }
  w.forgot = false;
  for (Part p : {others, seen_others})
    w.elected[static_cast<std::size_t>(part(at, p))] = w.others_index;
  for (Part p : {elected, seen_elected})
    w.others[static_cast<std::size_t>(part(at, p))] = w.elected_index;
}

void Machine::tick(int at, bool alone) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  ++events;
  ++w.elected_index;
  for (Part p : {elected, seen_elected})
    w.elected[static_cast<std::size_t>(part(at, p))] = w.elected_index;
  if (alone) {
    w.together = false;
    return;
  }
  ++w.others_index;
  for (Part p : {others, seen_others})
    w.others[static_cast<std::size_t>(part(at, p))] = w.others_index;
}

bool Machine::issue(int at, const Instruction& i) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto& issue = *i.op->as<core::Issue>();
  const arch::Form& form = *issue.form;
  const bool together = collective(form);
  if (!w.waits_named && together) {
    if (i.elected)
      report("uniformity", at, i, fmt::format("one lane alone issues `{}`", form.name),
             "all lanes of the warp", "the elected lane",
             "move it out of the elected part, where the whole warp comes");
    meet(at);
    if (form.effects.issuer == Issuer::warpgroup) {
      w.group_hash = w.group_hash * 1099511628211U + reinterpret_cast<uintptr_t>(i.op);
      ++w.group_count;
    }
  }
  if (!can_pass(at, i)) return false;
  seen.insert(i.op);
  if (form.effects.issuer == Issuer::elected && !i.elected)
    report("uniformity", at, i, fmt::format("all lanes issue `{}`, each for itself", form.name),
           "one thread", "32 threads", "put it into an elected part");
  if (!w.waits_named) {
    tick(at, i.elected);
    if (form.name == "mbarrier.init") initialize(at, i);
    for (const arch::Fence& f : form.effects.fences) fence(at, i, f);
    registers(at, i);
    for (const arch::Access& a : form.effects.accesses) access(at, i, a);
  }
  const bool was_waiting = w.waits_named;
  for (const arch::Event& e : form.effects.events) {
    if (was_waiting && e.verb == Verb::signals) continue;
    event(at, i, e);
    if (w.waits_named) return false;
  }
  return true;
}

std::string Machine::place(const Warp& w, const Instruction& i) const {
  std::vector<std::string> out;
  for (Term c : i.counters)
    out.push_back(fmt::format("{} {}", c->symbol->name,
                              w.values[static_cast<std::size_t>(c->symbol->index)]));
  return join(out, ", ");
}

void Machine::report(std::string_view kind, int at, const Instruction& i, std::string message,
                     std::string expected, std::string found, std::string help,
                     const core::Op* other, std::string other_text) {
  if (!reported_.insert({kind, i.op}).second) return;
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  Violation v;
  v.kind = kind;
  v.op = i.op;
  v.rank = block_of(at);
  v.warp = at % warps_;
  v.lanes = i.elected ? "the elected lane" : "all lanes";
  v.at = place(w, i);
  v.message = std::move(message);
  v.expected = std::move(expected);
  v.found = std::move(found);
  v.help = std::move(help);
  v.other = other;
  v.other_text = std::move(other_text);
  v.sizes = size_values_;
  violations.push_back(std::move(v));
}

}  // namespace tessera::check
