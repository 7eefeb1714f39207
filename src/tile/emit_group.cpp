// Values and the groups of element ops that share a loop.
#include <stdexcept>

#include "tile/emit.h"
#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile {

bool Emitter::dies_here(ValueId v) const {
  return last_use_.at(v.index) <= now_;
}

void Emitter::declare(ValueId v, const std::vector<ValueId>& reusable) {
  const Type& t = type(v);
  for (ValueId r : reusable) {
    const Type& old = type(r);
    bool same = old.axes == t.axes && old.cover == t.cover && old.layout == t.layout;
    if (!same || !dies_here(r) || arrays_[r.index].empty() || !taken_.insert(r.index).second)
      continue;
    arrays_[v.index] = arrays_[r.index];
    return;
  }
  arrays_[v.index] = name(v);
  line(fmt::format("{}float {}[{}];", cuda() ? "" : "alignas(64) ", name(v), t.registers()));
}

std::string Emitter::scalar(ValueId v) {
  std::string s = name(v) + "_e";
  if (group_values_.count(v.index) != 0 || !group_scalars_.insert(v.index).second) return s;
  if (auto load = read_again_.find(v.index); load != read_again_.end()) {
    line(fmt::format("const float {} = {};", s, load_text(*load->second)));
    return s;
  }
  Result<std::string> at = reg(type(v));
  if (!at) throw std::logic_error(at.error().message);
  line(fmt::format("const float {} = {}[{}];", s, array(v), *at));
  return s;
}

void Emitter::define(ValueId v, const std::string& expression) {
  line(fmt::format("const float {}_e = {};", name(v), expression));
  group_values_.insert(v.index);
  if (dies_here(v) || read_again_.count(v.index) != 0) return;
  line(fmt::format("{}[{}] = {}_e;", array(v), reg(type(v)).value(), name(v)));
}

/// Where it costs no more than reading a copy: elements in a row, a cheap conversion, and nothing
/// that writes the tensor.
bool Emitter::reads_again(const Op& load) const {
  const auto& of = views.at(load.operands[0].index)->payload.get<ViewOf>();
  const Tensor& t = program->tensors[of.tensor];
  Layout last = coalesce(of.layout.mode(of.layout.rank() - 1));
  std::vector<int64_t> strides = flatten(last.stride());
  return !cuda() && !pinned_.at(load.results[0].index) && t.access == Access::input &&
         (t.element == DType::float32 || t.element == DType::bfloat16) && strides.size() == 1 &&
         (strides[0] == 0 || strides[0] == 1);
}

std::string Emitter::load_text(const Op& load) const {
  const auto& at = load.payload.get<LoadAt>();
  return fmt::format("tst_load({}[{}])", tensor(load.operands[0]),
                     address(load.operands[0], at.indices, type(load.results[0])));
}

void Emitter::define_load(const Op& load) {
  define(load.results[0], load_text(load));
}

void Emitter::find_last_uses(const Region& r, int& clock) {
  for (const Op& op : r.ops) {
    int start = clock_of_[&op] = ++clock;
    bool whole = op.record->shape == Shape::block || op.record->name == "broadcast";
    for (ValueId v : op.operands) {
      last_use_[v.index] = clock;
      if (whole || home_[v.index] != &r) pinned_[v.index] = true;
    }
    for (ValueId v : op.results) born_[v.index] = clock, home_[v.index] = &r;
    for (const Region& inner : op.regions) {
      for (ValueId v : inner.arguments) born_[v.index] = ++clock;
      find_last_uses(inner, clock);
      ++clock;
      for (ValueId v : inner.yields) last_use_[v.index] = clock, pinned_[v.index] = true;
      for (std::size_t v = 0; v < last_use_.size(); ++v)
        if (born_[v] < start && last_use_[v] > start) last_use_[v] = clock;
    }
  }
}

namespace {

const Type& domain_of(const Emitter& e, const Op& op) {
  return e.type(op.record->shape == Shape::fold || op.results.empty() ? op.operands[0]
                                                                      : op.results[0]);
}

bool same_slots(const Type& a, const Type& b) {
  return a.axes == b.axes && a.cover == b.cover && a.layout == b.layout;
}

int fold_axis(const Op& op) {
  return op.payload.get<Fold>().axis;
}

/// Whether the op may join the group: same slots, and nothing that the group's reductions give only
/// at its end.
bool joins(const Emitter& e, const std::vector<const Op*>& group, const Op& op) {
  if (group.empty()) return true;
  if (!same_slots(domain_of(e, *group[0]), domain_of(e, op))) return false;
  for (const Op* g : group) {
    if (g->record->shape == Shape::fold) {
      if (op.record->shape == Shape::fold && fold_axis(*g) != fold_axis(op)) return false;
      for (ValueId v : op.operands)
        if (v == g->results[0]) return false;
    }
    // A broadcast reads another register than its own: its operand must be finished.
    if (op.record->name == "broadcast")
      for (ValueId v : g->results)
        if (v == op.operands[0]) return false;
  }
  return true;
}

}  // namespace

