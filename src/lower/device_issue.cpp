// Instructions of the device side: their arguments as C++.
#include <utility>

#include "base/text.h"

#include "core/operand.h"
#include "lower/codes.h"
#include "lower/device.h"
#include "lower/walk.h"
#include "term/rules.h"
#include "term/sum.h"

namespace tessera::lower {
namespace {

using arch::Operand;
using arch::OperandKind;
using By = Passed::By;

bool is_shared(OperandKind k) {
  return k == OperandKind::shared || k == OperandKind::cluster_shared;
}

bool has_event(const arch::Form& f, arch::Verb verb, arch::EventKind kind) {
  for (const arch::Event& e : f.effects.events)
    if (e.verb == verb && e.kind == kind) return true;
  return false;
}

bool fences(const arch::Form& f, arch::FenceKind kind) {
  for (const arch::Fence& e : f.effects.fences)
    if (e.kind == kind) return true;
  return false;
}

bool has_place(const core::Kernel& k, const core::SharedAt& at) {
  return at.at.size() == static_cast<std::size_t>(k[at.shared].layout.rank());
}
bool has_place(const core::Kernel& k, const core::GlobalAt& at) {
  return at.at.size() == k[at.tensor].strides.size();
}

Diagnostic no_place(std::string_view name, std::size_t coordinates, std::size_t found) {
  return fail(bad_argument, "`{}` has {} coordinates", name, coordinates).but_found("{}", found);
}

std::string_view name_of(const core::Argument& a) {
  static constexpr std::string_view names[] = {"a place in shared memory",
                                               "an mbarrier",
                                               "a place in a tensor",
                                               "a tensor map",
                                               "registers",
                                               "integers"};
  return names[a.index()];
}

Diagnostic unfit(const core::Issue& i, std::size_t operand) {
  const Operand& o = i.form->operands[operand];
  return fail(bad_argument, "`{}` cannot take this for its operand `{}`", i.form->name, o.name)
      .expect("{}", arch::name_of(o.kind))
      .but_found("{}", name_of(i.arguments[operand]));
}

}  // namespace

std::vector<Wanted> Device::wanted_of(const core::Issue& i) {
  std::vector<Wanted> all;
  for (std::size_t o = 0; o < i.arguments.size() && o < i.form->operands.size(); ++o) {
    const Operand& operand = i.form->operands[o];
    const core::Argument& a = i.arguments[o];
    if (const auto* const s = std::get_if<core::SharedAt>(&a)) {
      if (!has_place(kernel_, *s)) continue;
      const Term at =
          operand.kind == OperandKind::descriptor ? chunk_of(kernel_, *s) : byte_of(kernel_, *s);
      all.push_back({split_sum(at).rest, shared_.at(s->shared.index) + "_at"});
    } else if (const auto* const b = std::get_if<core::BarrierAt>(&a)) {
      all.push_back({b->slot, "slot"});
    } else if (const auto* const g = std::get_if<core::GlobalAt>(&a)) {
      if (!has_place(kernel_, *g)) continue;
      all.push_back(
          {split_sum(element_of(kernel_, *g)).rest, tensors_.at(g->tensor.index) + "_at"});
    } else if (const auto* const v = std::get_if<core::Integers>(&a);
               v != nullptr && operand.kind != OperandKind::immediate) {
      for (Term t : v->values) all.push_back({t, std::string(operand.name)});
    }
  }
  return all;
}

/// True of constants and of what is made of counters that are constants of the text.
bool Device::is_constant_in_text(Term t) const {
  return !term::any_node(
      t, [&](Term n) { return n->symbol != nullptr && in_text_.count(n->symbol) == 0; });
}

/// base + rest * scale + constant
std::string Device::sum(const std::string& base, const SplitSum& offset, int64_t scale) {
  std::string out = base;
  if (offset.rest) {
    const std::string rest = expressions_.operand(offset.rest);
    out += scale == 1 ? " + " + rest : fmt::format(" + {} * {}", rest, scale);
  }
  if (offset.constant != 0)
    out +=
        fmt::format(" {} {}", offset.constant < 0 ? '-' : '+', std::abs(offset.constant * scale));
  return out;
}

Passed Device::address(const core::Issue& i, std::size_t operand, const core::SharedAt& at) {
  const Operand& o = i.form->operands[operand];
  const std::string& base = shared_.at(at.shared.index);
  if (!has_place(kernel_, at)) {
    const core::Shared& s = kernel_[at.shared];
    refuse(no_place(s.name, static_cast<std::size_t>(s.layout.rank()), at.at.size()));
    return {};
  }
  if (is_shared(o.kind))
    return {By::value, "uint32_t", {sum(base, split_sum(byte_of(kernel_, at)))}};
  const Result<MatrixRead> read = matrix_read(i, o.name);
  const Result<MatrixBits> bits =
      read ? matrix_bits(kernel_, at, *read) : Result<MatrixBits>(error(read.error()));
  if (!bits) {
    refuse(bits.error());
    return {};
  }
  helpers_.insert("matrix");
  // In a cluster an address has its block's rank above the 18 bits that lie in the block.
  const std::string own = kernel_.cluster == 1 ? base : fmt::format("({} & 0x3ffffu)", base);
  const std::string start = fmt::format("({} >> 4 | {:#x}u)", own, bits->low);
  return {By::value,
          "uint64_t",
          {fmt::format("matrix({}, {:#x}u)", sum(start, split_sum(chunk_of(kernel_, at))),
                       bits->high)}};
}

/// 8 or 16 bits of a register. Of 16 bits that are two elements of 8, the first is an even one.
Passed Device::part(const core::Issue& i, const Operand& o, const core::Slice& s) {
  const core::Registers& r = kernel_[s.registers];
  const int64_t per = r.per_register(),
                each = core::slots_of(*i.form, o, i.choices, r.element).value_or(1);
  const Term word = floor_div(s.first, per), slot = floor_mod(s.first, per),
             at = each == 1 ? slot : floor_div(slot, each);
  helpers_.insert("field");
  const std::string place = fmt::format("{}[{}], {}", registers_.at(s.registers.index),
                                        expressions_.text(word), expressions_.text(at));
  const int64_t wide = 32 / per * each;
  const std::string value = fmt::format("field<{}>({})", wide, place);
  if (o.direction == arch::Direction::in) return {By::value, "uint16_t", {value}};
  // The instruction writes a variable, which then takes its place in the register.
  helpers_.insert("set_field");
  before_ = fmt::format("uint16_t part = {};", value);
  after_ = fmt::format("set_field<{}>({}, part);", wide, place);
  return {By::reference, "uint16_t", {"part"}};
}

Passed Device::slice(const core::Issue& i, std::size_t operand, const core::Slice& s) {
  const Operand& o = i.form->operands[operand];
  const core::Registers& r = kernel_[s.registers];
  if (!is_constant_in_text(s.first)) {
    refuse(fail(bad_slice, "registers have constant numbers, and `{}` is none",
                term::to_string(s.first))
               .help("use counters of unrolled loops alone"));
    return {};
  }
  const int64_t bytes = size_of(r.element);
  if (o.kind == OperandKind::b16 && bytes < 4) return part(i, o, s);
  const bool wide = o.kind == OperandKind::b64;
  const bool fits = wide ? bytes == 8 : bytes < 8;
  if (!fits || (o.kind == OperandKind::f32 && r.element != DType::float32) ||
      o.kind == OperandKind::b16 || o.kind == OperandKind::immediate) {
    refuse(unfit(i, operand));
    return {};
  }
  const Result<Term> first = register_of(kernel_, s);
  if (!first) {
    refuse(first.error());
    return {};
  }
  const int64_t count = arch::value_of(o.registers, i.choices).value_or(1);
  const Range range = ranges_.of(*first);
  if (range.low < 0 || range.high + count > (r.slots() + r.per_register() - 1) / r.per_register())
    refuse(fail(bad_slice, "`{}` takes {} registers from `{}`", i.form->name, count,
                term::to_string(s.first))
               .expect("within the {} elements of `{}`", r.slots(), r.name));
  const std::string type = wide ? "uint64_t" : r.element == DType::float32 ? "float" : "uint32_t";
  const std::string& array = registers_.at(s.registers.index);
  if (!o.is_list()) {
    const By by = o.direction == arch::Direction::in ? By::value : By::reference;
    return {by, type, {fmt::format("{}[{}]", array, expressions_.text(*first))}};
  }
  const std::string from = expressions_.operand(*first);
  return {By::pointer, type, {from == "0" ? array : fmt::format("{} + {}", array, from)}};
}

Passed Device::integers(const core::Issue& i, std::size_t operand, const core::Integers& v) {
  const Operand& o = i.form->operands[operand];
  const int64_t count = arch::value_of(o.registers, i.choices).value_or(1);
  const bool number = o.kind == OperandKind::b32 || o.kind == OperandKind::b16 ||
                      o.kind == OperandKind::b64 || o.kind == OperandKind::immediate;
  if (!number || o.direction != arch::Direction::in ||
      static_cast<int64_t>(v.values.size()) != count) {
    refuse(unfit(i, operand));
    return {};
  }
  Passed p{o.is_list() ? By::values : By::value, std::string(type_of(o.kind)), {}};
  const bool bounds = i.form->name.starts_with("load.") && o.name == "inside";
  for (Term t : v.values) {
    if (bounds) t = bounds_in_text(t);
    if (o.kind == OperandKind::immediate) {
      p.by = By::constant;
      if (!is_constant_in_text(t))
        refuse(fail(bad_argument, "`{}` of `{}` is a constant of the instruction", o.name,
                    i.form->name)
                   .but_found("{}", term::to_string(t)));
    }
    if (t->op == term::Op::constant && t->value > INT32_MAX && t->value <= UINT32_MAX) {
      p.texts.push_back(fmt::format("{:#x}u", t->value));
      continue;
    }
    const std::string text = expressions_.text(t);
    p.texts.push_back(expressions_.is_long(t) && o.kind != OperandKind::b64
                          ? fmt::format("static_cast<uint32_t>({})", text)
                          : text);
  }
  return p;
}

/// A sum's parts that are constants of the text, and the others; invalid terms where there are
/// none.
std::pair<Term, Term> Device::parts_in_text(Term t) const {
  term::Sum constant, other;
  for (const term::Part& p : term::sum_of(t).parts)
    (is_constant_in_text(p.atom) ? constant : other).parts.push_back(p);
  if (constant.parts.empty() || other.parts.empty()) return {Term(), t};
  return {term::term_of(t.pool(), constant), term::term_of(t.pool(), other)};
}

/// The term with 0 for each counter that is a constant of the text.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term Device::at_first(Term t) const {
  if (t->symbol != nullptr && in_text_.contains(t->symbol)) return t.pool().constant(0);
  if (t->args.empty() || t->op == term::Op::read) return t;
  std::vector<Term> args;
  for (Term a : t->args) args.push_back(at_first(a));
  return args == t->args ? t : t.pool().must(t->op, std::move(args));
}

