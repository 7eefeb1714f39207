// dot: acc[M,N] + a[M,K] @ b[K,N], accumulated in fp32. On a GPU by a matrix instruction, with a
// and acc in registers and b in shared memory.
#include <cmath>
#include <cstring>

#include "numeric/round.h"
#include "tile/dot_plan.h"
#include "tile/emit_dot.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile::ops {
namespace {

Product product(const Op& op) {
  const auto* p = op.payload.find<Product>();
  return p == nullptr ? Product{} : *p;
}

Result<std::vector<Type>> infer_dot(const Program&, const Kernel& k, const Op& op) {
  const Type& a = k.values.at(op.operands.at(0).index).type;
  const Type& b = k.values.at(op.operands.at(1).index).type;
  Type c = k.values.at(op.operands.at(2).index).type;
  const std::size_t bk = product(op).b_transposed ? 1 : 0;
  bool good = a.axes.size() == 2 && b.axes.size() == 2 && c.axes.size() == 2 &&
              a.axes[1] == b.axes[bk] && a.axes[0] == c.axes[0] && b.axes[1 - bk] == c.axes[1];
  if (!good) {
    return error(fail(bad_program, "dot does not fit: {} @ {} + {}", to_string(a), to_string(b),
                      to_string(c))
                     .expect("[M,K] @ [K,N] + [M,N], cut by the same variables"));
  }
  if (product(op).by != nullptr) {
    if (a.cover[1] != b.cover[bk] || c.cover[1] != b.cover[1 - bk])
      return error(fail(bad_program, "the covers of a dot differ: {} @ {} + {}", to_string(a),
                        to_string(b), to_string(c)));
    TESSERA_CHECK(plan_of(k, op));
  }
  c.element = DType::float32;
  return std::vector<Type>{c};
}

/// A tile's live elements, row-major over its cover.
struct Matrix {
  int64_t columns = 0;
  std::vector<double> values;
  std::vector<bool> live;
  explicit Matrix(const Type& t)
      : columns(t.cover[1]), values(t.cover[0] * t.cover[1]), live(values.size()) {}
  [[nodiscard]] std::size_t at(int64_t i, int64_t j) const { return i * columns + j; }
};

Result<Matrix> elements(Interpreter& in, ValueId v) {
  const Type& t = in.type(v);
  Matrix m(t);
  if (t.space == Space::shared) {
    TESSERA_TRY(slot, in.landed(v));
    for (int64_t i = 0; i < t.cover[0]; ++i)
      for (int64_t j = 0; j < t.cover[1]; ++j) {
        m.live[m.at(i, j)] = in.live(t, {i, j});
        m.values[m.at(i, j)] = slot->data[t.layout.at({i, j})];
      }
    return m;
  }
  TESSERA_CHECK(Interpreter::for_slots(t, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    if (!in.live(t, c)) return {};
    if (!in.slots(v)[s])
      return error(fail(uninitialized, "a live slot of `{}` is empty in a dot",
                        in.kernel->values[v.index].name));
    m.live[m.at(c[0], c[1])] = true;
    m.values[m.at(c[0], c[1])] = *in.slots(v)[s];
    return {};
  }));
  return m;
}

/// To 10 bits after the leading one, ties away from zero, as cvt.rna.tf32 does.
double round_to_tf32(double x) {
  auto f = static_cast<float>(x);
  if (!std::isfinite(f)) return f;
  uint32_t b;
  std::memcpy(&b, &f, 4);
  b = (b + 0x1000U) & ~0x1fffU;
  std::memcpy(&f, &b, 4);
  return f;
}

/// Operands as the instruction takes them.
void round_operands(const Product& by, Matrix& m) {
  if (by.by == nullptr || by.terms > 1) return;
  for (double& x : m.values)
    x = by.by->operands == Precision::tf32 ? round_to_tf32(x)
                                           : round_to(storage_type(by.by->operands), x);
}

Status interpret_dot(Interpreter& in, const Op& op) {
  TESSERA_TRY(a, elements(in, op.operands[0]));
  TESSERA_TRY(b, elements(in, op.operands[1]));
  TESSERA_TRY(acc, elements(in, op.operands[2]));
  const Product by = product(op);
  round_operands(by, a);
  round_operands(by, b);
  const Type& t = in.type(op.results[0]);
  const int64_t depth = a.columns;
  for (int64_t i = 0; i < t.cover[0]; ++i)
    for (int64_t j = 0; j < t.cover[1]; ++j)
      for (int64_t k = 0; acc.live[acc.at(i, j)] && k < depth; ++k)
        if (a.live[a.at(i, k)])
          acc.values[acc.at(i, j)] +=
              a.values[a.at(i, k)] * b.values[by.b_transposed ? b.at(j, k) : b.at(k, j)];
  Interpreter::Slots slots(t.threads() * t.registers());
  TESSERA_CHECK(Interpreter::for_slots(t, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    if (in.live(t, c)) slots[s] = round_to(DType::float32, acc.values[acc.at(c[0], c[1])]);
    return {};
  }));
  in.set(op.results[0], std::move(slots));
  return {};
}

Status emit_dot(Emitter& e, const Op& op) {
  if (e.cuda()) {
    if (product(op).by != nullptr) return emit_product(e, op);
    return error(fail(unsupported, "a product on a GPU needs a matrix instruction")
                     .help("choose one of the architecture's"));
  }
  if (product(op).by != nullptr)
    return error(fail(unsupported, "host has no {}", product(op).by->name));
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
    {.name = "dot", .infer = infer_dot, .interpret = interpret_dot, .emit = emit_dot},
};

}  // namespace

extern const OpFamily dot{"dot", records};

}  // namespace tessera::tile::ops
