// The products of an attention kernel: which queries meet which keys, and which weights which
// values.
#pragma once

#include <map>

#include "check/attention_means.h"
#include "check/flow.h"
#include "check/launch.h"
#include "check/online.h"
#include "check/operand.h"
#include "check/place.h"

namespace tessera::check {

class AttendProducts {
 public:
  AttendProducts(const core::Kernel& kernel, const Runs& runs, const Attention& means);

  /// False where something is refuted or not known: in `out`.
  bool trace(Flow& out);

  struct Product {
    bool scores = false;          // of queries and keys; else of weights and values
    int64_t lag = 0;              // turns since its keys, or values, were copied
    std::vector<Operand> a, b;    // by warpgroup of the role; a: of scores alone
    std::vector<uint64_t> depth;  // by warpgroup, of scores: which sixteenth of d
  };
  std::map<const core::Op*, Product> products;
  const core::Role* role = nullptr;
  const core::For* tiles =
      nullptr;  // over tiles of the output, around `loop`; null: a block has one
  const core::For* loop = nullptr;  // over blocks of keys
  Term row_corner;                  // of the tile's queries
  Term key_corner;                  // of a turn's keys, by the loop's counter
  std::vector<Term> batches;        // by dimension of the output; null for row and column
  int64_t rows = 0, keys = 0, columns = 0, depth = 0;

  bool refute(std::string_view kind, const core::Op* op, int warp, std::string message,
              std::string expected, std::string found, std::string help,
              const core::Op* other = nullptr, std::string other_text = "");
  bool give_up(std::string_view kind, std::string why);
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  /// Whether a read may see what a write left.
  [[nodiscard]] bool sees(const core::Op* read, const core::Op* write) const;
  /// What is done for a tile: the body that the loop over keys stands in.
  [[nodiscard]] const core::Body& body() const { return tiles ? tiles->body : role->body; }
  /// The loops over tiles and keys, the outermost first.
  [[nodiscard]] std::vector<const core::For*> loops() const {
    return tiles ? std::vector{tiles, loop} : std::vector{loop};
  }
  /// Those around an op within the work on a tile; nothing where it stands outside of that.
  [[nodiscard]] std::optional<std::vector<const core::For*>> within(const Place& p) const;
  /// The output's dimension of rows, or of columns.
  [[nodiscard]] int output_place(bool row) const {
    return means_.o.place(row ? means_.row : means_.column);
  }
  /// Extents: rows of the output, and of keys.
  [[nodiscard]] Term queries() const {
    return kernel_[means_.o.tensor].extents[static_cast<std::size_t>(output_place(true))];
  }
  [[nodiscard]] Term key_count() const {
    return kernel_[means_.k.tensor].extents[static_cast<std::size_t>(means_.k.place(means_.key))];
  }
  [[nodiscard]] Lengths lengths() const { return {queries(), key_count(), rows, keys}; }
  /// Names of the output's indices: batches as the stores have them.
  [[nodiscard]] Names names() const;
  /// Whether a term is 0 for all sizes; where it is not, or not known, told as of `kind`.
  bool is_zero(Term t, const Place& p, std::string_view kind, const std::string& message,
               const std::string& expected, const std::string& help);

 private:
  struct Copies {
    std::vector<const Place*> ops;
    int64_t lag = 0;
  };
  bool find_loop();
  bool only_results(const Place& p);
  bool stores();
  bool product(const Place& p);
  bool copies(const Place& p, core::SharedId shared, Copies& out);
  bool operand(const Place& p, std::string_view name, const IndexedBy& factor, std::string_view row,
               std::string_view k, int group, Operand& out, int64_t& lag);
  bool batches_agree(const Place& p, const IndexedBy& factor, const Operand& o);
  bool scores(const Place& p, Product& out);
  bool values(const Place& p, Product& out);
  bool blocks_agree(const Place& p, Term corner);

  const core::Kernel& kernel_;
  const Runs& runs_;
  const Attention& means_;
  std::vector<Place> places_;
  Flow* out_ = nullptr;
};

}  // namespace tessera::check
