// The state of a run, told by what has influence on what follows: indices of events count from the
// latest, and accesses that everybody knows to be finished are no more than that.
#include <algorithm>

#include "base/hash.h"

#include "check/machine.h"

namespace tessera::check {

class StateText {
 public:
  void add(int64_t n) {
    out_.push_back(static_cast<int32_t>(n));
    out_.push_back(static_cast<int32_t>(n >> 32));
  }
  void add(const Clock& c, const Clock& latest) {
    const std::size_t at = out_.size();
    out_.resize(at + c.size());
    for (std::size_t k = 0; k < c.size(); ++k) out_[at + k] = latest[k] - c[k];
  }
  void add(const std::vector<Slots>& runs) {
    add(static_cast<int64_t>(runs.size()));
    for (const Slots& s : runs) {
      add(s.id.index);
      add(s.begin);
      add(s.end);
    }
  }
  [[nodiscard]] std::string hash() const {
    return content_hash({reinterpret_cast<const char*>(out_.data()), out_.size() * sizeof out_[0]});
  }
  StateText() { out_.reserve(1 << 14); }

 private:
  std::vector<int32_t> out_;
};

namespace {

int64_t name_of(const core::Op* op) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(op));
}

}  // namespace

void Machine::decide(int size, bool more) {
  const auto s = static_cast<std::size_t>(size);
  state.tapes[s].push_back(more);
  state.turns[s] = more ? state.turns[s] + 1 : 0;
}

/// The index of the latest event of every component.
Clock Machine::latest() const {
  Clock out(static_cast<std::size_t>(components()), 0);
  for (int k = 0; k < warps_; ++k) {
    const Warp& w = state.warps[static_cast<std::size_t>(k)];
    const auto at = [&](Part p) -> int32_t& { return out[static_cast<std::size_t>(part(k, p))]; };
    at(elected) = w.elected_index;
    at(others) = w.others_index;
    at(fenced_elected) = w.elected[static_cast<std::size_t>(part(k, fenced_elected))];
    at(fenced_others) = w.others[static_cast<std::size_t>(part(k, fenced_others))];
    at(wgmma) = w.wgmma_groups;
    at(bulk_read) = w.bulk_groups;
  }
  for (int b = 0; b < barriers_; ++b)
    out[static_cast<std::size_t>(of_barrier(b))] =
        state.barriers[static_cast<std::size_t>(b)].phase + 1;
  for (int n = 0; n < 16; ++n)
    out[static_cast<std::size_t>(of_named(n))] =
        state.named[static_cast<std::size_t>(n)].generation;
  return out;
}

/// Lanes that stand by while the elected one runs learn nothing until the warp meets; what they
/// knew is dropped, so that the state does not grow with the distance.
void Machine::forget() {
  for (int k = 0; k < warps_; ++k) {
    Warp& w = state.warps[static_cast<std::size_t>(k)];
    const Piece& code = program_.codes[static_cast<std::size_t>(w.code)];
    if (w.ended || !code.instructions[w.pc].elected) continue;
    for (std::size_t c = 0; c < w.others.size(); ++c) {
      const bool own = c == static_cast<std::size_t>(part(k, others)) ||
                       c == static_cast<std::size_t>(part(k, fenced_others));
      if (!own) w.others[c] = 0;
    }
    w.forgot = true;
    w.together = false;
  }
}

void Machine::drop_tapes() {
  for (std::size_t s = 0; s < state.tapes.size(); ++s) {
    std::size_t all = state.tapes[s].size();
    const auto uses = [&](const Warp& w) {
      const Piece& code = program_.codes[static_cast<std::size_t>(w.code)];
      return !w.ended &&
             std::any_of(code.instructions.begin(), code.instructions.end(),
                         [&](const Instruction& i) { return i.size == static_cast<int>(s); });
    };
    for (const Warp& w : state.warps)
      if (uses(w)) all = std::min(all, w.tape[s]);
    if (all == 0) continue;
    state.tapes[s].erase(state.tapes[s].begin(),
                         state.tapes[s].begin() + static_cast<int64_t>(all));
    for (Warp& w : state.warps) w.tape[s] -= std::min(all, w.tape[s]);
  }
}

/// What everybody who goes on knows.
Clock Machine::common() const {
  Clock out;
  const auto meet = [&](const Clock& c) {
    if (out.empty()) out = c;
    for (std::size_t k = 0; k < c.size(); ++k) out[k] = std::min(out[k], c[k]);
  };
  for (const Warp& w : state.warps) {
    if (w.ended) continue;
    meet(w.elected);
    if (!w.forgot) meet(w.others);
  }
  out.resize(static_cast<std::size_t>(components()), 0);
  return out;
}

/// Everybody who goes on knows that it is finished, and fenced where it may have to be.
bool Machine::settled(const Access& a, const Clock& known) const {
  const auto all = [&](int component, int32_t index) {
    return index == 0 || known[static_cast<std::size_t>(component)] >= index;
  };
  if (a.end.component >= 0) return all(a.end.component, a.end.index);
  return all(part(a.warp, elected), a.elected) && all(part(a.warp, others), a.others) &&
         (!a.generic || (all(part(a.warp, fenced_elected), a.elected) &&
                         all(part(a.warp, fenced_others), a.others)));
}

/// Finished turns of each size, of the warp that is furthest.
std::vector<int64_t> Machine::furthest() const {
  std::vector<int64_t> out(state.tapes.size(), 0);
  for (const Warp& w : state.warps)
    for (std::size_t s = 0; s < out.size(); ++s) out[s] = std::max(out[s], w.finished[s]);
  return out;
}

