#include "check/made_walk.h"

#include <algorithm>

#include "check/footprint.h"
#include "check/reading.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using core::SharedAt;

constexpr int lanes = Elements::lanes;

/// The storage that an instruction writes.
const SharedAt* written(const Place& p) {
  return p.op->as<core::Issue>() == nullptr ? nullptr : argument<SharedAt>(p.issue(), "to");
}

bool is_copy(const Place& p) {
  return argument<core::MapRef>(p.issue(), "map") != nullptr;
}

}  // namespace

bool stored_by_threads(const Runs& runs, const std::vector<Place>& all, const Place& reader,
                       core::SharedId shared) {
  return std::any_of(runs.reads_from.begin(), runs.reads_from.end(), [&](const ReadsFrom& r) {
    const Place* const from = r.read == reader.op ? place_of(all, r.write) : nullptr;
    const SharedAt* const to = from == nullptr ? nullptr : written(*from);
    return to != nullptr && to->shared == shared && !is_copy(*from);
  });
}

MadeOperands::Walk::Walk(MadeOperands& all_walks, const core::Role& role, const core::For& loop)
    : TurnWalk(all_walks.kernel_, role),
      all_walks_(all_walks),
      runs_(all_walks.runs_),
      all_(all_walks.all_),
      means_(all_walks.means_),
      loop_(loop) {
  for (const Place& p : all_) places_.emplace(p.op, &p);
  registers_.assign(static_cast<std::size_t>(role.warps),
                    std::vector<std::vector<Id>>(kernel_.registers.size()));
  turn(loop);
}

MadeOperands::Walk::Id& MadeOperands::Walk::slot(int warp, core::RegistersId id, int64_t at) {
  static Id outside;
  auto& slots = registers_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(id.index)];
  if (slots.empty()) slots.assign(static_cast<std::size_t>(kernel_[id].slots()), Formulas::none);
  if (at >= 0 && at < static_cast<int64_t>(slots.size()))
    return slots[static_cast<std::size_t>(at)];
  fail("an index leaves its registers");
  return outside = Formulas::none;
}

void MadeOperands::Walk::lose(core::RegistersId registers, int warp) {
  registers_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(registers.index)].clear();
}

std::string MadeOperands::Walk::needed(const core::Issue& issue) {
  const bool operands = argument<SharedAt>(issue, "to") != nullptr || wgmma_of(issue);
  return operands ? "operands are made, or multiplied, under a condition" : "";
}

void MadeOperands::Walk::compute(const core::Compute& c, int warp) {
  for (int64_t e = 0; e < c.count && why.empty(); ++e) {
    std::vector<Id> operands;
    for (const auto& in : c.inputs) {
      const auto* run = std::get_if<core::Run>(&in);
      operands.push_back(run == nullptr
                             ? Formulas::none
                             : slot(warp, run->registers, number(run->first) + run->steps(e)));
    }
    const std::vector<Id> made = formulas_.results(*c.dag, operands);
    for (std::size_t r = 0; r < made.size(); ++r)
      // A result of another type than f32 is rounded, which formulas do not show.
      slot(warp, c.results[r].registers, number(c.results[r].first) + c.results[r].steps(e)) =
          kernel_[c.results[r].registers].element == DType::float32 ? made[r] : Formulas::none;
  }
}

void MadeOperands::Walk::issue(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const std::string& name = issue.form->name;
  if (wgmma_of(issue)) return product(op, warp);
  if (name.starts_with("load.shared") && !name.ends_with("bounded")) return load(op, warp);
  if (name.starts_with("store.shared") && !name.ends_with("bounded")) return store(op, warp);
  lose_results(issue, warp);
  if (argument<SharedAt>(issue, "to") != nullptr)
    fail(fmt::format("what `{}` stores is not followed", name));
}

std::optional<std::string> MadeOperands::Walk::slot_of(const SharedAt& at) {
  std::string out;
  for (std::size_t m = 0; m + 2 < at.at.size(); ++m) {
    Known known;
    for (Term s : term::symbols_of({at.at[m]})) {
      if (s == kernel_.at.lane) return std::nullopt;
      if (const int64_t v = symbol(s); v >= 0) known.emplace(s.node(), v);
    }
    out += to_string(term::simplify(with_values(at.at[m], known))) + ";";
  }
  return out;
}

