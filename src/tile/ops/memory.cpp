// view, load, store: tensors in global memory and the tiles that move between them and registers.
#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile::ops {
namespace {

Result<std::vector<Type>> infer_view(const Program& p, const Kernel&, const Op& op) {
  const auto& of = op.payload.get<ViewOf>();
  const Tensor& t = p.tensors.at(of.tensor);
  if (of.offset < 0 || of.offset + of.layout.cosize() > t.extent()) {
    return error(fail(bad_program, "the view {} from element {} leaves `{}`", to_string(of.layout),
                      of.offset, t.name)
                     .expect("at most {} elements", t.extent()));
  }
  Type type{.element = t.element, .space = Space::global, .layout = of.layout};
  for (int m = 0; m < of.layout.rank(); ++m) type.axes.push_back({of.layout.mode(m).size(), {}});
  return std::vector<Type>{type};
}

Status interpret_view(Interpreter& in, const Op& op) {
  in.views[op.results[0].index] = &op;
  return {};
}

Status emit_view(Emitter& e, const Op& op) {
  e.views[op.results[0].index] = &op;
  return {};
}

/// The axes of the tile that the indices cut out of a view.
Result<std::vector<Axis>> tile_axes(const Kernel& k, const Type& view,
                                    const std::vector<Index>& indices) {
  if (view.space != Space::global || indices.size() != view.axes.size()) {
    return error(fail(bad_program, "a tile of `{}` has {} indices for {} modes", to_string(view),
                      indices.size(), view.axes.size()));
  }
  std::vector<Axis> axes;
  for (std::size_t m = 0; m < indices.size(); ++m) {
    const Index& i = indices[m];
    if (i.kind == Index::Kind::all) {
      axes.push_back(view.axes[m]);
      continue;
    }
    const TileVar& v = k.vars.at(i.var.index);
    if (v.total > view.axes[m].extent) {
      return error(fail(bad_program, "`{}` walks {} elements of a mode of {}", v.name, v.total,
                        view.axes[m].extent));
    }
    if (i.kind == Index::Kind::tile) axes.push_back({v.step, i.var});
    if (i.kind == Index::Kind::pick && v.step != 1)
      return error(fail(bad_program, "`{}` picks one element but steps by {}", v.name, v.step));
  }
  return axes;
}

Result<std::vector<Type>> infer_load(const Program&, const Kernel& k, const Op& op) {
  const auto& at = op.payload.get<LoadAt>();
  const Type& view = k.values.at(op.operands.at(0).index).type;
  TESSERA_TRY(axes, tile_axes(k, view, at.indices));
  TESSERA_TRY(t, try_register_type(view.element, std::move(axes), at.cover, at.layout));
  if (t.threads() != k.threads)
    return error(fail(bad_program, "a tile is spread over {} threads, the kernel has {}",
                      t.threads(), k.threads));
  return std::vector<Type>{std::move(t)};
}

Status interpret_load(Interpreter& in, const Op& op) {
  const auto& at = op.payload.get<LoadAt>();
  const Type& t = in.type(op.results[0]);
  Interpreter::Slots slots(t.threads() * t.registers());
  TESSERA_CHECK(Interpreter::for_slots(t, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    if (!in.live(t, c)) return {};
    TESSERA_TRY(value, in.read(op.operands[0], at.indices, c));
    slots[s] = value;
    return {};
  }));
  in.set(op.results[0], std::move(slots));
  return {};
}

Status check_element(DType t) {
  if (t == DType::float32 || t == DType::bfloat16 || t == DType::float16 || t == DType::boolean)
    return {};
  return error(fail(unsupported, "tiles of {} are not lowered", name_of(t))
                   .help("float32, bfloat16, float16 and bool are"));
}

Status emit_load(Emitter& e, const Op& op) {
  const auto& at = op.payload.get<LoadAt>();
  const Type& t = e.type(op.results[0]);
  TESSERA_CHECK(check_element(t.element));
  const std::string from = e.tensor(op.operands[0]);
  if (!e.cuda()) {
    e.define_load(op);
    return {};
  }
  bool repeated = false;
  int64_t run = e.vector_width(op.operands[0], at.indices, t, &repeated);
  e.declare(op.results[0], {});
  e.open_registers(t, run);
  TESSERA_TRY(reg, e.reg(t));
  std::string live = e.predicate(t);
  std::string address = e.address(op.operands[0], at.indices, t);
  e.line(fmt::format("{}tst_{}<{}>({} + {}, {} + {});", live.empty() ? "" : "if (" + live + ") ",
                     repeated ? "repeat" : "load", run, e.array(op.results[0]), reg, from,
                     address));
  if (!live.empty())
    e.line(fmt::format("else tst_clear<{}>({} + {});", run, e.array(op.results[0]), reg));
  e.close_registers();
  return {};
}