void Machine::tell_warp(StateText& text, int k, const Horizon& h) const {
  const Warp& w = state.warps[static_cast<std::size_t>(k)];
  const Warp& first = state.warps[static_cast<std::size_t>(k - k % 4)];
  text.add(w.ended ? -1 : static_cast<int64_t>(w.pc));
  text.add(w.bulk_groups - w.elected[static_cast<std::size_t>(part(k, bulk_read))]);
  text.add((w.wgmma_open ? 1 : 0) + (w.bulk_open ? 2 : 0));
  text.add(w.group_count - first.group_count);
  text.add(w.group_hash == first.group_hash ? 1 : 0);
  if (w.ended) return;
  text.add(w.waits_named ? w.named : -1);
  if (w.waits_named)
    text.add(state.named[static_cast<std::size_t>(w.named)].generation - w.named_generation);
  for (int symbol : program_.shifted_symbols) text.add(w.values[static_cast<std::size_t>(symbol)]);
  for (std::size_t s = 0; s < h.most.size(); ++s) {
    text.add(static_cast<int64_t>(w.tape[s]));
    text.add(h.most[s] - w.finished[s]);
  }
  text.add(w.elected, h.now);
  text.add(w.forgot ? -1 : -2);
  if (!w.forgot) text.add(w.others, h.now);
  text.add(static_cast<int64_t>(w.flights.size()));
  for (const Flight& f : w.flights) {
    text.add(w.wgmma_groups - f.group);
    text.add(name_of(f.op));
    text.add(f.locked);
  }
  text.add(w.touched.runs());
  text.add(w.holds.runs());
  text.add(static_cast<int64_t>(w.initialized.size()));
  for (int b : w.initialized) text.add(b);
}

void Machine::tell_barriers(StateText& text, const Horizon& h) {
  const Clock& now = h.now;
  for (Barrier& b : state.barriers) {
    for (int64_t n : {int64_t{b.ready}, b.count, b.pending, b.bytes, b.expected, b.delivered,
                      int64_t{b.phase & 1}, int64_t{b.phase > 0}, int64_t{b.copied}})
      text.add(n);
    const bool some = b.pending != b.count || b.expected != 0 || b.delivered != 0;
    if (some) text.add(b.coming, now);
    // Learning what everybody knows changes nothing; to lanes that have forgotten it is lost.
    bool news = false;
    for (std::size_t c = 0; c < b.done.size(); ++c) news |= b.done[c] > h.known[c];
    if (!news) b.done.assign(b.done.size(), 0);
    text.add(news ? -2 : -1);
    if (news) text.add(b.done, now);
    text.add(static_cast<int64_t>(b.waiters.size()));
    for (const Waiter& w : b.waiters) {
      text.add(w.who.component);
      text.add(now[static_cast<std::size_t>(w.who.component)] - w.who.index);
    }
  }
  for (int k = 0; k < 16; ++k) {
    const Named& n = state.named[static_cast<std::size_t>(k)];
    const bool read = std::any_of(state.warps.begin(), state.warps.end(), [&](const Warp& w) {
      return w.waits_named && w.named == k && w.named_generation < n.generation;
    });
    text.add(n.come);
    if (n.come > 0) text.add(n.expects);
    if (n.come > 0) text.add(n.coming, now);
    if (read) text.add(n.done, now);
  }
}

void Machine::tell_access(StateText& text, const Access& a, const Horizon& h) const {
  const Clock& now = h.now;
  text.add(name_of(a.op));
  text.add(a.warp);
  text.add(a.size < 0 ? 0 : h.most[static_cast<std::size_t>(a.size)] - a.turns);
  text.add((a.write ? 1 : 0) + (a.generic ? 2 : 0));
  if (settled(a, h.known)) return text.add(-1);
  if (a.end.component >= 0) {
    text.add(a.end.component);
    return text.add(now[static_cast<std::size_t>(a.end.component)] - a.end.index);
  }
  text.add(-2);
  for (const auto& [p, fenced, index] : {std::tuple(elected, fenced_elected, a.elected),
                                         std::tuple(others, fenced_others, a.others)}) {
    text.add(index == 0 ? -1 : now[static_cast<std::size_t>(part(a.warp, p))] - index);
    text.add(index == 0 ? -1 : now[static_cast<std::size_t>(part(a.warp, fenced))] - index);
  }
}

std::string Machine::key() {
  drop_tapes();
  forget();
  const Horizon h{latest(), common(), furthest()};
  StateText text;
  for (std::size_t s = 0; s < state.tapes.size(); ++s) {
    text.add(static_cast<int64_t>(state.tapes[s].size()));
    for (bool more : state.tapes[s]) text.add(more ? 1 : 0);
    text.add(std::min(state.turns[s], least[s]));
  }
  for (int k = 0; k < warps_; ++k) tell_warp(text, k, h);
  tell_barriers(text, h);
  for (Cell& cell : state.cells) {
    std::erase_if(cell.reads, [&](const Access& a) { return settled(a, h.known); });
    text.add(cell.written ? 1 : 0);
    if (cell.written) tell_access(text, *cell.written, h);
    text.add(static_cast<int64_t>(cell.reads.size()));
    for (const Access& a : cell.reads) tell_access(text, a, h);
  }
  return text.hash();
}

}  // namespace tessera::check
