#include "check/made.h"

#include <algorithm>

#include "check/footprint.h"
#include "check/made_walk.h"
#include "check/reading.h"

namespace tessera::check {

using core::SharedAt;

/// The walk through the loop that a store stands in: this one, or that of another role which takes
/// the same turns.
MadeOperands::Walk* MadeOperands::Walk::walk_at(const Place& store) {
  if (store.loops.empty() || store.role == nullptr || store.loops.back()->counter != loop_.counter)
    return fail("a product reads what is stored in another loop"), nullptr;
  if (store.role == &role_ && store.loops.back() == &loop_) return this;
  const std::shared_ptr<Walk> other = all_walks_.walk(*store.role, *store.loops.back());
  if (other == nullptr) return fail("two roles make operands for each other"), nullptr;
  if (!other->why.empty()) return fail(other->why), nullptr;
  return other.get();
}

/// Whose stores an op reads: they name the same slot as it does, in its own turn.
MadeOperands::Walk* MadeOperands::Walk::maker(const core::Op& op, core::SharedId shared,
                                              const std::string& slot) {
  Walk* of = nullptr;
  for (const ReadsFrom& r : runs_.reads_from) {
    if (r.read != &op) continue;
    const Place* const from = place_of(all_, r.write);
    const auto* to = from == nullptr || from->op->as<core::Issue>() == nullptr
                         ? nullptr
                         : argument<SharedAt>(from->issue(), "to");
    if (to == nullptr || to->shared != shared)
      return fail("an operand comes from what is not stored to its place"), nullptr;
    if (r.turns != 0 || r.reader != r.writer)
      return fail("a product reads what another turn or block has stored"), nullptr;
    Walk* const by = walk_at(*from);
    if (by == nullptr) return nullptr;
    if (of != nullptr && of != by) return fail("several roles make an operand together"), nullptr;
    of = by;
    const auto found = by->stored_to_.find(r.write);
    if (found == by->stored_to_.end())
      return fail("a product reads what is stored after it"), nullptr;
    if (found->second != std::set<std::string>{slot})
      return fail("a product reads what is stored to another slot"), nullptr;
  }
  if (of == nullptr) fail("a product reads what nothing stores");
  return of;
}

void MadeOperands::Walk::product(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const arch::Wgmma w = *wgmma_of(issue);
  if (const auto* a = argument<core::Slice>(issue, "a")) keep_left(op, *a, warp, w.k());
  if (const auto* b = argument<SharedAt>(issue, "b");
      b != nullptr && warp % 4 == 0 && stored_by_threads(runs_, all_, *places_.at(&op), b->shared))
    keep_right(op, *b, warp, w.n, w.k());
  const auto* d = argument<core::Slice>(issue, "d");
  registers_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(d->registers.index)].clear();
}

/// A in registers: the 16 rows of a warp.
void MadeOperands::Walk::keep_left(const core::Op& op, const core::Slice& a, int warp,
                                   int64_t depth) {
  const Layout layout = wgmma_of(*op.as<core::Issue>())->a_layout();
  Matrix& m = matrices_[{&op, true, warp / 4}];
  m.resize(static_cast<std::size_t>(arch::Wgmma::m * depth));
  const int64_t first = number(a.first), slots = layout.mode(1).size();
  for (int64_t s = 0; s < slots; ++s)
    for (int lane = 0; lane < Elements::lanes; ++lane) {
      const int64_t at = layout(warp % 4 * 32 + lane + arch::Wgmma::threads * s);  // m + 64 k
      m[static_cast<std::size_t>(at % 64 * depth + at / 64)] = {slot(warp, a.registers, first + s),
                                                                lane, this};
    }
}

void MadeOperands::Walk::keep_right(const core::Op& op, const SharedAt& at, int warp, int64_t rows,
                                    int64_t depth) {
  const std::optional<std::string> where = slot_of(at);
  if (!where) return void(fail("a product's slot depends on the lane"));
  Walk* const by = maker(op, at.shared, *where);
  if (by == nullptr) return;
  const auto& stored = by->shared_[{at.shared.index, *where}];
  Matrix& m = matrices_[{&op, false, warp / 4}];
  const std::size_t rank = at.at.size();
  const int64_t row = number(at.at[rank - 2]), k = number(at.at[rank - 1]);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < depth; ++j) {
      const auto found = stored.find({row + i, k + j});
      m.push_back(found == stored.end() ? Held{} : found->second);
    }
}

const MadeOperands::Walk::Matrix* MadeOperands::Walk::matrix(const core::Op* product, bool is_a,
                                                             int group) const {
  const auto found = matrices_.find({product, is_a, group});
  return found == matrices_.end() ? nullptr : &found->second;
}

