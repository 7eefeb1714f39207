// The blocks of a cluster run event by event, with what every thread may know of what the others
// have done.
//
// A clock says, for each component, up to which of its events a thread knows that they have
// happened: knowledge comes by program order, by phases of mbarriers, by named barriers, and by
// waits for groups. One event is before another in every execution exactly if the clock of the
// second has it. The run takes one order of events; where every wait has one phase that it can mean
// (rules `phase_window`, `arrivals`) all orders have the same clocks, so that what the clocks say
// holds of all (docs/checker.md).
//
// Each warp has two clocks: of the elected lane, and of its other lanes, which may lag behind until
// the next instruction of the whole warp.
//
// Warps, barriers and cells of shared memory are numbered through the cluster, those of block 0
// first. That an event has happened is one thing, that the accesses of its thread are visible
// another: relaxed arrivals and copies pass on the first alone. Components of a clock for the
// second stand at its end.
#pragma once

#include <map>
#include <set>

#include "check/code.h"
#include "check/footprint.h"

namespace tessera::check {

using Clock = std::vector<int32_t>;
class StateText;

/// Event `index` of a component.
struct Stamp {
  int component = -1;
  int32_t index = 0;
};

/// An access of shared memory that later ones may meet.
struct Access {
  const core::Op* op = nullptr;
  int warp = 0;
  bool write = false;
  bool generic = false;             // by the generic proxy: to be fenced before async ones
  int32_t elected = 0, others = 0;  // generic: its index in the lanes' components, 0: not by them
  Stamp end;                        // of async ones: what makes it known to be finished
  int block = 0;                    // whose shared memory it is
  uint64_t lanes = 0;  // not 0: each lane has bytes of its own, and equal numbers the same ones
  int size = -1;       // of the innermost loop of a size that it stands in
  int64_t turns = 0;   // of that loop, finished before it
};

struct Cell {
  std::optional<Access> written;
  std::vector<Access> reads;  // since then
};

/// Slots of a warp's registers.
struct Slots {
  core::RegistersId id;
  int64_t begin = 0, end = 0;
  [[nodiscard]] bool overlaps(const Slots& o) const {
    return id == o.id && begin < o.end && o.begin < end;
  }
};

class SlotSet {
 public:
  void add(const Slots& s);
  void remove(core::RegistersId id);
  void clear() { runs_.clear(); }
  [[nodiscard]] bool covers(const Slots& s) const;
  [[nodiscard]] bool overlaps(const Slots& s) const;
  [[nodiscard]] const std::vector<Slots>& runs() const { return runs_; }

