// Barriers of shared memory: waits, arrivals, and bytes that are to come.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

const BarrierRef& self(const Call& c) {
  return *c.self->as<BarrierRef>();
}

/// A phase of the slot is over when `stages` turns more have begun; a barrier that starts complete
/// is one phase ahead.
Result<Value> wait(Call& c) {
  const BarrierRef& barrier = self(c);
  core::Builder& b = c.e.builder();
  Term parity;
  if (c.find("parity") != nullptr) {
    TESSERA_TRY(given, c.number("parity"));
    parity = given;
  } else if (!barrier.count) {
    return error(fail(wrong_ring, "nothing says which phase this barrier waits for")
                     .label(c.e.label(c.span))
                     .expect("a slot chosen by a turn of a ring, or `parity=`")
                     .but_found("a slot chosen by an integer")
                     .help("name the slot by the turn: `full[k].wait()`"));
  } else {
    const int64_t stages = b.kernel()[barrier.id].count;
    const Term phase = floor_div(barrier.count, stages);
    parity = floor_mod(c.e.complete_at_start(barrier.id) ? phase + 1 : phase, int64_t{2});
  }
  TESSERA_TRY(to, c.e.emit(c.span));
  to->issue("mbarrier.wait", {core::BarrierAt{barrier.id, barrier.slot}, core::Integers{{parity}}});
  return Value{};
}

/// One arrival of each warp that is here; of one thread, where one is. With `cluster` at the
/// barrier of each block of the cluster, which then gets as many from all of them. These tell of no
/// accesses of the threads' own, for a release in the cluster waits for all of memory; with
/// `release` the one at the block's own barrier does, which waits for nothing.
Result<Value> arrive(Call& c) {
  const BarrierRef barrier = self(c);
  TESSERA_TRY(everywhere, c.flag("cluster", false));
  TESSERA_TRY(release, c.flag("release", false));
  if (release && !everywhere)
    return error(fail(wrong_kind, "`release` is of arrivals in the whole cluster")
                     .label(c.e.label(c.span_of("release")))
                     .help("leave it out: an arrival in the block alone releases"));
  const int64_t blocks = everywhere ? c.e.builder().kernel().cluster : 1;
  TESSERA_CHECK(c.e.arrives(barrier.id, barrier.slot, c.span, blocks));
  TESSERA_TRY(b, c.e.emit(c.span));
  const auto issue = [&, b = b] {
    const core::BarrierAt at{barrier.id, barrier.slot};
    if (blocks == 1 || release) b->issue("mbarrier.arrive", {at});
    for (int64_t i = release ? 1 : 0; i < blocks && blocks > 1; ++i) {
      const Term block = release ? floor_mod(b->at().rank + i, blocks) : b->number(i);
      b->issue("mbarrier.arrive_at", {at, core::Integers{{block}}});
    }
  };
  if (c.e.threads().who == Threads::Who::all)
    b->elected(issue);
  else
    issue();
  return Value{};
}

Result<Value> expect(Call& c) {
  const BarrierRef barrier = self(c);
  const Threads& t = c.e.threads();
  if (t.who == Threads::Who::all)
    return error(fail(wrong_place, "one thread tells a barrier what to expect")
                     .label(c.e.label(c.span))
                     .but_found("{}", t.text())
                     .help("write it under `with one_thread():`"));
  int64_t bytes = 0;
  for (const Call::Bound& part : c.bound) {
    const auto* s = part.value.as<SharedRef>();
    if (s == nullptr)
      return error(fail(wrong_kind, "bytes are expected in shared memory")
                       .label(c.e.label(part.span, std::string(kind_of(part.value))))
                       .help("name the parts that are loaded: `full[k].expect(a[k], b[k])`"));
    int64_t n = size_of(c.e.builder().kernel()[s->id].element);
    for (int64_t e : s->extents) n *= e;
    bytes += n;
  }
  TESSERA_CHECK(c.e.arrives(barrier.id, barrier.slot, c.span));
  TESSERA_TRY(b, c.e.emit(c.span));
  b->issue("mbarrier.arrive_expect_tx",
           {core::BarrierAt{barrier.id, barrier.slot}, core::Integers{{b->number(bytes)}}});
  return Value{};
}

constexpr Builtin records[] = {
    {".barrier.wait", "parity=", "Waits until the turn's phase is complete", wait},
    {".barrier.arrive", "cluster=, release=",
     "One arrival of each warp, or of the one thread that is here, also in the cluster's others",
     arrive},
    {".barrier.expect", "*parts", "One arrival, and the bytes of these parts are to come", expect},
};

}  // namespace

namespace groups {
extern const Group barriers = {records};
}

}  // namespace tessera::language
