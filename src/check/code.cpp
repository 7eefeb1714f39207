#include "check/code.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "check/masked.h"
#include "check/place.h"
#include "core/operand.h"
#include "core/walk.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using core::Op;

/// Whether a run needs the values of this operand: those of tensors and maps it does not.
bool needed(const arch::Form& form, std::string_view operand) {
  const auto amount = [&](const arch::Amount& a) {
    return a.of == arch::Amount::Of::operand && a.name == operand;
  };
  const arch::Effects& e = form.effects;
  return operand == "count" || operand == "accumulate" || operand == "transpose_a" ||
         operand == "transpose_b" ||
         std::any_of(e.events.begin(), e.events.end(),
                     [&](const auto& x) {
                       return x.operand == operand || x.blocks == operand || x.block == operand ||
                              amount(x.amount);
                     }) ||
         std::any_of(e.accesses.begin(), e.accesses.end(), [&](const auto& x) {
           // Whether an access of global memory happens changes nothing that a run keeps.
           return (x.unless_zero == operand && x.space != arch::Space::global) ||
                  x.blocks == operand || amount(x.bytes);
         });
}

std::string_view unmodelled(const arch::Form& form) {
  for (const arch::Event& e : form.effects.events) {
    if (e.kind == arch::EventKind::cp_async_group) return "cp.async is not modelled";
  }
  if (form.name == "mbarrier.inval") return "it is not modelled";
  if (form.capability == "dsmem" || form.name == "cluster.map" || form.name == "bulk.to_block")
    return "shared memory of other blocks is modelled for multicast copies alone";
  return "";
}

/// Stands for a loop, or may access shared memory.
bool acts(const Instruction& i) {
  using Kind = Instruction::Kind;
  if (i.kind == Kind::enter || i.kind == Kind::test || i.kind == Kind::next) return true;
  const auto* issue = i.kind == Kind::issue ? i.op->as<core::Issue>() : nullptr;
  return issue != nullptr &&
         std::any_of(issue->arguments.begin(), issue->arguments.end(), [](const core::Argument& a) {
           return std::get_if<core::SharedAt>(&a) != nullptr;
         });
}

class Compiler {
 public:
  Compiler(const core::Kernel& kernel, Sizes& sizes, Program& out)
      : kernel_(kernel), sizes_(sizes), out_(out) {}

  Piece piece(const core::Role* role, int first_warp, int warps) {
    role_ = role;
    code_ = {};
    code_.name = role != nullptr ? role->name : "";
    code_.first_warp = first_warp;
    code_.warps = warps;
    if (role != nullptr) code_.warp_symbol = role->warp->symbol->index;
    loops_.clear();
    counters_.clear();
    done_.clear();
    looped_.clear();
    within_.clear();
    body(kernel_.body);
    add(Instruction::Kind::end, nullptr);
    for (std::size_t i = 0; i < code_.instructions.size(); ++i)
      if (acts(code_.instructions[i])) code_.quiet = i + 1;
    code_.idle = idle();
    return std::move(code_);
  }