Result<std::vector<Type>> infer_store(const Program&, const Kernel& k, const Op& op) {
  const auto& at = op.payload.get<StoreAt>();
  const Type& value = k.values.at(op.operands.at(0).index).type;
  const Type& view = k.values.at(op.operands.at(1).index).type;
  TESSERA_TRY(axes, tile_axes(k, view, at.indices));
  for (std::size_t a = 0; a < std::max(axes.size(), value.axes.size()); ++a) {
    if (axes.size() != value.axes.size() || axes[a] != value.axes[a]) {
      return error(fail(bad_program, "a tile {} is stored where {} axes are cut out of {}",
                        to_string(value), axes.size(), to_string(view)));
    }
  }
  if (value.element != view.element) {
    return error(fail(bad_program, "a tile of {} is stored to a tensor of {}",
                      name_of(value.element), name_of(view.element))
                     .help("cast the tile first"));
  }
  return std::vector<Type>{};
}

/// Of the threads that hold the same element, the first one stores.
bool first_copy(const Type& t, int64_t thread) {
  for (const SpreadMode& m : spread(t).threads) {
    if (m.axis < 0 && thread % m.extent != 0) return false;
    thread /= m.extent;
  }
  return true;
}

Status interpret_store(Interpreter& in, const Op& op) {
  const auto& at = op.payload.get<StoreAt>();
  const Type& t = in.type(op.operands[0]);
  const Interpreter::Slots& slots = in.slots(op.operands[0]);
  return Interpreter::for_slots(t, [&](int64_t s, const std::vector<int64_t>& c) -> Status {
    if (!in.live(t, c) || !first_copy(t, s / t.registers())) return {};
    if (!slots[s])
      return error(fail(uninitialized, "an empty slot of `{}` is stored",
                        in.kernel->values[op.operands[0].index].name));
    return in.write(op.operands[1], at.indices, c, *slots[s]);
  });
}

std::string first_copy_text(const Type& t) {
  std::string s;
  int64_t below = 1;
  for (const SpreadMode& m : spread(t).threads) {
    if (m.axis < 0)
      s += fmt::format("{}thread / {} % {} == 0", s.empty() ? "" : " && ", below, m.extent);
    below *= m.extent;
  }
  return s;
}

Status emit_store(Emitter& e, const Op& op) {
  const auto& at = op.payload.get<StoreAt>();
  const Type& t = e.type(op.operands[0]);
  TESSERA_CHECK(check_element(t.element));
  const std::string to = e.tensor(op.operands[1]);
  if (!e.cuda()) {
    e.line(fmt::format("tst_store({}[{}], {});", to, e.address(op.operands[1], at.indices, t),
                       e.scalar(op.operands[0])));
    return {};
  }
  int64_t run = e.vector_width(op.operands[1], at.indices, t);
  e.open_registers(t, run);
  TESSERA_TRY(reg, e.reg(t));
  std::string when = e.predicate(t);
  std::string copy = first_copy_text(t);
  if (!copy.empty()) when += (when.empty() ? "" : " && ") + copy;
  e.line(fmt::format("{}tst_store<{}>({} + {}, {} + {});", when.empty() ? "" : "if (" + when + ") ",
                     run, to, e.address(op.operands[1], at.indices, t), e.array(op.operands[0]),
                     reg));
  e.close_registers();
  return {};
}

const OpRecord records[] = {
    {.name = "view", .infer = infer_view, .interpret = interpret_view, .emit = emit_view},
    {.name = "load",
     .shape = Shape::element,
     .infer = infer_load,
     .interpret = interpret_load,
     .emit = emit_load},
    {.name = "store",
     .shape = Shape::element,
     .infer = infer_store,
     .interpret = interpret_store,
     .emit = emit_store},
};

}  // namespace

extern const OpFamily memory{"memory", records};

}  // namespace tessera::tile::ops
