// Which threads execute: roles, single threads, and where threads meet.
#include <algorithm>

#include "language/elaborator.h"

namespace tessera::language {
namespace {

Result<Value> role(Call& c) {
  TESSERA_TRY(name, c.text("name", ""));
  TESSERA_TRY(groups, c.integer("warpgroups", 0));
  TESSERA_TRY(warps, c.integer("warps", 4 * groups));
  std::optional<int64_t> registers;
  if (const auto* text = c["registers"].as<std::string>(); text != nullptr && *text == "rest") {
    registers = rest_of_registers;
  } else if (c.find("registers") != nullptr) {
    TESSERA_TRY(n, c.integer("registers"));
    registers = n;
    if (n % 8 != 0 || n < 24 || n > 256)
      return error(fail(bad_constant, "a thread cannot have {} registers", n)
                       .label(c.e.label(c.span_of("registers")))
                       .expect("a multiple of 8 from 24 to 256, or \"rest\"")
                       .but_found("{}", n)
                       .help("write {}", std::clamp<int64_t>(n / 8 * 8, 24, 256)));
  }
  if (warps < 1 || warps > 32 || (groups > 0 && warps != 4 * groups))
    return error(fail(wrong_call, "role `{}` has no warps", name)
                     .label(c.e.label(c.span))
                     .expect("`warpgroups` of four warps each, or `warps`")
                     .but_found("warpgroups={}, warps={}", groups, warps)
                     .help("write `warpgroups=1`"));
  if (registers && warps % 4 != 0)
    return error(fail(wrong_call, "registers are given to whole warpgroups")
                     .label(c.e.label(c.span_of("registers")))
                     .expect("a multiple of four warps")
                     .but_found("{} warps", warps)
                     .help("leave `registers` out, or write `warpgroups=`"));
  const Span span = c.span;
  return Value{ScopeRef{[=](Elaborator& e, const std::function<Status()>& body) {
    return e.role(name, warps, registers, span, body);
  }}};
}

Result<Value> one_thread(Call& c) {
  TESSERA_TRY(of, c.text("of", "role"));
  if (of != "role" && of != "warpgroup" && of != "warp")
    return error(fail(wrong_call, "`one_thread` of `{}` is not known", of)
                     .label(c.e.label(c.span_of("of")))
                     .expect("\"role\", \"warpgroup\" or \"warp\"")
                     .but_found("\"{}\"", of)
                     .help("leave it out for one thread of the whole role"));
  const Span span = c.span;
  return Value{ScopeRef{[=](Elaborator& e, const std::function<Status()>& body) {
    return e.one_thread(of, span, body);
  }}};
}

/// All threads of the cluster, each of which comes here in its role.
Result<Value> sync_cluster(Call& c) {
  TESSERA_CHECK(c.e.may_issue(*arch::find_form("cluster.arrive"), c.span));
  TESSERA_TRY(b, c.e.emit(c.span));
  b->issue("cluster.arrive");
  b->issue("cluster.wait");
  return Value{};
}

Result<Value> sync(Call& c) {
  Elaborator& e = c.e;
  TESSERA_TRY(of, c.text("of", "role"));
  if (of == "cluster") return sync_cluster(c);
  if (of != "role" && of != "warpgroup")
    return error(fail(wrong_call, "`sync` of `{}` is not known", of)
                     .label(e.label(c.span_of("of")))
                     .expect("\"role\", \"warpgroup\" or \"cluster\"")
                     .help("leave it out for all threads of the role"));
  const arch::Form& form = *arch::find_form("barrier.sync");
  TESSERA_CHECK(e.may_issue(form, c.span));
  const bool group = of == "warpgroup";
  TESSERA_TRY(id, e.barrier_id(group, c.span));
  TESSERA_TRY(b, e.emit(c.span));
  const Threads& t = e.threads();
  const Term which = group && t.warps > 0 ? floor_div(t.warp, int64_t{4}) + id : b->number(id);
  const int threads = group ? 128 : t.role.empty() ? b->kernel().threads : 32 * t.warps;
  b->issue(form.name, {core::Integers{{which}}, core::Integers{{b->number(threads)}}});
  return Value{};
}

Result<Value> warp(Call& c) {
  return Value{c.e.threads().warp};
}
Result<Value> warpgroup(Call& c) {
  return Value{floor_div(c.e.threads().warp, int64_t{4})};
}
Result<Value> lane(Call& c) {
  return Value{c.e.builder().at().lane};
}
Result<Value> block(Call& c) {
  return Value{c.e.builder().at().block};
}
Result<Value> blocks(Call& c) {
  return Value{c.e.builder().at().blocks};
}
Result<Value> rank(Call& c) {
  return Value{c.e.builder().at().rank};
}

constexpr Builtin records[] = {
    {"role", "name, warpgroups=, warps=, registers=",
     "Warps that do one thing, with the registers that each thread has", role},
    {"one_thread", "of=", "One thread of the role, of each warpgroup, or of each warp", one_thread},
    {"sync", "of=",
     "All threads of the role, of the warpgroup or of the cluster wait for each other", sync},
    {"warp", "", "The warp's place in the role, or in the block", warp, true},
    {"warpgroup", "", "The warpgroup's place in the role, or in the block", warpgroup, true},
    {"lane", "", "The thread's place in the warp", lane, true},
    {"block", "", "The block's index in the grid", block, true},
    {"blocks", "", "The blocks of the launch", blocks, true},
    {"rank", "", "The block's place in the cluster", rank, true},
};

}  // namespace

namespace groups {
extern const Group scopes = {records};
}

}  // namespace tessera::language