 private:
  [[nodiscard]] std::size_t idle() const {
    using Kind = Instruction::Kind;
    std::size_t out = 0;
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      const Instruction& at = code_.instructions[i];
      const bool control = at.kind == Kind::enter || at.kind == Kind::test ||
                           at.kind == Kind::next || at.kind == Kind::jump || at.kind == Kind::end;
      const bool back =
          (at.kind == Kind::next || at.kind == Kind::jump) && at.target < static_cast<int>(out);
      if (!control || back) out = i + 1;
    }
    return out;
  }

  std::size_t add(Instruction::Kind kind, const Op* op) {
    Instruction i;
    i.kind = kind;
    i.op = op;
    i.elected = elected_;
    i.loops = loops_;
    i.counters = counters_;
    code_.instructions.push_back(std::move(i));
    return code_.instructions.size() - 1;
  }
  Instruction& at(std::size_t i) { return code_.instructions[i]; }
  [[nodiscard]] int here() const { return static_cast<int>(code_.instructions.size()); }

  Value value(Term t) {
    const Term rewritten = sizes_.rewrite(t);
    Value v{Expression(sizes_.alike(rewritten)), {}};
    if (out_.not_exact.empty()) out_.not_exact = sizes_.why_not_exact(t, rewritten);
    for (const Size& s : sizes_.all())
      if (s.negative && term::any_node(rewritten, [&](Term n) { return n == s.symbol; }))
        out_.not_shifted =
            fmt::format("`{}`: `{}` may be negative", to_string(t), to_string(s.turns));
    if (!out_.not_shifted.empty()) return v;
    const Sizes::Shifted s = sizes_.shift(rewritten, loops_, done_, within_);
    if (!s.term) {
      out_.not_shifted = s.why;
      return v;
    }
    for (std::size_t i = 0; i < s.periods.size(); ++i)
      out_.periods[i] = std::lcm(out_.periods[i], s.periods[i]);
    out_.steady = std::max(out_.steady, s.steady);
    v.shifted = Expression(s.term);
    out_.shifted_symbols.insert(out_.shifted_symbols.end(), v.shifted.symbols().begin(),
                                v.shifted.symbols().end());
    return v;
  }

  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void body(const core::Body& b) {
    for (const Op& op : b) {
      if (const auto* issue = op.as<core::Issue>()) {
        instruction(op, *issue);
      } else if (const auto* compute = op.as<core::Compute>()) {
        computation(op, *compute);
      } else if (op.as<core::Declare>() != nullptr) {
        add(Instruction::Kind::declare, &op);
      } else if (const auto* loop = op.as<core::For>()) {
        run(op, *loop);
      } else if (const auto* branch = op.as<core::If>()) {
        choose(op, *branch);
      } else if (const auto* elected = op.as<core::Elected>()) {
        if (!elected_) add(Instruction::Kind::elect, &op);
        const bool outside = std::exchange(elected_, true);
        body(elected->body);
        elected_ = outside;
      } else if (const auto* role = op.as<core::Role>(); role != nullptr && role == role_) {
        body(role->body);
      }
    }
  }

  /// Loads or stores of global memory by an unrolled loop, with slots one after the other: a run
  /// keeps of them which registers they touch, so they are one instruction. False for other loops.
  bool at_once(const core::For& loop) {
    const auto* issue = loop.body.size() == 1 ? loop.body[0].as<core::Issue>() : nullptr;
    if (!loop.unroll || issue == nullptr || !only_global(*issue)) return false;
    const std::vector<Known> turns = turns_of({&loop});
    if (turns.empty()) return false;
    core::Issue all = *issue;
    const std::vector<Instruction::Slots> slots = slots_of(all);
    for (std::size_t i = 0; i < all.arguments.size(); ++i) {
      auto* slice = std::get_if<core::Slice>(&all.arguments[i]);
      if (slice == nullptr) continue;
      const Term first = with_values(slice->first, turns.front());
      for (std::size_t t = 0; t < turns.size(); ++t)
        if (value_of(with_values(slice->first, turns[t]) - first, {}) !=
            static_cast<int64_t>(t) * slots[i].taken)
          return false;
      slice->first = first;
    }
    instruction(loop.body[0], all);
    code_.instructions.back().times = static_cast<int64_t>(turns.size());
    return true;
  }

  /// It takes -1 of registers of a type that the operand is not for.
  [[nodiscard]] std::vector<Instruction::Slots> slots_of(const core::Issue& issue) const {
    std::vector<Instruction::Slots> out(issue.arguments.size());
    for (std::size_t i = 0; i < issue.arguments.size() && i < issue.form->operands.size(); ++i)
      if (const auto* slice = std::get_if<core::Slice>(&issue.arguments[i]))
        out[i] = {core::slots_of(*issue.form, issue.form->operands[i], issue.choices,
                                 kernel_[slice->registers].element)
                      .value_or(-1),
                  kernel_[slice->registers].slots()};
    return out;
  }

  void instruction(const Op& op, const core::Issue& issue) {
    if (const std::string_view why = unmodelled(*issue.form);
        !why.empty() && out_.unsupported.empty()) {
      out_.unsupported = fmt::format("`{}`: {}", issue.form->name, why);
      out_.unsupported_at = &op;
    }
    std::vector<std::vector<Value>> arguments(issue.arguments.size());
    for (std::size_t i = 0; i < issue.arguments.size() && i < issue.form->operands.size(); ++i) {
      const core::Argument& a = issue.arguments[i];
      if (const auto* shared = std::get_if<core::SharedAt>(&a)) {
        for (Term t : shared->at) arguments[i].push_back(value(t));
      } else if (const auto* barrier = std::get_if<core::BarrierAt>(&a)) {
        arguments[i] = {value(barrier->slot)};
      } else if (const auto* slice = std::get_if<core::Slice>(&a)) {
        arguments[i] = {value(slice->first)};
      } else if (const auto* numbers = std::get_if<core::Integers>(&a);
                 numbers != nullptr && needed(*issue.form, issue.form->operands[i].name)) {
        for (Term t : numbers->values) arguments[i].push_back(value(t));
      }
    }
    const std::size_t i = add(Instruction::Kind::issue, &op);
    at(i).arguments = std::move(arguments);
    at(i).slots = slots_of(issue);
    at(i).perhaps = perhaps_;
    if (out_.unsupported.empty() && std::any_of(at(i).slots.begin(), at(i).slots.end(),
                                                [](const auto& s) { return s.taken < 0; })) {
      out_.unsupported = fmt::format("`{}` takes registers of another type", issue.form->name);
      out_.unsupported_at = &op;
    }
  }

  void computation(const Op& op, const core::Compute& c) {
    std::vector<std::vector<Value>> firsts;
    for (const auto& input : c.inputs)
      if (const auto* r = std::get_if<core::Run>(&input)) firsts.push_back({value(r->first)});
    for (const core::Run& r : c.results) firsts.push_back({value(r.first)});
    const std::size_t i = add(Instruction::Kind::compute, &op);
    at(i).arguments = std::move(firsts);
    at(i).perhaps = perhaps_;
  }

  /// Its condition depends on more than sizes, and whether it holds changes nothing that a run
  /// knows.
  [[nodiscard]] bool masks(const core::If& branch) {
    return branch.otherwise.empty() && only_masks(branch.body) &&
           // As walks of a tile see it: what simplifies away is no part of it.
           !sizes_.of_sizes(sizes_.rewrite(term::simplify(branch.condition))) &&
           !term::any_node(branch.condition, [&](Term n) { return n == kernel_.at.lane; });
  }

  void take_note_of(const core::For& loop, int size) {
    if (loop.unroll || !out_.not_shifted.empty()) return;
    if (size < 0 || loop.lower->op != term::Op::constant || loop.lower->value != 0 ||
        loop.step->op != term::Op::constant || loop.step->value != 1)
      out_.not_shifted =
          fmt::format("the loop over `{}` does not run from 0 to a size", to_string(loop.counter));
    else if (counters_.size() != loops_.size())
      out_.not_shifted =
          fmt::format("the loop over `{}` stands in an unrolled one", to_string(loop.counter));
    else if (!looped_.insert(size).second || loops_.size() > 1)
      out_.not_shifted =
          fmt::format("the loop over `{}` is the second of its size, or the third deep",
                      to_string(loop.counter));
  }

  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void run(const Op& op, const core::For& loop) {
    if (at_once(loop)) return;
    const int size = loop.unroll ? -1 : sizes_.size_of(loop);
    take_note_of(loop, size);
    turns(op, loop, size, [&] { body(loop.body); });
  }

  /// The loops of sizes in a branch that is not taken: their turns pass, and nothing is done. So
  /// the turns of a loop that have been finished in all are told by those of the loops around it,
  /// also where it stands under a condition.
  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void pass(const core::Body& b) {
    for (const Op& op : b) {
      if (const auto* loop = op.as<core::For>()) {
        const int size = loop->unroll ? -1 : sizes_.size_of(*loop);
        if (size >= 0) turns(op, *loop, size, [&] { pass(loop->body); });
      } else if (const auto* elected = op.as<core::Elected>()) {
        pass(elected->body);
      } else if (const auto* branch = op.as<core::If>()) {
        pass(branch->body);
        pass(branch->otherwise);
      }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void turns(const Op& op, const core::For& loop, int size, const std::function<void()>& once) {
    const int counter = loop.counter->symbol->index;
    const auto control = [&](Instruction::Kind kind) {
      const std::size_t i = add(kind, &op);
      at(i).counter = counter;
      at(i).size = size;
      at(i).outer = size >= 0 && sizes_.all()[static_cast<std::size_t>(size)].outer;
      return i;
    };
    // What a loop of a size does is decided by its size: its bounds need no shifted terms.
    std::vector<Value> bounds;
    for (Term t : {loop.lower, sizes_.turns(loop), loop.step})
      bounds.push_back(size >= 0 ? Value{Expression(sizes_.rewrite(t)), {}} : value(t));
    at(control(Instruction::Kind::enter)).values = bounds;
    const std::size_t test = control(Instruction::Kind::test);
    at(test).values = bounds;
    counters_.push_back(loop.counter);
    if (size >= 0 && loops_.size() == 1) within_.emplace_back(loops_[0].size, size);
    if (size >= 0) loops_.push_back({loop.counter, size});
    const std::vector<int> done = done_;
    if (size >= 0) done_.clear();
    once();
    done_ = done;
    if (size >= 0) {
      loops_.pop_back();
      done_.push_back(size);
    }
    counters_.pop_back();
    const std::size_t next = control(Instruction::Kind::next);
    at(next).values = bounds;
    at(next).target = static_cast<int>(test);
    at(test).target = here();
  }

  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void choose(const Op& op, const core::If& branch) {
    if (masks(branch)) {
      perhaps_ = true;
      body(branch.body);
      perhaps_ = false;
      return;
    }
    const std::size_t test = add(Instruction::Kind::branch, &op);
    if (term::any_node(branch.condition, [&](Term n) { return n == kernel_.at.lane; }) &&
        out_.unsupported.empty()) {
      out_.unsupported = "a condition on the lane is not modelled";
      out_.unsupported_at = &op;
    }
    const Value condition = value(branch.condition);
    at(test).values = {condition};
    const std::vector<int> done = done_;
    body(branch.body);
    pass(branch.otherwise);
    const std::size_t jump = add(Instruction::Kind::jump, &op);
    at(test).target = here();
    const std::vector<int> after = std::exchange(done_, done);
    pass(branch.body);
    body(branch.otherwise);
    done_ = after;
    at(jump).target = here();
  }

  const core::Kernel& kernel_;
  Sizes& sizes_;
  Program& out_;
  const core::Role* role_ = nullptr;
  Piece code_;
  bool elected_ = false;
  bool perhaps_ = false;
  std::vector<Running> loops_;
  std::vector<Term> counters_;
  std::vector<int> done_;
  std::set<int> looped_;
  std::vector<std::pair<int, int>> within_;  // sizes of loops of this piece, outer and inner
};

}  // namespace

Program compile(const core::Kernel& kernel, Sizes& sizes) {
  Program out;
  out.periods.assign(sizes.all().size(), 1);
  Compiler compiler(kernel, sizes, out);
  std::vector<bool> taken(static_cast<std::size_t>(kernel.threads / 32), false);
  for (const Op& op : kernel.body)
    if (const auto* role = op.as<core::Role>()) {
      out.codes.push_back(compiler.piece(role, role->first_warp, role->warps));
      for (int w = role->first_warp; w < role->first_warp + role->warps; ++w)
        if (w < static_cast<int>(taken.size())) taken[static_cast<std::size_t>(w)] = true;
    }
  for (int w = 0; w < static_cast<int>(taken.size()); ++w)
    if (!taken[static_cast<std::size_t>(w)]) out.codes.push_back(compiler.piece(nullptr, w, 1));
  std::vector<int>& symbols = out.shifted_symbols;
  if (out.not_shifted.empty()) out.not_shifted = out.not_exact;
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  return out;
}

}  // namespace tessera::check