std::optional<MadeElement> MadeOperands::Walk::element(const Held& held) {
  if (held.value == Formulas::none) return std::nullopt;
  if (held.walk != this) return held.walk->element(held);
  const std::vector<Id> leaves = formulas_.leaves(held.value);
  if (leaves.empty()) return Element{.other = true};  // a number
  const Elements e = formulas_.elements_of(leaves.front());
  Element out;
  out.of = sources_[static_cast<std::size_t>(e.tensor)].get();
  const auto lane = static_cast<std::size_t>(held.lane);
  const auto row = static_cast<std::size_t>(e.at[lane]);
  out.row = out.of->rows[row];
  out.factor = out.of->factors[row];
  out.k = out.of->k[static_cast<std::size_t>(e.at[lane + Elements::lanes])];
  const Id x = leaves.front();
  if (held.value == x) return out;
  const pointwise::Function& less = *pointwise::find("sub");
  bool apart = formulas_.differ(held.value, x, held.lane);
  for (const char* name : {"round_tf32", "round_tf32_finite"}) {
    const Id high = formulas_.call(*pointwise::find(name), {x}),
             low = formulas_.call(less, {x, high});
    out.part = held.value == high ? Part::high : Part::low;
    if (held.value == high || held.value == low) return out;
    apart = apart && formulas_.differ(held.value, high, held.lane) &&
            formulas_.differ(held.value, low, held.lane);
  }
  if (!apart) return std::nullopt;
  out.other = true;
  return out;
}

const Operand* MadeOperands::Walk::faulty() const {
  const auto found = std::find_if(sources_.begin(), sources_.end(),
                                  [](const auto& o) { return !o->fault.empty(); });
  return found == sources_.end() ? nullptr : found->get();
}

MadeOperands::MadeOperands(const core::Kernel& kernel, const Runs& runs,
                           const std::vector<Place>& all, const Means& means)
    : kernel_(kernel), runs_(runs), all_(all), means_(means) {}

std::shared_ptr<MadeOperands::Walk> MadeOperands::walk(const core::Role& role,
                                                       const core::For& loop) {
  if (walks_.try_emplace(&loop).second) walks_[&loop] = std::make_shared<Walk>(*this, role, loop);
  return walks_[&loop];
}

namespace {

std::string_view name_of(Part p) {
  return p == Part::high ? "high part" : p == Part::low ? "low part" : "element";
}

void wrong(Operand& out, std::string message, std::string expected, std::string found) {
  out.fault = std::move(message);
  out.fault_expected = std::move(expected);
  out.fault_found = std::move(found);
}

}  // namespace

/// An operand like its first element.
void MadeOperands::begin(const Element& e, std::size_t size, int64_t depth, Operand& out) {
  out = *e.of;
  out.k.assign(static_cast<std::size_t>(depth), -1);
  out.rows.assign(size / static_cast<std::size_t>(depth), -1);
  out.factors.assign(out.rows.size(), 0);
  out.part = e.part;
}

/// Place `i` of the matrix has the row and the k of its row and its step.
void MadeOperands::take(const Element& e, std::size_t i, int64_t depth, Operand& out) {
  const auto row = i / static_cast<std::size_t>(depth), k = i % static_cast<std::size_t>(depth);
  if (e.part != out.part)
    return wrong(out, "a product takes different parts of its elements",
                 fmt::format("the {} of each", name_of(out.part)),
                 fmt::format("the {} at row {}, step {}", name_of(e.part), row, k));
  if (k == 0) out.rows[row] = e.row, out.factors[row] = e.factor;
  if (row == 0) out.k[k] = e.k;
  if (out.rows[row] != e.row || out.k[k] != e.k || out.factors[row] != e.factor)
    wrong(out, "a product takes other elements than its place says",
          fmt::format("[corner + {}, k corner + {}] at row {}, step {}", out.rows[row], out.k[k],
                      row, k),
          fmt::format("[corner + {}, k corner + {}]", e.row, e.k));
}

std::string MadeOperands::operand(const Place& product, std::string_view name, int group,
                                  Operand& out) {
  if (product.loops.empty()) return "a product of made operands stands in no loop";
  const std::shared_ptr<Walk> walk = this->walk(*product.role, *product.loops.back());
  for (const auto& [loop, other] : walks_) {
    if (!other->why.empty()) return other->why;
    if (const Operand* const faulty = other->faulty()) return out = *faulty, "";
  }
  const Walk::Matrix* const m = walk->matrix(product.op, name == "a", group);
  if (m == nullptr) return "a product was not walked";
  const int64_t depth = wgmma_of(product.issue())->k();
  bool first = true;
  for (std::size_t i = 0; i < m->size() && out.fault.empty(); ++i) {
    const std::optional<Element> e = walk->element((*m)[i]);
    if (!e) return "what threads make of an operand's elements is not followed";
    if (e->other)
      return wrong(out, "a product takes what is neither an element nor a part of one",
                   "an element x, round_tf32(x), or x - round_tf32(x)", "another function"),
             "";
    if (e->part != Part::whole && kernel_[e->of->map].rounded)
      return "a copy rounds the elements that threads take apart";
    if (first) begin(*e, m->size(), depth, out);
    if (e->of->map != out.map || e->of->writer != out.writer)
      return "an operand is made of several slots";
    first = false;
    take(*e, i, depth, out);
  }
  if (!out.fault.empty()) return "";
  const bool left = kernel_[out.map].tensor == means_.a.tensor;
  return left == (name == "a") ? "" : "an operand is the other factor of the meaning";
}

}  // namespace tessera::check
