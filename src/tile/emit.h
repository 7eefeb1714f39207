// Lowers a Program to one readable source text with the C interface of include/tessera/kernel.h:
// CUDA C++ for GPUs, or OpenMP C++ for `host`. Both walk the same operations.
//
// A value is an array of its registers in each thread. On host a tile has one thread, so the array
// is the tile.
//
// Neighbouring element ops over the same slots share one loop, and a reduction may end it; what is
// used only inside stays a scalar. On a GPU loads and stores stand apart, so that all loads of a
// tile are in flight before the first use.
//
// Dead slots are skipped by the loop bounds (host) or by predicates where they could be observed
// (GPU).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tile/program.h"

#include "pointwise/pointwise.h"

namespace tessera::tile {

using pointwise::Target;

struct Emitted {
  std::string source;
  std::string extension;  // "cu", "cpp"
};

/// The source; fails with TS0401 (unsupported, with the reason) when the target cannot run the
/// program.
Result<Emitted> emit(const Program& p, Target target);

/// The compiler flags that host sources are written for (g++): vector code needs no errno and no
/// traps; no -ffast-math, so infinities and NaN stay.
std::string_view host_flags();

/// Helper functions of the emitted code: loads, stores, conversions, warp reductions, tile
/// products.
std::string tile_prelude(Target target);
/// Those of matrix instructions and asynchronous copies, for CUDA. With TST_EMULATE defined they
/// come from tests/emulate instead of inline PTX.
std::string product_prelude();
/// The C type of a tensor's elements in emitted code.
std::string_view c_type(DType t);

/// What an op's emit hook writes with.
class Emitter {
 public:
  Target target = Target::host;
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  std::string out;
  int depth = 0;

  struct Loop {
    std::string name;    // loop variable
    SpreadMode mode;     // the register mode that it walks
    int64_t weight = 1;  // registers a step
  };
  std::vector<Loop> loops;  // of the group being written, outermost first

  [[nodiscard]] bool cuda() const { return target == Target::cuda; }
  [[nodiscard]] const Type& type(ValueId v) const { return kernel->values.at(v.index).type; }
  [[nodiscard]] const std::string& name(ValueId v) const { return kernel->values.at(v.index).name; }
  [[nodiscard]] const TileVar& var(VarId v) const { return kernel->vars.at(v.index); }
  /// The tile where a variable stands, as text; another than its own inside a copy ahead.
  [[nodiscard]] std::string position(VarId v) const;
  void stand(VarId v, std::string at) { standing_[v.index] = std::move(at); }
  void stand_back(VarId v) { standing_.erase(v.index); }
  /// How many tiles of the variable are visited.
  [[nodiscard]] std::string count(VarId v) const;
  /// Declares how much of the tile where the variable stands is live, when that varies.
  void declare_live(VarId v);
  /// The array that holds a value's registers.
  [[nodiscard]] const std::string& array(ValueId v) const { return arrays_.at(v.index); }
  void line(const std::string& text);
  void open(const std::string& head);
  void close(const std::string& tail = "}");

