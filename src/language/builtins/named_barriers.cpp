// Named barriers, where warps of a block meet or pass a turn on.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

Result<Value> named_barrier(Call& c) {
  TESSERA_TRY(count, c.integer("count"));
  TESSERA_TRY(threads, c.integer("threads"));
  if (threads < 32 || threads % 32 != 0 || threads > 1024)
    return error(fail(bad_constant, "{} threads cannot meet at a named barrier", threads)
                     .label(c.e.label(c.span_of("threads")))
                     .expect("whole warps: a multiple of 32, at most 1024")
                     .but_found("{}", threads)
                     .help("count those that wait and those that arrive"));
  TESSERA_TRY(first, c.e.named_barriers(count, c.span));
  return Value{NamedRef{c.e.builder().number(first), count, threads}};
}

Result<Value> issue(Call& c, const char* form) {
  const auto& at = *c.self->as<NamedRef>();
  TESSERA_CHECK(c.e.may_issue(*arch::find_form(form), c.span));
  TESSERA_TRY(b, c.e.emit(c.span));
  b->issue(form, {core::Integers{{at.first}}, core::Integers{{b->number(at.threads)}}});
  return Value{};
}
Result<Value> wait(Call& c) {
  return issue(c, "barrier.sync");
}
Result<Value> arrive(Call& c) {
  return issue(c, "barrier.arrive");
}

constexpr Builtin records[] = {
    {"named_barrier", "count, threads",
     "Named barriers of the block, each of whose turns so many threads come to", named_barrier},
    {".named.wait", "", "Comes to the barrier's turn and waits for all others", wait},
    {".named.arrive", "", "Comes to the barrier's turn and goes on", arrive},
};

}  // namespace

namespace groups {
extern const Group named_barriers = {records};
}

}  // namespace tessera::language