/// Comparisons with what is constant on one side, and what all loads of an unrolled loop share on
/// the other: an instruction each. The other side keeps the names that its parts have.
// NOLINTNEXTLINE(misc-no-recursion): predicates nest
Term Device::bounds_in_text(Term t) const {
  if (t->op == term::Op::select || t->op == term::Op::logical_and) {
    std::vector<Term> args = t->args;
    for (Term& a : args)
      if (a->predicate()) a = bounds_in_text(a);
    return t.pool().must(t->op, args);
  }
  if (t->op != term::Op::less) return t;
  const auto [constant, other] = parts_in_text(t->args[0]);
  if (!constant || at_first(other) != other ||
      term::simplify(at_first(constant)) != t.pool().constant(0))
    return t;
  return term::less(constant, t->args[1] - at_first(t->args[0]));
}

/// Loads have what is constant in the text apart: many in flight share a register for the rest.
Passed Device::global(const core::GlobalAt& at, bool loads) {
  const core::Tensor& t = kernel_[at.tensor];
  if (!has_place(kernel_, at)) {
    refuse(no_place(t.name, t.strides.size(), at.at.size()));
    return {};
  }
  const SplitSum s = split_sum(element_of(kernel_, at));
  const auto [constant, other] =
      s.rest && loads ? parts_in_text(s.rest) : std::pair(Term(), s.rest);
  std::string offset = s.rest ? expressions_.text(other) : "";
  std::string more =
      constant ? fmt::format(" + {} * ({})", size_of(t.element),
                             expressions_.text(s.constant == 0 ? constant : constant + s.constant))
               : "";
  if (!constant && (s.constant != 0 || !s.rest))
    offset += fmt::format("{}{}", offset.empty() ? "" : " + ", s.constant);
  return {By::value,
          "const void*",
          {fmt::format("{} + {} * int64_t({}){}", tensors_.at(at.tensor.index), size_of(t.element),
                       offset, more)}};
}

