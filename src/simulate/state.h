// The state of a run: strands, warps, blocks, barriers, and what is under way.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "simulate/clock.h"
#include "simulate/program.h"
#include "simulate/shadow.h"
#include "simulate/tags.h"

namespace tessera::simulate {

constexpr uint32_t all_lanes = ~0U;

/// The bytes of the numbers of tags (tags.h) of as many bytes of a memory or of registers: where
/// values are moved, so are they.
using TagBytes = std::array<std::vector<uint8_t>, sizeof(TagId)>;

/// An argument's values in one execution: `per` integers, of each lane where lanes differ. Of
/// shared memory: the byte in the block, but of a descriptor the coordinates; of a barrier: its
/// place among the block's; of a tensor: the byte; of registers: the first element slot.
struct Given {
  std::vector<int64_t> values;
  int64_t per = 1;
  bool by_lane = false;
  [[nodiscard]] int64_t operator()(int lane, int64_t i = 0) const {
    return values[static_cast<std::size_t>((by_lane ? lane * per : 0) + i)];
  }
};

/// One execution of an instruction.
struct Call {
  class Machine* machine = nullptr;
  const IssueCode* code = nullptr;
  int block = 0;  // in the grid
  int warp = 0;   // among all warps of the grid
  uint32_t lanes = all_lanes;
  uint32_t event = 0;  // in the log
  std::vector<Given> given;
  std::vector<uint8_t> taken;  // of an asynchronous one: what it has read
  TagBytes tags_taken;         // and the tags of it
};

/// What a diagnostic says of an executed instruction.
struct Event {
  int pc = 0;
  int warp = 0;
  uint32_t lanes = all_lanes;
  Frame frame;
};

/// An asynchronous operation, or a late arrival of cp.async.
struct Flight {
  Call call;
  uint64_t key = 0;  // the same in every run of the same schedule
  uint32_t component = 0;
  uint32_t clock = 0;  // of what it reads first; what it writes after a bulk read has clock + 1
  Knowledge knows;
  enum class Stage : uint8_t { started, read, done } stage = Stage::started;
  bool reads_first = false;      // its sources are free before it is complete
  bool wgmma = false;            // in the queue of its warp
  std::vector<uint32_t> phases;  // of the mbarriers that count its bytes, as it was issued
  std::vector<int> after;        // flights that it waits for
};

/// The lanes of a warp that go together.
struct Strand {
  enum class Status : uint8_t {
    moving,   // on its way to the next instruction that others may see
    ready,    // before it
    named,    // has come to a named barrier and waits for the others
    meeting,  // before an instruction of the whole warp, waits for its other lanes
    gone,     // ended, or part of another one
  };
  int id = 0;
  int warp = 0;
  uint32_t mask = all_lanes;
  int pc = 0;
  uint32_t component = 0;
  Knowledge knows;
  Frame frame;
  Status status = Status::gone;
  std::optional<Call> next;  // the visible instruction that it stands before
};

/// The registers of one declaration in one warp.
struct RegisterFile {
  bool declared = false;
  std::vector<uint8_t> bytes;  // lane by lane
  TagBytes tags;
  std::vector<uint32_t> has;      // of each element slot: lanes that have a value
  std::vector<uint32_t> locked;   // of each slot: the wgmma that last uses it, from 1
  std::vector<uint32_t> touched;  // of each slot: fences of wgmma before its last access, and 1
  std::vector<int> shape;         // of each slot: n of the last wgmma that accumulated there
};

/// wgmma's of a warp, in order.
struct Queue {
  uint32_t component = 0;
  uint32_t issued = 0, done = 0, seen = 0;  // seen: waited for
  std::vector<uint32_t> groups;             // the last wgmma of each
  std::vector<uint32_t> events;             // of each wgmma
  std::deque<int> flights;
  uint32_t fences = 0;
};

/// Groups of one thread's asynchronous copies.
struct Groups {
  std::vector<int> open;
  std::vector<std::vector<int>> closed;
};

struct Warp {
  int block = 0;
  int index = 0;      // in the block
  uint64_t role = 0;  // a number for its role in the block; 0: it has none
  std::vector<RegisterFile> registers;
  Queue queue;
  std::array<Groups, 32> bulk, copies;
  struct Party {
    uint32_t lanes = 0, component = 0;
    uint32_t flights = 0;  // that these lanes have issued
    /// How much of what they did together each lane has fenced towards the async proxy.
    std::array<uint32_t, 32> shared_fenced = {}, global_fenced = {};
  };
  std::vector<Party> parties;  // each set of lanes that went together once
  std::vector<int> strands;    // those that have not ended
  uint32_t ended = 0;          // lanes
  int64_t pool_registers = 0;  // a thread has now
  int cluster_arrivals = 0, cluster_waits = 0;
  uint32_t after_grids = 0;  // lanes that know that the grids before this one have ended
};

struct Barrier {
  bool live = false;
  int64_t count = 0, pending = 0, bytes = 0;
  uint32_t phase = 0;      // completed ones; the one under way has this number
  uint32_t component = 0;  // counts phases
  Knowledge arriving, arriving_cluster;
  Knowledge released, released_cluster;
  Mark made;                          // its initialization
  uint32_t fenced = 0;                // the clock of `made`'s party at the fence after it; 0: none
  std::optional<uint32_t> announced;  // counts that fence: who knows of it, knows of `made`
};

struct Named {
  int64_t expected = 0, arrived = 0;
  Knowledge arriving;
  std::vector<int> waiting;   // strands
  std::vector<int> arrivals;  // warps
  uint32_t last_event = 0;
};

struct ClusterBarrier {
  int arrived = 0;
  int generation = 0;
  Knowledge arriving, released;
};

struct Block {
  std::vector<uint8_t> shared;
  TagBytes tags;  // of shared memory
  Shadow shadow;
  std::vector<Barrier> barriers;
  std::array<Named, 16> named;
  int64_t pool = 0;  // registers that nobody has
  int running = 0;   // strands that have not ended
  bool ended = false;
  Knowledge last;  // of all that has ended
  /// Of its shared memory by others than its strands: over for who knows of `clock` of the
  /// component, or of `by_clock` of the party that made it, where one did.
  struct Use {
    uint32_t clock = 0, by_clock = 0, event = 0;
  };
  std::map<std::pair<uint32_t, uint32_t>, Use> use;  // by component and party
};

struct TensorState {
  std::vector<uint8_t> bytes;  // empty: the launch's, an input
  TagBytes tags;
  std::vector<TagId> elements;  // of an input: the tags of its elements
  Shadow shadow;
  std::vector<uint8_t> writes;  // of each element of an output
};

}  // namespace tessera::simulate
