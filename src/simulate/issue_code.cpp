// An instruction with its arguments made ready: operands as expressions, and the names in its
// effects as places of operands.
#include <algorithm>
#include <stdexcept>

#include "arch/wgmma.h"

#include "core/operand.h"
#include "simulate/compile.h"
#include "simulate/domain.h"
#include "simulate/values.h"

namespace tessera::simulate {
namespace {

using Kind = OperandCode::Kind;

class Maker {
 public:
  Maker(const Program& program, const core::Issue& issue)
      : kernel_(program.kernel), program_(program), issue_(issue) {}

  Result<IssueCode> make() {
    const arch::Form& form = *issue_.form;
    code_.form = &form;
    code_.issue = &issue_;
    code_.semantics = semantics_of(form.name);
    if (code_.semantics == nullptr)
      return error(fail(not_executable, "`{}` has no meaning in the interpreter", form.name)
                       .help("add it to src/simulate/values_*.cpp"));
    if (program_.launch.residues && !Residues::have(form.name))
      return error(
          fail(not_executable, "`{}` computes with bits, which residues do not have", form.name)
              .help("run the kernel on numbers"));
    TESSERA_CHECK(arch::check(form, issue_.choices));
    if (issue_.arguments.size() != form.operands.size())
      return error(fail(not_executable, "`{}` has {} arguments", form.name, issue_.arguments.size())
                       .expect("{}", form.operands.size()));
    for (std::size_t i = 0; i < form.operands.size(); ++i)
      TESSERA_CHECK(operand(form.operands[i], issue_.arguments[i]));
    if (form.name.starts_with("wgmma.")) TESSERA_CHECK(product());
    effects();
    return std::move(code_);
  }

 private:
  Status terms(OperandCode& to, const std::vector<term::Term>& from) {
    for (term::Term t : from) {
      TESSERA_TRY(e, expression(program_, t));
      to.by_lane = to.by_lane || e.uses(kernel_.at.lane->symbol);
      to.at.push_back(std::move(e));
    }
    return {};
  }

  Status operand(const arch::Operand& form, const core::Argument& argument) {
    OperandCode o{.form = &form};
    if (const auto* s = std::get_if<core::SharedAt>(&argument)) {
      o.kind = Kind::shared;
      o.storage = s->shared.index;
      TESSERA_CHECK(terms(o, s->at));
    } else if (const auto* b = std::get_if<core::BarrierAt>(&argument)) {
      o.kind = Kind::barrier;
      o.storage = b->barriers.index;
      TESSERA_CHECK(terms(o, {b->slot}));
    } else if (const auto* g = std::get_if<core::GlobalAt>(&argument)) {
      o.kind = Kind::global;
      o.storage = g->tensor.index;
      TESSERA_CHECK(terms(o, g->at));
    } else if (const auto* m = std::get_if<core::MapRef>(&argument)) {
      o.kind = Kind::map;
      o.storage = m->map.index;
    } else if (const auto* r = std::get_if<core::Slice>(&argument)) {
      o.kind = Kind::registers;
      o.storage = r->registers.index;
      TESSERA_CHECK(terms(o, {r->first}));
      o.elements = elements(form, kernel_[r->registers]);
    } else {
      TESSERA_CHECK(terms(o, std::get<core::Integers>(argument).values));
    }
    code_.operands.push_back(std::move(o));
    return {};
  }

  /// Element slots that the operand's registers hold: a 16-bit register what is moved, others 32
  /// bits, those of 64 bits two registers.
  int64_t elements(const arch::Operand& form, const core::Registers& registers) {
    const int64_t count = arch::value_of(form.registers, issue_.choices).value_or(1);
    const int64_t size = size_of(registers.element);
    if (form.kind == arch::OperandKind::b16)
      return core::slots_of(*issue_.form, form, issue_.choices, registers.element).value_or(count);
    const int64_t bytes = form.kind == arch::OperandKind::b64 ? 8 : 4;
    return std::max<int64_t>(1, count * bytes / size);
  }

  Status product() {
    for (const arch::Wgmma& w : arch::wgmma_kinds()) {
      if (&w.form() != issue_.form) continue;
      code_.wgmma = w;
      code_.wgmma->n = arch::value_of(arch::Amount::modifier("n"), issue_.choices).value_or(0);
      for (const OperandCode& o : code_.operands)
        if (o.form->kind == arch::OperandKind::descriptor) TESSERA_CHECK(descriptor(o));
      const Layout sums = code_.wgmma->c_layout();
      for (int64_t e = 0; e < code_.wgmma->n / 2; ++e)
        for (int64_t lane = 0; lane < 32; ++lane)
          code_.sums.push_back(static_cast<int32_t>(sums(lane + 128 * e)));
    }
    return {};
  }