Status Emitter::region(const Region& r) {
  std::vector<const Op*> pending;
  bool announced = cuda();
  auto flush = [&]() -> Status {
    std::vector<const Op*> ops = std::move(pending);
    pending.clear();
    if (ops.empty()) return {};
    TESSERA_CHECK(group(ops));
    for (const Op* op : ops) {
      if (announced || op->record->shape != Shape::fold) continue;
      announced = true;
      announce_stores(r);
    }
    return {};
  };
  for (const Op& op : r.ops) {
    bool alone = op.record->shape == Shape::block ||
                 (cuda() && (op.record->name == "load" || op.record->name == "store"));
    if (alone || !joins(*this, pending, op)) TESSERA_CHECK(flush());
    if (!alone) {
      pending.push_back(&op);
      continue;
    }
    now_ = clock_of_.at(&op);
    TESSERA_CHECK(op.record->emit(*this, op));
  }
  return flush();
}

void Emitter::announce_stores(const Region& r) {
  for (const Op& op : r.ops) {
    if (op.record->name != "store" || clock_of_.at(&op) <= now_) continue;
    const Type& t = type(op.operands[0]);
    const auto& of = views.at(op.operands[1].index)->payload.get<ViewOf>();
    Layout last = coalesce(of.layout.mode(of.layout.rank() - 1));
    if (t.axes.size() != 1 || !always_live(t, 0) || last != Layout(t.axes[0].extent, 1)) continue;
    // Short rows come in time by themselves, very long ones would drive out what is read.
    int64_t bytes = t.axes[0].extent * size_of(tensor_element(op.operands[1]));
    if (bytes < 1024 || bytes > 65536) continue;
    const auto& at = op.payload.get<StoreAt>();
    line(fmt::format("tst_expect_write({} + {}, {});", tensor(op.operands[1]),
                     address(op.operands[1], at.indices, t), t.axes[0].extent));
  }
}

Status Emitter::group(const std::vector<const Op*>& ops) {
  const Type& domain = domain_of(*this, *ops[0]);
  now_ = clock_of_.at(ops.back());
  group_values_.clear();
  group_scalars_.clear();
  taken_.clear();
  std::set<int32_t> inside;
  for (const Op* op : ops)
    for (ValueId v : op->results) inside.insert(v.index);
  // A result may take over the array of a value that dies in the group, once that value has been
  // read: each slot is read into a scalar before it is written.
  std::vector<ValueId> reusable;
  for (const Op* op : ops) {
    for (ValueId v : op->operands)
      if (inside.count(v.index) == 0 && op->record->name != "broadcast") reusable.push_back(v);
    if (op->record->name == "load" && reads_again(*op)) {
      read_again_[op->results[0].index] = op;
      continue;
    }
    for (ValueId v : op->results)
      if (op->record->shape == Shape::fold || !dies_here(v)) declare(v, reusable);
  }
  TESSERA_CHECK(group_body(ops, domain));
  if (cuda())
    for (const Op* op : ops)
      if (op->record->shape == Shape::fold) TESSERA_CHECK(exchange(*op));
  return {};
}

Result<std::size_t> Emitter::arrange_loops(const Type& domain, int fold_axis) {
  int64_t weight = 1;
  std::vector<Loop> inner;
  std::vector<Loop> outer;
  for (const SpreadMode& m : spread(domain).registers) {
    Loop l{fmt::format("i{}", inner.size() + outer.size()), m, weight};
    weight *= m.extent;
    auto& to = fold_axis >= 0 && m.axis != fold_axis ? outer : inner;
    to.insert(to.begin(), l);
    if (!cuda() && (m.axis < 0 || m.step != 1))
      return error(fail(unsupported,
                        "host tiles need one row-major register mode an axis, found {}",
                        to_string(domain.layout)));
  }
  loops = outer;
  loops.insert(loops.end(), inner.begin(), inner.end());
  return outer.size();
}

bool Emitter::ordered(const Op& fold) const {
  return !cuda() && fold.payload.get<Fold>().kind == Fold::Kind::max;
}

