#include "agreement/pipeline.h"

#include <fmt/format.h>
#include <random>

#include "core/builder.h"

namespace tessera::agreement {
namespace {

using core::BarrierAt;
using core::Builder;
using core::Integers;
using core::SharedAt;
using core::Term;
using Feed = Pipeline::Feed;
using Missing = Pipeline::Missing;
using Release = Pipeline::Release;

constexpr int64_t bytes = 128;  // of a slot: 4 of each lane
constexpr int64_t places = 16;  // of what is passed on; more turns than the interpreter is given

class Writer {
 public:
  explicit Writer(const Pipeline& p) : p_(p), b_("pipeline", 32 * (1 + p.readers)) {}

  Result<core::Kernel> write() {
    turns_ = b_.parameter("K", p_.least, 1 << 20);
    if (p_.tiles) tiles_ = b_.parameter("T", 0, 1 << 20);
    x_ = vector("x", b_.number(32), core::Access::input);
    if (p_.passes_on) y_ = vector("y", b_.number(places * 32), core::Access::workspace);
    ring_ = b_.shared("ring", DType::float32, rows(p_.slots));
    if (p_.passes_on) buffer_ = b_.shared("buffer", DType::float32, rows(2));
    full_ = b_.barriers("full", p_.slots);
    empty_ = b_.barriers("empty", p_.slots);
    b_.kernel().grid = b_.number(1);
    setup();
    b_.role("producer", 0, 1, [&](Term) { produce(); });
    for (int r = 0; r < p_.readers; ++r)
      b_.role(fmt::format("reader{}", r), 1 + r, 1, [&](Term) { read(r); });
    return b_.finish();
  }

 private:
  static Layout rows(int64_t n) { return {IntTuple::flat({n, 32}), IntTuple::flat({32, 1})}; }
  Integers number(int64_t n) { return {{b_.number(n)}}; }
  core::TensorId vector(const std::string& name, Term extent, core::Access access) {
    return b_.tensor({name, DType::float32, {extent}, {b_.number(1)}, access});
  }
  core::RegistersId registers(const std::string& name) {
    return b_.registers(name, DType::float32, {32},
                        {IntTuple::flat({32, 1}), IntTuple::flat({1, 32})});
  }

  void setup() {
    const int64_t each = p_.lanes_arrive ? 32 : 1;
    const int64_t releasing = p_.only_release >= 0 ? 1 : p_.readers;
    b_.when(equals(b_.at().warp, b_.number(0)), [&] {
      b_.elected([&] {
        b_.unrolled("i", p_.slots, [&](Term i) {
          b_.issue("mbarrier.init", {BarrierAt{full_, i}, number(1 + p_.full_count_off)});
          b_.issue("mbarrier.init",
                   {BarrierAt{empty_, i}, number(releasing * each + p_.empty_count_off)});
        });
        if (p_.missing != Missing::init_fence) b_.issue("fence.mbarrier_init");
      });
    });
    if (p_.missing != Missing::init_sync)
      b_.issue("barrier.sync", {number(0), number(b_.kernel().threads)});
  }

  /// body(count, k) for every turn: `count` are the turns before it, as the ring counts them.
  /// `after` has the count behind the last of them, after each run of the inner loop.
  void turns(
      const std::function<void(Term, Term)>& body,
      const std::function<void(Term)>& after = [](Term) {}) {
    const auto inner = [&](Term before) {
      b_.loop("k", b_.number(0), turns_, b_.number(1), [&](Term k) { body(before + k, k); });
      after(before + turns_);
    };
    if (!p_.tiles) return inner(b_.number(0));
    b_.loop("t", b_.number(0), tiles_, b_.number(1),
            [&](Term t) { inner(p_.resets ? b_.number(0) : t * turns_); });
  }
  Term slot(Term count, int64_t off = 0) { return floor_mod(count + off, p_.slots); }
  Integers parity(Term count, int64_t first) {
    return {{floor_mod(floor_div(count, p_.slots + p_.flips_after) + first, 2)}};
  }
  void arrive(core::BarriersId barriers, Term at, bool all_lanes = false) {
    const auto one = [&] { b_.issue("mbarrier.arrive", {BarrierAt{barriers, at}}); };
    all_lanes ? one() : b_.elected(one);
  }

