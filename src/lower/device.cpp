#include "lower/device.h"

#include <algorithm>

#include "base/text.h"

#include "lower/codes.h"
#include "lower/helpers.h"
#include "lower/walk.h"

namespace tessera::lower {
namespace {

using core::Op;

std::string_view type_of_array(const core::Registers& r) {
  if (r.element == DType::float32) return "float";
  return size_of(r.element) == 8 ? "uint64_t" : "uint32_t";
}

int64_t words_of(const core::Registers& r) {
  return (r.slots() + r.per_register() - 1) / r.per_register();
}

}  // namespace

Device::Device(const core::Kernel& kernel, Ranges& ranges)
    : kernel_(kernel),
      ranges_(ranges),
      expressions_(ranges, [this](Diagnostic d) { refuse(std::move(d)); }),
      instructions_(names_) {
  name_storages();
}

void Device::refuse(Diagnostic d) {
  if (failure_) return;
  if (op_ != nullptr && kernel_.source && op_->span.end > op_->span.begin) {
    d.labels.push_back(kernel_.source->label(op_->span));
    d.place = d.labels.front().from;
  }
  failure_ = std::move(d);
}

void Device::name_storages() {
  for (const core::Tensor& t : kernel_.tensors) tensors_.push_back(names_.claim(t.name));
  for (const core::TensorMap& m : kernel_.maps) maps_.push_back(names_.claim(m.name));
  for (const core::Shared& s : kernel_.shared) shared_.push_back(names_.claim(s.name));
  for (const core::Barriers& b : kernel_.barriers) barriers_.push_back(names_.claim(b.name));
  for (const core::Registers& r : kernel_.registers) registers_.push_back(names_.claim(r.name));
}

void Device::name_symbols() {
  const core::Coordinates& at = kernel_.at;
  for (Term t : {at.lane, at.warp, at.block, at.blocks, at.rank, at.multiprocessors})
    expressions_.name(t, names_.claim(t->symbol->name));
  for (Term t : kernel_.parameters) expressions_.name(t, names_.claim(t->symbol->name));
}

Parameters Device::parameters() const {
  Parameters p;
  for (std::size_t i = 0; i < kernel_.maps.size(); ++i) p.maps.emplace_back(i);
  for (std::size_t i = 0; i < kernel_.tensors.size(); ++i)
    if (addressed_.count(static_cast<int32_t>(i)) != 0) p.tensors.emplace_back(i);
  for (Term t : kernel_.parameters)
    if (uses_->symbols().count(t->symbol) != 0) p.integers.push_back(t);
  if (uses_->symbols().count(kernel_.at.multiprocessors->symbol) != 0)
    p.integers.push_back(kernel_.at.multiprocessors);
  return p;
}

std::string Device::signature(const DeviceSide& d) const {
  std::vector<std::string> all;
  Expressions types(ranges_, [](const Diagnostic&) {});
  for (const core::MapId m : d.parameters.maps)
    all.push_back("const __grid_constant__ TensorMap " + maps_.at(m.index));
  for (const core::TensorId t : d.parameters.tensors)
    all.push_back((kernel_[t].access == core::Access::input ? "const uint8_t* " : "uint8_t* ") +
                  tensors_.at(t.index));
  Expressions named = expressions_;
  for (Term t : d.parameters.integers)
    all.push_back("const " + types.type_of(t) + " " + named.operand(t));
  const std::string cluster =
      kernel_.cluster > 1 ? fmt::format(" __cluster_dims__({}, 1, 1)", kernel_.cluster) : "";
  return fmt::format("TESSERA_KERNEL({}, {}){}\nvoid {}({})", kernel_.threads, kernel_.min_blocks,
                     cluster, d.symbol, join(all, ",\n     "));
}

/// The coordinates of the thread and the starts of what lies in shared memory.
void Device::write_head() {
  const auto used = [&](Term t) { return uses_->symbols().count(t->symbol) != 0; };
  const core::Coordinates& at = kernel_.at;
  const auto declare = [&](Term t, std::string_view value) {
    text_.line("const {} {} = {};", expressions_.type_of(t), expressions_.operand(t), value);
  };
  if (used(at.lane)) declare(at.lane, "static_cast<int>(threadIdx.x % 32)");
  // Taken from one lane, so that the compiler knows that it is the same in all.
  declare(at.warp, "__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0)");
  if (used(at.block)) declare(at.block, "static_cast<int>(blockIdx.x)");
  if (used(at.blocks)) declare(at.blocks, "static_cast<int>(gridDim.x)");
  if (used(at.rank))
    declare(at.rank, fmt::format("static_cast<int>(blockIdx.x % {})", kernel_.cluster));
  if (kernel_.shared.empty() && kernel_.barriers.empty()) return;
  text_.line("extern __shared__ __align__(1024) uint8_t memory[];");
  text_.line("const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(memory));");
  for (std::size_t i = 0; i < shared_.size(); ++i)
    text_.line("const uint32_t {} = shared + {};", shared_[i], kernel_.shared[i].at);
  for (std::size_t i = 0; i < barriers_.size(); ++i)
    text_.line("const uint32_t {} = shared + {};", barriers_[i], kernel_.barriers[i].at);
}

Result<DeviceSide> Device::write() {
  for_each_op(kernel_.body, [&](const Op& op) {
    const auto* const i = op.as<core::Issue>();
    if (i == nullptr) return;
    for (std::size_t o = 0; o < i->arguments.size() && o < i->form->operands.size(); ++o) {
      if (const auto* const s = std::get_if<core::Slice>(&i->arguments[o]))
        if (i->form->effects.locked_until(i->form->operands[o].name) ==
            arch::Completion::wgmma_group)
          in_flight_.insert(s->registers.index);
      if (const auto* const g = std::get_if<core::GlobalAt>(&i->arguments[o]))
        addressed_.insert(g->tensor.index);
    }
  });
  find_rings();
  uses_.emplace(
      kernel_, [this](const Op& op) { return wanted(op); },
      [this](const core::Compute& c) { return wanted_of_element(c); },
      [this](const core::For& l, Term t) { return has_variable(rings_[&l], t); },
      [this](Term t) { return expressions_.is_costly(t); });
  name_symbols();
  DeviceSide d;
  d.symbol = names_.claim(kernel_.name);
  d.parameters = parameters();
  write_head();
  write(kernel_.body);
  if (failure_) return error(*failure_);
  const bool functions = text_.text().find("tsr_") != std::string::npos;
  d.text = (functions ? pointwise::prelude(pointwise::Target::cuda) + "\n" : "") +
           "struct alignas(64) TensorMap {\n  uint64_t words[16];\n};\n\nnamespace {\n\n" +
           instructions_.functions() + elected_ + helper_functions(helpers_) +
           "\n}  // namespace\n\n" + signature(d) + " {\n" + text_.text() + "}\n";
  return d;
}

// ---- terms
// ---------------------------------------------------------------------------------------

std::vector<Wanted> Device::wanted(const Op& op) {
  op_ = &op;
  if (const auto* const i = op.as<core::Issue>()) return wanted_of(*i);
  if (const auto* const l = op.as<core::For>()) {
    const std::string name = l->counter->symbol->name;
    std::vector<Wanted> all = {
        {l->lower, name + "_begin"}, {l->upper, name + "_end"}, {l->step, name + "_step"}};
    for (const Ring& r : rings_[l])
      for (const Term t : {r.slot_at_first, r.round_at_first}) all.push_back({t, "first"});
    return all;
  }
  if (const auto* const b = op.as<core::If>()) return {{b->condition, "is"}};
  std::vector<Wanted> all;
  if (const auto* const c = op.as<core::Compute>())
    for (const auto& input : c->inputs)
      if (const Term* const t = std::get_if<Term>(&input))
        if (!c->element || !term::any_node(*t, [&](Term n) { return n == c->element; }))
          all.push_back({*t, "value"});
  return all;
}

std::vector<Wanted> Device::wanted_of_element(const core::Compute& c) const {
  std::vector<Wanted> all;
  for (const auto& input : c.inputs)
    if (const Term* const t = std::get_if<Term>(&input))
      if (c.element && term::any_node(*t, [&](Term n) { return n == c.element; }))
        all.push_back({*t, "value"});
  return all;
}

/// The terms of a loop's body decide which rings it has.
void Device::find_rings() {
  for_each_op(kernel_.body, [&](const Op& op) {
    const auto* const l = op.as<core::For>();
    if (l == nullptr) return;
    std::vector<Term> terms;
    for_each_op(l->body, [&](const Op& inner) {
      for (const Wanted& w : wanted(inner)) terms.push_back(w.term);
    });
    rings_[l] = rings_of(*l, terms);
  });
}

void Device::begin_rings(const core::For& l) {
  for (const Ring& r : rings_[&l]) {
    const auto begin = [&](const std::vector<Term>& terms, Term first, std::string_view hint) {
      if (terms.empty() && hint != "slot") return;
      const std::string value = expressions_.text(first);
      const std::string name = names_.claim(hint);
      text_.line("{} {} = {};", expressions_.type_of(terms.empty() ? first : terms.front()), name,
                 value);
      for (const Term t : terms) expressions_.name(t, name);
      ring_names_[&r].push_back(name);
    };
    begin(r.slot, r.slot_at_first, "slot");
    begin(r.round, r.round_at_first, "round");
  }
}

void Device::advance_rings(const core::For& l) {
  for (const Ring& r : rings_[&l]) {
    const std::vector<std::string>& names = ring_names_[&r];
    text_.open("if (++{} == {})", names[0], r.slots);
    text_.line("{} = 0;", names[0]);
    if (names.size() > 1) text_.line("++{};", names[1]);
    text_.close();
  }
}

void Device::declare_before(Scope scope, int at) {
  for (const Wanted& w : uses_->before(scope, at)) {
    std::string value = expressions_.text(w.term);
    if (expressions_.is_costly(w.term)) {
      helpers_.insert("now");
      value = fmt::format("now({})", value);
    }
    const std::string name = names_.claim(w.hint.empty() ? "i" : w.hint);
    text_.line("const {} {} = {};", expressions_.type_of(w.term), name, value);
    expressions_.name(w.term, name);
  }
}

// ---- ops
// -----------------------------------------------------------------------------------------

void Device::write(const core::Body& body, const core::For* of) {
  const Expressions::Named outside = expressions_.named();
  const std::size_t declared = declared_.size();
  for (std::size_t i = 0; i < body.size(); ++i) {
    op_ = &body[i];
    declare_before(&body, static_cast<int>(i));
    if (body[i].as<core::Role>() != nullptr)
      i = write_roles(body, i);
    else
      write(body[i]);
  }
  if (of != nullptr) add_to_sums(*of);  // by the names that their amounts have here
  declared_.resize(declared);
  expressions_.restore(outside);
}

void Device::write(const Op& op) {
  write_origin(op);
  std::visit([this](const auto& node) { write(node); }, op.node);
}

/// The author's line, where it is another than that of the op before.
void Device::write_origin(const Op& op) {
  if (!kernel_.source || op.span.end <= op.span.begin) return;
  const Place place = kernel_.source->place(op.span.begin);
  if (place.line == line_) return;
  line_ = place.line;
  text_.line("// {}:{}: {}", place.file, line_, trim(kernel_.source->line(line_)));
}

/// Before what a whole warp issues.
void Device::meet() {
  if (apart_) text_.line("__syncwarp();");
  apart_ = false;
}

void Device::write(const core::Declare& d) {
  const core::Registers& r = kernel_[d.registers];
  text_.line("{} {}[{}];", type_of_array(r), registers_.at(d.registers.index), words_of(r));
  declared_.push_back(d.registers);
}

Result<DeviceSide> device_side(const core::Kernel& kernel, Ranges& ranges) {
  return Device(kernel, ranges).write();
}

}  // namespace tessera::lower