std::string Emitter::reductions(const std::vector<const Op*>& folds) const {
  std::string text;
  for (const Op* f : folds) {
    text += ordered(*f) ? fmt::format(" reduction(max : {0}_acc, {0}_size)", name(f->results[0]))
                        : fmt::format(" reduction(+ : {}_acc)", name(f->results[0]));
  }
  return text;
}

void Emitter::declare_accumulators(const std::vector<const Op*>& folds) {
  for (const Op* f : folds) {
    const std::string& n = name(f->results[0]);
    bool sum = f->payload.get<Fold>().kind == Fold::Kind::sum;
    line(ordered(*f) ? fmt::format("int {0}_acc = tst_order(-tsr_inf()); uint32_t {0}_size = 0;", n)
                     : fmt::format("float {}_acc = {};", n, sum ? "0.0f" : "-tsr_inf()"));
  }
}

void Emitter::open_loop(const Loop& l, const Type& domain) {
  std::string bound = cuda() || always_live(domain, l.mode.axis)
                          ? std::to_string(cuda() ? l.mode.extent : domain.axes[l.mode.axis].extent)
                          : live(domain.axes[l.mode.axis]);
  open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", cuda() ? "int" : "tst_index", l.name,
                   bound));
}

Status Emitter::store_accumulators(const std::vector<const Op*>& folds, std::size_t outer) {
  const std::vector<Loop> all = loops;
  loops.resize(outer);
  for (const Op* f : folds) {
    TESSERA_TRY(at, reg(type(f->results[0])));
    const std::string& n = name(f->results[0]);
    line(fmt::format("{}[{}] = {};", array(f->results[0]), at,
                     ordered(*f) ? fmt::format("tst_unorder({0}_acc, {0}_size)", n) : n + "_acc"));
  }
  loops = all;
  return {};
}

Status Emitter::group_body(const std::vector<const Op*>& ops, const Type& domain) {
  std::vector<const Op*> folds;
  for (const Op* op : ops)
    if (op->record->shape == Shape::fold) folds.push_back(op);
  loops.clear();
  TESSERA_TRY(outer, arrange_loops(domain, folds.empty() ? -1 : fold_axis(*folds[0])));
  for (std::size_t k = 0; k <= loops.size(); ++k) {
    if (k == outer) declare_accumulators(folds);
    if (k == loops.size()) break;
    if (cuda()) line("#pragma unroll");
    if (!cuda() && k + 1 == loops.size()) line("#pragma omp simd" + reductions(folds));
    open_loop(loops[k], domain);
  }
  if (loops.empty()) open("{");
  for (const Op* op : ops) TESSERA_CHECK(op->record->emit(*this, *op));
  for (std::size_t k = outer; k < std::max<std::size_t>(loops.size(), 1); ++k) {
    if (loops.empty() || k < loops.size()) close();
  }
  TESSERA_CHECK(store_accumulators(folds, outer));
  for (std::size_t k = 0; k < outer; ++k) close();
  loops.clear();
  return {};
}

Status Emitter::exchange(const Op& op) {
  const Type& from = type(op.operands[0]);
  int axis = fold_axis(op);
  int64_t width = 1;
  int64_t below = 1;
  bool started = false;
  bool good = true;
  for (const SpreadMode& m : spread(from).threads) {
    if (m.axis == axis) {
      good = good && (started ? below == width : below == 1);
      width *= m.extent;
      started = true;
    }
    below *= m.extent;
  }
  bool lanes = width <= 32 && (width & (width - 1)) == 0;
  if (!good || !(lanes || width % 32 == 0)) {
    return error(
        fail(unsupported, "a reduction across {} threads laid out as {} has no exchange", width,
             to_string(from.layout))
            .help(
                "put the threads of the axis first, a power of two up to 32 or a multiple of 32"));
  }
  if (width == 1) return {};
  bool sum = op.payload.get<Fold>().kind == Fold::Kind::sum;
  std::string v = array(op.results[0]);
  int64_t n = type(op.results[0]).registers();
  std::string how = sum ? "tst_sum_of" : "tst_max_of";
  if (lanes) {
    line(fmt::format("tst_exchange_lanes<{}, {}, {}>({});", how, width, n, v));
  } else {
    ++turns;
    line(fmt::format("__shared__ float {}_slots[{}];", v, n * kernel->threads / 32));
    line(fmt::format("tst_exchange_warps<{}, {}, {}, {}>({}, {}_slots, thread);", how, width, n,
                     kernel->threads, v, v));
  }
  return {};
}

}  // namespace tessera::tile
