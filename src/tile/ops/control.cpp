// tiles (parallel), steps (serial, with carried values), when (a part of the turns), role (a part
// of the block's warps).
#include <algorithm>
#include <functional>

#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile::ops {
namespace {

const Walk& walk(const Op& op) {
  return op.payload.get<Walk>();
}

Result<std::vector<Type>> infer_tiles(const Program&, const Kernel&, const Op& op) {
  if (!op.operands.empty())
    return error(
        fail(bad_program, "parallel tiles carry no values").help("use steps for a serial loop"));
  return std::vector<Type>{};
}

Result<std::vector<Type>> infer_steps(const Program&, const Kernel& k, const Op& op) {
  const Region& r = op.regions.at(0);
  std::vector<Type> types;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const Type& before = k.values.at(op.operands[i].index).type;
    if (i >= r.yields.size() || k.values.at(r.yields[i].index).type != before)
      return error(fail(bad_program, "the carried value `{}` changes its type in the loop",
                        k.values[op.operands[i].index].name));
    types.push_back(before);
  }
  return types;
}

Status nest(Interpreter& in, const std::vector<VarId>& vars, std::size_t depth,
            const std::function<Status()>& body) {
  if (depth == vars.size()) return body();
  int64_t n = in.visited(vars[depth]);
  for (int64_t i = 0; i < n; ++i) {
    in.tile(vars[depth]) = i;
    TESSERA_CHECK(nest(in, vars, depth + 1, body));
  }
  return {};
}

Status interpret_tiles(Interpreter& in, const Op& op) {
  return nest(in, walk(op).vars, 0, [&] { return in.region(op.regions[0]); });
}

Status interpret_steps(Interpreter& in, const Op& op) {
  const Region& r = op.regions[0];
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    in.set(r.arguments[i], in.slots(op.operands[i]));
  TESSERA_CHECK(nest(in, walk(op).vars, 0, [&]() -> Status {
    TESSERA_CHECK(in.region(r));
    std::vector<Interpreter::Slots> next;
    for (ValueId y : r.yields) next.push_back(in.slots(y));
    for (std::size_t i = 0; i < next.size(); ++i) in.set(r.arguments[i], std::move(next[i]));
    return {};
  }));
  for (std::size_t i = 0; i < op.results.size(); ++i)
    in.set(op.results[i], in.slots(r.arguments[i]));
  return {};
}

Status emit_tiles(Emitter& e, const Op& op) {
  const std::vector<VarId>& vars = walk(op).vars;
  int64_t total = 1;
  for (VarId v : vars) total *= e.var(v).count();
  e.grid_tiles = total;
  e.grid_blocks_per_multiprocessor = walk(op).blocks_per_multiprocessor;
  if (e.cuda()) {
    e.open(walk(op).blocks_per_multiprocessor > 0
               ? fmt::format("for (tst_index tile = blockIdx.x; tile < {}; tile += gridDim.x) {{",
                             total)
               : "{");
    if (walk(op).blocks_per_multiprocessor == 0) e.line("const tst_index tile = blockIdx.x;");
  } else {
    e.line(fmt::format("#pragma omp parallel for schedule({})",
                       walk(op).uneven ? "dynamic, 1" : "static"));
    e.open(fmt::format("for (tst_index tile = 0; tile < {}; ++tile) {{", total));
  }
  int64_t inner = total;
  for (VarId id : vars) {
    const TileVar& v = e.var(id);
    inner /= v.count();
    std::string at = inner == 1 ? "tile" : fmt::format("tile / {}", inner);
    if (id != vars[0]) at = fmt::format("{} % {}", at, v.count());
    if (v.reversed) at = fmt::format("{} - ({})", v.count() - 1, at);
    e.line(fmt::format("const tst_index {} = {};", v.name, at));
    e.declare_live(id);
  }
  e.turns = 0;
  TESSERA_CHECK(e.region(op.regions[0]));
  if (e.cuda() && e.turns == 1 && walk(op).blocks_per_multiprocessor > 0)
    e.line("__syncthreads();  // the shared slots are written again in the next turn");
  e.close();
  return {};
}

