// What an instruction does to the machine beyond computing values: which bytes it touches and by
// which proxy, which events it signals and awaits, when each access is finished, and what must have
// been fenced before. Interpreter, checker and emitter read these records; none of them has code
// for one instruction.
//
// The vocabulary is closed and small on purpose: a rule is stated once a word, not once an
// instruction. Names of operands and modifiers are those of the form that has the effects
// (arch/instruction.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::arch {

/// Who executes it for it to act once.
enum class Issuer : uint8_t {
  elected,    // one thread: executed by more, it acts once for each of them
  thread,     // every thread for itself, on operands of its own
  warp,       // the 32 threads of a warp together
  warpgroup,  // four warps together, the first a multiple of four in the block
};

enum class Space : uint8_t {
  registers,
  shared,          // of this block
  cluster_shared,  // of a block of the cluster, this one included
  global,
};

/// The path of an access to memory; paths are ordered among each other by proxy fences alone (PTX
/// ISA, "Memory Consistency Model: Proxies").
enum class Proxy : uint8_t { none, generic, async, tensormap };

enum class Action : uint8_t { read, write, update };  // update: read and write as one

/// How a thread knows that an access is finished, and when others may rely on it.
enum class Completion : uint8_t {
  at_once,          // when the instruction is
  barrier_bytes,    // the operand that is an mbarrier has counted the bytes
  cp_async_group,   // the group of cp.async that it was committed to has completed
  bulk_group_read,  // the bulk group has read its sources
  bulk_group,       // the bulk group has completed
  wgmma_group,      // the group of wgmma has completed; until then registers are locked
};

/// How many: of bytes, arrivals, threads, groups, registers.
struct Amount {
  enum class Of : uint8_t {
    number,    // times
    modifier,  // times * the value of modifier `name` / per
    operand,   // times * the value of operand `name`
    box,       // the bytes of a whole box of the tensor map `name`, also where it leaves the tensor
    tile,      // the bytes of the matrix that the instruction's shape gives descriptor `name`
  };
  Of of = Of::number;
  int64_t times = 1;
  std::string_view name = "";
  int64_t per = 1;

  static Amount number(int64_t n) { return {Of::number, n}; }
  static Amount modifier(std::string_view name, int64_t times = 1, int64_t per = 1) {
    return {Of::modifier, times, name, per};
  }
  static Amount operand(std::string_view name, int64_t times = 1) {
    return {Of::operand, times, name};
  }
  static Amount box(std::string_view map) { return {Of::box, 1, map}; }
  static Amount tile(std::string_view descriptor) { return {Of::tile, 1, descriptor}; }
  friend bool operator==(const Amount&, const Amount&) = default;
};

/// Which addresses, for an operand that is an address.
enum class Place : uint8_t {
  once,       // `bytes` at the operand
  lanes,      // `bytes` at the operand of each thread that executes it
  rows,       // `bytes` at the operand of the first `lanes` lanes of the warp (ldmatrix, stmatrix)
  box,        // the box that the tensor map and the coordinates name, what lies in the tensor alone
  matrix,     // the matrix that a descriptor names, in its canonical layout
  register_,  // all registers of the operand
};

enum class Scope : uint8_t { thread, block, cluster, gpu, system };

struct Access {
  Action action = Action::read;
  Space space = Space::global;
  Proxy proxy = Proxy::generic;
  std::string_view operand;
  Place place = Place::once;
  Amount bytes;
  Completion until = Completion::at_once;
  Amount lanes = Amount::number(32);  // of Place::rows
  /// The operand with a bit for each block of the cluster that has the bytes at the same offset;
  /// empty: one block.
  std::string_view blocks = "";
  /// Threads up to this far apart may do the same to the same bytes at a time: it happens element
  /// by element, in some order. thread: it is a race.
  Scope atomic = Scope::thread;
  std::string_view unless_zero = "";  // an operand that is 0 where the access does not happen
};

