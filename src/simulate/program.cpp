#include "simulate/program.h"

#include <algorithm>

#include "core/walk.h"
#include "simulate/compile.h"

namespace tessera::simulate {
namespace {

using core::Body;
using core::Op;

class Flattener {
 public:
  explicit Flattener(Program& program) : p_(program) {}

  Status body(const Body& ops) {
    for (const Op& op : ops) {
      op_ = &op;
      TESSERA_CHECK(std::visit([&](const auto& node) { return one(node); }, op.node));
    }
    return {};
  }
  int emit(Instruction i) {
    i.op = op_;
    i.scope = scope_;
    p_.code.push_back(std::move(i));
    return static_cast<int>(p_.code.size()) - 1;
  }

 private:
  [[nodiscard]] int here() const { return static_cast<int>(p_.code.size()); }
  static int place(term::Term t) { return t->symbol->index; }
  [[nodiscard]] bool by_lane(const Expression& e) const {
    return e.uses(p_.kernel.at.lane->symbol);
  }

  Status one(const core::Issue& issue) {
    TESSERA_TRY(code, issue_code(p_, issue));
    p_.issues.push_back(std::move(code));
    emit({.kind = CodeKind::issue, .index = static_cast<int>(p_.issues.size()) - 1});
    return {};
  }

  Result<RunCode> run(const core::Run& r, int64_t count) {
    TESSERA_TRY(first, expression(p_, r.first));
    RunCode out{r.registers.index, std::move(first), {}};
    if (r.steps.size() < count)
      return error(
          fail(not_executable, "a run of {} elements has {} steps", count, r.steps.size()));
    for (int64_t e = 0; e < count; ++e) out.steps.push_back(r.steps(e));
    return out;
  }
  Status one(const core::Compute& c) {
    ComputeCode code{.compute = &c};
    if (c.element) code.element = place(c.element);
    for (const auto& input : c.inputs) {
      if (const auto* r = std::get_if<core::Run>(&input)) {
        TESSERA_TRY(made, run(*r, c.count));
        code.inputs.emplace_back(std::move(made));
      } else {
        TESSERA_TRY(made, expression(p_, std::get<term::Term>(input)));
        code.inputs.emplace_back(std::move(made));
      }
    }
    for (const core::Run& r : c.results) {
      TESSERA_TRY(made, run(r, c.count));
      code.results.push_back(std::move(made));
    }
    p_.computes.push_back(std::move(code));
    emit({.kind = CodeKind::compute, .index = static_cast<int>(p_.computes.size()) - 1});
    return {};
  }

  Status one(const core::Declare& d) {
    emit({.kind = CodeKind::declare, .index = d.registers.index});
    return {};
  }

  Status one(const core::For& loop) {
    const Op* const op = op_;
    TESSERA_TRY(lower, expression(p_, loop.lower));
    TESSERA_TRY(more, expression(p_, term::less(loop.counter, loop.upper)));
    TESSERA_TRY(step, expression(p_, loop.step));
    if (by_lane(lower) || by_lane(step))
      return error(fail(not_executable, "the counter of loop `{}` differs among lanes",
                        loop.counter->symbol->name)
                       .help("let the lanes share the loop, and add what is theirs within"));
    emit({.kind = CodeKind::set, .place = place(loop.counter), .value = std::move(lower)});
    for (const core::Carried& c : loop.carried) {
      TESSERA_TRY(zero, expression(p_, p_.kernel.pool->constant(0)));
      emit({.kind = CodeKind::set, .place = place(c.symbol), .value = std::move(zero)});
    }
    const bool varies = by_lane(more);
    const int test = emit({.kind = CodeKind::branch,
                           .place = place(loop.counter),
                           .value = std::move(more),
                           .by_lane = varies});
    const int outside = scope_;
    LoopScope within = p_.scopes[scope_];
    within.emplace_back(loop.counter->symbol->name, place(loop.counter));
    for (const core::Carried& c : loop.carried)
      within.emplace_back(c.symbol->symbol->name, place(c.symbol));
    p_.scopes.push_back(std::move(within));
    scope_ = static_cast<int>(p_.scopes.size()) - 1;
    TESSERA_CHECK(body(loop.body));
    op_ = op;
    for (const core::Carried& c : loop.carried) {
      TESSERA_TRY(sum, expression(p_, c.symbol + c.amount));
      if (by_lane(sum))
        return error(fail(not_executable, "the sum `{}` over turns differs among lanes",
                          c.symbol->symbol->name)
                         .help("let the lanes share the loop, and add what is theirs within"));
      emit({.kind = CodeKind::set, .place = place(c.symbol), .value = std::move(sum)});
    }
    scope_ = outside;
    op_ = op;
    emit({.kind = CodeKind::next,
          .target = test,
          .place = place(loop.counter),
          .value = std::move(step)});
    p_.code[test].target = here();
    return {};
  }

