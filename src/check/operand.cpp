#include "check/operand.h"

#include "check/brought.h"
#include "check/footprint.h"
#include "check/launch.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

/// One box of one copy.
struct Piece {
  const core::TensorMap* map = nullptr;
  int factor = 0;                // which of those that the operand may be of
  int64_t start = 0;             // its first byte, before the swizzle
  int k_dim = -1, row_dim = -1;  // of the map
  int64_t k = 0, row = 0;        // its corner, from that of the first piece
};

class Trace {
 public:
  Trace(const Reading& r, Operand& out) : r_(r), kernel_(r.kernel), out_(out) {}

  std::string go() {
    for (const Place* from : r_.writers)
      if (const std::string why = copies(*from); !why.empty()) return why;
    if (!out_.fault.empty()) return "";
    return elements();
  }

 private:
  std::string wrong(std::string message, std::string expected, std::string found) {
    out_.fault = std::move(message);
    out_.fault_expected = std::move(expected);
    out_.fault_found = std::move(found);
    return "";
  }
  [[nodiscard]] const ElementAt& factor(int which) const {
    return which == 0 ? r_.factor : r_.more[static_cast<std::size_t>(which - 1)];
  }
  [[nodiscard]] const std::string& name(int which = 0) const {
    return kernel_[factor(which).tensor].name;
  }
  /// The factor that is this tensor; -1: none is.
  [[nodiscard]] int factor_of(core::TensorId tensor) const {
    for (int f = 0; f <= static_cast<int>(r_.more.size()); ++f)
      if (factor(f).tensor == tensor) return f;
    return -1;
  }
  [[nodiscard]] std::string names() const {
    std::string out = fmt::format("`{}`", name());
    for (int f = 1; f <= static_cast<int>(r_.more.size()); ++f)
      out += fmt::format(" or `{}`", name(f));
    return out;
  }

  /// What is taken of a tensor that is no factor which the operand may be of.
  std::string other(core::TensorId of) {
    // A kernel may exchange A and B and turn the result, which is not looked into.
    const bool brought = std::ranges::any_of(
        kernel_.maps, [&](const core::TensorMap& m) { return factor_of(m.tensor) >= 0; });
    if (of == r_.other.tensor && brought) return "an operand is the other factor of the meaning";
    if (of == r_.other.tensor)
      return wrong("a product takes the other factor of the meaning, and no copy is of this one",
                   names(), fmt::format("`{}`", kernel_[of].name));
    return wrong("a product takes a tensor that is no factor of the meaning", names(),
                 fmt::format("`{}`", kernel_[of].name));
  }

  [[nodiscard]] std::string same_loops(const Place& from) const {
    if (!r_.other_loops && from.loops.size() != r_.reader.loops.size())
      return "a copy and its product stand in different loops";
    for (std::size_t i = 0; i < from.loops.size() && !r_.other_loops; ++i)
      if (from.loops[i]->counter != r_.reader.loops[i]->counter)
        return "the loops of a copy and of its product have different counters";
    return "";
  }

  /// The pieces of one op: one for each turn of unrolled loops, and for each block of the cluster
  /// that copies for all.
  std::string copies(const Place& from) {
    const auto* ref = argument<core::MapRef>(from.issue(), "map");
    const auto* blocks = argument<core::Integers>(from.issue(), "blocks");
    if (std::string why = same_loops(from); !why.empty()) return why;
    if (ref == nullptr) return stored(from);
    if (const core::TensorId of = kernel_[ref->map].tensor; factor_of(of) < 0) return other(of);
    for (Known turn : turns_of(from.unrolled))
      for (int rank = 0; rank < (blocks != nullptr ? kernel_.cluster : 1); ++rank) {
        if (blocks != nullptr) {
          turn[kernel_.at.rank.node()] = rank;
          if (value_of(blocks->values[0], turn) != (int64_t{1} << kernel_.cluster) - 1)
            return "a copy goes to some blocks of the cluster alone";
        }
        const std::string why = piece(from, ref->map, turn);
        if (!why.empty() || !out_.fault.empty()) return why;
      }
    return "";
  }

