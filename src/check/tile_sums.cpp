// The sums of a turn: what accumulators have after the loop over k.
#include <algorithm>

#include "check/footprint.h"
#include "check/tile.h"
#include "term/rules.h"

namespace tessera::check {

void Tile::corners_of_products() {
  for (const Sums& sums : sums_of_role_)
    for (const auto& [a, b] : sums.groups) {
      rows_ = std::max(rows_, 1 + *std::max_element(a.rows.begin(), a.rows.end()));
      columns_ = std::max(columns_, 1 + *std::max_element(b.rows.begin(), b.rows.end()));
    }
  const auto& [a, b] = sums_of_role_.front().groups.front();
  bases_[row_base] = term::simplify(a.row_corner);
  bases_[column_base] = term::simplify(b.row_corner - means_.column_shift());
  if (a.batch || b.batch) bases_[batch_base] = term::simplify(a.batch ? a.batch : b.batch);
}

/// What is copied out was written by ops that the walk has seen, in the same turn.
bool Tile::copies_its_own(const Runs& runs) const {
  return std::all_of(runs.reads_from.begin(), runs.reads_from.end(), [&](const ReadsFrom& r) {
    const auto* store = r.read->as<core::Issue>();
    return store == nullptr || !store->form->name.starts_with("tma.store") ||
           !walked_.contains(r.read) ||
           (r.turns == 0 && r.reader == r.writer && walked_.contains(r.write));
  });
}

/// Registers that the loop over k writes besides the accumulators: nothing is known of them.
void Tile::forget() {
  const auto written = [&](core::RegistersId id) {
    if (std::any_of(sums_of_role_.begin(), sums_of_role_.end(),
                    [&](const Sums& s) { return s.to != nullptr && s.to->total == id; }))
      return;
    for (const Sums& s : sums_of_role_)
      if (id == argument<core::Slice>(*s.product, "d")->registers && why.empty())
        why = "the accumulators are changed between products";
    for (auto& of_warp : registers_) of_warp[static_cast<std::size_t>(id.index)].clear();
  };
  for (const auto& [op, place] : places_) {
    if (place->loops.empty() || place->loops.back() != sums_ || place->role != role_.role) continue;
    if (const auto* c = op->as<core::Compute>())
      for (const core::Run& r : c->results) written(r.registers);
    if (op->as<core::Issue>() == nullptr || wgmma_of(place->issue())) continue;
    const core::Issue& issue = place->issue();
    for (std::size_t i = 0; i < issue.arguments.size(); ++i)
      if (const auto* slice = std::get_if<core::Slice>(&issue.arguments[i]);
          slice != nullptr && issue.form->operands[i].direction != arch::Direction::in)
        written(slice->registers);
  }
}

/// The accumulators after the loop over k, and what has got sums of theirs (promoted.h).
void Tile::products(const std::vector<int>& warps) {
  if (static_cast<int>(warps.size()) != role_.warps) {
    why = "products stand under a condition on the warp";
    return;
  }
  multiplied_ = true;
  forget();
  for (const Sums& s : sums_of_role_) summed(s);
}

void Tile::summed(const Sums& sums) {
  const auto* d = argument<core::Slice>(*sums.product, "d");
  const int64_t first = eval(d->first);
  const int64_t slots = static_cast<int64_t>(place_.size()) / arch::Wgmma::threads;
  if (sums.to != nullptr && !may_write(sums.to->total)) return;
  for (int w = 0; w < role_.warps; ++w) {
    const auto& [a, b] = sums.groups[static_cast<std::size_t>(w / 4)];
    for (int64_t s = 0; s < slots; ++s) {
      Elements e{Elements::of_sum, {row_base, column_base}, {}};
      e.at.resize(std::size_t{2} * Elements::lanes);
      for (std::size_t lane = 0; lane < Elements::lanes; ++lane) {
        const int64_t at = place_[static_cast<std::size_t>(s * arch::Wgmma::threads) +
                                  32 * static_cast<std::size_t>(w % 4) + lane];
        e.at[lane] = a.rows[static_cast<std::size_t>(at % 64)];
        e.at[Elements::lanes + lane] = b.rows[static_cast<std::size_t>(at / 64)];
        const int factor = b.factors[static_cast<std::size_t>(at / 64)];
        if (lane > 0 && factor != e.factor) why = "lanes of a register sum different factors";
        e.factor = factor;
      }
      Id& last = slot(w, d->registers, first + s);
      last = formulas_.elements(e);
      if (sums.to == nullptr) continue;
      const Id whole = last;
      e.tensor = Elements::of_last_sum;
      last = formulas_.elements(std::move(e));
      Id& total = slot(w, sums.to->total, first + s + sums.to->off);
      total = formulas_.added(total, whole, last);
    }
  }
}

}  // namespace tessera::check
