// The search for an admissible assignment, or for two, under one way of writing numbers.
#pragma once

#include "smt/encoding.h"
#include "smt/query.h"

namespace tessera::smt {

/// What to find: an assignment at which all of `original` evaluate to true; or, with coordinates,
/// two that differ in these alone and give `original[0]`, a number, one value.
struct Problem {
  std::vector<term::Term> original;
  std::vector<term::Term> normal;  // the same, in a form that is easier to decide
  std::vector<term::Term> coordinates;
};

struct Found {
  Answer answer = Answer::unknown;
  std::string reason;
  term::Assignment model;
  term::Assignment other;
  Tier by = Tier::none;
  int64_t work = 0;
};

/// By the ways that fit the problem, until one decides; or by `only` one of them.
Found search(const Library& library, const Problem& problem, const Limits& limits,
             std::optional<Tier> only = {});

/// `candidate` as an answer: symbols that it lacks get their first admissible values, reads that it
/// lacks the least ones, and what the evaluation did not read is left out. nullopt if it is none.
std::optional<std::pair<term::Assignment, term::Assignment>> replayed(
    const Problem& problem, const term::Assignment& candidate, const term::Assignment& other);

}  // namespace tessera::smt