 private:
  std::vector<Slots> runs_;  // none touches another
};

/// A wgmma under way: what it keeps locked.
struct Flight {
  int32_t group = 0;
  const core::Op* op = nullptr;
  std::vector<Slots> locked;
};

struct Warp {
  int code = 0;
  std::size_t pc = 0;
  bool ended = false;
  bool waits_named = false;  // has come to a named barrier, and not yet gone on
  int named = 0;             // which one, and its turn
  int32_t named_generation = 0;
  Values values;
  std::vector<std::size_t> tape;  // decisions taken, by size
  Clock elected, others;
  bool forgot = false;   // the other lanes' clock has been dropped, until the lanes meet
  bool together = true;  // the clocks differ at most in the two lanes' own components
  int32_t elected_index = 0, others_index = 0;
  int32_t wgmma_groups = 0, bulk_groups = 0;  // committed
  bool wgmma_open = false, bulk_open = false;
  std::vector<Flight> flights;
  SlotSet touched;               // since the last wgmma.fence
  SlotSet perhaps_touched;       // of these: by what Instruction::perhaps says of
  SlotSet holds;                 // have a value
  std::vector<int> initialized;  // barriers that the elected lane has, since its last fence
  bool cluster_come = false;     // to the cluster's barrier, and has not waited yet
  int32_t cluster_generation = 0;
  std::vector<int64_t> finished;  // turns, by size
  uint64_t group_hash = 0;        // of the instructions of the whole warpgroup so far
  int64_t group_count = 0;
};

struct Waiter {
  Stamp who;
  const core::Op* op = nullptr;
  int warp = 0;
};

/// The latest arrival that a warp of another block made at a barrier.
struct Use {
  int warp = 0;
  const core::Op* op = nullptr;
  int32_t elected = 0, others = 0;  // its index in the lanes' components, 0: not by them
  int32_t phase = 0;                // that it counted for
};

struct Barrier {
  bool ready = false;  // initialized
  int64_t count = 0, pending = 0;
  int64_t bytes = 0;                    // expected and not yet come
  int64_t expected = 0, delivered = 0;  // in this phase
  int32_t phase = 0;                    // completed phases
  Clock coming, done;                   // of what has come to this phase; of the phase before
  /// The same of releases in other blocks, for waits of the cluster's scope; empty: none.
  Clock coming_cluster, done_cluster;
  std::vector<Waiter> waiters;  // for the phase before
  std::vector<Waiter> expects;  // bytes of this phase, before no arrival that is known to be later
  std::vector<Use> uses;        // that no thread of the block is known to know of
  bool copied = false;          // bytes came in the phase before
  const core::Op* made = nullptr;  // that initialized it
  const core::Op* last = nullptr;
};

/// A barrier of warps: a named one of a block, or the cluster's.
struct Named {
  int64_t expects = 0, come = 0;
  std::vector<int> who;    // warps that have come, in order
  int32_t generation = 0;  // completed
  Clock coming, done;
};

/// All that changes during a run.
struct State {
  std::vector<Warp> warps;
  std::vector<Barrier> barriers;
  std::vector<Named> named;  // 16 a block
  Named cluster;
  std::vector<Cell> cells;
  std::vector<int> running;  // warps that have not ended, by block
  /// By size: whether a loop of it goes on or ends, decided once for all warps, in their order.
  std::vector<std::vector<bool>> tapes;
  std::vector<int64_t> turns;  // by size: decided since a loop of it began
};

/// What is wrong, by the name of the kind that forbids it.
struct Violation {
  std::string_view kind;
  const core::Op* op = nullptr;
  int rank = 0;       // of the block in its cluster
  int warp = 0;       // in the block
  std::string lanes;  // "the elected lane", "all lanes"
  std::string at;     // turns of the loops: "turn 0, k 3"
  std::string message, expected, found, help;
  const core::Op* other = nullptr;
  std::string other_text;
  /// How it comes about, op by op: what each does.
  std::vector<std::pair<const core::Op*, std::string>> chain;
  std::vector<int64_t> sizes;
};

/// That a read sees what a write left: by ops, by the blocks' ranks in their cluster, and how many
/// turns lie between. In a cluster a read may see several writes: its own block's share of a copy
/// and that of another block, by the same op.
struct ReadsFrom {
  const core::Op* read = nullptr;
  const core::Op* write = nullptr;
  int64_t turns = 0;  // of the innermost loop of a size that both stand in; 0 where none
  int reader = 0;     // rank of the block that reads
  int writer = 0;     // rank of the block that issued the write
  friend auto operator<=>(const ReadsFrom&, const ReadsFrom&) = default;
};

class Machine {
 public:
  Machine(const core::Kernel& kernel, const Program& program, const Sizes& sizes,
          Footprints& footprints);

  /// All warps at their start. Without values of the sizes, loops of sizes ask the tapes.
  void start(const std::optional<std::vector<int64_t>>& sizes);
  enum class Stop : uint8_t { ended, undecided, stuck };
  /// Runs until no warp can go on. `undecided`: some loop needs one more decision on its tape.
  Stop run();
  void drop_reports() {
    violations.clear();
    reported_.clear();
  }
  [[nodiscard]] int undecided_size() const { return undecided_; }
  void report_stuck();
  /// What must hold when all have ended.
  void finish();

  State state;
  std::vector<Violation> violations;
  std::set<ReadsFrom> reads_from;
  std::set<const core::Op*> seen;  // ops that ran
  std::vector<int64_t> least;      // turns of a loop, by size: fewer are told apart by key()
  std::string failed;              // a value that could not be computed
  std::string doubt;               // what a computation would violate that a run may leave out
  int64_t events = 0;

