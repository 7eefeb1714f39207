// reduce: one value of each line along an axis. Dead slots take no part, so no neutral element has
// to be loaded.
//
// On a GPU each thread folds its own registers, lanes then exchange by shuffles, and warps through
// shared memory.
#include <cmath>
#include <limits>

#include "numeric/round.h"
#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile::ops {
namespace {

const Fold& fold(const Op& op) {
  return op.payload.get<Fold>();
}

Result<std::vector<Type>> infer_reduce(const Program&, const Kernel& k, const Op& op) {
  Type t = k.values.at(op.operands.at(0).index).type;
  int axis = fold(op).axis;
  if (axis < 0 || axis >= static_cast<int>(t.axes.size()))
    return error(fail(bad_program, "{} has no axis {} to reduce", to_string(t), axis));
  Spread s = spread(t);
  for (SpreadMode& m : s.threads)
    if (m.axis == axis) m = {m.extent, -1, 0};
  std::erase_if(s.registers, [&](const SpreadMode& m) { return m.axis == axis; });
  t.axes[axis] = {1, {}};
  std::vector<int64_t> cover = t.cover;
  cover[axis] = 1;
  t.cover = cover;
  t.layout = layout_of(s, cover);
  t.element = DType::float32;
  return std::vector<Type>{t};
}

double combine(Fold::Kind kind, double a, double b) {
  if (kind == Fold::Kind::sum) return a + b;
  return b > a || std::isnan(b) ? b : a;
}

Status interpret_reduce(Interpreter& in, const Op& op) {
  const Type& from = in.type(op.operands[0]);
  const Type& to = in.type(op.results[0]);
  std::map<std::vector<int64_t>, double> elements;  // once each, however many threads hold it
  TESSERA_CHECK(
      Interpreter::for_slots(from, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
        const auto& v = in.slots(op.operands[0])[s];
        if (!in.live(from, c)) return {};
        if (!v)
          return error(fail(uninitialized, "a live slot of `{}` is empty where it is reduced",
                            in.kernel->values[op.operands[0].index].name));
        elements[c] = *v;
        return {};
      }));
  std::map<std::vector<int64_t>, double> sums;
  double neutral = fold(op).kind == Fold::Kind::sum ? 0 : -std::numeric_limits<double>::infinity();
  for (const auto& [c, v] : elements) {
    std::vector<int64_t> line = c;
    line[fold(op).axis] = 0;
    double& sum = sums.try_emplace(line, neutral).first->second;
    sum = combine(fold(op).kind, sum, v);
  }
  Interpreter::Slots slots(to.threads() * to.registers());
  TESSERA_CHECK(Interpreter::for_slots(to, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    auto it = sums.find(c);
    if (it != sums.end()) slots[s] = round_to(DType::float32, it->second);
    return {};
  }));
  in.set(op.results[0], std::move(slots));
  return {};
}

/// Inside the innermost loop: one element into the accumulator; the emitter declares and stores
/// accumulators.
Status emit_reduce(Emitter& e, const Op& op) {
  const Type& from = e.type(op.operands[0]);
  bool sum = fold(op).kind == Fold::Kind::sum;
  std::string x = e.scalar(op.operands[0]);
  if (e.cuda() && !e.always_live(from, fold(op).axis)) {
    x = fmt::format("({} < {} ? {} : {})", e.coordinate(from, fold(op).axis),
                    e.live(from.axes[fold(op).axis]), x, sum ? "0.0f" : "-tsr_inf()");
  }
  std::string acc = e.name(op.results[0]) + "_acc";
  if (!e.cuda() && !sum) {
    e.line(fmt::format("tst_put_max({}, {}_size, {});", acc, e.name(op.results[0]), x));
    return {};
  }
  e.line(sum ? fmt::format("{} += {};", acc, x) : fmt::format("{0} = tst_max({0}, {1});", acc, x));
  return {};
}

const OpRecord records[] = {
    {.name = "reduce",
     .shape = Shape::fold,
     .infer = infer_reduce,
     .interpret = interpret_reduce,
     .emit = emit_reduce},
};

}  // namespace

extern const OpFamily reduce{"reduce", records};

}  // namespace tessera::tile::ops