std::optional<int> MadeOperands::Walk::source(const core::Op& op, const SharedAt& at) {
  if (const auto known = source_of_.find(&op); known != source_of_.end()) return known->second;
  const Place& reader = *places_.at(&op);
  std::vector<const Place*> writers;
  for (const ReadsFrom& r : runs_.reads_from) {
    const Place* const from = r.read == &op ? place_of(all_, r.write) : nullptr;
    if (r.read != &op) continue;
    const SharedAt* const to = from == nullptr ? nullptr : written(*from);
    if (to == nullptr || to->shared != at.shared || !is_copy(*from))
      return fail("threads load what no copy brings"), std::nullopt;
    if (r.turns != 0) return fail("threads load what another turn copied"), std::nullopt;
    if (r.reader != r.writer) return fail("threads load what another block copied"), std::nullopt;
    if (std::find(writers.begin(), writers.end(), from) == writers.end()) writers.push_back(from);
  }
  if (writers.empty()) return fail("threads load what nothing brings"), std::nullopt;
  const auto map_of = [&](const Place* w) -> const core::TensorMap& {
    return kernel_[argument<core::MapRef>(w->issue(), "map")->map];
  };
  for (const Place* w : writers)
    if (map_of(w).rounded != map_of(writers.front()).rounded)
      return fail("one copy rounds elements, and another does not"), std::nullopt;
  const core::TensorId of = map_of(writers.front()).tensor;
  const bool left = of == means_.a.tensor;
  SharedAt whole = at;
  const Layout& layout = kernel_[at.shared].layout;
  const auto extent = [&](int from_end) { return layout.mode(layout.rank() - from_end).size(); };
  for (std::size_t d = at.at.size() - 2; d < at.at.size(); ++d)
    whole.at[d] = kernel_.pool->constant(0);
  auto out = std::make_unique<Operand>();
  Reading reading = reading_of(kernel_, means_, left, reader, whole, writers);
  reading.rows = extent(2);
  reading.steps = extent(1);
  if (std::string reason = trace(reading, *out); !reason.empty())
    return fail(std::move(reason)), std::nullopt;
  // Several loads of one slot have one source.
  const auto same = [&](const std::unique_ptr<Operand>& o) {
    return o->map == out->map && o->writer == out->writer && o->rows == out->rows && o->k == out->k;
  };
  const auto found = std::find_if(sources_.begin(), sources_.end(), same);
  const auto at_source = static_cast<int>(found - sources_.begin());
  if (found == sources_.end()) sources_.push_back(std::move(out));
  return source_of_[&op] = at_source;
}

/// Elements that lie side by side in shared memory, to slots one after the other.
void MadeOperands::Walk::load(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<SharedAt>(issue, "from");
  const auto* to = argument<core::Slice>(issue, "to");
  const core::Shared& s = kernel_[at->shared];
  const int64_t bytes =
      arch::value_of(issue.form->effects.accesses[0].bytes, issue.choices).value_or(0);
  const int64_t count = bytes / size_of(s.element), first = number(to->first);
  for (int64_t e = 0; e < count; ++e) slot(warp, to->registers, first + e) = Formulas::none;
  const bool rows_lie = flatten(s.layout.mode(s.layout.rank() - 2).stride()).front() == 1;
  if (s.element != DType::float32 || kernel_[to->registers].element != s.element ||
      at->at.size() < 2 || count * size_of(s.element) != bytes)
    return;
  const std::optional<int> from = source(op, *at);
  if (!from || !slot_of(*at)) return;
  const Operand& of = *sources_[static_cast<std::size_t>(*from)];
  if (!of.fault.empty()) return;
  const std::size_t rank = at->at.size();
  Elements e{*from, {0, 0}, std::vector<int64_t>(std::size_t{2} * lanes)};
  for (int64_t n = 0; n < count && why.empty(); ++n) {
    for (int lane = 0; lane < lanes; ++lane) {
      symbol(kernel_.at.lane) = lane;
      const auto row = static_cast<std::size_t>(number(at->at[rank - 2]) + (rows_lie ? n : 0));
      const auto k = static_cast<std::size_t>(number(at->at[rank - 1]) + (rows_lie ? 0 : n));
      if (row >= of.rows.size() || k >= of.k.size()) return void(fail("a load leaves its slot"));
      e.at[static_cast<std::size_t>(lane)] = static_cast<int64_t>(row);
      e.at[static_cast<std::size_t>(lane) + lanes] = static_cast<int64_t>(k);
    }
    slot(warp, to->registers, first + n) = formulas_.elements(e);
  }
  symbol(kernel_.at.lane) = -1;
}

void MadeOperands::Walk::store(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<SharedAt>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  const core::Shared& s = kernel_[at->shared];
  const int64_t bytes =
      arch::value_of(issue.form->effects.accesses[0].bytes, issue.choices).value_or(0);
  const int64_t count = bytes / size_of(s.element), first = number(from->first);
  const bool rows_lie = flatten(s.layout.mode(s.layout.rank() - 2).stride()).front() == 1;
  const std::optional<std::string> where = slot_of(*at);
  if (!where || at->at.size() < 2 || s.element != DType::float32 ||
      kernel_[from->registers].element != s.element)
    return void(fail("what threads store is not followed"));
  stored_to_[&op].insert(*where);
  auto& matrix = shared_[{at->shared.index, *where}];
  const std::size_t rank = at->at.size();
  for (int lane = 0; lane < lanes; ++lane) {
    symbol(kernel_.at.lane) = lane;
    for (int64_t n = 0; n < count; ++n) {
      const int64_t row = number(at->at[rank - 2]) + (rows_lie ? n : 0);
      const int64_t k = number(at->at[rank - 1]) + (rows_lie ? 0 : n);
      const Held held{slot(warp, from->registers, first + n), lane, this};
      if (!matrix.try_emplace({row, k}, held).second)
        fail("threads store twice to one place in a turn");
    }
  }
  symbol(kernel_.at.lane) = -1;
}

}  // namespace tessera::check
