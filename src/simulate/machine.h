// One run of a program. What each instruction does to the machine, and must find, comes from the
// effects of its form (arch/effects.h); nothing here knows an instruction by its name, but for
// wgmma's shapes.
//
// A step is one instruction that others may see, with all up to the next one of the same strand, or
// one asynchronous operation. machine.cpp: steps; strands.cpp: control, lanes that part and meet;
// issue.cpp: instructions; accesses.cpp: memory; registers.cpp; barriers.cpp; flights.cpp;
// ends.cpp.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>

#include "simulate/schedule.h"
#include "simulate/state.h"

namespace tessera::simulate {

/// Bytes of one memory.
struct Range {
  arch::Space space = arch::Space::shared;
  int place = 0;  // a block, or a tensor
  int64_t begin = 0, bytes = 0;
};

/// Ends the run: further steps would mean nothing.
struct Ended {};

class Machine {
 public:
  Machine(const Program& program, Scheduler& scheduler, uint64_t seed);
  Outcome run();
  /// Whether the scheduler ended the run.
  [[nodiscard]] bool abandoned() const { return abandoned_; }

  // What values need (values_*.cpp).
  const Program& program() const { return program_; }
  /// Bytes here that hold so many bytes of the machine (simulate/domain.h); of tags, one each.
  [[nodiscard]] int64_t held(int64_t bytes) const {
    return plane_ < 0 ? bytes * program_.cell : bytes;
  }
  /// The memory's bytes, from the machine's byte `at`.
  uint8_t* memory(arch::Space space, int place, int64_t at);
  const uint8_t* read_memory(arch::Space space, int place, int64_t at);
  /// The bytes of an operand's element in a lane's registers: to be read, which is TS0842 where
  /// nothing has been written, and to be written.
  const uint8_t* read_registers(const Call& call, int operand, int lane, int64_t element) {
    return read_slot(call, call.code->operands[operand].storage, lane,
                     call.given[operand](lane) + element);
  }
  uint8_t* write_registers(const Call& call, int operand, int lane, int64_t element) {
    return write_slot(call, call.code->operands[operand].storage, lane,
                      call.given[operand](lane) + element);
  }
  /// The 16-byte pieces of a matrix that the call's warp has a part in, row by row (of mn with k
  /// contiguous, else of k).
  struct Matrix {
    int64_t rows = 0, pieces = 0;
    bool k_contiguous = true;
    std::vector<int64_t> at;  // bytes in the block
  };
  Matrix matrix(const Call& call, int operand);
  /// Blocks that get the bytes: those of the mask operand, else the call's own.
  std::vector<int> targets(const Call& call, int blocks_operand);
  // Tags (tags_machine.cpp), where the kernel has some.
  Tags& tags() { return *tags_; }
  /// Does what moves bytes again with the bytes of their tags.
  void move_tags(Call& call, void (*what)(Call&));
  TagId memory_tag(arch::Space space, int place, int64_t at, int64_t size);
  void set_memory_tag(arch::Space space, int place, int64_t at, int64_t size, TagId tag);
  TagId register_tag(const Call& call, int operand, int lane, int64_t element) {
    return slot_tag(call, call.code->operands[operand].storage, lane,
                    call.given[operand](lane) + element);
  }
  void set_register_tag(const Call& call, int operand, int lane, int64_t element, TagId tag) {
    set_slot_tag(call, call.code->operands[operand].storage, lane,
                 call.given[operand](lane) + element, tag);
  }
  /// Of an element of a tensor, by its place or by its index, which may lie outside of an input.
  TagId tensor_tag(int tensor, int64_t element);
  TagId tensor_tag(int tensor, const std::vector<int64_t>& index);
  /// What an asynchronous copy takes with the bytes that it has read.
  static void begin_tags(Call& call, int64_t bytes);
  static void take_tag(Call& call, int64_t at, int64_t size, TagId tag);
  /// Of what a lane loads from global memory.
  void load_tags(const Call& call, int to, int from, int lane);
  /// Whether the access happens for the lane.
  static bool happens(const Call& call, const AccessCode& access, int lane);

 private:
  using Visit = std::function<void(const Range&)>;