  std::string piece(const Place& from, core::MapId map, const Known& turn) {
    const auto* to = argument<core::SharedAt>(from.issue(), "to");
    const auto* corner = argument<core::Integers>(from.issue(), "at");
    Piece p{.map = &kernel_[map], .factor = factor_of(kernel_[map].tensor)};
    const ElementAt& of = factor(p.factor);
    out_.zeros &= p.map->fill == arch::OutOfBounds::zeros;
    const bool first = pieces_.empty();
    Term k, row, batch;
    std::vector<Term> free(of.at.size());
    for (std::size_t m = 0; m < p.map->dims.size() && m < corner->values.size(); ++m) {
      const Index& index = of.at[static_cast<std::size_t>(p.map->dims[m])];
      const Term at = with_values(corner->values[m], turn);
      if (index.axis == Axis::k) p.k_dim = static_cast<int>(m), k = at;
      if (index.axis == r_.row) p.row_dim = static_cast<int>(m), row = at;
      if (index.axis == Axis::batch) batch = at;
      if (index.axis == Axis::free) free[static_cast<std::size_t>(p.map->dims[m])] = at;
      if (index.axis == Axis::row || index.axis == Axis::column || index.axis == Axis::k) continue;
      if (p.map->box[m] != 1)
        return "a box has several elements along an index that is no row or k";
      if (index.axis == Axis::number)
        if (const std::string why = fixed(at, index.number); !why.empty() || !out_.fault.empty())
          return why;
    }
    if (p.k_dim < 0 || p.row_dim < 0) return "a copy has no dimension of rows, or none of k";
    if (first) {
      out_.map = map;
      out_.writer = from.op;
      out_.k_corner = k, out_.row_corner = row, out_.batch = batch, out_.free = free;
    } else {
      std::string why = apart(k - out_.k_corner, p.k);
      if (why.empty()) why = apart(row - out_.row_corner, p.row);
      if (!why.empty()) return why;
      if (batch && term::simplify(batch) != term::simplify(out_.batch))
        return "the copies of one operand have different batches";
      for (std::size_t d = 0; d < free.size(); ++d)
        if (free[d] && term::simplify(free[d]) != term::simplify(out_.free[d]))
          return "the copies of one operand have different batches";
    }
    return start(*to, turn, p);
  }

  /// The elements that one op stores, which the threads of its role have loaded.
  std::string stored(const Place& from) {
    if (from.role == nullptr || from.role == r_.reader.role || from.loops.empty())
      return "an operand is not copied by a tensor map";
    std::unique_ptr<Brought>& brought = brought_[from.loops.back()];
    if (brought == nullptr) brought = std::make_unique<Brought>(kernel_, *from.role, from.loops);
    if (const auto& fault = brought->fault) {
      out_.writer = fault->load;
      out_.fault_kind = "placement";
      out_.fault_help = "let the load happen where its elements lie in the tensor, and there alone";
      return wrong(fault->message, fault->expected, fault->found);
    }
    if (!brought->why.empty()) return brought->why;
    const auto* to = argument<core::SharedAt>(from.issue(), "to");
    for (const BroughtStore& store : brought->stores(from.op)) {
      std::vector<int64_t> place(r_.at.at.size());
      for (std::size_t i = 0; i + 2 < place.size(); ++i)
        if (std::string why = coordinate(*to, i, store.turn, place[i]); !why.empty()) return why;
      coordinates_.resize(place.size());
      for (std::size_t i = place.size() - 2; i < place.size(); ++i) {
        const std::optional<int64_t> read = value_of(r_.at.at[i], r_.known);
        if (!read) return "where a product's matrix begins is not known";
        coordinates_[i] = *read;
      }
      for (const BroughtElement& e : store.elements) {
        std::string why = put(from, e, place);
        if (!why.empty() || !out_.fault.empty()) return why;
      }
    }
    return "";
  }

  /// Of an element in shared memory: what it is of, from the corner, and how often it is brought.
  struct Found {
    int64_t k = 0, row = 0;
    int factor = 0;
    int times = 0;
  };

  /// A load's corner, from that of the first piece, and which dimensions are its row and its k.
  struct Corner {
    int factor = 0;
    std::size_t k_dim = 0, row_dim = 0;
    int64_t k = 0, row = 0;
  };