  /// The state but for what has no influence: equal texts go on alike (state_key.cpp).
  [[nodiscard]] std::string key();
  void decide(int size, bool more);

 private:
  /// Components of clocks. The first are of what has happened: events of the lanes, groups. The
  /// others of accesses by the generic proxy: visible, and fenced.
  enum Part : uint8_t {
    elected,
    others,
    wgmma,
    bulk_read,
    seen_elected,
    seen_others,
    fenced_elected,
    fenced_others
  };
  [[nodiscard]] int part(int warp, Part p) const {
    return 4 * warp + (p < seen_elected ? p : first_seen_ + p - seen_elected);
  }
  [[nodiscard]] int of_barrier(int b) const { return 4 * warps() + b; }
  [[nodiscard]] int of_named(int n) const { return 4 * warps() + barriers_ * blocks_ + n; }
  [[nodiscard]] int components() const { return first_seen_ + 4 * warps(); }
  [[nodiscard]] int warps() const { return warps_ * blocks_; }
  [[nodiscard]] int block_of(int warp) const { return warp / warps_; }
  /// Takes over what `from` knows to have happened, and with `seen` what is visible to it.
  void learn(Clock& into, const Clock& from, bool seen = true) const;

  // machine.cpp: control
  void start_warps(int block, const Clock& zero);
  bool step(int w);
  bool test(int w, const Instruction& i);
  void enter(Warp& w, const Instruction& i);
  void next(Warp& w, const Instruction& i);
  int64_t value(const Warp& w, const Value& v);
  const std::vector<int64_t>& values(const Warp& w, const std::vector<Value>& v);
  int64_t amount(const Warp& w, const Instruction& i, const arch::Amount& a);
  bool issue(int w, const Instruction& i);
  void meet(int w);
  void tick(int w, bool elected);
  void report(std::string_view kind, int w, const Instruction& i, std::string message,
              std::string expected, std::string found, std::string help,
              const core::Op* other = nullptr, std::string other_text = "");
  [[nodiscard]] std::string place(const Warp& w, const Instruction& i) const;

  // machine_events.cpp: barriers and groups
  bool can_pass(int w, const Instruction& i);
  void event(int w, const Instruction& i, const arch::Event& e);
  void fence(int w, const Instruction& i, const arch::Fence& f);
  /// The barrier of an operand in a block; -1, and reported, where its index leaves the storage.
  int barrier_of(int w, const Instruction& i, std::string_view operand, int block);
  int barrier_of(int w, const Instruction& i, std::string_view operand) {
    return barrier_of(w, i, operand, block_of(w));
  }
  void initialize(int w, const Instruction& i);
  void arrive(int w, const Instruction& i, const arch::Event& e, int b, int64_t times);
  void expect(int w, const Instruction& i, int b, int64_t bytes);
  void deliver(int w, const Instruction& i, int b, int64_t bytes);
  void complete(int b);
  void wait(int w, const Instruction& i, const arch::Event& e, int b);
  void named(int w, const Instruction& i, const arch::Event& e);
  void come(int w, const Instruction& i, int64_t id, int64_t threads);
  void retire(int w, arch::EventKind kind, int64_t pending);
  bool knows_phase(int w, const Instruction& i, int b);

  // machine_cluster.cpp: what blocks do to each other
  void targets(int w, const Instruction& i, std::string_view blocks, std::vector<int>& out);
  int target(int w, const Instruction& i, const arch::Event& e);
  void use(int w, const Instruction& i, int b);
  void come_to_cluster(int w, const Instruction& i, const arch::Event& e);
  void wait_for_cluster(int w, const Instruction& i);
  void reach(int w, const Instruction& i, int block);

  // machine_ends.cpp: warps and blocks that end
  void end_warp(int w);
  void end_block(int block);
  void end_groups(int w);
  void end_warpgroup(int first);
  [[nodiscard]] bool known_in(int block, int component, int32_t index, bool ended = false) const;
  [[nodiscard]] bool known_in(int block, int b, const Use& u) const;
  void drop_uses();
  [[nodiscard]] std::string still_waits(int w, const Instruction& i, const core::Op*& last);

