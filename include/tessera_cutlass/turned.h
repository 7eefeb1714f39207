// Parts of a product's columns with an epilogue of their own, among them pairs of columns: rotary
// embedding inside the product that makes queries and keys.
//
// A CTA tile lies in one part. Before CUTLASS' own epilogue stores the tile, the part's function
// changes the accumulators in registers. wgmma gives a thread the same two columns of each group of
// 8, so that the columns c and c + period / 2 of a row are in one thread when period / 2 is a
// multiple of 8; PartFragment proves it. Operands come from global memory, two adjacent columns a
// load, and the loads of several pairs are issued before the first is used.
#pragma once

#include "tessera_cutlass/sm90.hpp"

namespace tessera {

/// How an operand lies along columns: pairs that start at even columns and at multiples of two
/// elements, elements side by side, one element for all columns.
enum class Columns { pairs, elements, one };

/// An operand's element (row, group, column) is data[row % rows * ld + group * distance + column];
/// without the column where it is the same for all. `Repeats`: rows < m.
template <class T, Columns Along, bool Repeats>
struct PartOperand {
  using Two = cutlass::AlignedArray<T, 2>;
  T const* data = nullptr;
  int64_t ld = 0;
  int64_t distance = 0;
  uint32_t rows = 1;

  /// The elements of `column`, which is even, and of the next one.
  CUTLASS_HOST_DEVICE Two two(int row, int group, int column) const {
    if constexpr (Repeats) row = static_cast<int>(static_cast<uint32_t>(row) % rows);
    T const* const at = data + row * ld + group * distance;
    if constexpr (Along == Columns::pairs) {
      return *reinterpret_cast<Two const*>(at + column);
    } else {
      Two r;
      r[0] = at[Along == Columns::one ? 0 : column];
      r[1] = Along == Columns::one ? r[0] : at[column + 1];
      return r;
    }
  }
};

/// Where a thread's accumulators of a tile (M, N) lie, as numbers known at compile time. Value v of
/// a thread stands at (row(v), column(v)) from its value 0. `Period`: 0, or that of the pairs.
template <class Mma, class Tile, int Period>
struct PartPlaces {
  static constexpr int tile_m = cute::size<0>(Tile{});
  static constexpr int tile_n = cute::size<1>(Tile{});
  static constexpr int period = Period == 0 ? tile_n : Period;
  static constexpr int half = Period == 0 ? tile_n : Period / 2;
  static constexpr int groups = tile_n / period;
  static_assert(tile_n % period == 0 && half % 8 == 0);

  /// (thread, value) -> m + tile_m n.
  static constexpr auto positions() { return Mma{}.thrfrg_C(cute::make_layout(Tile{})); }
  static constexpr int values = cute::size<1>(decltype(positions()){});
  static constexpr int position(int v) { return cute::layout<1>(positions())(v); }
  static constexpr int row(int v) { return position(v) % tile_m; }
  static constexpr int column(int v) { return position(v) / tile_m; }
  /// The thread's value so many columns to the right of v.
  static constexpr int right_of(int v, int columns) {
    return cute::left_inverse(cute::layout<1>(positions()))(position(v) + tile_m * columns);
  }

  /// The even values whose column is in the first half of the first group: each stands for two
  /// adjacent columns, their partners, and the same of all groups.
  static constexpr int items = values / 2 / (tile_n / half);
  struct Items {
    int at[items == 0 ? 1 : items];
    int count;
  };
  /// Row by row: what a row's operands have in common is then needed for a short time.
  static constexpr Items list() {
    Items found{};
    for (int r = 0; r < tile_m; r += 8) {
      for (int v = 0; v < values; v += 2) {
        if (row(v) != r || column(v) >= half) continue;
        if (found.count < items) found.at[found.count] = v;
        ++found.count;
      }
    }
    return found;
  }

