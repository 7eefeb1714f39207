#include "tile/interpret.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/round.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile {

bool Interpreter::live(const Type& t, const std::vector<int64_t>& c) {
  for (std::size_t a = 0; a < t.axes.size(); ++a) {
    const Axis& axis = t.axes[a];
    if (c[a] >= axis.extent) return false;
    if (!axis.var.valid()) continue;
    const TileVar& v = kernel->vars[axis.var.index];
    if (tile(axis.var) * v.step + c[a] >= v.total) return false;
  }
  return true;
}

int64_t Interpreter::visited(VarId id) const {
  const TileVar& v = kernel->vars[id.index];
  if (!v.until_var.valid()) return v.count();
  const TileVar& until = kernel->vars[v.until_var.index];
  int64_t end = (tiles_[v.until_var.index] + 1) * until.step + v.until_offset;
  return std::clamp<int64_t>((end + v.step - 1) / v.step, 0, v.count());
}

Result<const SharedRing::Slot*> Interpreter::landed(ValueId ring) {
  const auto& of = views.at(ring.index)->payload.get<Ring>();
  SharedRing::Slot& slot = rings.at(ring.index).slots.at(tile(of.ring) % of.slots);
  if (slot.tile != tile(of.ring) || !slot.visible)
    return error(fail(race, "`{}` is read at tile {} of `{}`, whose slot {}",
                      kernel->values[ring.index].name, tile(of.ring),
                      kernel->vars[of.ring.index].name,
                      slot.tile == tile(of.ring) ? "is still being filled" : "holds another tile")
                     .help("wait for the copy before the tile is read"));
  slot.read = true;
  return &slot;
}

int64_t Interpreter::address(ValueId view, const std::vector<Index>& indices,
                             const std::vector<int64_t>& c, int* tensor) {
  const auto& of = views.at(view.index)->payload.get<ViewOf>();
  *tensor = of.tensor;
  std::vector<int64_t> at;
  std::size_t axis = 0;
  for (const Index& i : indices) {
    int64_t base = i.kind == Index::Kind::all ? 0 : tile(i.var) * kernel->vars[i.var.index].step;
    at.push_back(i.kind == Index::Kind::pick ? base : base + c.at(axis++));
  }
  for (std::size_t m = 0; m < at.size(); ++m)
    if (at[m] >= of.layout.mode(static_cast<int>(m)).size()) return -1;
  return of.offset + of.layout.at(at);
}

Result<double> Interpreter::read(ValueId view, const std::vector<Index>& indices,
                                 const std::vector<int64_t>& c) {
  int tensor = 0;
  int64_t at = address(view, indices, c, &tensor);
  const Tensor& t = program->tensors[tensor];
  if (at < 0 || at >= t.extent())
    return error(fail(out_of_bounds, "{} reads element {} of `{}`", kernel->name, at, t.name)
                     .expect("0 <= element < {}", t.extent()));
  if (!memory.written[tensor][at])
    return error(fail(uninitialized, "{} reads element {} of `{}`, which nobody wrote",
                      kernel->name, at, t.name));
  return memory.data[tensor][at];
}

Status Interpreter::write(ValueId view, const std::vector<Index>& indices,
                          const std::vector<int64_t>& c, double value) {
  int tensor = 0;
  int64_t at = address(view, indices, c, &tensor);
  const Tensor& t = program->tensors[tensor];
  if (at < 0 || at >= t.extent())
    return error(fail(out_of_bounds, "{} writes element {} of `{}`", kernel->name, at, t.name)
                     .expect("0 <= element < {}", t.extent()));
  if (memory.written[tensor][at])
    return error(
        fail(double_write, "{} writes element {} of `{}` a second time", kernel->name, at, t.name));
  memory.written[tensor][at] = true;
  memory.data[tensor][at] = round_to(t.element, value);
  return {};
}

Status Interpreter::for_slots(
    const Type& t, const std::function<Status(int64_t, const std::vector<int64_t>&)>& f) {
  const int64_t threads = t.threads();
  const int64_t registers = t.registers();
  for (int64_t thread = 0; thread < threads; ++thread)
    for (int64_t reg = 0; reg < registers; ++reg)
      TESSERA_CHECK(f(thread * registers + reg, coordinate(t, thread, reg)));
  return {};
}

Status Interpreter::region(const Region& r) {
  for (const Op& op : r.ops) TESSERA_CHECK(op.record->interpret(*this, op));
  return {};
}

Status Interpreter::run(const Kernel& k) {
  kernel = &k;
  slots_.assign(k.values.size(), {});
  views.assign(k.values.size(), nullptr);
  tiles_.assign(k.vars.size(), 0);
  rings.clear();
  copy_groups = 0;
  return region(k.body);
}

Result<Memory> interpret(const Program& p, std::vector<std::vector<double>> tensors) {
  Interpreter in;
  in.program = &p;
  for (std::size_t i = 0; i < p.tensors.size(); ++i) {
    const Tensor& t = p.tensors[i];
    bool given = t.access == Access::input;
    std::vector<double> data(t.extent(), std::numeric_limits<double>::quiet_NaN());
    if (given) {
      if (i >= tensors.size() || static_cast<int64_t>(tensors[i].size()) != t.extent())
        return error(fail(out_of_bounds, "`{}` is given with another size", t.name)
                         .expect("{} elements", t.extent()));
      for (int64_t e = 0; e < t.extent(); ++e) data[e] = round_to(t.element, tensors[i][e]);
    }
    in.memory.data.push_back(std::move(data));
    in.memory.written.emplace_back(t.extent(), given);
  }
  for (const Kernel& k : p.kernels) TESSERA_CHECK(in.run(k));
  return std::move(in.memory);
}

}  // namespace tessera::tile