enum class EventKind : uint8_t {
  arrival,          // signals: pending arrivals of an mbarrier go down
  expectation,      // signals: pending bytes of an mbarrier go up
  bytes,            // signals: pending bytes of an mbarrier go down (complete_tx)
  phase,            // awaits: the phase of an mbarrier that has the given parity is complete
  named_barrier,    // signals: the warp's threads have come; awaits: as many as it says have
  cluster_barrier,  // the same of all threads of the cluster
  warp,             // awaits: the lanes that the member mask names are here
  cp_async_group,   // signals: commits what was issued; awaits: all but the latest `amount` groups
  bulk_group_read,  // awaits: the same, until the sources have been read
  bulk_group,
  wgmma_group,
  register_pool,  // signals: registers a thread given back; awaits: so many a thread are free
  dependents,     // signals: the grids that depend on this one may start
  prerequisites,  // awaits: the grids that this one depends on have ended, their writes visible
};

enum class Verb : uint8_t { signals, awaits };

/// When an event is signalled.
enum class When : uint8_t {
  at_once,
  with_accesses,      // when the accesses of this instruction are finished
  with_prior_copies,  // when all earlier cp.async of the thread are finished
};

enum class Ordering : uint8_t { relaxed, release, acquire, both };

struct Event {
  Verb verb = Verb::signals;
  EventKind kind = EventKind::arrival;
  std::string_view operand = "";  // the mbarrier's address, the named barrier's number
  Amount amount;
  When when = When::at_once;
  Ordering order = Ordering::relaxed;  // of the thread's earlier or later generic accesses
  Scope scope = Scope::block;
  std::string_view blocks = "";  // as in Access
  std::string_view block = "";   // the operand with the rank of the block whose mbarrier it is
};

/// What a fence orders, and what others need to have been fenced.
enum class FenceKind : uint8_t {
  async_proxy,        // generic accesses of the thread before it, async ones after; and back
  tensormap_release,  // generic writes to a tensor map, before another thread's acquire
  tensormap_acquire,  // reads of a tensor map by the tensormap proxy after it
  barrier_init,       // mbarrier.init of the thread, before what the cluster and TMA do with it
  wgmma_registers,    // accesses of the warpgroup's registers, before wgmma's of the same ones
  memory,             // generic accesses, by order and scope
};

struct Fence {
  FenceKind kind = FenceKind::memory;
  Space space = Space::global;  // of async_proxy: which memory; global stands for all
  Ordering order = Ordering::both;
  Scope scope = Scope::thread;
};

/// What must have been fenced since `operand` was last accessed in the other way: for async_proxy
/// by the threads that did it, before they handed over to the one that issues.
struct Need {
  FenceKind fence = FenceKind::async_proxy;
  std::string_view operand;
};

/// Registers that are read and written at once follow from the operands' directions and have no
/// Access; those that stay in use after the instruction do.
struct Effects {
  Issuer issuer = Issuer::thread;
  std::vector<Access> accesses;
  std::vector<Event> events;
  std::vector<Fence> fences;
  std::vector<Need> needs;

  /// The registers of this operand must not be touched between the instruction and the completion
  /// that this returns; at_once: they are free again.
  [[nodiscard]] Completion locked_until(std::string_view operand) const;
  /// True when something of it is still under way after the instruction.
  [[nodiscard]] bool asynchronous() const;
};

std::string_view name_of(Issuer i);
std::string_view name_of(Space s);
std::string_view name_of(Proxy p);
std::string_view name_of(Action a);
std::string_view name_of(Completion c);
std::string_view name_of(EventKind k);
std::string_view name_of(Verb v);
std::string_view name_of(When w);
std::string_view name_of(Ordering o);
std::string_view name_of(Scope s);
std::string_view name_of(FenceKind k);

std::string to_string(const Amount& a);
std::string to_string(const Access& a);
std::string to_string(const Event& e);
std::string to_string(const Fence& f);
std::string to_string(const Need& n);
/// One phrase an effect, the issuer first, joined by "; ".
std::string to_string(const Effects& e);

}  // namespace tessera::arch