Passed Device::passed(const core::Issue& i, std::size_t operand) {
  const OperandKind kind = i.form->operands[operand].kind;
  const core::Argument& a = i.arguments[operand];
  if (const auto* const s = std::get_if<core::SharedAt>(&a);
      s != nullptr && (is_shared(kind) || kind == OperandKind::descriptor))
    return address(i, operand, *s);
  if (const auto* const b = std::get_if<core::BarrierAt>(&a); b != nullptr && is_shared(kind)) {
    const std::string& base = barriers_.at(b->barriers.index);
    if (b->slot->op == term::Op::constant)
      return {By::value, "uint32_t", {sum(base, {{}, b->slot->value * 8})}};
    return {By::value, "uint32_t", {sum(base, {b->slot, 0}, 8)}};
  }
  if (const auto* const g = std::get_if<core::GlobalAt>(&a);
      g != nullptr && kind == OperandKind::global)
    return global(*g, i.form->name.starts_with("load."));
  if (const auto* const m = std::get_if<core::MapRef>(&a);
      m != nullptr && kind == OperandKind::tensor_map)
    return {By::value, "const void*", {"&" + maps_.at(m->map.index)}};
  if (const auto* const s = std::get_if<core::Slice>(&a)) return slice(i, operand, *s);
  if (const auto* const v = std::get_if<core::Integers>(&a)) return integers(i, operand, *v);
  refuse(unfit(i, operand));
  return {};
}