  Status one(const core::If& choice) {
    TESSERA_TRY(condition, expression(p_, choice.condition));
    const bool varies = by_lane(condition);
    const int test =
        emit({.kind = CodeKind::branch, .value = std::move(condition), .by_lane = varies});
    TESSERA_CHECK(body(choice.body));
    if (choice.otherwise.empty()) {
      p_.code[test].target = here();
      return {};
    }
    const int over = emit({.kind = CodeKind::jump});
    p_.code[test].target = here();
    TESSERA_CHECK(body(choice.otherwise));
    p_.code[over].target = here();
    return {};
  }

  Status one(const core::Elected& e) {
    const int elect = emit({.kind = CodeKind::elect});
    TESSERA_CHECK(body(e.body));
    p_.code[elect].target = here();
    return {};
  }

  Status one(const core::Role& r) {
    const int role = emit(
        {.kind = CodeKind::role, .place = place(r.warp), .first = r.first_warp, .count = r.warps});
    TESSERA_CHECK(body(r.body));
    p_.code[role].target = here();
    return {};
  }

  Program& p_;
  const Op* op_ = nullptr;
  int scope_ = 0;
};

/// The greatest power of two up to 16 that divides what every instruction touches of shared memory.
int64_t unit_of(const std::vector<IssueCode>& issues) {
  int64_t unit = 16;
  for (const IssueCode& i : issues)
    for (const AccessCode& a : i.accesses) {
      if (a.effect->space != arch::Space::shared && a.effect->space != arch::Space::cluster_shared)
        continue;
      const bool barrier =
          a.operand >= 0 && i.operands[a.operand].kind == OperandCode::Kind::barrier;
      if (barrier || a.fixed_bytes == 0) continue;  // operands of bytes are multiples of 16
      while (a.fixed_bytes % unit != 0) unit /= 2;
    }
  return unit;
}

}  // namespace

std::vector<Mode> modes_of(const Layout& layout) {
  std::vector<Mode> out;
  for (int i = 0; i < layout.rank(); ++i) {
    const Layout mode = layout.mode(i);
    Mode m{.size = mode.size()};
    if (mode.shape().is_leaf)
      m.stride = mode.stride().value;
    else
      for (int64_t c = 0; c < m.size; ++c) m.offsets.push_back(mode(c));
    out.push_back(std::move(m));
  }
  return out;
}

Result<Expression> expression(const Program& p, term::Term t) {
  std::optional<Expression> e = Expression::compile(t);
  if (!e)
    return error(fail(not_executable, "`{}` reads a memory within an index", to_string(t))
                     .expect("state in storages alone"));
  for (const term::Symbol* s : e->symbols())
    if (static_cast<std::size_t>(s->index) >= p.frame.size())
      return error(fail(not_executable, "nothing gives `{}` a value", s->name));
  return std::move(*e);
}

Result<std::shared_ptr<const Program>> compile(const core::Kernel& kernel, const Launch& launch) {
  auto program = std::make_shared<Program>();
  Program& p = *program;
  p.kernel = kernel;
  p.launch = launch;
  try {
    TESSERA_CHECK(bind(p));
  } catch (const Overflow&) {
    return error(fail(not_executable, "a size of the launch does not fit 64 bits"));
  }
  p.early = core::waits_for_grids(p.kernel);
  for (const core::Shared& s : p.kernel.shared) p.shared.push_back(modes_of(s.layout));
  for (const core::Registers& r : p.kernel.registers) p.slots.push_back(r.slots());
  for (const core::Barriers& b : p.kernel.barriers) {
    p.first_barrier.push_back(p.barriers);
    const int64_t end = b.at + 8 * b.count;
    p.barriers_begin = p.barriers == 0 ? b.at : std::min(p.barriers_begin, b.at);
    p.barriers_end = std::max(p.barriers_end, end);
    p.barriers += static_cast<int>(b.count);
  }
  Flattener f(p);
  TESSERA_CHECK(f.body(p.kernel.body));
  f.emit({.kind = CodeKind::end});
  p.shared_unit = unit_of(p.issues);
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace tessera::simulate
