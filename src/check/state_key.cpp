// The state of a run, told by what has influence on what follows: of clocks, which of the recorded
// events they have (machine_marks.cpp), and accesses that everybody knows to be finished are no
// more than that.
#include <algorithm>

#include "base/hash.h"

#include "check/machine.h"

namespace tessera::check {

/// Words behind each other, in a buffer that the next one uses again.
class StateText {
 public:
  explicit StateText(std::vector<int32_t>& buffer) : buffer_(buffer) {
    if (buffer_.empty()) buffer_.resize(1 << 12);
    begin_ = at_ = buffer_.data();
    end_ = begin_ + buffer_.size();
  }
  /// A word, or three.
  void add(int64_t n) {
    constexpr int32_t escape = INT32_MIN;
    room(3);
    if (n > escape && n <= INT32_MAX) {
      *at_++ = static_cast<int32_t>(n);
      return;
    }
    *at_++ = escape;
    *at_++ = static_cast<int32_t>(n);
    *at_++ = static_cast<int32_t>(n >> 32);
  }
  /// Four to a word.
  void add(const std::vector<uint8_t>& small) {
    const std::size_t n = small.size();
    room(n / 4 + 1);
    const uint8_t* const from = small.data();
    uint32_t word = 0;
    for (std::size_t k = 0; k < n; ++k) {
      word = word << 8U | from[k];
      if (k % 4 == 3 || k + 1 == n) *at_++ = static_cast<int32_t>(word);
    }
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
    return content_hash({reinterpret_cast<const char*>(begin_),
                         static_cast<std::size_t>(at_ - begin_) * sizeof *begin_});
  }

 private:
  void room(std::size_t words) {
    if (static_cast<std::size_t>(end_ - at_) >= words) return;
    const auto used = static_cast<std::size_t>(at_ - begin_);
    buffer_.resize(2 * (used + words));
    begin_ = buffer_.data();
    at_ = begin_ + used;
    end_ = begin_ + buffer_.size();
  }

