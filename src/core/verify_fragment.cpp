// Registers of matrix instructions: every slot of every thread has to hold, of one tile, the
// element that the instruction's fragment has there.
#include <map>

#include "core/print.h"
#include "core/verifier.h"

namespace tessera::core {
namespace {

/// (thread, slot) to first + `rows` * second: the coordinates (m or n, and k or n) of a fragment.
struct Fragment {
  Layout layout;
  int64_t rows;
  DType element;
};

/// All values of a layout.
std::vector<int64_t> table_of(const Layout& l) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < l.size(); ++i) out.push_back(l(i));
  return out;
}

struct Holder {
  const Issued& i;
  std::string_view operand;
  const Registers& registers;
  const Fragment& fragment;
  std::vector<int64_t> held_threads = table_of(registers.layout.mode(0)),
                       held_slots = table_of(registers.layout.mode(1)),
                       threads_of = table_of(fragment.layout.mode(0)),
                       slots_of = table_of(fragment.layout.mode(1));

  [[nodiscard]] int64_t element(int64_t thread, int64_t slot) const {
    return held_threads[thread] + held_slots[slot];
  }
  [[nodiscard]] int64_t in_fragment(int64_t thread, int64_t slot) const {
    return threads_of[thread] + slots_of[slot];
  }
  [[nodiscard]] int64_t threads() const { return static_cast<int64_t>(threads_of.size()); }
  [[nodiscard]] int64_t slots() const { return static_cast<int64_t>(slots_of.size()); }

  /// How far apart in the tile are the fragment's element `wanted` and its first.
  [[nodiscard]] int64_t stride(int64_t group, int64_t first, int64_t wanted) const {
    for (int64_t t = 0; t < threads(); ++t)
      for (int64_t s = 0; s < slots(); ++s)
        if (in_fragment(t, s) == wanted)
          return element(group * threads() + t, first + s) - element(group * threads(), first);
    return 0;
  }

  /// An axis of the tile along which neighbours are `stride` apart; -1: none.
  [[nodiscard]] int axis(int64_t stride) const {
    int64_t step = 1;
    for (std::size_t a = 0; a < registers.tile.size(); ++a) {
      if (step == stride && registers.tile[a] > 1) return static_cast<int>(a);
      step *= registers.tile[a];
    }
    return -1;
  }
  [[nodiscard]] std::string coordinates(int64_t e) const {
    std::string out;
    for (const int64_t extent : registers.tile) {
      out += (out.empty() ? "[" : ", ") + std::to_string(e % extent);
      e /= extent;
    }
    return out + "]";
  }

  /// True when the slots from `first` on of this group of threads hold the fragment.
  bool holds(int64_t group, int64_t first) const {
    const int64_t down = stride(group, first, 1), along = stride(group, first, fragment.rows);
    const int64_t base = element(group * threads(), first);
    const int row = axis(down), column = axis(along);
    if (row < 0 || column < 0 || row == column) {
      i.site.report(
          wrong()
              .expect("its neighbours along rows and along columns to be neighbours "
                      "along two axes of the tile")
              .but_found("{} and {} elements apart in a tile of {}", down, along, tile_text()),
          span());
      return false;
    }
    for (int64_t t = 0; t < threads(); ++t)
      for (int64_t s = 0; s < slots(); ++s) {
        const int64_t f = in_fragment(t, s);
        const int64_t wanted = base + f % fragment.rows * down + f / fragment.rows * along;
        const int64_t found = element(group * threads() + t, first + s);
        if (found == wanted) continue;
        i.site.report(wrong()
                          .expect("`{}`{} in slot {} of thread {}", registers.name,
                                  coordinates(wanted), first + s, group * threads() + t)
                          .but_found("`{}`{}", registers.name, coordinates(found))
                          .help("the fragment of {} threads is \"{}\"", threads(),
                                to_string(fragment.layout)),
                      span());
        return false;
      }
    return true;
  }

  [[nodiscard]] Diagnostic wrong() const {
    return fail(bad_registers, "`{}` is not laid out as `{}` of `{}`", registers.name, operand,
                i.form().name);
  }
  [[nodiscard]] Span span() const { return i.span(i.index(operand)); }
  [[nodiscard]] std::string tile_text() const {
    std::string out;
    for (const int64_t e : registers.tile) out += (out.empty() ? "[" : ", ") + std::to_string(e);
    return out + "]";
  }
};

void verify_fragment(const Issued& i, std::string_view operand, const Fragment& fragment) {
  const Argument* a = i.argument(operand);
  const auto* s = a == nullptr ? nullptr : std::get_if<Slice>(a);
  if (s == nullptr) return;
  const Registers& r = i.site.kernel[s->registers];
  if (r.element != fragment.element)
    return i.site.report(fail(bad_registers, "`{}` holds another element type than `{}` of `{}`",
                              r.name, operand, i.form().name)
                             .expect("{}", short_name(fragment.element))
                             .but_found("{}", short_name(r.element)),
                         i.span(i.index(operand)));
  // A wrong layout has been told where the registers are declared.
  if (r.layout.rank() != 2 || r.layout.mode(0).size() != i.site.threads()) return;
  const auto firsts = i.site.values(s->first);
  if (!firsts) return;
  const Holder holder{i, operand, r, fragment};
  for (const int64_t first : *firsts)
    for (int64_t g = 0; g < i.site.threads() / holder.threads(); ++g)
      if (!holder.holds(g, first)) return;
}

const arch::MmaSync* mma_of(const arch::Form* form) {
  static const std::map<const arch::Form*, arch::MmaSync> kinds = [] {
    std::map<const arch::Form*, arch::MmaSync> out;
    for (const arch::MmaSync& m : arch::mma_sync_kinds()) out.emplace(&m.form(), m);
    return out;
  }();
  const auto found = kinds.find(form);
  return found == kinds.end() ? nullptr : &found->second;
}

}  // namespace

void verify_fragments(const Issued& i) {
  if (const auto w = wgmma_of(i.issue)) {
    verify_fragment(i, "d", {w->c_layout(), arch::Wgmma::m, arch::storage_of(w->c)});
    if (w->a_from == arch::Feed::registers)
      verify_fragment(i, "a", {w->a_layout(), arch::Wgmma::m, arch::storage_of(w->a)});
  }
  if (const arch::MmaSync* m = mma_of(i.issue.form)) {
    for (const char* operand : {"d", "c"})
      verify_fragment(i, operand,
                      {arch::MmaSync::c_layout(), arch::MmaSync::m, arch::storage_of(m->c)});
    verify_fragment(i, "a", {m->a_layout(), arch::MmaSync::m, arch::storage_of(m->a)});
    verify_fragment(i, "b", {m->b_layout(), arch::MmaSync::n, arch::storage_of(m->b)});
  }
}

}  // namespace tessera::core