  std::string corner_of(const Place& from, const BroughtLoad& load, Corner& out) {
    const ElementAt& of = factor(out.factor);
    int dims = 0;
    for (std::size_t d = 0; d < of.at.size(); ++d) {
      if (of.at[d].axis == Axis::k) out.k_dim = d, ++dims;
      if (of.at[d].axis == r_.row) out.row_dim = d, ++dims;
    }
    if (dims != 2) return "a load has no dimension of rows, or none of k";
    const bool first = out_.writer == nullptr;
    if (first) {
      out_.writer = from.op;
      out_.k_corner = load.base[out.k_dim], out_.row_corner = load.base[out.row_dim];
      out_.free.resize(of.at.size());
    }
    for (std::size_t d = 0; d < of.at.size(); ++d) {
      if (d == out.k_dim || d == out.row_dim) continue;
      if (of.at[d].axis == Axis::number) {
        const std::string why = fixed(load.base[d], of.at[d].number);
        if (!why.empty() || !out_.fault.empty()) return why;
        continue;
      }
      Term& kept = of.at[d].axis == Axis::batch ? out_.batch : out_.free[d];
      if (first) kept = load.base[d];
      if (!kept || term::simplify(kept) != term::simplify(load.base[d]))
        return "the loads of one operand have different batches";
    }
    std::string why = apart(load.base[out.k_dim] - out_.k_corner, out.k);
    return why.empty() ? apart(load.base[out.row_dim] - out_.row_corner, out.row) : why;
  }

  /// One element that threads have stored; `place` has the slots.
  std::string put(const Place& from, const BroughtElement& e, std::vector<int64_t>& place) {
    place[place.size() - 2] = e.row, place[place.size() - 1] = e.column;
    const std::optional<int64_t> byte = byte_of(kernel_[r_.at.shared], place);
    if (!byte) return "threads store beyond their shared memory";
    Found& found = put_[*byte];
    ++found.times;
    const auto [at, fresh] = corners_.try_emplace(e.load);
    Corner& corner = at->second;
    if (fresh) {
      corner.factor = factor_of(e.load->tensor);
      if (corner.factor < 0) return other(e.load->tensor);
      std::string why = corner_of(from, *e.load, corner);
      if (!why.empty() || !out_.fault.empty()) return why;
      // What rows beyond the extent hold goes to rows of the result that are not stored.
      out_.zeros &= e.load->over_zeros || !e.load->bounded[corner.k_dim];
    }
    for (std::size_t d = 0; d < e.at.size(); ++d)
      if (d != corner.k_dim && d != corner.row_dim && e.at[d] != 0)
        return "a load has several elements along an index that is no row or k";
    found.k = corner.k + e.at[corner.k_dim];
    found.row = corner.row + e.at[corner.row_dim];
    found.factor = corner.factor;
    return "";
  }

  /// An index that the meaning has as a number.
  std::string fixed(Term at, int64_t number) {
    const std::optional<int64_t> v = value_of(at, {});
    if (v == number) return "";
    const auto found = v ? std::optional(std::to_string(*v)) : varies(kernel_, r_.reader.loops, at);
    if (!found) return fmt::format("it is not known that `{}` is {}", to_string(at), number);
    return wrong(fmt::format("a copy takes `{}` at another index than the meaning has", name()),
                 std::to_string(number), *found);
  }

  /// How far a piece's corner is from the first one's.
  std::string apart(Term t, int64_t& out) {
    if (const std::optional<int64_t> v = value_of(t, {})) return out = *v, "";
    if (const auto found = varies(kernel_, r_.reader.loops, t)) {
      wrong(fmt::format("the copies of one operand are of different tiles of `{}`", name()),
            "their corners are apart by one number", fmt::format("apart by {}", *found));
      return "";
    }
    return "the corners of an operand's copies are not comparable";
  }