  std::vector<int32_t>& buffer_;
  int32_t *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;
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

/// Lanes that stand by while the elected one runs learn nothing until the warp meets; what they
/// knew is dropped, so that the state does not grow with the distance.
void Machine::forget() {
  for (int k = 0; k < warps(); ++k) {
    Warp& w = state.warps[static_cast<std::size_t>(k)];
    const Piece& code = program_.codes[static_cast<std::size_t>(w.code)];
    if (w.ended || !code.instructions[w.pc].elected) continue;
    for (std::size_t c = 0; c < w.others.size(); ++c) {
      const bool own = c == static_cast<std::size_t>(part(k, others)) ||
                       c == static_cast<std::size_t>(part(k, seen_others)) ||
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
    // A warp within a loop has the loop's end before it.
    const auto uses = [&](const Warp& w) {
      const Piece& code = program_.codes[static_cast<std::size_t>(w.code)];
      return !w.ended && std::any_of(code.instructions.begin() + static_cast<int64_t>(w.pc),
                                     code.instructions.end(), [&](const Instruction& i) {
                                       return i.size == static_cast<int>(s);
                                     });
    };
    for (const Warp& w : state.warps)
      if (uses(w)) all = std::min(all, w.tape[s]);
    if (all == 0) continue;
    state.tapes[s].erase(state.tapes[s].begin(),
                         state.tapes[s].begin() + static_cast<int64_t>(all));
    for (Warp& w : state.warps) w.tape[s] -= std::min(all, w.tape[s]);
  }
}

void Machine::tell_clock(StateText& text, const Clock& c, const Horizon& h) const {
  h.ranks.resize(h.marked.size());
  uint8_t* rank = h.ranks.data();
  const int32_t* const clock = c.data();
  for (std::size_t k : h.marked) *rank++ = h.rank(k, clock[k]);
  text.add(h.ranks);
}

void Machine::tell_warp(StateText& text, int k, const Horizon& h) const {
  const Warp& w = state.warps[static_cast<std::size_t>(k)];
  const Warp& first = state.warps[static_cast<std::size_t>(k - k % warps_ % 4)];
  text.add(w.ended ? -1 : static_cast<int64_t>(w.pc));
  text.add(w.bulk_groups - w.elected[static_cast<std::size_t>(part(k, bulk_read))]);
  text.add((w.wgmma_open ? 1 : 0) + (w.bulk_open ? 2 : 0));
  text.add(w.group_count - first.group_count);
  text.add(w.group_hash == first.group_hash ? 1 : 0);
  if (w.ended) return;
  text.add(w.waits_named ? w.named : -1);
  if (w.waits_named)
    text.add(state.named[static_cast<std::size_t>(w.named)].generation - w.named_generation);
  text.add(w.cluster_come ? state.cluster.generation - w.cluster_generation : -1);
  for (int symbol : program_.shifted_symbols) text.add(w.values[static_cast<std::size_t>(symbol)]);
  const bool quiet = w.pc >= program_.codes[static_cast<std::size_t>(w.code)].quiet;
  for (std::size_t s = 0; s < h.most.size(); ++s) {
    text.add(static_cast<int64_t>(w.tape[s]));
    text.add(quiet ? 0 : h.most[s] - w.finished[s]);
  }
  tell_clock(text, w.elected, h);
  text.add((w.forgot ? 1 : 0) + (w.together ? 2 : 0));
  if (w.together)
    for (Part p : {elected, others, seen_elected, seen_others}) {
      const auto c = static_cast<std::size_t>(part(k, p));
      text.add(h.rank(c, w.others[c]));
    }
  else if (!w.forgot)
    tell_clock(text, w.others, h);
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

void Machine::tell_barrier(StateText& text, Barrier& b, const Horizon& h) const {
  for (int64_t n : {int64_t{b.ready}, b.count, b.pending, b.bytes, b.expected, b.delivered,
                    int64_t{b.phase & 1}, int64_t{b.phase > 0}, int64_t{b.copied}})
    text.add(n);
  const bool some = b.pending != b.count || b.expected != 0 || b.delivered != 0;
  if (some) tell_clock(text, b.coming, h);
  // Learning what everybody knows changes nothing; to lanes that have forgotten it is lost.
  bool news = false;
  for (std::size_t c = 0; c < b.done.size(); ++c) news |= b.done[c] > h.known[c];
  if (!news) b.done.assign(b.done.size(), 0);
  text.add(news ? -2 : -1);
  if (news) tell_clock(text, b.done, h);
  for (const Clock* c : {&b.coming_cluster, &b.done_cluster}) {
    text.add(c->empty() ? -1 : -2);
    if (!c->empty()) tell_clock(text, *c, h);
  }
  for (const std::vector<Waiter>* all : {&b.waiters, &b.expects}) {
    text.add(static_cast<int64_t>(all->size()));
    for (const Waiter& w : *all) {
      text.add(w.who.component);
      text.add(h.rank(static_cast<std::size_t>(w.who.component), w.who.index));
    }
  }
  text.add(static_cast<int64_t>(b.uses.size()));
  for (const Use& u : b.uses) {
    text.add(u.warp);
    text.add(name_of(u.op));
    text.add(h.rank(static_cast<std::size_t>(part(u.warp, seen_elected)), u.elected));
    text.add(h.rank(static_cast<std::size_t>(part(u.warp, seen_others)), u.others));
    text.add(b.phase == u.phase ? 1 : 0);
  }
}

/// `read`: somebody has yet to learn of the last turn.
void Machine::tell_named(StateText& text, const Named& n, bool read, const Horizon& h) const {
  text.add(n.come);
  if (n.come > 0) text.add(n.expects);
  if (n.come > 0) tell_clock(text, n.coming, h);
  for (const int warp : n.who) text.add(warp);
  if (read) tell_clock(text, n.done, h);
}

void Machine::tell_all_named(StateText& text, const Horizon& h) const {
  for (std::size_t k = 0; k < state.named.size(); ++k) {
    const Named& n = state.named[k];
    const bool read = std::any_of(state.warps.begin(), state.warps.end(), [&](const Warp& w) {
      return w.waits_named && w.named == static_cast<int>(k) && w.named_generation < n.generation;
    });
    tell_named(text, n, read, h);
  }
  const bool read = std::any_of(state.warps.begin(), state.warps.end(), [&](const Warp& w) {
    return w.cluster_come && w.cluster_generation < state.cluster.generation;
  });
  tell_named(text, state.cluster, read, h);
}

/// Whether its end, if it lies behind, is yet to be compared with a number of groups that its
/// thread waits for. What is learned of barriers is always the latest phase.
bool Machine::may_be_raised(const Access& a) const {
  const auto c = static_cast<std::size_t>(a.end.component);
  if (a.end.component >= 4 * warps())
    return a.end.index > state.barriers[c - static_cast<std::size_t>(of_barrier(0))].phase + 1;
  const Warp& w = state.warps[static_cast<std::size_t>(a.warp)];
  const bool bulk = a.end.component == part(a.warp, bulk_read);
  return (bulk ? w.elected[c] : std::min(w.elected[c], w.others[c])) < a.end.index;
}

void Machine::tell_access(StateText& text, const Access& a, const Horizon& h) const {
  text.add(name_of(a.op));
  text.add(a.warp);
  text.add(a.size < 0 ? 0 : h.most[static_cast<std::size_t>(a.size)] - a.turns);
  text.add((a.write ? 1 : 0) + (a.generic ? 2 : 0));
  if (settled(a, h.known)) return text.add(-1);
  if (a.end.component < 0) {
    text.add(-2);
    text.add(static_cast<int64_t>(a.lanes));
    text.add(h.rank(static_cast<std::size_t>(part(a.warp, seen_elected)), a.elected));
    return text.add(h.rank(static_cast<std::size_t>(part(a.warp, seen_others)), a.others));
  }
  const auto c = static_cast<std::size_t>(a.end.component);
  text.add(a.end.component);
  text.add(h.rank(c, a.end.index));
  text.add(may_be_raised(a) ? h.now[c] - a.end.index : -1);
  text.add(known_in(a.block, a.end.component, a.end.index, true) ? 1 : 0);
}

std::string Machine::key() {
  drop_tapes();
  drop_uses();
  forget();
  const Horizon& h = horizon();
  StateText text(words_);
  for (std::size_t s = 0; s < state.tapes.size(); ++s) {
    text.add(static_cast<int64_t>(state.tapes[s].size()));
    for (bool more : state.tapes[s]) text.add(more ? 1 : 0);
    text.add(std::min(state.turns[s], least[s]));
  }
  for (int k = 0; k < warps(); ++k) tell_warp(text, k, h);
  for (Barrier& b : state.barriers) tell_barrier(text, b, h);
  tell_all_named(text, h);
  for (const Cell& cell : state.cells) {
    text.add(cell.written ? 1 : 0);
    if (cell.written) tell_access(text, *cell.written, h);
    text.add(static_cast<int64_t>(cell.reads.size()));
    for (const Access& a : cell.reads) tell_access(text, a, h);
  }
  return text.hash();
}

}  // namespace tessera::check