  /// The operand's element in the loops at hand.
  std::string scalar(ValueId v);
  /// The register of `t` that belongs to the loops at hand; modes that `t` does not have are
  /// broadcast.
  Result<std::string> reg(const Type& t) const;
  /// Defines an element op's result.
  void define(ValueId v, const std::string& expression);
  /// The tile coordinate of the slot at hand along an axis: this thread's part plus the loops'
  /// part.
  [[nodiscard]] std::string coordinate(const Type& t, int axis) const;
  /// How many elements of the axis are live; a number, or a text that the tile variable sets.
  [[nodiscard]] std::string live(const Axis& axis) const;
  /// All slots of the axis are live whatever the tile.
  [[nodiscard]] bool always_live(const Type& t, int axis) const;
  /// `a < b && ...` over the axes, "" when always true.
  [[nodiscard]] std::string predicate(const Type& t) const;
  /// The element offset in the view's tensor of the slot at hand.
  [[nodiscard]] std::string address(ValueId view, const std::vector<Index>& indices,
                                    const Type& tile) const;
  [[nodiscard]] std::string tensor(ValueId view) const;
  [[nodiscard]] DType tensor_element(ValueId view) const;
  /// The longest run of registers (a power of two) that is one aligned access of at most 16 bytes;
  /// 1 when none. With `repeated`, a run over a broadcast dim counts: all of it is one element.
  [[nodiscard]] int64_t vector_width(ValueId view, const std::vector<Index>& indices,
                                     const Type& tile, bool* repeated = nullptr) const;
  /// Opens the loops over the registers of `t`, the first `run` of the fastest mode taken in one
  /// step.
  void open_registers(const Type& t, int64_t run = 1);
  void close_registers();
  /// Declares the array of a value, or takes over the array of an operand of the same size that is
  /// not used again.
  void declare(ValueId v, const std::vector<ValueId>& reusable);
  [[nodiscard]] bool dies_here(ValueId v) const;
  Status region(const Region& r);
  /// On host: the result of a load, element by element.
  void define_load(const Op& load);
  void alias(ValueId v, ValueId of) { arrays_.at(v.index) = arrays_.at(of.index); }

  std::vector<const Op*> views;
  int grid_blocks_per_multiprocessor = 0;
  int64_t grid_tiles = 1;
  int turns = 0;               // cross-warp reductions in the loop being written
  int64_t shared_bytes = 0;    // of the kernel at hand, asked for at the launch
  bool uses_products = false;  // the source needs the helpers of products and copies
  Status kernel_text(const Kernel& k);

 private:
  Status group(const std::vector<const Op*>& ops);
  /// On host, between the first reduction of a row and its later passes: asks for the lines that
  /// the region's stores will write, so that they arrive while the passes compute.
  void announce_stores(const Region& r);
  Status group_body(const std::vector<const Op*>& ops, const Type& domain);
  /// Sets `loops`; those over other axes than the folds' come first. How many these are.
  Result<std::size_t> arrange_loops(const Type& domain, int fold_axis);
  /// On host a maximum is one of integers in the order of the floats, beside the largest magnitude,
  /// which tells whether there was a NaN: both are single instructions on whole vectors.
  [[nodiscard]] bool ordered(const Op& fold) const;
  /// OpenMP's clauses for what the loop accumulates.
  [[nodiscard]] std::string reductions(const std::vector<const Op*>& folds) const;
  void declare_accumulators(const std::vector<const Op*>& folds);
  void open_loop(const Loop& l, const Type& domain);
  /// Inside the first `outer` loops: what was accumulated goes to the registers of the results.
  Status store_accumulators(const std::vector<const Op*>& folds, std::size_t outer);
  /// After the loop: the threads that share a line put their parts together.
  Status exchange(const Op& reduce);
  void find_last_uses(const Region& r, int& clock);
  std::vector<std::string> arrays_;
  std::map<int32_t, std::string> standing_;
  std::vector<int> last_use_;
  std::vector<int> born_;
  std::map<const Op*, int> clock_of_;
  int now_ = 0;
  std::set<int32_t> group_values_;   // defined in the group at hand
  std::set<int32_t> group_scalars_;  // already read into a scalar there
  std::set<int32_t> taken_;          // arrays that a result of the group took over
  // On host a row that was read lies in the cache: later groups read it again where it came from
  // instead of from a copy, which would take as much of the cache again.
  [[nodiscard]] bool reads_again(const Op& load) const;
  [[nodiscard]] std::string load_text(const Op& load) const;
  std::vector<const Region*> home_;  // where a value is defined
  std::vector<bool> pinned_;         // needs an array: not only read slot by slot at home
  std::map<int32_t, const Op*> read_again_;
};

}  // namespace tessera::tile