  // machine.cpp
  void step(const Actor& actor);
  std::vector<Actor> actors();
  void start();
  uint32_t component(bool lasting);
  [[nodiscard]] bool can_go(const Strand& s) const;
  [[nodiscard]] int64_t object_of(const Strand& s, bool* waits) const;
  template <class Values>
  void take_output(Values values, int tensor);
  Outcome outcome();

  // strands.cpp
  void advance(Strand& s);
  bool control(Strand& s, const Instruction& i);
  bool branch(Strand& s, const Instruction& i);
  bool elect(Strand& s, const Instruction& i);
  bool meet(Strand& s);
  void check_meeting(const Strand& s);
  Strand& part(Strand& s, uint32_t lanes);
  void become(Strand& s, uint32_t lanes);
  Warp::Party& party(Warp& w, uint32_t lanes);
  Strand& fresh_strand(int warp);
  void drain();
  void tick(Strand& s) { s.knows.seen.set(s.component, s.knows.seen[s.component] + 1); }
  void end(Strand& s);
  Frame& frame_of_lane(Strand& s, int lane);

  // issue.cpp
  Call resolve(Strand& s, const Instruction& i);
  void resolve(Call& call, int operand, Strand& s, uint32_t lanes);
  void operand_value(Call& call, const OperandCode& o, const Frame& frame, int64_t* to);
  int64_t address(const Call& call, const OperandCode& o, const Frame& frame);
  void check_legal(const Call& call, const OperandCode& o, int64_t value);
  void check_grids(const Call& call);
  void at_once(Strand& s, Call& call);
  bool visible(Strand& s);
  void announce_barriers(Strand& s, Block& block, uint32_t party, uint32_t clock);
  void apply_fences(Strand& s, const Call& call);
  void know_fences(Strand& s);
  void check_needs(const Call& call, const Knowledge& knows);
  void check_made(const Call& call, const Barrier& b, const Knowledge& knows);
  void compute(Strand& s, const Instruction& i);
  template <class Values>
  void compute_lane(Values values, Strand& s, const Call& call, const ComputeCode& code, int lane,
                    const std::vector<int64_t>& first);
  bool asynchronous_product(const Call& call) const { return call.code->wgmma.has_value(); }

  // accesses.cpp
  void touch(const Call& call, const AccessCode& access, const Mark& by, const Knowledge& knows);
  void ranges(const Call& call, const AccessCode& access, const Visit& visit);
  void box_ranges(const Call& call, const AccessCode& access, const Visit& visit);
  void touch(const Call& call, const AccessCode& access, const Range& r, const Mark& by,
             const Knowledge& knows);
  void write_output(const Call& call, const Range& r, bool update);
  void check_bounds(const Call& call, const Range& r);
  /// `of`: the strand whose doing it was; null: nobody's that could tell of it.
  void use(int block, const Mark& by, const Strand* of = nullptr);
  int arrival_block(const Call& call, const EventCode& e, int lane);
  void spare_barriers(const Call& call, const Range& r);

  // registers.cpp
  const uint8_t* read_slot(const Call& call, int registers, int lane, int64_t slot);
  uint8_t* write_slot(const Call& call, int registers, int lane, int64_t slot);
  void declare(Strand& s, int registers);
  RegisterFile& file(const Call& call, int registers);
  void touch_registers(const Call& call, int registers, int64_t first, int64_t count, bool write);
  void touch_operands(const Call& call);
  void issue_product(const Call& call);
  void compare_products(const Call& call);

  // tags_machine.cpp
  void begin_tags();
  void begin_tags(RegisterFile& f) const;
  void follow(Call& call, bool puts);
  uint8_t* tag_byte(arch::Space space, int place, int64_t at);
  TagId slot_tag(const Call& call, int registers, int lane, int64_t slot);
  void set_slot_tag(const Call& call, int registers, int lane, int64_t slot, TagId tag);
  void compute_tags(const Call& call, const ComputeCode& code, int lane, int64_t element,
                    const std::vector<int64_t>& first);
  // tags_asserted.cpp
  /// What one side of an assertion carries, and where.
  struct Carried {
    int64_t value = Tags::none;
    const TagCode::At* at = nullptr;  // null: nowhere, a value alone
    int64_t place = 0;                // the slot, or the byte of shared memory
  };
  std::string place_text(const Call& call, const Carried& c) const;
  void tag(Strand& s, const Instruction& i);
  void say(const Call& call, const TagCode& code, Frame& frame, int lane);
  bool holds(const Call& call, const TagCode& code, Frame& frame, int lane);
  bool agrees(const Call& call, const TagCode& code, int lane, const std::vector<Carried>& here,
              const std::vector<Carried>& there);
  Carried carried(const Call& call, const TagCode& code, const TagCode::At& at, const Frame& frame,
                  int lane);
  std::pair<arch::Space, int64_t> byte_at(const TagCode::At& at, const Frame& frame) const;