  /// A coordinate as it is written. One of the slots of a ring is 0, there and where it is read: it
  /// is the same, and slots lie alike.
  std::string coordinate(const core::SharedAt& to, std::size_t i, const Known& turn, int64_t& out) {
    const core::Shared& s = kernel_[r_.at.shared];
    Term written = with_values(to.at[i], turn);
    if (r_.as) written = with_term(written, r_.counter, r_.as);
    const std::optional<int64_t> r = value_of(r_.at.at[i], r_.known), w = value_of(written, {});
    coordinates_.resize(r_.at.at.size());
    coordinates_[i] = r && w ? *r : 0;
    out = r && w ? *w : 0;
    if (r && w) return "";
    if (term::simplify(r_.at.at[i]) != term::simplify(written))
      return "a copy and its product name slots differently";
    const int64_t stride = size_of(s.element) * s.layout.stride().mode(static_cast<int>(i)).value;
    const int64_t period = arch::alignment_of(s.swizzle);
    if (stride % period == 0) return "";
    return fmt::format("slots do not lie a multiple of {} bytes apart, as their swizzle repeats",
                       period);
  }

  /// Where the box begins.
  std::string start(const core::SharedAt& to, const Known& turn, Piece& p) {
    const core::Shared& s = kernel_[r_.at.shared];
    std::vector<int64_t> writes(r_.at.at.size());
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (std::string why = coordinate(to, i, turn, writes[i]); !why.empty()) return why;
    if (!byte_of(s, writes)) return "a copy leaves its shared memory";
    p.start = s.at + size_of(s.element) * s.layout.at(writes);
    pieces_.push_back(p);
    return "";
  }

  [[nodiscard]] Found find(int64_t byte) const {
    const auto put = put_.find(byte);
    Found out = put == put_.end() ? Found{} : put->second;
    for (const Piece& p : pieces_)
      if (const auto e = box_element(kernel_, *p.map, p.start, byte)) {
        out.k = p.k + (*e)[static_cast<std::size_t>(p.k_dim)];
        out.row = p.row + (*e)[static_cast<std::size_t>(p.row_dim)];
        out.factor = p.factor;
        ++out.times;
      }
    return out;
  }

  std::string elements() {
    const core::Shared& s = kernel_[r_.at.shared];
    const std::size_t rank = coordinates_.size();
    const int64_t row = coordinates_[rank - 2], step = coordinates_[rank - 1];
    out_.k.assign(static_cast<std::size_t>(r_.steps), -1);
    out_.rows.assign(static_cast<std::size_t>(r_.rows), -1);
    out_.factors.assign(static_cast<std::size_t>(r_.rows), 0);
    for (int64_t i = 0; i < r_.rows; ++i)
      for (int64_t j = 0; j < r_.steps; ++j) {
        coordinates_[rank - 2] = row + i;
        coordinates_[rank - 1] = step + j;
        const std::optional<int64_t> byte = byte_of(s, coordinates_);
        if (!byte) return "a product leaves its shared memory";
        const Found here = find(*byte);
        if (here.times > 1)
          return wrong(fmt::format("two copies bring the same place of `{}`", s.name),
                       "each place of the operand by one copy",
                       fmt::format("byte {} by {}", *byte, here.times));
        if (here.times == 0)
          return wrong(fmt::format("a product reads of `{}` what its copy does not bring", s.name),
                       fmt::format("row {}, k {} of the instruction lies in the box", i, j),
                       fmt::format("byte {} lies outside of it", *byte));
        int64_t& k_of = out_.k[static_cast<std::size_t>(j)];
        int64_t& row_of = out_.rows[static_cast<std::size_t>(i)];
        if (i == 0) k_of = here.k;
        int& factor_of = out_.factors[static_cast<std::size_t>(i)];
        if (j == 0) row_of = here.row, factor_of = here.factor;
        if (k_of != here.k || row_of != here.row || factor_of != here.factor)
          return wrong(
              fmt::format("a product reads other elements of `{}` than its place says",
                          name(factor_of)),
              fmt::format("{}[corner + {}, k corner + {}] at row {}, step {}", name(factor_of),
                          row_of, k_of, i, j),
              fmt::format("{}[corner + {}, k corner + {}]", name(here.factor), here.row, here.k));
      }
    return "";
  }

  const Reading& r_;
  const core::Kernel& kernel_;
  Operand& out_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> coordinates_;  // of the matrix's first element, slots at 0
  std::map<const core::For*, std::unique_ptr<Brought>> brought_;  // by the loop around stores
  std::map<const BroughtLoad*, Corner> corners_;
  std::unordered_map<int64_t, Found> put_;  // by byte: what threads have stored
};

}  // namespace

std::string trace(const Reading& reading, Operand& out) {
  return Trace(reading, out).go();
}

}  // namespace tessera::check
