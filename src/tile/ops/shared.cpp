// shared, copy, commit, wait: rings of tiles in shared memory, filled while others are read.
//
//   ks = shared(like=tile(f32, [cut(64, j), 96], layout="(64,96):(112,1)", space=shared), slots=2,
//   ring=j) copy(k_view[pick(h), j, :], ks, ..., tile=1)   # cp.async of the tile after j's: nobody
//   waits here commit()                                # what was copied since the last commit is
//   one group wait(pending=0)                         # all groups have landed, all threads see
//   them
//
// The slot of a tile follows from its number, so slots and parities are written nowhere.
#include "tile/emit.h"
#include "tile/interpret.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile::ops {
namespace {

const Ring& ring(const Op& op) {
  return op.payload.get<Ring>();
}
const CopyOf& copy(const Op& op) {
  return op.payload.get<CopyOf>();
}

Result<std::vector<Type>> infer_shared(const Program&, const Kernel&, const Op& op) {
  const Type& t = ring(op).type;
  bool good = t.space == Space::shared && t.cover.size() == t.axes.size() &&
              t.layout.rank() == static_cast<int>(t.axes.size()) && ring(op).slots >= 1;
  for (std::size_t a = 0; good && a < t.axes.size(); ++a)
    good =
        t.cover[a] >= t.axes[a].extent && t.layout.mode(static_cast<int>(a)).size() == t.cover[a];
  if (!good || !is_injective(t.layout))
    return error(
        fail(bad_program, "the shared tile {} has the layout {}", to_string(t), to_string(t.layout))
            .expect("a place of its own for every element, one mode an axis"));
  return std::vector<Type>{t};
}

Status interpret_shared(Interpreter& in, const Op& op) {
  in.views[op.results[0].index] = &op;
  SharedRing& r = in.rings[op.results[0].index];
  r.slots.assign(ring(op).slots, {});
  for (SharedRing::Slot& s : r.slots) s.data.assign(ring(op).type.layout.cosize(), 0);
  in.copy_groups = 0;
  return {};
}

Status emit_shared(Emitter& e, const Op& op) {
  if (!e.cuda())
    return error(fail(unsupported, "host has no shared memory").help("load tiles into values"));
  e.views[op.results[0].index] = &op;
  const Ring& r = ring(op);
  e.uses_products = true;
  e.line(fmt::format("{0}* const {1} = reinterpret_cast<{0}*>(tst_shared() + {2});",
                     c_type(r.type.element), e.name(op.results[0]), e.shared_bytes));
  e.shared_bytes += r.slots * r.slot_elements() * size_of(r.type.element);
  return {};
}

/// The type of the tile as the copying threads see it.
Result<Type> moved_type(const Kernel& k, const Op& op) {
  const Type& to = k.values.at(op.operands.at(1).index).type;
  return try_register_type(to.element, to.axes, copy(op).cover, copy(op).layout);
}

Result<std::vector<Type>> infer_copy(const Program&, const Kernel& k, const Op& op) {
  const Type& from = k.values.at(op.operands.at(0).index).type;
  const Type& to = k.values.at(op.operands.at(1).index).type;
  if (from.space != Space::global || to.space != Space::shared || from.element != to.element ||
      copy(op).cover != to.cover || copy(op).indices.size() != from.axes.size())
    return error(
        fail(bad_program, "a tile of {} is copied to a shared {}", to_string(from), to_string(to))
            .expect("a view, a shared tile, and elements of one type"));
  TESSERA_TRY(t, moved_type(k, op));
  if (t.threads() != k.threads)
    return error(fail(bad_program, "a copy is spread over {} threads, the kernel has {}",
                      t.threads(), k.threads));
  return std::vector<Type>{};
}

Status interpret_copy(Interpreter& in, const Op& op) {
  const Ring& to = in.views.at(op.operands[1].index)->payload.get<Ring>();
  const CopyOf& c = copy(op);
  int64_t stands = in.tile(to.ring);
  int64_t n = c.from_start ? c.tile : stands + c.tile;
  if (n >= in.visited(to.ring)) return {};
  SharedRing::Slot& slot = in.rings.at(op.operands[1].index).slots.at(n % to.slots);
  if (slot.read)
    return error(fail(race, "tile {} is copied into a slot of `{}` that others may still read", n,
                      in.kernel->values[op.operands[1].index].name)
                     .help("let the block meet after the last read"));
  slot.tile = n;
  slot.group = in.copy_groups;
  slot.visible = false;
  TESSERA_TRY(t, moved_type(*in.kernel, op));
  in.tile(to.ring) = n;
  Status done = Interpreter::for_slots(t, [&](int64_t, const std::vector<int64_t>& at) -> Status {
    double& place = slot.data.at(to.type.layout.at(at));
    place = 0;
    if (!in.live(t, at)) return {};
    TESSERA_TRY(value, in.read(op.operands[0], c.indices, at));
    place = value;
    return {};
  });
  in.tile(to.ring) = stands;
  return done;
}

/// Σ step * stride of the loops at hand, from the slot's or the tile's start.
std::string loop_offset(const Emitter& e, const std::vector<int64_t>& strides) {
  std::string s;
  for (const Emitter::Loop& l : e.loops) {
    if (l.mode.axis < 0 || l.name == "0" || strides[l.mode.axis] == 0) continue;
    int64_t by = l.mode.step * strides[l.mode.axis];
    s += fmt::format("{}{}", s.empty() ? "" : " + ",
                     by == 1 ? l.name : fmt::format("{} * {}", l.name, by));
  }
  return s.empty() ? "0" : s;
}

/// The strides of a layout's modes that are one stride each; false when one is not.
bool single_strides(const Layout& l, std::vector<int64_t>& out) {
  for (int m = 0; m < l.rank(); ++m) {
    const std::vector<int64_t> strides = flatten(coalesce(l.mode(m)).stride());
    if (strides.size() != 1) return false;
    out.push_back(strides[0]);
  }
  return true;
}

/// How many elements one access moves: a row of the view and of the ring alike, 4 to 16 bytes.
Result<int64_t> run_of(const Emitter& e, const Op& op, const Type& t,
                       const std::vector<int64_t>& to) {
  int64_t run = e.vector_width(op.operands[0], copy(op).indices, t);
  const int64_t size = size_of(t.element);
  while (run > 1 && (to.back() != 1 || (to.size() > 1 && to[to.size() - 2] % run != 0))) run /= 2;
  if (run * size < 4)
    return error(
        fail(unsupported, "rows of {} are copied {} bytes at a time", to_string(t), run * size)
            .expect("a contiguous last dim whose rows start at 4 bytes or more"));
  return run;
}

Status emit_copy(Emitter& e, const Op& op) {
  const Ring& to = e.views.at(op.operands[1].index)->payload.get<Ring>();
  const CopyOf& c = copy(op);
  TESSERA_TRY(t, moved_type(*e.kernel, op));
  std::vector<int64_t> to_strides;
  if (!single_strides(to.type.layout, to_strides))
    return error(
        fail(unsupported, "a copy to {}", to_string(to.type.layout)).expect("one stride an axis"));
  TESSERA_TRY(run, run_of(e, op, t, to_strides));
  const std::string own = e.position(to.ring);
  const std::string at = c.from_start ? e.name(op.operands[1]) + "_first"
                         : c.tile > 0 ? e.name(op.operands[1]) + "_next"
                                      : own;
  e.open(at == own ? "{"
                   : fmt::format("if (const tst_index {0} = {1}{2}; {0} < {3}) {{", at,
                                 c.from_start ? "" : own + " + ", c.tile, e.count(to.ring)));
  e.stand(to.ring, at);
  if (at != own) e.declare_live(to.ring);
  e.loops.clear();
  const std::string slot =
      to.slots == 1 ? "" : fmt::format("{} % {} * {} + ", at, to.slots, to.slot_elements());
  std::string place;
  for (std::size_t a = 0; a < to_strides.size(); ++a) {
    std::string x = e.coordinate(t, static_cast<int>(a));
    if (x != "0") place += fmt::format("{}({}) * {}", place.empty() ? "" : " + ", x, to_strides[a]);
  }
  e.line(fmt::format("const auto copy_to = {} + {}{};", e.name(op.operands[1]), slot,
                     place.empty() ? "0" : place));
  // Where the view is linear in the tile's axes a thread's places are constants from its first.
  std::vector<int64_t> from_strides;
  const auto& view = e.views.at(op.operands[0].index)->payload.get<ViewOf>();
  bool linear = true;
  for (std::size_t m = 0; m < c.indices.size(); ++m)
    if (c.indices[m].kind != Index::Kind::pick)
      linear =
          linear && single_strides(concat({view.layout.mode(static_cast<int>(m))}), from_strides);
  if (linear)
    e.line(fmt::format("const auto copy_from = {} + ({});", e.tensor(op.operands[0]),
                       e.address(op.operands[0], c.indices, t)));
  e.open_registers(t, run);
  std::string from =
      linear ? "copy_from + " + loop_offset(e, from_strides)
             : e.tensor(op.operands[0]) + " + " + e.address(op.operands[0], c.indices, t);
  std::string live = e.predicate(t);
  e.line(fmt::format("tst_copy_async<{}>(copy_to + {}, {}{});", run, loop_offset(e, to_strides),
                     from, live.empty() ? "" : ", " + live));
  e.close_registers();
  e.stand_back(to.ring);
  e.close();
  return {};
}

Result<std::vector<Type>> infer_nothing(const Program&, const Kernel&, const Op&) {
  return std::vector<Type>{};
}

Status interpret_commit(Interpreter& in, const Op&) {
  ++in.copy_groups;
  return {};
}
Status emit_commit(Emitter& e, const Op&) {
  e.line("tst_copy_commit();");
  return {};
}

Status interpret_wait(Interpreter& in, const Op& op) {
  for (auto& [id, r] : in.rings)
    for (SharedRing::Slot& s : r.slots) {
      s.read = false;
      if (s.tile >= 0 && s.group < in.copy_groups - op.payload.get<Wait>().pending)
        s.visible = true;
    }
  return {};
}
Status emit_wait(Emitter& e, const Op& op) {
  e.line(fmt::format("tst_copy_wait<{}>();", op.payload.get<Wait>().pending));
  e.line("__syncthreads();");
  return {};
}

const OpRecord records[] = {
    {.name = "shared", .infer = infer_shared, .interpret = interpret_shared, .emit = emit_shared},
    {.name = "copy", .infer = infer_copy, .interpret = interpret_copy, .emit = emit_copy},
    {.name = "commit", .infer = infer_nothing, .interpret = interpret_commit, .emit = emit_commit},
    {.name = "wait", .infer = infer_nothing, .interpret = interpret_wait, .emit = emit_wait},
};

}  // namespace

extern const OpFamily shared{"shared", records};

}  // namespace tessera::tile::ops