/// The yields become the arguments of the next turn. A yield that lies where an earlier copy writes
/// is kept aside.
void carry(Emitter& e, const Region& r) {
  std::vector<std::string> from;
  for (ValueId y : r.yields) from.push_back(e.array(y));
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (from[i] != e.array(r.arguments[j])) continue;
      int64_t n = e.type(r.yields[i]).registers();
      std::string kept = e.name(r.yields[i]) + "_kept";
      e.line(fmt::format("float {}[{}];", kept, n));
      e.line(fmt::format("tst_copy({}, {}, {});", kept, from[i], n));
      from[i] = kept;
      break;
    }
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != e.array(r.arguments[i]))
      e.line(fmt::format("tst_copy({}, {}, {});", e.array(r.arguments[i]), from[i],
                         e.type(r.yields[i]).registers()));
}

/// The operands become the arguments of the first turn.
void begin_carrying(Emitter& e, const Op& op) {
  const Region& r = op.regions[0];
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    e.declare(r.arguments[i], {op.operands[i]});
    if (e.array(r.arguments[i]) != e.array(op.operands[i]))
      e.line(fmt::format("tst_copy({}, {}, {});", e.array(r.arguments[i]), e.array(op.operands[i]),
                         e.type(op.operands[i]).registers()));
  }
}

Status emit_steps(Emitter& e, const Op& op) {
  const Region& r = op.regions[0];
  begin_carrying(e, op);
  int outer_turns = e.turns;
  e.turns = 0;
  for (VarId id : walk(op).vars) {
    const TileVar& v = e.var(id);
    std::string count = e.count(id);
    if (v.until_var.valid()) {
      e.line(fmt::format("const tst_index end_{} = {};", v.name, count));
      count = "end_" + v.name;
    }
    e.open(fmt::format("for (tst_index {0} = 0; {0} < {1}; ++{0}) {{", v.name, count));
    e.declare_live(id);
  }
  TESSERA_CHECK(e.region(r));
  carry(e, r);
  if (e.cuda() && e.turns == 1)
    e.line("__syncthreads();  // the shared slots are written again in the next turn");
  for (std::size_t i = 0; i < walk(op).vars.size(); ++i) e.close();
  e.turns = outer_turns + (e.turns > 0 ? 2 : 0);
  for (std::size_t i = 0; i < op.results.size(); ++i) e.alias(op.results[i], r.arguments[i]);
  return {};
}

const Crossing& crossing(const Op& op) {
  return op.payload.get<Crossing>();
}

Status interpret_when(Interpreter& in, const Op& op) {
  const Crossing& c = crossing(op);
  const Region& r = op.regions[0];
  const TileVar& rows = in.kernel->vars[c.rows.index];
  const TileVar& columns = in.kernel->vars[c.columns.index];
  const bool runs =
      (in.tile(c.columns) + 1) * columns.step - 1 > in.tile(c.rows) * rows.step + c.offset;
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    in.set(r.arguments[i], in.slots(op.operands[i]));
  if (runs) TESSERA_CHECK(in.region(r));
  for (std::size_t i = 0; i < op.results.size(); ++i)
    in.set(op.results[i], in.slots(runs ? r.yields[i] : r.arguments[i]));
  return {};
}

Status emit_when(Emitter& e, const Op& op) {
  const Crossing& c = crossing(op);
  const Region& r = op.regions[0];
  begin_carrying(e, op);
  e.open(fmt::format("if (({} + 1) * {} > {} * {} + {}) {{", e.var(c.columns).name,
                     e.var(c.columns).step, e.var(c.rows).name, e.var(c.rows).step, c.offset + 1));
  TESSERA_CHECK(e.region(r));
  carry(e, r);
  e.close();
  for (std::size_t i = 0; i < op.results.size(); ++i) e.alias(op.results[i], r.arguments[i]);
  return {};
}

const OpRecord records[] = {
    {.name = "tiles", .infer = infer_tiles, .interpret = interpret_tiles, .emit = emit_tiles},
    {.name = "steps", .infer = infer_steps, .interpret = interpret_steps, .emit = emit_steps},
    {.name = "when", .infer = infer_steps, .interpret = interpret_when, .emit = emit_when},
};

}  // namespace

extern const OpFamily control{"control", records};

}  // namespace tessera::tile::ops