  void produce() {
    if (p_.feed == Feed::copies)
      return b_.elected([&] { turns([&](Term count, Term) { copy(count); }); });
    const core::RegistersId v = registers("v");
    auto dag = std::make_shared<pointwise::Dag>();
    dag->results = {dag->add_operand(0)};
    turns([&](Term count, Term) {
      wait_empty(count);
      const bool signals = p_.missing != Missing::arrive_full;
      if (signals && p_.signals_early) arrive(full_, slot(count));
      b_.compute({dag, {b_.at().lane}, {core::Run{v, b_.number(0), Layout(1, 1)}}, 1, {}});
      b_.issue("store.shared.4",
               {SharedAt{ring_, {slot(count), b_.at().lane}}, core::Slice{v, b_.number(0)}});
      if (signals && !p_.signals_early) arrive(full_, slot(count));
    });
  }
  void copy(Term count) {
    wait_empty(count);
    const bool arrives = p_.missing != Missing::arrive_full;
    const BarrierAt full{full_, slot(count)};
    const Integers expected = number(bytes + p_.bytes_off);
    const auto expect = [&] {
      if (arrives) b_.issue("mbarrier.arrive_expect_tx", {full, expected});
    };
    const auto arrive = [&] {
      if (arrives) b_.issue("mbarrier.arrive", {full});
    };
    // To expect bytes after the copy was issued is allowed within the phase.
    if (p_.expects_apart) {
      if (p_.signals_early) arrive();
      b_.issue("mbarrier.expect_tx", {full, expected});
    } else if (!p_.signals_early) {
      expect();
    }
    b_.issue("bulk.load", {SharedAt{ring_, {slot(count), b_.number(0)}},
                           core::GlobalAt{x_, {b_.number(0)}}, number(bytes), full});
    if (p_.expects_apart && !p_.signals_early) arrive();
    if (!p_.expects_apart && p_.signals_early) expect();
  }
  void wait_empty(Term count) {
    if (p_.missing != Missing::wait_empty)
      b_.issue("mbarrier.wait",
               {BarrierAt{empty_, slot(count)}, parity(count, p_.producer_parity)});
  }

  void read(int reader) {
    const core::RegistersId w = registers("w");
    const bool passes = p_.passes_on && reader == 0;
    const bool later = p_.release == Release::a_turn_later;
    turns(
        [&](Term count, Term k) {
          take(w, reader, count);
          if (later) b_.when(less(b_.number(0), k), [&] { release(reader, count - 1); });
          if (passes) pass_on(w, count);
        },
        [&](Term count) {
          const auto last = [&] { release(reader, count - 1); };
          if (later && p_.least == 0) b_.when(less(b_.number(0), turns_), last);
          if (later && p_.least > 0) last();
        });
    if (passes && p_.passes_end) b_.elected([&] { b_.issue("bulk.wait_read", {number(0)}); });
  }
  void take(core::RegistersId w, int reader, Term count) {
    const Term at = slot(count, p_.reader_slot);
    const auto wait = [&] {
      b_.issue("mbarrier.wait", {BarrierAt{full_, at}, parity(count, p_.reader_parity)});
    };
    if (p_.missing != Missing::wait_full) p_.one_lane_waits ? b_.elected(wait) : wait();
    if (p_.release == Release::before_read) release(reader, count);
    b_.issue("load.shared.4", {core::Slice{w, b_.number(0)}, SharedAt{ring_, {at, b_.at().lane}}});
    if (p_.meeting_threads > 0) b_.issue("barrier.sync", {number(1), number(p_.meeting_threads)});
    if (p_.release == Release::after_read) release(reader, count);
  }
  void release(int reader, Term count) {
    if (p_.only_release < 0 || p_.only_release == reader)
      arrive(empty_, slot(count, p_.release_slot), p_.lanes_arrive);
  }
  /// Through one of two buffers, in turn.
  void pass_on(core::RegistersId w, Term count) {
    b_.elected([&] { b_.issue("bulk.wait_read", {number(p_.passes_pending)}); });
    b_.issue("warp.sync", {number(-1)});
    b_.issue("store.shared.4", {SharedAt{buffer_, {floor_mod(count, 2), b_.at().lane}},
                                core::Slice{w, b_.number(0)}});
    if (p_.passes_fence) b_.issue("fence.async.shared::cta");
    b_.issue("warp.sync", {number(-1)});
    b_.elected([&] {
      b_.issue("bulk.store",
               {core::GlobalAt{y_, {floor_mod(count, places) * 32}},
                SharedAt{buffer_, {floor_mod(count, 2), b_.number(0)}}, number(bytes)});
      b_.issue("bulk.commit");
    });
  }

