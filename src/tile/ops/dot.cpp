// dot: acc[M,N] + a[M,K] @ b[K,N], in fp32.
#include "numeric/round.h"
#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/print.h"

namespace tessera::tile::ops {
namespace {

Result<std::vector<Type>> infer_dot(const Program&, const Kernel& k, const Op& op) {
  const Type& a = k.values.at(op.operands.at(0).index).type;
  const Type& b = k.values.at(op.operands.at(1).index).type;
  Type c = k.values.at(op.operands.at(2).index).type;
  bool good = a.axes.size() == 2 && b.axes.size() == 2 && c.axes.size() == 2 &&
              a.axes[1] == b.axes[0] && a.axes[0] == c.axes[0] && b.axes[1] == c.axes[1];
  if (!good) {
    return error(fail(bad_program, "dot does not fit: {} @ {} + {}", to_string(a), to_string(b),
                      to_string(c))
                     .expect("[M,K] @ [K,N] + [M,N], cut by the same variables"));
  }
  c.element = DType::float32;
  return std::vector<Type>{c};
}

void print_dot(Printer& p, const Op& op) {
  p.out += fmt::format("dot({}, {}, {})", p.name(op.operands[0]), p.name(op.operands[1]),
                       p.name(op.operands[2]));
}

Result<std::map<std::vector<int64_t>, double>> elements(Interpreter& in, ValueId v) {
  std::map<std::vector<int64_t>, double> out;
  const Type& t = in.type(v);
  TESSERA_CHECK(Interpreter::for_slots(t, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    if (!in.live(t, c)) return {};
    if (!in.slots(v)[s])
      return error(fail(uninitialized, "a live slot of `{}` is empty in a dot",
                        in.kernel->values[v.index].name));
    out[c] = *in.slots(v)[s];
    return {};
  }));
  return out;
}

Status interpret_dot(Interpreter& in, const Op& op) {
  TESSERA_TRY(a, elements(in, op.operands[0]));
  TESSERA_TRY(b, elements(in, op.operands[1]));
  TESSERA_TRY(acc, elements(in, op.operands[2]));
  for (auto& [c, sum] : acc)
    for (int64_t k = 0; a.count({c[0], k}) != 0; ++k) sum += a.at({c[0], k}) * b.at({k, c[1]});
  const Type& t = in.type(op.results[0]);
  Interpreter::Slots slots(t.threads() * t.registers());
  TESSERA_CHECK(Interpreter::for_slots(t, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    if (in.live(t, c)) slots[s] = round_to(DType::float32, acc.at(c));
    return {};
  }));
  in.set(op.results[0], std::move(slots));
  return {};
}

Status emit_dot(Emitter& e, const Op& op) {
  if (e.cuda()) {
    return error(fail(unsupported, "a tile product has no CUDA lowering yet")
                     .note("the tensor core instructions need their operand layouts from the "
                           "architecture's tables")
                     .help("use a CUTLASS or library realizer on this architecture"));
  }
  const Type& a = e.type(op.operands[0]);
  const Type& b = e.type(op.operands[1]);
  const Type& c = e.type(op.results[0]);
  for (const Type* t : {&a, &b, &c}) {
    if (coalesce(t->layout.mode(1)) != Layout(t->cover[0] * t->cover[1], 1)) {
      return error(fail(unsupported, "a dot on host needs row-major tiles in one thread, found {}",
                        to_string(t->layout)));
    }
  }
  e.declare(op.results[0], {op.operands[2]});
  if (e.array(op.results[0]) != e.array(op.operands[2]))
    e.line(fmt::format("tst_copy({}, {}, {});", e.array(op.results[0]), e.array(op.operands[2]),
                       c.registers()));
  e.line(fmt::format("tst_dot<{}, {}, {}>({}, {}, {}, {}, {});", a.cover[1], b.cover[1], c.cover[1],
                     e.array(op.operands[0]), e.array(op.operands[1]), e.array(op.results[0]),
                     e.live(a.axes[0]), e.live(a.axes[1])));
  return {};
}

const OpRecord records[] = {
    {"dot", Shape::block, infer_dot, print_dot, interpret_dot, emit_dot},
};

}  // namespace

extern const OpFamily dot;
const OpFamily dot{"dot", records};

}  // namespace tessera::tile::ops
