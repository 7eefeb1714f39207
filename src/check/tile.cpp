#include "check/tile.h"

#include <algorithm>

#include "arch/ldmatrix.h"

#include "check/footprint.h"
#include "check/launch.h"
#include "term/rules.h"

namespace tessera::check {

std::string Operand::trace(const core::Kernel& kernel, const Place& reader,
                           const core::SharedAt& at, const Place& from, int64_t mn, int64_t steps,
                           const Known& known, int k_dim) {
  writer = from.op;
  const auto* ref = argument<core::MapRef>(from.issue(), "map");
  const auto* to = argument<core::SharedAt>(from.issue(), "to");
  const auto* corner = argument<core::Integers>(from.issue(), "at");
  if (ref == nullptr || corner == nullptr || corner->values.size() != 2)
    return "a copy is not of two dimensions";
  map = ref->map;
  if (from.loops.size() != reader.loops.size())
    return "a copy and its product stand in different loops";
  for (std::size_t i = 0; i < from.loops.size(); ++i)
    if (from.loops[i]->counter != reader.loops[i]->counter)
      return "the loops of a copy and of its product have different counters";
  const bool k_first = kernel[map].dims[0] == k_dim;
  k_corner = corner->values[k_first ? 0 : 1];
  row_corner = corner->values[k_first ? 1 : 0];
  std::vector<int64_t> reads, writes;
  for (std::size_t i = 0; i < at.at.size(); ++i) {
    const std::optional<int64_t> r = value_of(at.at[i], known), w = value_of(to->at[i], {});
    if (!r || !w) {
      // A slot: the same in both, and all slots lie alike.
      if (term::simplify(at.at[i]) != term::simplify(to->at[i]))
        return "a copy and its product name slots differently";
      const core::Shared& s = kernel[at.shared];
      const int64_t stride = size_of(s.element) * s.layout.stride().mode(static_cast<int>(i)).value;
      if (stride % 1024 != 0) return "slots do not lie a multiple of 1024 bytes apart";
    }
    reads.push_back(r && w ? *r : 0);
    writes.push_back(r && w ? *w : 0);
  }
  const core::Shared& s = kernel[at.shared];
  const int64_t start = s.at + size_of(s.element) * s.layout.at(writes);
  return trace_elements(kernel, at, start, mn, steps, reads, k_first);
}

std::string Operand::trace_elements(const core::Kernel& kernel, const core::SharedAt& at,
                                    int64_t start, int64_t mn, int64_t steps,
                                    std::vector<int64_t> coordinates, bool k_first) {
  const core::Shared& s = kernel[at.shared];
  const std::size_t rank = coordinates.size();
  const int64_t row = coordinates[rank - 2], step = coordinates[rank - 1];
  const std::string name(kernel[kernel[map].tensor].name);
  k.assign(static_cast<std::size_t>(steps), -1);
  rows.assign(static_cast<std::size_t>(mn), -1);
  for (int64_t i = 0; i < mn; ++i)
    for (int64_t j = 0; j < steps; ++j) {
      coordinates[rank - 2] = row + i;
      coordinates[rank - 1] = step + j;
      const std::optional<int64_t> byte = byte_of(s, coordinates);
      if (!byte) return "a product leaves its shared memory";
      const auto element = box_element(kernel, kernel[map], start, *byte);
      const auto wrong = [&](std::string message, std::string expected, std::string found) {
        fault = std::move(message);
        fault_expected = std::move(expected);
        fault_found = std::move(found);
        return std::string();
      };
      if (!element)
        return wrong(fmt::format("a product reads of `{}` what its copy does not bring", s.name),
                     fmt::format("row {}, k {} of the instruction lies in the box", i, j),
                     fmt::format("byte {} lies outside of it", *byte));
      const int64_t k_here = (*element)[k_first ? 0 : 1], row_here = (*element)[k_first ? 1 : 0];
      int64_t& k_of = k[static_cast<std::size_t>(j)];
      int64_t& row_of = rows[static_cast<std::size_t>(i)];
      if (i == 0) k_of = k_here;
      if (j == 0) row_of = row_here;
      if (k_of != k_here || row_of != row_here)
        return wrong(
            fmt::format("a product reads other elements of `{}` than its place says", name),
            fmt::format("{}[corner + {}, k corner + {}] at row {}, step {}", name, row_of, k_of, i,
                        j),
            fmt::format("{}[corner + {}, k corner + {}]", name, row_here, k_here));
    }
  return "";
}

Tile::Tile(const core::Kernel& kernel, const std::vector<Place>& all, const core::Role& role,
           const core::Issue& product, int64_t period)
    : kernel_(kernel), role_(role), product_(product), period_(period) {
  for (const Place& p : all)
    if (p.op->as<core::Issue>() == &product && p.loops.size() == 2) {
      turn_ = p.loops[0];
      sums_ = p.loops[1];
    }
  const arch::Wgmma w = *wgmma_of(product);
  const Layout c = w.c_layout();
  const int64_t slots = c.mode(1).size();
  place_.resize(static_cast<std::size_t>(arch::Wgmma::threads * slots));
  for (std::size_t i = 0; i < place_.size(); ++i) place_[i] = c(static_cast<int64_t>(i));
}

int64_t Tile::eval(Term t) {
  auto found = compiled_.find(t.node());
  if (found == compiled_.end()) found = compiled_.emplace(t.node(), Expression(t)).first;
  for (int s : found->second.symbols())
    if (static_cast<std::size_t>(s) >= values_.size() || values_[static_cast<std::size_t>(s)] < 0) {
      if (why.empty()) why = fmt::format("`{}` is not known there", to_string(t));
      return 0;
    }
  const std::optional<int64_t> out = found->second(values_);
  if (!out && why.empty()) why = fmt::format("`{}` has no value", to_string(t));
  return out.value_or(0);
}

void Tile::run(const Means& means) {
  means_ = &means;
  if (turn_ == nullptr) {
    why = "products do not stand in two loops";
    return;
  }
  for (const auto& [a, b] : groups_) {
    rows_ = std::max(rows_, 1 + *std::max_element(a.rows.begin(), a.rows.end()));
    columns_ = std::max(columns_, 1 + *std::max_element(b.rows.begin(), b.rows.end()));
  }
  values_.assign(4096, -1);
  // Places in shared memory repeat with the period; corners are compared for all turns at once.
  for (turn_number_ = 0; turn_number_ < (by_turn_ ? period_ : 1); ++turn_number_) turn();
}

void Tile::turn() {
  if (!why.empty() || !violations.empty()) return;
  stored_.assign(static_cast<std::size_t>(rows_ * columns_), 0);
  slots_.assign(static_cast<std::size_t>(role_.warps), {});
  shared_.clear();
  std::vector<int> warps;
  for (int w = 0; w < role_.warps; ++w) warps.push_back(w);
  body(turn_->body, warps);
  if (!why.empty() || !violations.empty()) return;
  if (last_store_.op == nullptr)
    why = "no store follows the products";
  else
    covered(*last_store_.op);
}

/// Of a term that the runs know to repeat from turn to turn.
int64_t Tile::in_turn(Term t) {
  const Term counter = turn_->counter;
  int64_t& number = values_[static_cast<std::size_t>(counter->symbol->index)];
  by_turn_ |= term::any_node(t, [&](Term n) { return n == counter; });
  number = turn_number_;
  const int64_t out = eval(t);
  number = -1;
  return out;
}

/// By how much a store's corner is off the tile's, for all sizes.
int64_t Tile::apart(const core::Op& op, int warp, Term corner, Term from) {
  const Term t = term::simplify(corner - from);
  const int64_t out = eval(t);
  if (why.empty()) return out;
  Known known;
  for (Term s : term::symbols_of({t}))
    if (const int64_t v = values_[static_cast<std::size_t>(s->symbol->index)]; v >= 0)
      known.emplace(s.node(), v);
  if (const auto found = varies(kernel_, {turn_}, t, known)) {
    why.clear();
    Violation v;
    v.kind = "placement";
    v.op = &op;
    v.warp = role_.first_warp + warp;
    v.lanes = "the elected lane";
    v.message = "a tile is stored at another place than its operands come from";
    v.expected = "the store's corner is off the operands' by one number";
    v.found = "off by " + *found;
    v.help = "store at the row of A's tile and the column of B's";
    violations.push_back(std::move(v));
  }
  return 0;
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void Tile::body(const core::Body& b, const std::vector<int>& warps) {
  const auto warp_symbol = static_cast<std::size_t>(role_.warp->symbol->index);
  for (const core::Op& op : b) {
    if (!why.empty() || !violations.empty()) return;
    if (const auto* loop = op.as<core::For>()) {
      if (loop == sums_) continue;
      if (!loop->unroll) {
        why = "another loop stands beside that of the products";
        return;
      }
      int64_t& counter = values_[static_cast<std::size_t>(loop->counter->symbol->index)];
      for (counter = loop->lower->value; counter < loop->upper->value; counter += loop->step->value)
        body(loop->body, warps);
      counter = -1;
    } else if (const auto* branch = op.as<core::If>()) {
      std::vector<int> yes, no;
      for (int w : warps) {
        values_[warp_symbol] = w;
        (in_turn(branch->condition) != 0 ? yes : no).push_back(w);
      }
      if (!yes.empty()) body(branch->body, yes);
      if (!no.empty()) body(branch->otherwise, no);
    } else if (const auto* elected = op.as<core::Elected>()) {
      body(elected->body, warps);
    } else if (op.as<core::Compute>() != nullptr) {
      compute(op, warps);
    } else if (op.as<core::Issue>() != nullptr) {
      issue(op, warps);
    }
  }
}

void Tile::compute(const core::Op& op, const std::vector<int>& warps) {
  const auto& c = *op.as<core::Compute>();
  const auto* d = argument<core::Slice>(product_, "d");
  for (std::size_t r = 0; r < c.results.size(); ++r) {
    const pointwise::Dag::Node& node = c.dag->nodes[static_cast<std::size_t>(c.dag->results[r])];
    const auto* from =
        node.kind == pointwise::Dag::Node::Kind::operand
            ? std::get_if<core::Run>(&c.inputs[static_cast<std::size_t>(node.operand)])
            : nullptr;
    if (from == nullptr || c.results[r].registers == d->registers) {
      why = "a function of the sums is stored, not the sums";
      return;
    }
    for (int w : warps) {
      values_[static_cast<std::size_t>(role_.warp->symbol->index)] = w;
      auto& slots = slots_[static_cast<std::size_t>(w)];
      const int64_t source = eval(from->first), target = eval(c.results[r].first);
      for (int64_t e = 0; e < c.count; ++e) {
        const int64_t s = source + from->steps(e);
        int64_t sum = s - eval(d->first);
        if (from->registers != d->registers) {
          const auto known = slots.find({from->registers.index, s});
          sum = known == slots.end() ? -1 : known->second;
        }
        slots[{c.results[r].registers.index, target + c.results[r].steps(e)}] = sum;
      }
    }
  }
}

/// The element whose sum the accumulators of a lane have in a slot.
Tile::Element Tile::of_slot(int warp, int lane, int64_t slot) {
  const std::size_t at =
      static_cast<std::size_t>(slot * arch::Wgmma::threads + int64_t{32} * (warp % 4) + lane);
  if (slot < 0 || at >= place_.size()) return {};
  const auto& [a, b] = groups_[static_cast<std::size_t>(warp / 4)];
  return {a.rows[static_cast<std::size_t>(place_[at] % 64)],
          b.rows[static_cast<std::size_t>(place_[at] / 64)]};
}

void Tile::matrices(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* to = argument<core::SharedAt>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  arch::MatrixMove move{
      .matrices = 1, .transposed = issue.form->name.ends_with(".trans"), .stores = true};
  for (const auto& [name, value] : issue.choices)
    if (name == "matrices") move.matrices = std::stoi(value);
  const core::Shared& s = kernel_[to->shared];
  const Layout elements = move.elements(), lanes = move.lane_of_row();
  const int64_t first = eval(from->first);
  std::vector<int64_t> start;  // the byte of a row, by row and matrix
  for (int64_t r = 0; r < int64_t{8} * move.matrices; ++r) {
    values_[static_cast<std::size_t>(kernel_.at.lane->symbol->index)] = lanes(r);
    std::vector<int64_t> at;
    for (Term t : to->at) at.push_back(in_turn(t));
    start.push_back(byte_of(s, at).value_or(-1));
  }
  values_[static_cast<std::size_t>(kernel_.at.lane->symbol->index)] = -1;
  const auto& slots = slots_[static_cast<std::size_t>(warp)];
  for (int64_t e = 0; e < int64_t{2} * move.matrices; ++e) {
    const auto known = slots.find({from->registers.index, first + e});
    const int64_t sum = known == slots.end() ? -1 : known->second;
    for (int lane = 0; lane < 32; ++lane) {
      const int64_t at = elements(lane + 32 * e);  // column + 8 row + 64 matrix
      shared_[start[static_cast<std::size_t>(at / 8)] + 2 * (at % 8)] = of_slot(warp, lane, sum);
    }
  }
}

bool Tile::stored(const core::Op& op, int warp, int64_t byte, int64_t row, int64_t column,
                  const core::TensorMap& map) {
  const auto found = shared_.find(byte);
  const Element has = found == shared_.end() ? Element{} : found->second;
  const bool right = has.row == row && has.column == column;
  if (right && row < rows_ && column < columns_) {
    ++stored_[static_cast<std::size_t>(row * columns_ + column)];
    return true;
  }
  const std::string& name = kernel_[map.tensor].name;
  Violation v;
  v.kind = "placement";
  v.op = &op;
  v.warp = role_.first_warp + warp;
  v.lanes = "the elected lane";
  v.message = "an element of the output gets the sum of another";
  v.expected =
      fmt::format("{}[corner + {}, corner + {}] has the sum of row {} of A and row {} of B", name,
                  row, column, row, column);
  v.found = has.row < 0 ? fmt::format("byte {} holds no sum", byte)
                        : fmt::format("that of row {} of A and row {} of B", has.row, has.column);
  v.help = "let the tile's place in shared memory and the coordinates of its copy agree";
  violations.push_back(std::move(v));
  return false;
}

void Tile::copy_out(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const core::TensorMap& map = kernel_[argument<core::MapRef>(issue, "map")->map];
  const auto* from = argument<core::SharedAt>(issue, "from");
  const auto* corner = argument<core::Integers>(issue, "at");
  if (map.tensor != means_->c || map.box.size() != 2) {
    why = "a store goes to another tensor than the meaning has";
    return;
  }
  last_store_.op = &op;
  const core::Shared& s = kernel_[from->shared];
  std::vector<int64_t> at;
  for (Term t : from->at) at.push_back(in_turn(t));
  const bool row_first = map.dims[0] == means_->c_i;
  const auto& [a, b] = groups_[0];
  const int64_t row = apart(op, warp, corner->values[row_first ? 0 : 1], a.row_corner);
  const int64_t column = apart(op, warp, corner->values[row_first ? 1 : 0], b.row_corner);
  if (!why.empty() || !violations.empty()) return;
  const int64_t size = size_of(s.element), start = s.at + size * s.layout.at(at);
  const Swizzle swizzle = arch::swizzle_of(map.swizzle);
  for (int64_t i = 0; i < map.box[0] * map.box[1]; ++i) {
    const int64_t first = i % map.box[0], second = i / map.box[0];
    if (!stored(op, warp, swizzle(start + size * i), row + (row_first ? first : second),
                column + (row_first ? second : first), map))
      return;
  }
}

void Tile::issue(const core::Op& op, const std::vector<int>& warps) {
  const auto& issue = *op.as<core::Issue>();
  const std::string& name = issue.form->name;
  for (int w : warps) {
    values_[static_cast<std::size_t>(role_.warp->symbol->index)] = w;
    if (name.starts_with("stmatrix"))
      matrices(op, w);
    else if (name == "tma.store")
      copy_out(op, w);
    else if (std::any_of(issue.form->effects.accesses.begin(), issue.form->effects.accesses.end(),
                         [](const arch::Access& a) { return a.action != arch::Action::read; }))
      why = fmt::format("`{}` is not followed", name);
    if (!why.empty() || !violations.empty()) return;
  }
}

void Tile::covered(const core::Op& op) {
  const auto bad = std::find_if(stored_.begin(), stored_.end(), [](int n) { return n != 1; });
  if (bad == stored_.end()) return;
  const int64_t at = bad - stored_.begin();
  Violation v;
  v.kind = "placement";
  v.op = &op;
  v.lanes = "the elected lane";
  v.message = "an element of a tile is not stored exactly once";
  v.expected = "once";
  v.found = fmt::format("[corner + {}, corner + {}] {} times", at / columns_, at % columns_, *bad);
  v.help = "let the stores of a tile cover it";
  violations.push_back(std::move(v));
}

}  // namespace tessera::check