  // state_key.cpp
  void forget();
  void drop_tapes();
  /// What a state is told by: the latest events, those that everybody knows of, how far the
  /// furthest warp is, by size, and the recorded events, by component, in order.
  struct Horizon {
    Clock now, known;
    std::vector<int64_t> most;
    std::vector<std::vector<int32_t>> marks;
    std::vector<std::size_t> marked;     // components that have some
    mutable std::vector<uint8_t> ranks;  // a buffer
    /// How many recorded events are not after `index`.
    [[nodiscard]] uint8_t rank(std::size_t component, int32_t index) const {
      const std::vector<int32_t>& all = marks[component];
      const int32_t *const begin = all.data(), *const end = begin + all.size();
      uint8_t n = 0;
      for (const int32_t* m = begin; m != end; ++m) n += *m <= index ? 1 : 0;
      return n;
    }
  };
  void tell_clock(StateText& text, const Clock& c, const Horizon& h) const;
  void tell_warp(StateText& text, int w, const Horizon& h) const;
  void tell_barrier(StateText& text, Barrier& b, const Horizon& h) const;
  void tell_named(StateText& text, const Named& n, bool read, const Horizon& h) const;
  void tell_all_named(StateText& text, const Horizon& h) const;
  [[nodiscard]] bool may_be_raised(const Access& a) const;
  void tell_access(StateText& text, const Access& a, const Horizon& h) const;

  // machine_marks.cpp
  [[nodiscard]] Clock latest() const;
  [[nodiscard]] Clock common() const;
  [[nodiscard]] bool waits_for_cluster(const Warp& w) const;
  [[nodiscard]] bool settled(const Access& a, const Clock& known) const;
  [[nodiscard]] std::vector<int64_t> furthest() const;
  static void mark(Horizon& h, int component, int32_t index);
  void mark(Horizon& h, const Access& a) const;
  const Horizon& horizon();

  // machine_memory.cpp
  void access(int w, const Instruction& i, const arch::Access& a);
  int footprint(int w, const Instruction& i, const arch::Access& a, std::size_t operand);
  int lanes_footprint(int w, const Instruction& i, const arch::Access& a, std::size_t operand);
  void leaves(int w, const Instruction& i, const core::Shared& s,
              const std::vector<int64_t>& coordinates);
  void copy(int w, const Instruction& i, const arch::Access& a, Access mine, int footprint);
  void report_unwritten(int w, const Instruction& i, int block, int cell);
  void touch_cells(int w, const Instruction& i, const Access& mine, int footprint,
                   bool needs_fence);
  bool ordered(int w, const Instruction& i, const Access& before, const Access& mine,
               bool needs_fence, int cell);
  void use_registers(int w, const Instruction& i, const Slots& s, bool read, bool write);
  void multiply(int w, const Instruction& i,
                const std::vector<std::pair<std::size_t, Slots>>& used);
  void registers(int w, const Instruction& i);
  std::vector<Slots> slots_of(const Warp& w, const core::Run& run, const Value& first);
  void computes(int w, const Instruction& i);
  void note_read(const Access& mine, const Cell& cell, const Warp& reader);

  const core::Kernel& kernel_;
  const Program& program_;
  const Sizes& sizes_;
  Footprints& footprints_;
  int warps_ = 0, barriers_ = 0;    // of a block
  int blocks_ = 1;                  // of the cluster
  int first_seen_ = 0;              // component of a clock
  std::vector<int> first_barrier_;  // by BarriersId
  bool shifted_ = false;
  int undecided_ = -1;
  std::vector<int64_t> size_values_;
  std::vector<int64_t> coordinates_;  // buffers
  std::vector<int> targets_;
  Footprints::Key key_;
  std::vector<int32_t> words_;
  Horizon horizon_;
  std::set<std::pair<std::string_view, const core::Op*>> reported_;
  std::map<const core::Run*, std::vector<std::pair<int64_t, int64_t>>>
      runs_;  // slots from the first on
};

}  // namespace tessera::check
