// full, iota, broadcast: tiles that come from no memory.
#include <cmath>

#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"
#include "tile/print.h"

namespace tessera::tile::ops {
namespace {

const Like& like(const Op& op) {
  return std::any_cast<const Like&>(op.payload);
}

std::string type_text(const Printer& p, const Type& t) {
  std::string axes;
  for (const Axis& a : t.axes)
    axes += (axes.empty() ? "" : ", ") +
            (a.var.valid() ? fmt::format("cut({}, {})", a.extent, p.var(a.var).name)
                           : std::to_string(a.extent));
  return fmt::format("[{}], cover=[{}], layout=\"{}\"", axes, fmt::join(t.cover, ", "),
                     to_string(t.layout));
}

Result<std::vector<Type>> infer_fill(const Program&, const Kernel& k, const Op& op) {
  const Type& t = like(op).type;
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
  return interpret_fill(in, op, [&](const auto&) { return like(op).value; });
}

Status interpret_iota(Interpreter& in, const Op& op) {
  const Axis& axis = like(op).type.axes.at(like(op).axis);
  return interpret_fill(in, op, [&](const std::vector<int64_t>& c) {
    int64_t base = axis.var.valid() ? in.tile(axis.var) * in.kernel->vars[axis.var.index].step : 0;
    return static_cast<double>(base + c[like(op).axis]);
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
  e.define(op.results[0], number(like(op).value));
  return {};
}

Status emit_iota(Emitter& e, const Op& op) {
  const Axis& axis = like(op).type.axes.at(like(op).axis);
  std::string c = e.coordinate(like(op).type, like(op).axis);
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

void print_full(Printer& p, const Op& op) {
  double v = like(op).value;
  std::string text = std::isnan(v)   ? "nan"
                     : std::isinf(v) ? (v > 0 ? "inf" : "-inf")
                                     : fmt::format("{}", v);
  p.out += fmt::format("full({}, {}, {})", text, short_name(like(op).type.element),
                       type_text(p, like(op).type));
}
void print_iota(Printer& p, const Op& op) {
  p.out += fmt::format("iota({}, {}, {})", like(op).axis, short_name(like(op).type.element),
                       type_text(p, like(op).type));
}
void print_broadcast(Printer& p, const Op& op) {
  p.out += fmt::format("broadcast({}, {})", p.name(op.operands[0]), type_text(p, like(op).type));
}

const OpRecord records[] = {
    {"full", Shape::element, infer_fill, print_full, interpret_full, emit_full},
    {"iota", Shape::element, infer_fill, print_iota, interpret_iota, emit_iota},
    {"broadcast", Shape::element, infer_broadcast, print_broadcast, interpret_broadcast,
     emit_broadcast},
};

}  // namespace

extern const OpFamily fill{"fill", records};

}  // namespace tessera::tile::ops
