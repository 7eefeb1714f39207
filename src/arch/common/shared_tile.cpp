#include "arch/shared_tile.h"

namespace tessera::arch {
namespace {

constexpr Code no_such_tile{"TS0451", "arch.no_such_tile"};

constexpr int64_t rows = 8;  // of an atom

}  // namespace

int64_t width_of(SwizzleMode s) {
  return int64_t{16} << static_cast<int>(s);
}

Swizzle swizzle_of(SwizzleMode s) {
  return {static_cast<int>(s), 4, 3};
}

int64_t alignment_of(SwizzleMode s) {
  return rows * width_of(s);
}

int code_of(SwizzleMode s) {
  return s == SwizzleMode::none ? 0 : 4 - static_cast<int>(s);
}

std::string_view name_of(SwizzleMode s) {
  switch (s) {
    case SwizzleMode::none:
      return "none";
    case SwizzleMode::bytes_32:
      return "32B";
    case SwizzleMode::bytes_64:
      return "64B";
    case SwizzleMode::bytes_128:
      return "128B";
  }
  return "";
}

std::string_view name_of(Major m) {
  return m == Major::k ? "k" : "mn";
}

int64_t SharedTile::atom_mn() const {
  return major == Major::k ? rows : width_of(swizzle) / bytes_of(element);
}
int64_t SharedTile::atom_k() const {
  return major == Major::k ? width_of(swizzle) / bytes_of(element) : rows;
}

Layout SharedTile::atom() const {
  const IntTuple shape = IntTuple::flat({atom_mn(), atom_k()});
  return major == Major::k ? Layout(shape, IntTuple::flat({atom_k(), 1}))
                           : Layout(shape, IntTuple::flat({1, atom_mn()}));
}

Layout SharedTile::layout() const {
  const Layout one = atom();
  const int64_t along_mn = mn / atom_mn(), along_k = k / atom_k(), step = one.size();
  const auto mode = [](const Layout& inner, int64_t extent, int64_t stride) {
    return concat({inner, Layout(extent, stride)});
  };
  return concat({mode(one.mode(0), along_mn, step), mode(one.mode(1), along_k, step * along_mn)});
}

int64_t SharedTile::byte_at(int64_t mn_index, int64_t k_index) const {
  return swizzle_of(swizzle)(layout().at({mn_index, k_index}) * bytes_of(element));
}

int64_t SharedTile::leading_bytes() const {
  const int64_t atom_bytes = rows * width_of(swizzle);
  const int64_t along_mn = mn / atom_mn();
  if (swizzle == SwizzleMode::none) return atom_bytes * along_mn;
  return major == Major::k ? 16 : atom_bytes;
}

int64_t SharedTile::stride_bytes() const {
  const int64_t atom_bytes = rows * width_of(swizzle);
  if (major == Major::k || swizzle == SwizzleMode::none) return atom_bytes;
  return atom_bytes * (mn / atom_mn());
}

uint64_t SharedTile::descriptor(uint32_t address, int64_t mn_index, int64_t k_index) const {
  const uint64_t start =
      address + static_cast<uint64_t>(layout().at({mn_index, k_index})) * bytes_of(element);
  const auto field = [](int64_t bytes) { return static_cast<uint64_t>(bytes >> 4) & 0x3fff; };
  return ((start >> 4) & 0x3fff) | field(leading_bytes()) << 16 | field(stride_bytes()) << 32 |
         static_cast<uint64_t>(code_of(swizzle)) << 62;
}

Result<SharedTile> shared_tile(Element element, Major major, SwizzleMode swizzle, int64_t mn,
                               int64_t k) {
  const SharedTile tile{element, major, swizzle, mn, k};
  if (major == Major::mn && bytes_of(element) != 2)
    return error(fail(no_such_tile, "wgmma reads {} with k contiguous alone", name_of(element))
                     .expect("16-bit elements, or Major::k"));
  if (mn <= 0 || k <= 0 || mn % tile.atom_mn() != 0 || k % tile.atom_k() != 0)
    return error(fail(no_such_tile, "a tile of {} x {} is not made of whole atoms", mn, k)
                     .expect("multiples of {} x {} elements of {}", tile.atom_mn(), tile.atom_k(),
                             name_of(element)));
  return tile;
}

}  // namespace tessera::arch
