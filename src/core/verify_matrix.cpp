// Matrices of descriptors: what wgmma reads through one is canonical (arch/shared_tile.h), so each
// of its elements has to lie in shared memory where the canonical layout has it.
//
// A canonical matrix is made of atoms. Along m or n, and along k, elements lie as in an atom as far
// as it goes, and atoms any multiple of 16 bytes apart: the two offsets of the descriptor.
#include <map>
#include <set>

#include "core/print.h"
#include "core/verifier.h"

namespace tessera::core {
namespace {

/// An offset of a descriptor has 14 bits, of 16 bytes.
constexpr int64_t most_offset = int64_t{1} << 18;
constexpr int64_t most_starts = 256, most_tried = 1 << 16;

/// One axis of a matrix: `count` elements of one mode of the layout.
struct Axis {
  std::string name;  // "row" or "k"
  int mode;
  int64_t count;
  int64_t atom, step;  // elements of an atom along it, and how far apart
};

struct Matrix {
  const Issued& i;
  const SharedAt& at;
  const Shared& shared;
  arch::SharedTile tile;
  Span span;

  [[nodiscard]] int64_t size() const { return size_of(shared.element); }

  /// Where the axis may begin: what its term's facts leave.
  [[nodiscard]] std::optional<std::vector<int64_t>> starts(const Axis& a) const {
    const Term t = at.at[a.mode];
    if (auto known = i.site.values(t)) return known;
    std::vector<int64_t> out;
    for (int64_t s = 0; s + a.count <= shared.layout.mode(a.mode).size(); ++s) {
      if (s == most_tried) return std::nullopt;
      if (!t->facts.holds(s)) continue;
      if (static_cast<int64_t>(out.size()) == most_starts) return std::nullopt;
      out.push_back(s);
    }
    return out;
  }

  /// One axis from one start: nothing, or what is wrong.
  [[nodiscard]] std::optional<Diagnostic> differs(const Axis& a, int64_t start,
                                                  std::set<int64_t>& offsets) const {
    const Layout mode = coalesce(shared.layout.mode(a.mode));
    const auto place = [&](int64_t x) { return mode(start + x) - mode(start); };
    const int64_t apart = a.count > a.atom ? place(a.atom) : 0;
    if (a.count > a.atom) offsets.insert(apart);
    for (int64_t x = 0; x < a.count; ++x) {
      const int64_t canonical = x % a.atom * a.step + x / a.atom * apart;
      if (place(x) == canonical) continue;
      return fail(bad_matrix, "`{}` does not lie as `{}` reads it", shared.name, i.form().name)
          .expect(
              "{} {} of the matrix {} bytes behind its start: atoms of {} x {} elements, {} "
              "contiguous, swizzle {}",
              a.name, x, canonical * size(), tile.atom_mn(), tile.atom_k(),
              tile.major == arch::Major::k ? "k" : "rows", swizzle_text(tile.swizzle))
          .but_found("{} bytes behind, by \"{}\"", place(x) * size(), to_string(shared.layout));
    }
    if (apart * size() % 16 == 0 && apart >= 0 && apart * size() < most_offset) return std::nullopt;
    return fail(bad_matrix, "a descriptor cannot say how far apart the atoms of `{}` are",
                shared.name)
        .expect("a multiple of 16 bytes below {}", most_offset)
        .but_found("{} bytes", apart * size());
  }

  [[nodiscard]] bool lies(const Axis& a) const {
    const auto all = starts(a);
    if (!all) {
      Diagnostic d = fail(undecided, "could not decide whether `{}` lies as `{}` reads it",
                          shared.name, i.form().name)
                         .but_found("`{}`", term::to_string(at.at[a.mode]))
                         .help("begin matrices at multiples of their atoms");
      d.level = Level::warning;
      i.site.report(std::move(d), span);
      return false;
    }
    std::set<int64_t> offsets;
    for (const int64_t start : *all) {
      auto d = differs(a, start, offsets);
      if (!d || is_impossible(a, start)) continue;
      i.site.report(std::move(*d), span);
      return false;
    }
    if (offsets.size() <= 1) return true;
    i.site.report(fail(bad_matrix, "the atoms of `{}` are not the same distance apart everywhere",
                       shared.name)
                      .expect("one offset for a descriptor")
                      .but_found("\"{}\"", to_string(shared.layout)),
                  span);
    return false;
  }