  /// Every value belongs to exactly one item, and its partner is where it should be, in every
  /// thread: a position is the thread's part plus the value's, threads differ by rows and by even
  /// columns below 8, values by rows, columns below 2 and multiples of 8.
  static constexpr bool exact() {
    const auto threads = cute::layout<0>(positions());
    for (int t = 0; t < cute::size(threads); ++t) {
      const int at = threads(t);
      if (at / tile_m % 2 != 0 || at / tile_m >= 8) return false;
    }
    if (list().count != items || items * 2 * (tile_n / half) != values) return false;
    for (int v = 0; v < values; v += 2) {
      if (column(v) % 8 != 0 || row(v + 1) != row(v) || column(v + 1) != column(v) + 1)
        return false;
      if (column(v) >= half) continue;
      for (int columns = 0; columns < tile_n; columns += half) {
        const int w = right_of(v, columns);
        if (w % 2 != 0 || w + 1 >= values || right_of(v + 1, columns) != w + 1) return false;
        if (row(w) != row(v) || column(w) != column(v) + columns) return false;
      }
    }
    return true;
  }
};

template <class Mma, class Tile, class Part>
struct PartFragment : PartPlaces<Mma, Tile, Part::period> {
  using Places = PartPlaces<Mma, Tile, Part::period>;
  static_assert(Places::exact(), "columns that belong together do not meet in one thread");
  static constexpr auto table = Places::list();
  static constexpr int item(int i) { return table.at[i]; }
  /// Items whose operands are asked for together: the most of up to 64 registers that divide them.
  static constexpr int batch() {
    constexpr int fit = 256 / static_cast<int>(sizeof(typename Part::Shared));
    int most = cute::max(1, cute::min(Places::items, fit));
    while (Places::items % most != 0) --most;
    return most;
  }
};

/// Applies the part to a thread's accumulators. `row`, `column`: of its value 0, the column within
/// the part and tile; rows beyond `last_row` read that one's operands, and are not stored.
template <class Fragment, class Part, class Accumulators>
CUTLASS_HOST_DEVICE void apply_part(Part const& part, Accumulators& accumulators, int row,
                                    int last_row, int group, int column) {
  constexpr int batch = Fragment::batch();
  cute::for_each(cute::make_seq<Fragment::items / batch>{}, [&](auto b) {
    typename Part::Shared shared[batch];
    cute::for_each(cute::make_seq<batch>{}, [&](auto i) {
      constexpr int v = Fragment::item(decltype(b)::value * batch + decltype(i)::value);
      shared[i] =
          part.shared(cute::min(row + Fragment::row(v), last_row), column + Fragment::column(v));
    });
    cute::for_each(cute::make_seq<batch>{}, [&](auto i) {
      constexpr int v = Fragment::item(decltype(b)::value * batch + decltype(i)::value);
      cute::for_each(cute::make_seq<Fragment::groups>{}, [&](auto g) {
        constexpr int low = Fragment::right_of(v, decltype(g)::value * Fragment::period);
        const auto own = part.own(cute::min(row + Fragment::row(v), last_row), group + g,
                                  column + Fragment::column(v));
        CUTLASS_PRAGMA_UNROLL
        for (int e = 0; e < 2; ++e) {
          if constexpr (Part::period == 0) {
            part.apply(shared[i], own, e, accumulators(low + e));
          } else {
            constexpr int high = Fragment::right_of(low, Fragment::half);
            part.apply(shared[i], own, e, accumulators(low + e), accumulators(high + e));
          }
        }
      });
    });
  });
}

/// CUTLASS' epilogue `Base` after the parts. A part has `first` and `end`, multiples of the tile's
/// columns, a static `period`, operands that all groups share (`shared`) and those that they do not
/// (`own`), and `apply`.
template <class Base, class... Parts>
struct PartedEpilogue : Base {
  using TensorStorage = typename Base::TensorStorage;
  struct Arguments : Base::Arguments {
    cute::tuple<Parts...> parts;
  };
  struct Params : Base::Params {
    cute::tuple<Parts...> parts;
  };

  CUTLASS_HOST_DEVICE PartedEpilogue(Params const& params, TensorStorage& storage)
      : Base(params, storage), parts_(params.parts) {}

  template <class Shape>
  static constexpr Params to_underlying_arguments(Shape const& shape, Arguments const& args,
                                                  void* workspace) {
    return {Base::to_underlying_arguments(shape, args, workspace), args.parts};
  }

  template <class Shape, class Tile, class Coord, class Engine, class Layout, class Mma>
  CUTLASS_DEVICE auto store(typename Base::LoadPipeline load_pipeline,
                            typename Base::LoadPipelineState load_state,
                            typename Base::StorePipeline store_pipeline,
                            typename Base::StorePipelineState store_state, Shape shape, Tile tile,
                            Coord coord, cute::Tensor<Engine, Layout> accumulators, Mma mma,
                            int thread, TensorStorage& storage, int subtile = -1) {
    using MN = decltype(cute::take<0, 2>(Tile{}));
    const int first_row = static_cast<int>(cute::get<0>(coord)) * cute::size<0>(MN{});
    const int first_column = static_cast<int>(cute::get<1>(coord)) * cute::size<1>(MN{});
    const auto place =
        mma.get_slice(thread).partition_C(cute::make_identity_tensor(MN{}))(cute::Int<0>{});
    const int row = first_row + static_cast<int>(cute::get<0>(place));
    const int last_row = static_cast<int>(cute::get<0>(shape)) - 1;
    cute::for_each(parts_, [&](auto const& part) {
      using Part = cute::remove_cvref_t<decltype(part)>;
      using Fragment = PartFragment<Mma, MN, Part>;
      if (first_column < part.first || first_column >= part.end) return;
      const int column = static_cast<int>(cute::get<1>(place));
      const int begin = first_column - part.first;
      if constexpr (Part::period == 0) {
        apply_part<Fragment>(part, accumulators, row, last_row, 0, begin + column);
      } else {
        apply_part<Fragment>(part, accumulators, row, last_row, begin / Part::period, column);
      }
    });
    return Base::store(load_pipeline, load_state, store_pipeline, store_state, shape, tile, coord,
                       accumulators, mma, thread, storage, subtile);
  }

 private:
  cute::tuple<Parts...> const& parts_;
};

}  // namespace tessera