  // barriers.cpp
  bool signal(Strand& s, const Call& call, const EventCode& e);
  bool passes(const Strand& s, const Call& call, const EventCode& e) const;
  void acquire(Strand& s, const Call& call, const EventCode& e);
  void acquire_phase(Strand& s, const Call& call, const EventCode& e);
  Barrier& barrier(int block, int64_t slot) { return blocks_[block].barriers[slot]; }
  void arrive(const Call& call, int block, int64_t slot, int64_t count);
  void complete_if_done(int block, int64_t slot);
  void release(Barrier& b, const Knowledge& from, arch::Ordering order, arch::Scope scope,
               bool own_block);
  void join_agents(Knowledge& to, const Knowledge& from);
  void make_barriers(const Call& call, const Mark& by);
  bool named_arrive(Strand& s, const Call& call, const EventCode& e, bool waits);
  void cluster_arrive(Strand& s, const Call& call, const EventCode& e);
  int64_t intended_phase(const Knowledge& knows, const Barrier& b, int64_t parity) const;
  void wake(Strand& s, const Knowledge& released);

  // flights.cpp
  void take_off(Strand& s, const Call& call);
  void depart(Flight f, Strand& s);
  uint32_t free_component(const Strand& s);
  void fly(Flight& f);
  void land(Flight& f);
  void count_bytes(Flight& f);
  bool ready_to_fly(const Flight& f) const;
  void commit(Strand& s, const EventCode& e);
  [[nodiscard]] bool groups_done(const Strand& s, const Call& call, const EventCode& e) const;
  void finish_groups(Strand& s, const Call& call, const EventCode& e);
  std::vector<int> awaited(const Warp& w, int lane, const EventCode& e, int64_t pending) const;
  uint32_t queue_target(const Warp& w, int64_t pending) const;
  void late_arrival(Strand& s, const Call& call);

  // ends.cpp
  void end_block(int block);
  void end_run();
  void say_stuck();
  std::string waits_for(const Strand& s) const;

  // findings.cpp
  uint32_t log(const Strand& s);
  void report(Diagnostic d, uint32_t event, std::optional<uint32_t> earlier = {});
  [[noreturn]] void report_and_end(Diagnostic d, uint32_t event,
                                   std::optional<uint32_t> earlier = {});
  void report(const Conflict& c, const Call& call, const AccessCode& access, const Range& r);
  void keep(Diagnostic d);  // of no event, or with what is said of one
  std::string what(uint32_t event) const;
  std::string who(uint32_t event) const;
  std::string barrier_text(int block, int64_t slot) const;
  std::string bytes_text(const Range& r, int64_t byte) const;
  void add_label(Diagnostic& d, uint32_t event, const std::string& text) const;

  int64_t amount(const Call& call, const EventCode& e) const {
    return e.amount >= 0 ? e.effect->amount.times * call.given[e.amount](first_lane(call.lanes))
                         : e.fixed;
  }
  static int first_lane(uint32_t lanes) { return __builtin_ctz(lanes); }

  const Program& program_;
  Scheduler& scheduler_;
  bool lazy_;
  bool abandoned_ = false;
  std::deque<Strand> strands_;
  std::vector<int> advancing_;
  std::vector<Warp> warps_;
  std::vector<Block> blocks_;
  std::vector<ClusterBarrier> clusters_;
  std::vector<TensorState> tensors_;
  std::deque<Flight> flights_;
  std::vector<int> flying_;
  std::vector<bool> lasting_;         // of each component: of asynchronous doings and of phases
  std::vector<uint32_t> free_;        // components of flights that are done: for those who know so
  std::vector<uint32_t> last_clock_;  // of each component of a flight
  std::vector<Event> events_;
  std::set<std::string> said_;
  std::unique_ptr<Tags> tags_;  // null: the kernel has none
  int plane_ = -1;              // the byte of tags that is moved; -1: values are
  Outcome out_;
};

}  // namespace tessera::simulate
