#include "core/deal.h"

#include <algorithm>

#include "term/rules.h"
#include "term/sum.h"

namespace tessera::core {
namespace {

using term::Op;

/// The block's place in a round.
Term place_in(const Deal& d, Term round) {
  term::Pool& pool = d.block.pool();
  if (!d.alternates) return d.block;
  const Term even = term::equals(term::floor_mod(round, 2), pool.constant(0));
  return pool.must(Op::select, {even, d.block, d.blocks - 1 - d.block});
}

/// The deal by the number of its rounds, and a block's place in one of them.
std::optional<Deal> known(Term rounds, Term place, Term blocks) {
  Deal d{{}, place, blocks};
  if (place->op == Op::select) {
    d.block = place->args[1];
    d.alternates = true;
  }
  // items - place + blocks - 1: of the last round, whose number has the items in it.
  term::Sum rest = term::sum_of(rounds->args[0]);
  if (d.alternates) {
    const auto last = std::find_if(rest.parts.begin(), rest.parts.end(), [](const term::Part& p) {
      return p.atom->op == Op::select && p.coefficient == -1;
    });
    if (last == rest.parts.end()) return std::nullopt;
    rest.parts.erase(last);
    d.items = term::simplify(term::term_of(blocks.pool(), rest) - blocks + 1);
  } else {
    d.items = term::simplify(rounds->args[0] + place - blocks + 1);
  }
  if (term::simplify(rounds_of(d)) != term::simplify(rounds)) return std::nullopt;
  return d;
}

}  // namespace

Term rounds_of(const Deal& d) {
  term::Pool& pool = d.block.pool();
  // The last round is the only one that may have fewer items than blocks.
  const Term last = d.alternates ? pool.must(Op::divide, {d.items, d.blocks}) : Term();
  return pool.must(Op::divide, {d.items - place_in(d, last) + d.blocks - 1, d.blocks});
}

Term item_of(const Deal& d, Term round) {
  return place_in(d, round) + round * d.blocks;
}

std::optional<Deal> deal_of(Term item) {
  if (item->op != Op::add || item->args[1]->op != Op::multiply) return std::nullopt;
  const Term place = item->args[0], product = item->args[1];
  for (const auto& [round, blocks] : {std::pair(product->args[0], product->args[1]),
                                      std::pair(product->args[1], product->args[0])}) {
    const Term rounds = round->op == Op::counter ? round->symbol->bounds.upper : Term();
    if (rounds && rounds->op == Op::divide && rounds->args[1] == blocks)
      if (const std::optional<Deal> d = known(rounds, place, blocks)) return d;
  }
  return std::nullopt;
}

}  // namespace tessera::core
