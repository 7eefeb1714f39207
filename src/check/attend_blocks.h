// The blocks of keys that a tile's turns take in: one after the other, from either end, and no key
// that a row sees lies before the first of them or behind the last.
#pragma once

#include "check/attend_products.h"

namespace tessera::check {

class KeyBlocks {
 public:
  /// `loop`: the op of the loop over keys.
  KeyBlocks(const core::Kernel& kernel, AttendProducts& products, const core::Op* loop);

  /// Each turn takes the block next to the one before, none begins before key 0, and there is one
  /// turn at least. Where that is false or not known: told to the products.
  bool in_order();
  /// Keys outside of all blocks are seen by no row. `seen`: the meaning's predicate on a row of the
  /// tile and a key; `hidden`: its contrary, of the block's columns.
  bool reach(const SeenKeys& keys, const std::vector<SeenKeys::Hidden>& hidden,
             const std::function<Term(int64_t, Term)>& seen);

 private:
  /// Bounds that hide a key and all behind it (`behind`), or all before it.
  struct Side {
    std::vector<SeenKeys::Hidden> bounds;
    int64_t worst = 0;  // the row that sees most on this side
  };
  bool side(const std::vector<SeenKeys::Hidden>& hidden, bool behind, Side& out);
  [[nodiscard]] std::vector<const core::For*> around() const;
  [[nodiscard]] std::optional<std::string> found(Term claim) const;
  bool starts_at_zero();
  bool at_least_one();
  [[nodiscard]] Term quotient(Term keys) const;
  [[nodiscard]] bool hidden_from(Term key) const;
  [[nodiscard]] bool hidden_up_to(Term key) const;
  [[nodiscard]] bool by_rounding(Term blocks) const;
  [[nodiscard]] bool begins_in_time(Term turns) const;
  [[nodiscard]] Term hidden_on(const Side& side, Term key) const;
  bool ends_late();
  bool begins_early();

  const core::Kernel& kernel_;
  AttendProducts& products_;
  const core::Op* op_;
  const core::For& loop_;
  bool down_ = false;  // from the last block to the first
  Term first_;         // the corner of turn 0
  Side behind_, before_;
  const SeenKeys* keys_ = nullptr;
  std::function<Term(int64_t, Term)> seen_;
};

}  // namespace tessera::check
