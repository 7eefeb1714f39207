// full, iota, broadcast: tiles that come from no memory.
#include <cmath>

#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile::ops {
namespace {

/// The type that the op is told.
const Type& told(const Op& op) {
  if (const auto* full = op.payload.find<FullOf>()) return full->type;
  if (const auto* iota = op.payload.find<IotaAlong>()) return iota->type;
  return op.payload.get<Like>().type;
}

Result<std::vector<Type>> infer_fill(const Program&, const Kernel& k, const Op& op) {
  const Type& t = told(op);
  TESSERA_TRY(checked, try_register_type(t.element, t.axes, t.cover, t.layout));
  if (t.threads() != k.threads)
    return error(fail(bad_program, "a tile is spread over {} threads, the kernel has {}",
                      t.threads(), k.threads));
  return std::vector<Type>{checked};
}

Result<std::vector<Type>> infer_broadcast(const Program& p, const Kernel& k, const Op& op) {
  TESSERA_TRY(types, infer_fill(p, k, op));
  const Type& from = k.values.at(op.operands.at(0).index).type;
  Type& to = types[0];
  bool good = from.axes.size() == to.axes.size();
  for (std::size_t a = 0; good && a < to.axes.size(); ++a)
    good = from.axes[a] == to.axes[a] || (from.axes[a].extent == 1 && !from.axes[a].var.valid());
  if (!good)
    return error(fail(bad_program, "{} does not broadcast to {}", to_string(from), to_string(to)));
  to.element = from.element;
  return types;
}

Status interpret_fill(Interpreter& in, const Op& op,
                      const std::function<double(const std::vector<int64_t>&)>& f) {
  const Type& t = in.type(op.results[0]);
  Interpreter::Slots slots(t.threads() * t.registers());
  TESSERA_CHECK(Interpreter::for_slots(t, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    if (in.live(t, c)) slots[s] = f(c);
    return {};
  }));
  in.set(op.results[0], std::move(slots));
  return {};
}

Status interpret_full(Interpreter& in, const Op& op) {
  return interpret_fill(in, op, [&](const auto&) { return op.payload.get<FullOf>().value; });
}

Status interpret_iota(Interpreter& in, const Op& op) {
  const Axis& axis = told(op).axes.at(op.payload.get<IotaAlong>().axis);
  return interpret_fill(in, op, [&](const std::vector<int64_t>& c) {
    int64_t base = axis.var.valid() ? in.tile(axis.var) * in.kernel->vars[axis.var.index].step : 0;
    return static_cast<double>(base + c[op.payload.get<IotaAlong>().axis]);
  });
}

Status interpret_broadcast(Interpreter& in, const Op& op) {
  const Type& from = in.type(op.operands[0]);
  std::map<std::vector<int64_t>, double> at;
  TESSERA_CHECK(
      Interpreter::for_slots(from, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
        if (in.slots(op.operands[0])[s]) at[c] = *in.slots(op.operands[0])[s];
        return {};
      }));
  const Type& t = in.type(op.results[0]);
  Interpreter::Slots slots(t.threads() * t.registers());
  TESSERA_CHECK(Interpreter::for_slots(t, [&](int64_t s, std::vector<int64_t> c) -> Status {
    if (!in.live(t, c)) return {};
    for (std::size_t a = 0; a < c.size(); ++a)
      if (from.axes[a].extent == 1) c[a] = 0;
    auto it = at.find(c);
    if (it != at.end()) slots[s] = it->second;
    return {};
  }));
  in.set(op.results[0], std::move(slots));
  return {};
}

std::string number(double v) {
  if (std::isnan(v)) return "tsr_nan()";
  if (std::isinf(v)) return v > 0 ? "tsr_inf()" : "-tsr_inf()";
  std::string s = fmt::format("{:.9g}", v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + "f";
}

Status emit_full(Emitter& e, const Op& op) {
  e.define(op.results[0], number(op.payload.get<FullOf>().value));
  return {};
}

Status emit_iota(Emitter& e, const Op& op) {
  const Axis& axis = told(op).axes.at(op.payload.get<IotaAlong>().axis);
  std::string c = e.coordinate(told(op), op.payload.get<IotaAlong>().axis);
  if (axis.var.valid())
    c = fmt::format("{} * {} + {}", e.var(axis.var).name, e.var(axis.var).step, c);
  e.define(op.results[0], fmt::format("float(int({}))", c));
  return {};
}

/// Thread modes of the source must be those of the target where it has an extent: no element
/// changes its thread.
Status emit_broadcast(Emitter& e, const Op& op) {
  const Type& from = e.type(op.operands[0]);
  const Type& to = e.type(op.results[0]);
  Spread a = spread(from);
  Spread b = spread(to);
  for (std::size_t i = 0; i < b.threads.size(); ++i) {
    SpreadMode want = b.threads[i];
    if (want.axis >= 0 && from.axes[want.axis].extent == 1) want = {want.extent, -1, 0};
    if (a.threads.size() != b.threads.size() || a.threads[i] != want) {
      return error(fail(unsupported, "a broadcast of {} to {} moves elements between threads",
                        to_string(from), to_string(to))
                       .help("give both the same thread modes"));
    }
  }
  TESSERA_TRY(reg, e.reg(from));
  e.define(op.results[0], fmt::format("{}[{}]", e.array(op.operands[0]), reg));
  return {};
}

const OpRecord records[] = {
    {.name = "full",
     .shape = Shape::element,
     .infer = infer_fill,
     .interpret = interpret_full,
     .emit = emit_full},
    {.name = "iota",
     .shape = Shape::element,
     .infer = infer_fill,
     .interpret = interpret_iota,
     .emit = emit_iota},
    {.name = "broadcast",
     .shape = Shape::element,
     .infer = infer_broadcast,
     .interpret = interpret_broadcast,
     .emit = emit_broadcast},
};

}  // namespace

extern const OpFamily fill{"fill", records};

}  // namespace tessera::tile::ops
