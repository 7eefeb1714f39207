// Terms as expressions of Z3, over one way of writing numbers.
#pragma once

#include "smt/numbers.h"

namespace tessera::smt {

class Encoding {
 public:
  Encoding(Session& session, Numbers& numbers) : session_(session), numbers_(numbers) {}
  /// The same symbols and memories, but for `anew`, which get other values.
  Encoding(const Encoding& other, const std::vector<term::Term>& anew);

  /// A number of the way's sort, or a truth value. What is read agrees with the constant facts of
  /// its memory.
  Expr of(term::Term t);
  /// The condition that every read that evaluation of t reaches gives a value within its memory's
  /// bounds.
  Expr defined(term::Term t);
  /// The condition that the values of `symbols` obey their bounds, those that are terms too.
  Expr admissible(const std::vector<term::Term>& symbols);

  /// What was read, indices before what they index.
  [[nodiscard]] const std::vector<std::pair<term::Term, Expr>>& reads() const { return reads_; }
  /// The symbols that occur, with their values.
  [[nodiscard]] const std::map<term::Term, Expr, bool (*)(term::Term, term::Term)>& leaves() const {
    return leaves_;
  }

 private:
  Expr made(term::Term t);
  Expr leaf(term::Term t);
  Expr read(term::Term t);
  Expr compared(term::Term t, const std::vector<Expr>& x);
  Expr reached(term::Term t);
  Expr within(const term::Symbol& s, Expr value);

  static bool earlier(term::Term a, term::Term b) { return a->id < b->id; }

  Session& session_;
  Numbers& numbers_;
  std::string mark_;  // of the names of symbols that have other values
  std::map<term::Term, Expr, bool (*)(term::Term, term::Term)> leaves_{&earlier};
  std::map<const term::Node*, Expr> known_;
  std::map<const term::Node*, Expr> defined_;
  std::vector<std::pair<term::Term, Expr>> reads_;
};

}  // namespace tessera::smt