  const Pipeline& p_;
  Builder b_;
  Term turns_, tiles_;
  core::TensorId x_, y_;
  core::SharedId ring_, buffer_;
  core::BarriersId full_, empty_;
};

/// A member that is wrong, or of a right pipeline one that is written otherwise.
void mistake_in_data(Pipeline& p, std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  switch (below(9)) {
    case 0:
      p.release = below(2) == 0 ? Release::before_read : Release::never;
      break;
    case 1:
      p.signals_early = true;
      break;
    case 2:
      p.reader_slot = 1;
      break;
    case 3:
      p.release_slot = below(2) + 1;
      break;
    case 4:
      p.one_lane_waits = true;
      break;
    case 5:
      p.passes_fence = false;
      break;
    case 6:
      p.reads_fence = false;
      break;
    case 7:
      p.passes_end = false;
      break;
    default:
      p.passes_pending = 2;
  }
}

/// The same, of barriers.
void mistake(Pipeline& p, std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  const auto off = [&] { return below(2) == 0 ? -1 : 1; };
  switch (below(18)) {
    case 0:
      p.missing = static_cast<Missing>(1 + below(5));
      break;
    case 1:
      p.only_release = static_cast<int>(below(p.readers));
      break;
    // Of one warp alone several warps may have a barrier, each for itself, which the checker
    // refutes.
    case 2:
      p.meeting_threads = 32 * (p.meeting_threads == 0 ? p.readers : p.readers + below(2));
      break;
    case 3:
      p.full_count_off = below(2);
      break;
    // Of lanes, half of them or as many more: what is a lane off shows after too many turns.
    case 4:
      p.empty_count_off = p.lanes_arrive ? 16 * p.readers * off() : p.readers == 1 ? 1 : off();
      break;
    case 5:
      p.bytes_off = int64_t{16} * off();
      break;
    case 6:
      p.producer_parity = 0;
      break;
    case 7:
      p.reader_parity = 1;
      break;
    case 8:
      p.flips_after = p.slots == 1 ? 1 : off();
      break;
    case 9:
      p.resets = true;
      break;
    default:
      mistake_in_data(p, random);
  }
}

struct Member {
  const char* name;
  int64_t (*of)(const Pipeline& p);
};
#define MEMBER(name)                                                      \
  Member {                                                                \
    #name, [](const Pipeline& p) { return static_cast<int64_t>(p.name); } \
  }
constexpr Member members[] = {
    MEMBER(slots),           MEMBER(readers),         MEMBER(feed),
    MEMBER(tiles),           MEMBER(resets),          MEMBER(least),
    MEMBER(missing),         MEMBER(release),         MEMBER(signals_early),
    MEMBER(only_release),    MEMBER(meeting_threads), MEMBER(full_count_off),
    MEMBER(empty_count_off), MEMBER(bytes_off),       MEMBER(expects_apart),
    MEMBER(producer_parity), MEMBER(reader_parity),   MEMBER(flips_after),
    MEMBER(reader_slot),     MEMBER(release_slot),    MEMBER(lanes_arrive),
    MEMBER(one_lane_waits),  MEMBER(reads_fence),     MEMBER(passes_on),
    MEMBER(passes_fence),    MEMBER(passes_pending),  MEMBER(passes_end)};
#undef MEMBER

}  // namespace

Pipeline random_pipeline(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  Pipeline p;
  p.slots = 1 + below(3);
  p.readers = static_cast<int>(1 + below(2));
  p.feed = below(2) == 0 ? Feed::stores : Feed::copies;
  p.tiles = below(2) == 0;
  p.least = below(2);
  p.lanes_arrive = below(4) == 0;
  p.expects_apart = below(3) == 0;
  p.passes_on = below(3) == 0;
  p.passes_pending = below(2);
  if (below(3) == 0) {
    p.release = Release::a_turn_later;
    p.least = below(8) == 0 ? 0 : 1;  // with 0 the last release has a condition, on K
  }
  if (below(3) == 0) p.meeting_threads = int64_t{32} * p.readers;
  for (int64_t mistakes = std::max<int64_t>(below(6) - 2, 0); mistakes > 0; --mistakes)
    mistake(p, random);
  return p;
}

Result<core::Kernel> kernel_of(const Pipeline& p) {
  return Writer(p).write();
}

std::string text_of(const Pipeline& p) {
  std::string out;
  for (const Member& m : members)
    if (m.of(p) != m.of(Pipeline{})) out += fmt::format(" {}={}", m.name, m.of(p));
  return out.empty() ? "as it should be" : out.substr(1);
}

}  // namespace tessera::agreement
