#include "check/brought.h"

#include <algorithm>
#include <fmt/format.h>

#include "check/bounds.h"
#include "check/formula.h"
#include "check/launch.h"
#include "check/reading.h"
#include "core/walk.h"

namespace tessera::check {
namespace {

using core::SharedAt;

constexpr int lanes = 32;

int64_t elements_of(const core::Issue& issue, DType element) {
  const int64_t bytes =
      arch::value_of(issue.form->effects.accesses[0].bytes, issue.choices).value_or(0);
  return bytes % size_of(element) == 0 ? bytes / size_of(element) : 0;
}

bool loads_from_tensors(const core::Body& b) {
  bool any = false;
  core::for_each_op(b, [&](const core::Op& op) {
    const auto* issue = op.as<core::Issue>();
    any |= issue != nullptr && issue->form->name.starts_with("load.global");
  });
  return any;
}

/// Whether the computation puts zero into its result.
bool makes_zero(const core::Compute& c) {
  Formulas formulas;
  const std::vector<Formulas::Id> operands(c.inputs.size(), Formulas::none);
  return formulas.results(*c.dag, operands) == std::vector{formulas.number(0)};
}

}  // namespace

bool brought_by_other_roles(const Runs& runs, const std::vector<Place>& all, const Place& reader,
                            core::SharedId shared) {
  bool any = false;
  for (const ReadsFrom& r : runs.reads_from) {
    const Place* const from = r.read == reader.op ? place_of(all, r.write) : nullptr;
    if (from == nullptr || from->op->as<core::Issue>() == nullptr) continue;
    const auto* to = argument<SharedAt>(from->issue(), "to");
    if (to == nullptr || to->shared != shared) continue;
    if (from->role == reader.role || argument<core::MapRef>(from->issue(), "map") != nullptr ||
        from->loops.empty() || !loads_from_tensors(from->loops.back()->body))
      return false;
    any = true;
  }
  return any;
}

Brought::Brought(const core::Kernel& kernel, const core::Role& role,
                 const std::vector<const core::For*>& loops)
    : TurnWalk(kernel, role), loops_(loops) {
  turn(*loops.back());
}

const std::vector<BroughtStore>& Brought::stores(const core::Op* store) const {
  static const std::vector<BroughtStore> none;
  const auto found = stores_.find(store);
  return found == stores_.end() ? none : found->second;
}

Brought::Value& Brought::slot(int warp, core::RegistersId id, int64_t at) {
  auto& slots = registers_[{warp, id.index}];
  if (slots.empty()) slots.resize(static_cast<std::size_t>(kernel_[id].slots()));
  if (at < 0 || at >= static_cast<int64_t>(slots.size())) {
    fail("an index leaves its registers");
    at = 0;
  }
  return slots[static_cast<std::size_t>(at)];
}

void Brought::lose(core::RegistersId registers, int warp) {
  registers_.erase({warp, registers.index});
}

std::string Brought::needed(const core::Issue& issue) {
  const bool stores =
      argument<SharedAt>(issue, "to") != nullptr && argument<core::MapRef>(issue, "map") == nullptr;
  return stores ? "threads bring an operand under a condition" : "";
}

void Brought::compute(const core::Compute& c, int warp) {
  const bool zero = makes_zero(c);
  for (int64_t e = 0; e < c.count && why.empty(); ++e)
    for (const core::Run& r : c.results)
      slot(warp, r.registers, number(r.first) + r.steps(e)) = {
          .kind = zero ? Value::Kind::zero : Value::Kind::other, .load = nullptr, .at = nullptr};
}

void Brought::issue(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const std::string& name = issue.form->name;
  if (name.starts_with("load.global")) return load(op, warp);
  if (name.starts_with("store.shared") && !name.ends_with("bounded")) return store(op, warp);
  lose_results(issue, warp);
  if (argument<SharedAt>(issue, "to") != nullptr && argument<core::MapRef>(issue, "map") == nullptr)
    fail(fmt::format("what `{}` stores is not followed", name));
}

/// Of lane, warp and counters of unrolled loops alone.
bool Brought::known_at(Term t) const {
  return !term::any_node(t, [&](Term n) {
    if (!n->leaf() || n->symbol == nullptr) return n->op == term::Op::read;
    return n != kernel_.at.lane && n != role_.warp &&
           std::none_of(unrolled_.begin(), unrolled_.end(),
                        [&](const core::For* f) { return f->counter == n; });
  });
}

/// What a load is conditional on: bounds of the tensor, and nothing else.
bool Brought::conditions(const core::Op& op, const BroughtLoad& load, const core::GlobalAt& at,
                         std::vector<bool>& bounded) {
  const auto* inside = argument<core::Integers>(*op.as<core::Issue>(), "inside");
  if (inside == nullptr) return true;
  for (Term c : conditions_of(inside->values[0])) {
    bool is_bound = false;
    for (std::size_t d = 0; d < at.at.size() && c->op == term::Op::less; ++d)
      if (same(c->args[0], at.at[d]) && same(c->args[1], kernel_[at.tensor].extents[d]))
        bounded[d] = is_bound = true;
    if (!is_bound)
      return open(op, load, at,
                  fmt::format("a load is conditional on `{}`, which is no bound of its tensor",
                              to_string(c)));
  }
  return true;
}

/// Whether all elements that it loads lie in the tensor.
bool Brought::lies_inside(const core::Op& op, const BroughtLoad& load, const core::GlobalAt& at) {
  const auto claim = unproved_bound(kernel_, {&at, load.count, load.along, load.bounded});
  return !claim || open(op, load, at,
                        fmt::format("it is not known that `{}`, where `{}` is loaded",
                                    to_string(*claim), kernel_[at.tensor].name));
}

/// The load is not known to stay in its tensor: small launches may show that it does not.
bool Brought::open(const core::Op& op, const BroughtLoad& load, const core::GlobalAt& at,
                   std::string reason) {
  const Reach reach{&at, load.count, load.along, {}};
  const auto* inside = argument<core::Integers>(*op.as<core::Issue>(), "inside");
  Term claim = stays_inside(kernel_, reach);
  if (inside != nullptr)
    claim = term::logical_or(term::equals(inside->values[0], kernel_.pool->constant(0)), claim);
  Known known = {{role_.warp.node(), symbol(role_.warp)}};
  for (const core::For* f : unrolled_) known[f->counter.node()] = symbol(f->counter);
  for (int lane = 0; lane < lanes && !fault; ++lane) {
    known[kernel_.at.lane.node()] = lane;
    if (const auto found = fails(kernel_, loops_, claim, known))
      fault = {
          &op, fmt::format("a load leaves the tensor `{}`", kernel_[at.tensor].name),
          "all elements of each lane in the tensor",
          fmt::format("not those of lane {}, warp {} at {}", lane, symbol(role_.warp), *found)};
  }
  return fail(std::move(reason));
}

BroughtLoad* Brought::load_of(const core::Op& op) {
  if (const auto known = loads_.find(&op); known != loads_.end()) return known->second.get();
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<core::GlobalAt>(issue, "from");
  const auto* to = argument<core::Slice>(issue, "to");
  if (at == nullptr || to == nullptr) return fail("a load is not followed"), nullptr;
  const core::Tensor& tensor = kernel_[at->tensor];
  auto out = std::make_unique<BroughtLoad>();
  out->tensor = at->tensor;
  out->count = elements_of(issue, tensor.element);
  for (std::size_t d = 0; d < tensor.strides.size(); ++d)
    if (tensor.strides[d]->facts.constant() == 1) out->along = static_cast<int>(d);
  if (tensor.access != core::Access::input || tensor.element != kernel_[to->registers].element ||
      out->count < 1 || (out->count > 1 && out->along < 0))
    return fail(fmt::format("how `{}` is loaded is not followed", tensor.name)), nullptr;
  Known first = {{kernel_.at.lane.node(), 0}, {role_.warp.node(), 0}};
  for (const core::For* f : unrolled_) first[f->counter.node()] = 0;
  for (Term t : at->at) {
    out->base.push_back(term::simplify(with_values(t, first)));
    const Term off = term::simplify(t - out->base.back());
    if (!known_at(off))
      return fail(fmt::format("an index of `{}` is no number from its tile's", tensor.name)),
             nullptr;
    out->offsets.emplace_back(off);
  }
  out->bounded.assign(at->at.size(), false);
  if (!conditions(op, *out, *at, out->bounded) || !lies_inside(op, *out, *at)) return nullptr;
  return loads_.emplace(&op, std::move(out)).first->second.get();
}

void Brought::load(const core::Op& op, int warp) {
  BroughtLoad* const of = load_of(op);
  if (of == nullptr) return;
  const auto* to = argument<core::Slice>(*op.as<core::Issue>(), "to");
  auto at = std::make_shared<std::vector<int64_t>>(of->offsets.size() * std::size_t{lanes});
  for (int lane = 0; lane < lanes; ++lane) {
    symbol(kernel_.at.lane) = lane;
    for (std::size_t d = 0; d < of->offsets.size(); ++d) {
      const std::optional<int64_t> v = of->offsets[d](values_);
      if (!v) return void(fail("an index does not fit 64 bits"));
      (*at)[d * lanes + static_cast<std::size_t>(lane)] = *v;
    }
  }
  symbol(kernel_.at.lane) = -1;
  const int64_t first = number(to->first);
  for (int64_t n = 0; n < of->count && why.empty(); ++n) {
    Value& v = slot(warp, to->registers, first + n);
    if (v.kind != Value::Kind::zero) of->over_zeros = false;
    v = {.kind = Value::Kind::element, .load = of, .at = at, .n = n};
  }
}

void Brought::store(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* to = argument<SharedAt>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  const core::Shared& s = kernel_[to->shared];
  const int64_t count = elements_of(issue, s.element), first = number(from->first);
  const std::size_t rank = to->at.size();
  if (rank < 2 || count < 1 || s.element != kernel_[from->registers].element)
    return void(fail("what threads store is not followed"));
  const bool rows_lie = flatten(s.layout.mode(s.layout.rank() - 2).stride()).front() == 1;
  BroughtStore out;
  out.turn[role_.warp.node()] = warp;
  for (const core::For* f : unrolled_) out.turn[f->counter.node()] = symbol(f->counter);
  for (int64_t n = 0; n < count && why.empty(); ++n) {
    const Value& v = slot(warp, from->registers, first + n);
    if (v.kind != Value::Kind::element)
      return void(fail("threads store what is no element that they have loaded in the turn"));
    for (int lane = 0; lane < lanes; ++lane) {
      symbol(kernel_.at.lane) = lane;
      BroughtElement e{.row = number(to->at[rank - 2]) + (rows_lie ? n : 0),
                       .column = number(to->at[rank - 1]) + (rows_lie ? 0 : n),
                       .load = v.load};
      for (std::size_t d = 0; d < v.load->offsets.size(); ++d)
        e.at.push_back((*v.at)[d * lanes + static_cast<std::size_t>(lane)] +
                       (static_cast<int>(d) == v.load->along ? v.n : 0));
      out.elements.push_back(std::move(e));
    }
  }
  symbol(kernel_.at.lane) = -1;
  stores_[&op].push_back(std::move(out));
}

}  // namespace tessera::check