  /// Whether the operand is read with m or n contiguous, not k.
  bool transposed(const OperandCode& o) const {
    const std::string wanted = fmt::format("transpose_{}", o.form->name);
    for (std::size_t i = 0; i < issue_.arguments.size(); ++i) {
      const auto* given = std::get_if<core::Integers>(&issue_.arguments[i]);
      if (given != nullptr && issue_.form->operands[i].name == wanted)
        return given->values.front()->facts.constant().value_or(0) != 0;
    }
    return false;
  }

  /// A descriptor tells of rows that lie eight by eight, each as wide as the swizzle. The last two
  /// modes are m or n, and k, whichever is contiguous.
  Status descriptor(const OperandCode& o) {
    const core::Shared& s = kernel_.shared[o.storage];
    if (o.kind != Kind::shared || s.layout.rank() < 2)
      return error(fail(not_executable, "`{}` of `{}` is no matrix in shared memory", o.form->name,
                        issue_.form->name));
    const std::vector<Mode> modes = modes_of(s.layout);
    const bool by_k = !transposed(o);
    const Mode& last = by_k ? modes.back() : modes[modes.size() - 2];
    const Mode& rows = by_k ? modes[modes.size() - 2] : modes.back();
    const int64_t width = arch::width_of(s.swizzle) / size_of(s.element);
    for (int64_t i = 0; i < std::min<int64_t>(last.size, width); ++i)
      if (last(i) != i)
        return error(fail(not_executable, "mode {} of `{}` is not contiguous",
                          modes.size() - (by_k ? 1 : 2), s.name)
                         .expect("{} elements one after the other", width));
    for (int64_t i = 0; i < std::min<int64_t>(rows.size, 8); ++i)
      if (rows(i) != i * width)
        return error(fail(not_executable, "the rows of `{}` are {} elements apart", s.name, rows(1))
                         .expect("{}, the width of its swizzle", width));
    return {};
  }

  int place(std::string_view name) const {
    if (name.empty()) return -1;
    for (std::size_t i = 0; i < code_.operands.size(); ++i)
      if (code_.operands[i].form->name == name) return static_cast<int>(i);
    throw std::logic_error("no operand " + std::string(name) + " of " + issue_.form->name);
  }

  /// The value of an amount that no operand gives.
  int64_t fixed(const arch::Amount& a) const {
    if (a.of == arch::Amount::Of::box) {
      const int map = code_.operands[place(a.name)].storage;
      return program_.maps[map].bytes;
    }
    return arch::value_of(a, issue_.choices).value_or(0);
  }
  int amount_operand(const arch::Amount& a) const {
    return a.of == arch::Amount::Of::operand ? place(a.name) : -1;
  }

  void effects() {
    const arch::Effects& e = issue_.form->effects;
    code_.whole_warp = e.issuer == arch::Issuer::warp || e.issuer == arch::Issuer::warpgroup;
    code_.asynchronous = e.asynchronous();
    for (const arch::Access& a : e.accesses) {
      AccessCode made{.effect = &a,
                      .operand = place(a.operand),
                      .bytes = amount_operand(a.bytes),
                      .blocks = place(a.blocks),
                      .unless_zero = place(a.unless_zero),
                      .fixed_bytes = fixed(a.bytes)};
      if (a.place == arch::Place::rows)
        made.lanes = arch::value_of(a.lanes, issue_.choices).value_or(32);
      code_.accesses.push_back(made);
    }
    for (const arch::Event& v : e.events) {
      code_.events.push_back({.effect = &v,
                              .operand = place(v.operand),
                              .amount = amount_operand(v.amount),
                              .blocks = place(v.blocks),
                              .block = place(v.block),
                              .fixed = fixed(v.amount)});
      code_.visible = code_.visible || visible(v);
    }
    for (const arch::Need& n : e.needs) code_.needs.push_back({n.fence, place(n.operand)});
  }

  /// Commits concern the thread alone, and what happens with accesses is a step of its own.
  static bool visible(const arch::Event& e) {
    using arch::EventKind;
    if (e.verb == arch::Verb::awaits)
      return e.kind != EventKind::warp && e.kind != EventKind::prerequisites;
    return e.when == arch::When::at_once && e.kind != EventKind::cp_async_group &&
           e.kind != EventKind::bulk_group && e.kind != EventKind::wgmma_group &&
           e.kind != EventKind::dependents;
  }

  const core::Kernel& kernel_;
  const Program& program_;
  const core::Issue& issue_;
  IssueCode code_;
};

}  // namespace

int IssueCode::operand(std::string_view name) const {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].form->name == name) return static_cast<int>(i);
  throw std::logic_error("no operand " + std::string(name) + " of " + form->name);
}

Result<IssueCode> issue_code(const Program& program, const core::Issue& issue) {
  return Maker(program, issue).make();
}

}  // namespace tessera::simulate
