// Instructions as calls: the records of arch/ say what each takes, so none of them is named here.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

std::string signature_text(const arch::Form& form) {
  std::vector<std::string> parts;
  for (const arch::Operand& o : form.operands) parts.emplace_back(o.name);
  for (const arch::Modifier& m : form.modifiers) parts.push_back(std::string(m.name) + "=");
  return fmt::format("{}({})", path_of(form), join(parts, ", "));
}

std::string text_of(const Value& v) {
  if (const auto* n = v.as<int64_t>()) return std::to_string(*n);
  if (const auto* s = v.as<std::string>()) return *s;
  return "";
}

std::string_view wanted(arch::OperandKind k) {
  switch (k) {
    case arch::OperandKind::shared:
    case arch::OperandKind::cluster_shared:
      return "shared memory or a barrier";
    case arch::OperandKind::global:
      return "a place in a tensor: A[i, j]";
    case arch::OperandKind::tensor_map:
      return "a tensor map: tensor_map(A, a[0])";
    case arch::OperandKind::descriptor:
      return "a matrix in shared memory";
    case arch::OperandKind::immediate:
      return "an integer that is known";
    default:
      return "registers or integers";
  }
}

}  // namespace

Status Elaborator::may_issue(const arch::Form& form, Span span) {
  if (!in_body_)
    return error(fail(wrong_place, "`{}` stands outside of a kernel's body", form.name)
                     .label(label(span))
                     .help("move it into the body"));
  const arch::Issuer issuer = form.effects.issuer;
  const bool all = threads_.who == Threads::Who::all;
  if (issuer == arch::Issuer::elected && all && !threads_.apart)
    return error(
        fail(wrong_place, "one thread issues `{}`, and {} are here", form.name, threads_.text())
            .label(label(span))
            .expect("one thread")
            .but_found("{}", threads_.text())
            .help("write it under `with one_thread():`"));
  const bool warp = issuer == arch::Issuer::warp || issuer == arch::Issuer::warpgroup;
  if (warp && !all)
    return error(fail(wrong_place, "{} issues `{}`, and {} here",
                      issuer == arch::Issuer::warp ? "a whole warp" : "a warpgroup", form.name,
                      threads_.count() == 1 ? "one thread is" : "not all threads are")
                     .label(label(span))
                     .expect("all threads of the role")
                     .but_found("{}", threads_.text())
                     .help("take it out of `one_thread`"));
  if (issuer == arch::Issuer::warpgroup && threads_.warps % 4 != 0)
    return error(fail(wrong_place, "a warpgroup issues `{}`, and {} warps are here", form.name,
                      threads_.warps)
                     .label(label(span))
                     .expect("four warps, or a multiple of them")
                     .but_found("{}", threads_.warps)
                     .help("give the role `warpgroups=` instead of `warps=`"));
  return {};
}

Status Elaborator::issue(const arch::Form& form, const std::vector<Call::Bound>& given, Span span) {
  TESSERA_CHECK(may_issue(form, span));
  arch::Choices choices;
  std::vector<const Call::Bound*> operands(form.operands.size());
  std::size_t place = 0;
  for (const Call::Bound& g : given) {
    const arch::Modifier* const m = g.name.empty() ? nullptr : form.modifier(g.name);
    if (m != nullptr) {
      choices.emplace_back(m->name, text_of(g.value));
      continue;
    }
    std::size_t at = place;
    if (g.name.empty())
      ++place;
    else
      for (at = 0; at < form.operands.size() && form.operands[at].name != g.name;) ++at;
    if (at >= operands.size() || operands[at] != nullptr) {
      std::vector<std::string> names;
      for (const arch::Operand& o : form.operands) names.emplace_back(o.name);
      for (const arch::Modifier& mod : form.modifiers) names.emplace_back(mod.name);
      const std::string near = nearest(g.name, names);
      return error(
          fail(wrong_call, "`{}` takes no such argument", form.name)
              .label(label(g.span))
              .expect("{}", signature_text(form))
              .help("{}", near.empty() ? "take it away" : fmt::format("did you mean `{}`?", near)));
    }
    operands[at] = &g;
  }
  if (auto right = arch::check(form, choices); !right)
    return error(std::move(right.error()).label(label(span)).expect("{}", signature_text(form)));
  std::vector<core::Argument> arguments;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr)
      return error(fail(wrong_call, "`{}`: missing argument `{}`", form.name, form.operands[i].name)
                       .label(label(span))
                       .expect("{}", signature_text(form))
                       .help("{}", form.doc));
    TESSERA_TRY(a, argument(form, form.operands[i], *operands[i]));
    if (const auto* s = std::get_if<core::Slice>(&a);
        s != nullptr && form.operands[i].direction != arch::Direction::in)
      wrote(s->registers);
    arguments.push_back(std::move(a));
  }
  TESSERA_TRY(b, emit(span));
  b->issue(form.name, std::move(arguments), std::move(choices));
  return {};
}

Result<core::Argument> Elaborator::argument(const arch::Form& form, const arch::Operand& operand,
                                            const Call::Bound& given) {
  using Kind = arch::OperandKind;
  const Value& v = given.value;
  const auto refuse = [&]() -> Result<core::Argument> {
    return error(fail(wrong_kind, "`{}` of `{}` is of another kind", operand.name, form.name)
                     .label(label(given.span, std::string(kind_of(v))))
                     .expect("{}", wanted(operand.kind))
                     .but_found("{}", kind_of(v))
                     .help("`{}`", signature_text(form)));
  };
  switch (operand.kind) {
    case Kind::shared:
    case Kind::cluster_shared:
      if (const auto* b = v.as<BarrierRef>()) return core::BarrierAt{b->id, b->slot};
      [[fallthrough]];
    case Kind::descriptor:
      if (const auto* s = v.as<SharedRef>()) return core::SharedAt{s->id, s->at};
      return refuse();
    case Kind::global:
      if (const auto* b = v.as<BoxRef>()) {
        core::GlobalAt at{b->id, {}};
        for (const BoxRef::Dim& d : b->dims) at.at.push_back(d.start);
        return at;
      }
      return refuse();
    case Kind::tensor_map:
      if (const auto* m = v.as<MapValue>()) return core::MapRef{m->id};
      return refuse();
    default:
      break;
  }
  if (const auto* f = v.as<Fragment>(); f != nullptr && operand.kind != Kind::immediate)
    return core::Slice{f->id, f->whole ? builder_->number(0) : f->first};
  if (operand.direction != arch::Direction::in) return refuse();
  core::Integers out;
  if (const auto* items = v.as<Sequence>()) {
    for (const Value& i : *items->items) {
      TESSERA_TRY(n, number(i, given.span));
      out.values.push_back(n);
    }
    return out;
  }
  if (const bool* b = v.as<bool>()) {
    out.values = {builder_->number(*b ? 1 : 0)};
    return out;
  }
  if (const auto* t = v.as<Term>(); t != nullptr && (*t)->predicate()) {
    out.values = {builder_->select(*t, builder_->number(1), builder_->number(0))};
    return out;
  }
  if (v.as<int64_t>() == nullptr && v.as<Term>() == nullptr) return refuse();
  TESSERA_TRY(n, number(v, given.span));
  if (operand.kind == Kind::immediate && !n->facts.constant()) return refuse();
  out.values = {n};
  return out;
}

}  // namespace tessera::language