  /// What facts leave may still not happen.
  [[nodiscard]] bool is_impossible(const Axis& a, int64_t start) const {
    std::vector<Diagnostic> ignored;
    Site site(i.site.kernel, i.site.arch, ignored);
    site.conditions = i.site.conditions;
    return site.prove({.holds = logical_not(equals(at.at[a.mode], site.pool().constant(start))),
                       .code = bad_matrix,
                       .wrong = "",
                       .expected = "",
                       .found = "",
                       .whether = ""},
                      span);
  }

  /// The swizzle is of absolute addresses: the first row has to be the first of an atom.
  void begins() const {
    term::Pool& pool = i.site.pool();
    const Term byte = address_term(i.site.kernel, at);
    const int64_t width = arch::width_of(shared.swizzle);
    Term holds = equals(floor_mod(byte, 16), pool.constant(0));
    if (shared.swizzle != arch::SwizzleMode::none)
      holds = logical_and(holds, equals(floor_mod(floor_div(byte, width), 8), pool.constant(0)));
    i.site.prove(
        {.holds = holds,
         .code = bad_matrix,
         .wrong = fmt::format("the matrix of `{}` does not begin at the first row of an atom",
                              shared.name),
         .expected = shared.swizzle == arch::SwizzleMode::none
                         ? std::string("a multiple of 16 bytes")
                         : fmt::format("within the first {} of every {} bytes, at a multiple "
                                       "of 16",
                                       width, 8 * width),
         .found = "byte " + quoted(byte),
         .whether =
             fmt::format("the matrix of `{}` begins at the first row of an atom", shared.name)},
        span);
  }

  void verify(int64_t rows, int64_t depth) const {
    const int rank = shared.layout.rank();
    const Layout atom = tile.atom();
    const Axis axes[] = {{"row", rank - 2, rows, tile.atom_mn(), atom.mode(0)(1)},
                         {"k", rank - 1, depth, tile.atom_k(), atom.mode(1)(1)}};
    for (const Axis& a : axes)
      if (!i.site.prove_range(
              at.at[a.mode], a.count, shared.layout.mode(a.mode).size(), bad_matrix,
              fmt::format("the matrix of `{}`, {} along mode {}", shared.name, a.count, a.mode),
              span) ||
          !lies(a))
        return;
    begins();
  }
};

/// Whether the matrix is contiguous along m or n: an immediate of the forms that have a choice.
arch::Major major_of(const Issued& i, const char* transpose) {
  const Argument* a = i.argument(transpose);
  const auto* n = a == nullptr ? nullptr : std::get_if<Integers>(a);
  if (n == nullptr) return arch::Major::k;
  const auto values = i.site.values(n->values[0]);
  return values && *values == std::vector<int64_t>{1} ? arch::Major::mn : arch::Major::k;
}

void verify_matrix(const Issued& i, const char* operand, const char* transpose,
                   arch::Element element, int64_t rows, int64_t depth) {
  const Argument* argument = i.argument(operand);
  const auto* at = argument == nullptr ? nullptr : std::get_if<SharedAt>(argument);
  if (at == nullptr) return;
  const Shared& s = i.site.kernel[at->shared];
  const Span span = i.span(i.index(operand));
  if (s.element != arch::storage_of(element))
    return i.site.report(
        fail(bad_matrix, "`{}` holds another element type than `{}` reads", s.name, i.form().name)
            .expect("{}", short_name(arch::storage_of(element)))
            .but_found("{}", short_name(s.element)),
        span);
  if (s.layout.rank() < 2)
    return i.site.report(fail(bad_matrix, "`{}` is no matrix", s.name)
                             .expect("two modes at least, the last two (rows, k)")
                             .but_found("\"{}\"", to_string(s.layout)),
                         span);
  const arch::SharedTile tile{element, major_of(i, transpose), s.swizzle};
  Matrix{i, *at, s, tile, span}.verify(rows, depth);
}

}  // namespace

std::optional<arch::Wgmma> wgmma_of(const Issue& i) {
  static const std::map<const arch::Form*, arch::Wgmma> kinds = [] {
    std::map<const arch::Form*, arch::Wgmma> out;
    for (const arch::Wgmma& w : arch::wgmma_kinds()) out.emplace(&w.form(), w);
    return out;
  }();
  const auto found = kinds.find(i.form);
  const auto n = value_of(arch::Amount::modifier("n"), i.choices);
  if (found == kinds.end() || !n) return std::nullopt;
  arch::Wgmma w = found->second;
  w.n = *n;
  return w;
}

void verify_matrices(const Issued& i) {
  const auto w = wgmma_of(i.issue);
  if (!w) return;
  verify_matrix(i, "a", "transpose_a", w->a, arch::Wgmma::m, w->k());
  verify_matrix(i, "b", "transpose_b", w->b, w->n, w->k());
}

}  // namespace tessera::core
