// Registers: declared where they are used, slices and runs inside of them, at whole registers.
#include <algorithm>

#include "core/operand.h"
#include "core/print.h"
#include "core/verifier.h"

namespace tessera::core {
namespace {

constexpr int64_t most_elements = int64_t{1} << 31;

bool usable(const Site& site, RegistersId id, Span span) {
  if (site.is_declared(id)) return true;
  const Registers& r = site.kernel[id];
  Diagnostic d = fail(bad_registers, "`{}` is not declared here", r.name)
                     .expect("a declaration above, in this body or around it{}",
                             site.role == nullptr ? "" : ", by the threads of the same role");
  if (site.role != nullptr)
    d.helps.push_back(
        fmt::format("declare it in role `{}`: registers belong to the threads that "
                    "declare them together",
                    site.role->name));
  site.report(std::move(d), span);
  return false;
}

/// The values of a first slot; nothing, and a report, where it is not known before the kernel runs.
std::optional<std::vector<int64_t>> firsts(const Site& site, const Registers& r, Term first,
                                           Span span) {
  if (!site.known(first, span)) return std::nullopt;
  auto values = site.values(first);
  if (!values)
    site.report(fail(bad_registers, "the slot of `{}` is not known before the kernel runs", r.name)
                    .expect("constants and counters of unrolled loops")
                    .but_found("`{}`", term::to_string(first))
                    .help("unroll the loop, or keep what is indexed in shared memory"),
                span);
  return values;
}

bool inside(const Site& site, const Registers& r, int64_t first, int64_t last, Span span) {
  if (first >= 0 && last < r.slots()) return true;
  site.report(fail(bad_registers, "slots of `{}` lie outside", r.name)
                  .expect("0 to {}", r.slots() - 1)
                  .but_found("{} to {}", first, last),
              span);
  return false;
}

void verify_run(const Site& site, const Run& run, int64_t count) {
  const Span span = site.op->span;
  if (!usable(site, run.registers, span)) return;
  const Registers& r = site.kernel[run.registers];
  if (run.steps.size() != count)
    return site.report(fail(bad_registers, "a run of `{}` has the wrong number of elements", r.name)
                           .expect("{}, the count", count)
                           .but_found("{}: \"{}\"", run.steps.size(), to_string(run.steps)));
  const auto values = firsts(site, r, run.first, span);
  if (!values) return;
  for (const int64_t v : *values)
    if (!inside(site, r, v, v + run.steps.cosize() - 1, span)) return;
}

}  // namespace

std::optional<std::vector<int64_t>> verify_slots(const Site& site, RegistersId id, Term first,
                                                 Span span) {
  if (!usable(site, id, span)) return std::nullopt;
  auto values = firsts(site, site.kernel[id], first, span);
  if (!values || values->empty()) return values;
  if (!inside(site, site.kernel[id], values->front(), values->back(), span)) return std::nullopt;
  return values;
}

void verify_declared(const Site& site, RegistersId id) {
  const Kernel& k = site.kernel;
  const Registers& r = k[id];
  const auto wrong = [&](std::string_view what) {
    return fail(bad_registers, "`{}` {}", r.name, what);
  };
  const auto named = [&](const auto& all) {
    return std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.name == r.name; });
  };
  bool taken = named(k.tensors) || named(k.maps) || named(k.shared) || named(k.barriers) ||
               k.constants.count(r.name) > 0;
  for (const RegistersId other : site.declared) taken = taken || k[other].name == r.name;
  for (const For* f : site.loops) taken = taken || f->counter->symbol->name == r.name;
  if (taken || !is_name(r.name))
    site.report(wrong("is no free name here").expect("a name that nothing here has"), r.span);
  int64_t elements = 1;
  for (const int64_t e : r.tile)
    elements = std::min(elements * std::max<int64_t>(e, 1), most_elements);
  if (std::any_of(r.tile.begin(), r.tile.end(), [](int64_t e) { return e < 1; }))
    return site.report(wrong("has a tile without elements").expect("extents of at least 1"),
                       r.span);
  if (r.layout.rank() != 2)
    return site.report(wrong("has a layout without two modes")
                           .expect("two modes: (threads, element slots)")
                           .but_found("\"{}\"", to_string(r.layout)),
                       r.span);
  if (r.layout.mode(0).size() != site.threads())
    return site.report(
        wrong("is laid out over the wrong number of threads")
            .expect("{}, the threads of {}", site.threads(),
                    site.role == nullptr ? "the block" : "role `" + site.role->name + "`")
            .but_found("{}", r.layout.mode(0).size()),
        r.span);
  const int64_t registers = (r.slots() + r.per_register() - 1) / r.per_register();
  if (registers > site.arch.max_registers_per_thread)
    return site.report(wrong("has more registers than a thread")
                           .expect("at most {}", site.arch.max_registers_per_thread)
                           .but_found("{}", registers),
                       r.span);
  if (r.layout.cosize() > elements)
    return site.report(wrong("holds elements outside of its tile")
                           .expect("elements 0 to {}", elements - 1)
                           .but_found("element {}", r.layout.cosize() - 1),
                       r.span);
}

bool verify_slice(const Issued& i, std::size_t operand, const Slice& s) {
  const Span span = i.span(operand);
  const arch::Operand& o = i.form().operands[operand];
  if (!usable(i.site, s.registers, span)) return false;
  const Registers& r = i.site.kernel[s.registers];
  const Result<int64_t> slots = slots_of(i.form(), o, i.issue.choices, r.element);
  if (!slots) {
    i.site.report(slots.error(), span);
    return false;
  }
  const auto values = firsts(i.site, r, s.first, span);
  if (!values) return false;
  const bool whole = o.kind == arch::OperandKind::b32;
  for (const int64_t v : *values) {
    if (!inside(i.site, r, v, v + *slots - 1, span)) return false;
    if (whole && v % r.per_register() != 0) {
      i.site.report(
          fail(bad_registers, "`{}` of `{}` begins within a register", o.name, i.form().name)
              .expect("a multiple of {} slots of `{}`", r.per_register(), r.name)
              .but_found("slot {}", v),
          span);
      return false;
    }
  }
  return true;
}

void verify_compute(const Site& outside, const Compute& c) {
  Site site = outside;
  site.compute = &c;
  const Span span = site.op->span;
  if (c.dag == nullptr || c.results.empty() || c.dag->results.size() != c.results.size() ||
      c.dag->operand_count() > static_cast<int>(c.inputs.size()) || c.count < 1)
    return site.report(fail(bad_registers, "a computation's function does not fit its runs")
                           .expect("an input a parameter, a run of registers a result")
                           .but_found("{} inputs, {} runs", c.inputs.size(), c.results.size()));
  if (c.element) {
    const term::Symbol* e = c.element->symbol;
    if (e == nullptr || e->kind != term::Op::coordinate ||
        e->bounds.upper != site.pool().constant(c.count))
      return site.report(
          fail(bad_registers, "a computation's element is no coordinate of its count")
              .expect("a coordinate of {} values", c.count));
  }
  for (const auto& input : c.inputs) {
    if (const auto* run = std::get_if<Run>(&input))
      verify_run(site, *run, c.count);
    else if (const Term t = std::get<Term>(input); t)
      site.known(t, span, t->predicate());
  }
  for (const Run& run : c.results) verify_run(site, run, c.count);
}

}  // namespace tessera::core