/// Those that wgmma may have in flight, and that are declared here.
/// What is under way behind the instruction.
void Device::take_off(const core::Issue& i) {
  for (std::size_t o = 0; o < i.arguments.size() && o < i.form->operands.size(); ++o)
    if (const auto* const s = std::get_if<core::Slice>(&i.arguments[o]))
      if (i.form->effects.locked_until(i.form->operands[o].name) == arch::Completion::wgmma_group)
        flight_.product(s->registers.index);
  if (has_event(*i.form, arch::Verb::signals, arch::EventKind::wgmma_group)) flight_.commit();
  if (!has_event(*i.form, arch::Verb::awaits, arch::EventKind::wgmma_group)) return;
  const auto* const pending =
      i.arguments.empty() ? nullptr : std::get_if<core::Integers>(&i.arguments[0]);
  const bool known = pending != nullptr && pending->values.size() == 1 &&
                     pending->values[0]->op == term::Op::constant;
  flight_.wait(known ? static_cast<std::size_t>(pending->values[0]->value) : 0);
}

/// Not those that products under way have: what is made of pins may read them, and ptxas then
/// waits.
void Device::pin_registers() {
  for (const core::RegistersId r : declared_)
    if (in_flight_.count(r.index) != 0 && !flight_.has(r.index)) {
      helpers_.insert("pin");
      text_.line("pin({});", registers_.at(r.index));
    }
}

void Device::write(const core::Issue& i) {
  if (i.arguments.size() != i.form->operands.size())
    return refuse(fail(bad_argument, "`{}` has {} operands", i.form->name, i.form->operands.size())
                      .but_found("{} arguments", i.arguments.size()));
  if (is_of_warp(*i.form)) meet();
  if (fences(*i.form, arch::FenceKind::wgmma_registers)) pin_registers();
  std::vector<Passed> operands;
  for (std::size_t o = 0; o < i.arguments.size(); ++o) operands.push_back(passed(i, o));
  if (failure_) return;
  const Result<std::string> call = instructions_.call(*i.form, i.choices, operands);
  if (!call) return refuse(call.error());
  if (before_.empty()) {
    text_.raw(*call);
  } else {
    text_.block();
    for (const std::string& line : {std::exchange(before_, ""), *call, std::exchange(after_, "")})
      text_.raw(line);
    text_.close();
  }
  take_off(i);
  if (has_event(*i.form, arch::Verb::awaits, arch::EventKind::wgmma_group)) pin_registers();
}

}  // namespace tessera::lower
