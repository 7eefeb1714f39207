#include "simulate/program.h"

#include <algorithm>
#include <set>

#include "core/walk.h"
#include "simulate/compile.h"

namespace tessera::simulate {
namespace {

using core::Body;
using core::Op;

/// The operands that a node of the DAG is a function of.
// NOLINTNEXTLINE(misc-no-recursion): functions nest
void made_of(const pointwise::Dag& dag, int node, std::set<int>& out) {
  const pointwise::Dag::Node& n = dag.nodes[node];
  if (n.kind == pointwise::Dag::Node::Kind::operand) out.insert(n.operand);
  for (const int a : n.arguments) made_of(dag, a, out);
}

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
    for (const int result : c.dag->results) {
      std::set<int> operands;
      made_of(*c.dag, result, operands);
      code.made_of.emplace_back(operands.begin(), operands.end());
    }
    p_.computes.push_back(std::move(code));
    emit({.kind = CodeKind::compute, .index = static_cast<int>(p_.computes.size()) - 1});
    return {};
  }

  Status one(const core::Tag& t) {
    if (const auto* tensor = std::get_if<core::GlobalAt>(&t.at)) {
      if (!t.value) return {};  // as it begins
      TensorTags tags{.name = tag_name(t.name)};
      for (term::Term s : tensor->at) tags.places.push_back(place(s));
      TESSERA_TRY(value, expression(p_, t.value));
      tags.value = std::move(value);
      p_.tensor_tags[tensor->tensor.index].push_back(std::move(tags));
      return {};
    }
    TagCode code{.says = &t, .name = tag_name(t.name)};
    TESSERA_TRY(at, tagged(t.at));
    code.at = std::move(at);
    if (t.value) {
      TESSERA_TRY(value, expression(p_, t.value));
      code.value = std::move(value);
    }
    return tags(std::move(code), t.over);
  }
  Status one(const core::AssertTag& a) {
    TagCode code{.asserts = &a, .name = tag_name(a.name)};
    TESSERA_TRY(at, tagged(a.at));
    code.at = std::move(at);
    if (const auto* other = std::get_if<core::Tagged>(&a.to)) {
      TESSERA_TRY(place, tagged(*other));
      code.other = std::move(place);
    } else {
      TESSERA_TRY(value, expression(p_, std::get<term::Term>(a.to)));
      code.value = std::move(value);
    }
    return tags(std::move(code), a.over);
  }
  int tag_name(const std::string& name) {
    const auto found = std::find(p_.tag_names.begin(), p_.tag_names.end(), name);
    if (found != p_.tag_names.end()) return static_cast<int>(found - p_.tag_names.begin());
    p_.tag_names.push_back(name);
    return static_cast<int>(p_.tag_names.size()) - 1;
  }
  Result<TagCode::At> tagged(const core::Tagged& t) {
    TagCode::At out;
    std::vector<term::Term> at;
    if (const auto* r = std::get_if<core::Slice>(&t)) {
      out.registers = true;
      out.storage = r->registers.index;
      at = {r->first};
    } else {
      const auto* s = std::get_if<core::SharedAt>(&t);
      if (s == nullptr) return error(fail(not_executable, "a tensor is asserted something of"));
      out.storage = s->shared.index;
      at = s->at;
    }
    for (term::Term one : at) {
      TESSERA_TRY(e, expression(p_, one));
      out.at.push_back(std::move(e));
    }
    return out;
  }
  /// Which symbols each side has, and whether lanes differ.
  Status tags(TagCode code, const std::vector<term::Term>& over) {
    const auto uses = [](const TagCode::At& at, const term::Symbol* s) {
      return std::any_of(at.at.begin(), at.at.end(),
                         [&](const Expression& e) { return e.uses(s); });
    };
    const auto other = [&](const term::Symbol* s) {
      return code.other ? uses(*code.other, s) : !code.value.empty() && code.value.uses(s);
    };
    const term::Symbol* lane = p_.kernel.at.lane->symbol;
    code.by_lane = code.at.registers || (code.other && code.other->registers) ||
                   uses(code.at, lane) || other(lane);
    for (term::Term t : over) {
      const TagCode::Symbol s{place(t), t->symbol->bounds.upper->facts.constant().value_or(1)};
      const bool a = uses(code.at, t->symbol), b = other(t->symbol);
      if (a || b) (a && b ? code.both : a ? code.here : code.there).push_back(s);
    }
    p_.tags.push_back(std::move(code));
    emit({.kind = CodeKind::tags, .index = static_cast<int>(p_.tags.size()) - 1});
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
  p.tensor_tags.resize(p.kernel.tensors.size());
  Flattener f(p);
  TESSERA_CHECK(f.body(p.kernel.body));
  f.emit({.kind = CodeKind::end});
  p.shared_unit = unit_of(p.issues);
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace tessera::simulate
