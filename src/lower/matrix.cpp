#include "lower/matrix.h"

#include "base/text.h"

#include "lower/codes.h"

namespace tessera::lower {
namespace {

using arch::Element;
using arch::Major;
using arch::SwizzleMode;
using core::Shared;

constexpr int64_t rows = 8;  // of an atom

std::optional<Element> element_named(std::string_view name) {
  for (const Element e : {Element::f16, Element::bf16, Element::tf32, Element::e4m3, Element::e5m2,
                          Element::s8, Element::u8})
    if (arch::name_of(e) == name) return e;
  return std::nullopt;
}

/// The matrix of a storage as its last two modes have it, in bytes.
class Tile {
 public:
  explicit Tile(const Shared& s)
      : size_(size_of(s.element)),
        mn_(s.layout.mode(s.layout.rank() - 2)),
        k_(s.layout.mode(s.layout.rank() - 1)) {}
  [[nodiscard]] int64_t mn() const { return mn_.size(); }
  [[nodiscard]] int64_t k() const { return k_.size(); }
  [[nodiscard]] int64_t byte(int64_t mn, int64_t k) const { return size_ * (mn_(mn) + k_(k)); }
  /// Bytes to the next atom; of one atom alone, what is not stepped over may be anything.
  [[nodiscard]] int64_t to_mn(int64_t step) const { return step < mn() ? byte(step, 0) : 0; }
  [[nodiscard]] int64_t to_k(int64_t step) const { return step < k() ? byte(0, step) : 0; }

 private:
  int64_t size_;
  Layout mn_, k_;
};

/// Offsets of a descriptor, and where they say that an element lies.
struct Offsets {
  int64_t width = 128;  // bytes of a row of an atom
  Major major = Major::k;
  bool swizzled = true;
  int64_t size = 2;
  int64_t mn_step = 0, k_step = 0;  // bytes from atom to atom

  [[nodiscard]] int64_t along() const { return width / size; }
  [[nodiscard]] int64_t atom_mn() const { return major == Major::k ? rows : along(); }
  [[nodiscard]] int64_t atom_k() const { return major == Major::k ? along() : rows; }
  [[nodiscard]] int64_t byte(int64_t mn, int64_t k) const {
    const int64_t in_mn = mn % atom_mn(), in_k = k % atom_k();
    const int64_t in =
        major == Major::k ? in_mn * width + in_k * size : in_k * width + in_mn * size;
    return in + mn / atom_mn() * mn_step + k / atom_k() * k_step;
  }
  /// PTX's names: the stride is that between rows of atoms, the leading one the other; hardware
  /// takes no leading one of a swizzled tile with k contiguous.
  [[nodiscard]] int64_t leading() const {
    if (!swizzled) return k_step;
    return major == Major::k ? 16 : mn_step;
  }
  [[nodiscard]] int64_t stride() const { return !swizzled || major == Major::k ? mn_step : k_step; }
};

/// Whether every instruction's matrix in the tile lies as the offsets say.
bool agrees(const Tile& tile, const Offsets& o, const MatrixRead& read) {
  for (int64_t m0 = 0; m0 + read.mn <= tile.mn(); m0 += rows)
    for (int64_t k0 = 0; k0 + read.k <= tile.k(); k0 += read.k) {
      const bool whole = o.major == Major::k || m0 % o.atom_mn() == 0;
      if (!whole) continue;
      const int64_t start = tile.byte(m0, k0), from = o.byte(0, k0 % o.atom_k());
      for (int64_t m = 0; m < read.mn; ++m)
        for (int64_t k = 0; k < read.k; ++k)
          if (tile.byte(m0 + m, k0 + k) - start != o.byte(m, k0 % o.atom_k() + k) - from)
            return false;
    }
  return true;
}

Diagnostic unfit(const Shared& s, const MatrixRead& read, const Offsets& o) {
  return fail(bad_matrix, "wgmma cannot read a matrix of `{}`", s.name)
      .expect(
          "in its last two modes, {} x {} elements of {} with {} contiguous, in atoms of {} "
          "rows of {} bytes one after the other",
          read.mn, read.k, arch::name_of(read.element), arch::name_of(read.major), rows, o.width)
      .but_found("{} of {}, swizzle {}", to_string(s.layout), short_name(s.element),
                 arch::name_of(s.swizzle))
      .help("docs/instructions.md, `Tiles in shared memory`, has the layouts that it reads");
}

}  // namespace

Result<MatrixRead> matrix_read(const core::Issue& issue, std::string_view operand) {
  const std::vector<std::string> parts = split(issue.form->name, '.');  // wgmma.f32.bf16.bf16.ss
  const auto none = [&] {
    return error(
        fail(unsupported, "`{}` has no matrix `{}` in shared memory", issue.form->name, operand));
  };
  if (parts.size() < 5 || parts[0] != "wgmma") return none();
  const std::optional<Element> element = element_named(operand == "a" ? parts[2] : parts[3]);
  if (!element) return none();
  MatrixRead read{*element, Major::k, 64, 32 / arch::bytes_of(*element)};
  if (operand == "b") {
    const auto n = arch::value_of(arch::Amount::modifier("n"), issue.choices);
    if (!n) return none();
    read.mn = *n;
  }
  const std::string transpose = "transpose_" + std::string(operand);
  for (std::size_t i = 0; i < issue.form->operands.size() && i < issue.arguments.size(); ++i) {
    const auto* const value = std::get_if<core::Integers>(&issue.arguments[i]);
    if (issue.form->operands[i].name != transpose || value == nullptr) continue;
    if (value->values.size() != 1 || value->values[0]->op != term::Op::constant) return none();
    if (value->values[0]->value != 0) read.major = Major::mn;
  }
  return read;
}

Result<MatrixBits> matrix_bits(const core::Kernel& k, const core::SharedAt& at,
                               const MatrixRead& read) {
  const Shared& s = k[at.shared];
  Offsets o{arch::width_of(s.swizzle), read.major, s.swizzle != SwizzleMode::none,
            size_of(s.element)};
  if (s.layout.rank() < 2 || at.at.size() < 2 || arch::storage_of(read.element) != s.element ||
      (read.major == Major::mn && o.size != 2))
    return error(unfit(s, read, o));
  const Tile tile(s);
  o.mn_step = tile.to_mn(o.atom_mn());
  o.k_step = tile.to_k(o.atom_k());
  if (tile.mn() < read.mn || tile.k() < read.k || !agrees(tile, o, read))
    return error(unfit(s, read, o));
  const term::Facts& mn_at = at.at[at.at.size() - 2]->facts;
  const term::Facts& k_at = at.at.back()->facts;
  const int64_t mn_multiple = read.major == Major::k ? rows : o.atom_mn();
  if (!mn_at.multiple_of(mn_multiple) || !k_at.multiple_of(read.k))
    return error(fail(bad_matrix, "wgmma reads `{}` from ({}, {})", s.name,
                      term::to_string(at.at[at.at.size() - 2]), term::to_string(at.at.back()))
                     .expect("multiples of {} and {}", mn_multiple, read.k));
  const auto field = [](int64_t bytes) { return static_cast<uint32_t>(bytes >> 4) & 0x3fff; };
  return MatrixBits{field(o.leading()) << 16,
                    field(o.stride()) | static_cast<uint32_t>(arch::code_of(s.swizzle)) << 30};
}

}  // namespace tessera::lower
