// Small pipelines with mistakes at random, for holding the checker to the interpreter.
//
// A producer fills the slots of a ring, one or two readers take them. What a person gets wrong in
// such a kernel is a member with its right value as default: counts, parities, slots, order, what
// is missing. A random pipeline has up to three of them wrong.
#pragma once

#include <cstdint>
#include <string>

#include "diag/result.h"

#include "core/kernel.h"

namespace tessera::agreement {

struct Pipeline {
  enum class Feed : uint8_t { stores, copies };  // of the warp's lanes; bulk copies of one lane
  enum class Release : uint8_t { after_read, before_read, a_turn_later, never };
  enum class Missing : uint8_t {
    nothing,
    wait_full,
    wait_empty,
    arrive_full,
    init_fence,
    init_sync
  };

  int64_t slots = 2;
  int readers = 1;  // roles of a warp each
  Feed feed = Feed::stores;
  bool tiles = false;   // the ring runs on over the turns of an outer loop
  bool resets = false;  // slot and phase begin anew at each turn of the outer loop
  int64_t least = 0;    // turns of the inner loop
  Missing missing = Missing::nothing;
  Release release = Release::after_read;
  bool signals_early = false;   // the producer arrives before it has stored
  int only_release = -1;        // the reader that alone releases; -1: each
  int64_t meeting_threads = 0;  // readers meet at a named barrier before they release; 0: no
  int64_t full_count_off = 0;   // from what arrives
  int64_t empty_count_off = 0;
  int64_t bytes_off = 0;        // expected, from what a copy brings
  bool expects_apart = false;   // before a copy, with the arrival after it
  int64_t producer_parity = 1;  // of the first wait
  int64_t reader_parity = 0;
  int64_t flips_after = 0;      // turns more than `slots` until a parity flips
  int64_t reader_slot = 0;      // from the right one: of the wait and the read
  int64_t release_slot = 0;     // of the arrival
  bool lanes_arrive = false;    // every lane of a reader arrives, and the count says so
  bool one_lane_waits = false;  // for a full slot, where all lanes read
  bool reads_fence = true;      // before slots that copies fill are released
  bool passes_on = false;       // the first reader copies what it reads on to global memory
  bool passes_fence = true;     // with a fence for the async proxy
  int64_t passes_pending = 0;   // copies that may still read as their buffer is written again
  bool passes_end = true;       // the last copies are awaited
};

/// Of this number; the same for every run and machine.
Pipeline random_pipeline(uint64_t seed);

/// The kernel: one block, with the inner loop's turns K as parameter, and the outer loop's T where
/// there is one. Errors: none that are not a fault of this file.
Result<core::Kernel> kernel_of(const Pipeline& p);

/// The members that are not as in Pipeline{}: "slots=3 release=before_read".
std::string text_of(const Pipeline& p);

}  // namespace tessera::agreement
