#include <algorithm>

#include "language/elaborator.h"
#include "term/query.h"

namespace tessera::language {
namespace {

bool depends_on_thread(Term t) {
  return term::any_node(t, [](Term n) { return n->op == term::Op::coordinate; });
}

}  // namespace

Status Elaborator::block(const syntax::Block& body) {
  for (const syntax::Statement& s : body) {
    if (returned_)
      return error(fail(wrong_place, "nothing comes after `return`")
                       .label(label(s.span))
                       .help("let `return` be the last line of the function"));
    TESSERA_CHECK(statement(s));
  }
  return {};
}

Status Elaborator::machine_block(const std::function<Status()>& body) {
  frames_.push_back({{}, Frame::Of::machine});
  ++machine_depth_;
  Status status = body();
  --machine_depth_;
  frames_.pop_back();
  return status;
}

Status Elaborator::bind(const std::string& name, Value value, Span span) {
  bool around = false;  // the names of this frame may be bound anew, those around it not
  for (std::size_t i = frames_.size(); i-- > 0; around = true) {
    const auto known = frames_[i].names.find(name);
    if (around && known != frames_[i].names.end())
      return error(
          fail(wrong_place, "`{}` gets another value inside of a loop, a branch or a role", name)
              .label(label(span, "here"))
              .label(label(known->second.span, "it is made here"))
              .expect("one value")
              .but_found("a second one")
              .note("values are told apart while the text is read, not while the kernel runs")
              .help("give the new value a name of its own; what changes lies in `registers` or "
                    "`shared`"));
    if (frames_[i].of != Frame::Of::machine) break;
  }
  frames_.back().names[name] = {std::move(value), span};
  return {};
}

Status Elaborator::settle(Span span) {
  for (std::size_t i = frames_.size(); i-- > 0;) {
    for (auto& [name, bound] : frames_[i].names) {
      if (bound.value.as<Elementwise>() == nullptr) continue;
      naming = name;
      TESSERA_TRY(kept, keep(bound.value, span));
      bound.value = {kept};
    }
    if (frames_[i].of != Frame::Of::machine) break;
  }
  return {};
}

Status Elaborator::statement(const syntax::Statement& s) {
  naming.clear();
  if (const auto* a = s.as<syntax::Assign>()) return assign(*a, s.span);
  if (const auto* f = s.as<syntax::For>()) return loop(*f, s.span);
  if (const auto* i = s.as<syntax::If>()) return branch(*i, s.span);
  if (const auto* w = s.as<syntax::With>()) return with(*w, 0, s.span);
  if (const auto* a = s.as<syntax::Assert>()) return check(*a);
  if (const auto* r = s.as<syntax::Return>()) return give_back(*r, s.span);
  if (s.as<syntax::Pass>() != nullptr) return {};
  if (const auto* e = s.as<syntax::Evaluate>()) {
    TESSERA_TRY(v, evaluate(e->value));
    if (v.as<None>() != nullptr || v.as<std::string>() != nullptr) return {};
    return error(fail(wrong_place, "a value is made here and used nowhere")
                     .label(label(e->value.span, std::string(kind_of(v))))
                     .help("{}", v.as<BuiltinRef>() != nullptr || v.as<FormRef>() != nullptr
                                     ? "call it: write brackets behind it"
                                     : "give it a name, or take the line away"));
  }
  return error(fail(wrong_place, "this stands inside of a kernel or a function")
                   .label(label(s.span))
                   .help("put it on the file's own level"));
}

Status Elaborator::assign(const syntax::Assign& a, Span span) {
  if (a.annotation)
    return error(fail(wrong_place, "names in a body have no types")
                     .label(label(a.annotation->span))
                     .help("take the `: ...` away"));
  if (!a.op.empty()) return augmented(a, span);
  const auto* tuple = a.value->as<syntax::Tuple>();
  if (a.targets.size() > 1 && tuple != nullptr && tuple->items.size() == a.targets.size()) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < a.targets.size(); ++i) {
      const auto* name = a.targets[i].as<syntax::Name>();
      naming = name == nullptr ? "" : name->id;
      TESSERA_TRY(v, evaluate(tuple->items[i]));
      values.push_back(std::move(v));
    }
    for (std::size_t i = 0; i < a.targets.size(); ++i)
      TESSERA_CHECK(assign_to(a.targets[i], values[i], a.targets[i].span));
    return {};
  }
  const auto* name = a.targets.front().as<syntax::Name>();
  naming = a.targets.size() == 1 && name != nullptr ? name->id : "";
  TESSERA_TRY(value, evaluate(*a.value));
  naming.clear();
  if (a.targets.size() == 1) return assign_to(a.targets.front(), std::move(value), span);
  const auto* items = value.as<Sequence>();
  if (items == nullptr || items->items->size() != a.targets.size()) {
    const std::string found = items == nullptr ? std::string(kind_of(value))
                                               : fmt::format("{} values", items->items->size());
    return error(fail(wrong_kind, "cannot unpack {} into {} names", found, a.targets.size())
                     .label(label(a.value->span))
                     .expect("{} values", a.targets.size())
                     .but_found("{}", found)
                     .help("name as many as there are"));
  }
  for (std::size_t i = 0; i < a.targets.size(); ++i)
    TESSERA_CHECK(assign_to(a.targets[i], (*items->items)[i], a.targets[i].span));
  return {};
}

Status Elaborator::assign_to(const syntax::Expr& target, Value value, Span span) {
  if (const auto* name = target.as<syntax::Name>()) {
    if (value.as<None>() != nullptr)
      return error(fail(wrong_kind, "what `{}` is to name gives no value", name->id)
                       .label(label(span))
                       .help("write the call as a line of its own"));
    return bind(name->id, std::move(value), target.span);
  }
  if (const auto* s = target.as<syntax::Subscript>()) return store_part(*s, value, span);
  return error(fail(wrong_place, "nothing can be assigned here")
                   .label(label(target.span))
                   .expect("a name, or a part of registers: `x[:] = ...`")
                   .help("give the value a name"));
}

Status Elaborator::store_part(const syntax::Subscript& s, const Value& value, Span span) {
  TESSERA_TRY(of, evaluate(*s.of));
  const auto* registers = of.as<Fragment>();
  if (registers == nullptr)
    return error(fail(wrong_kind, "elements are assigned to registers alone")
                     .label(label(s.of->span, std::string(kind_of(of))))
                     .help("shared memory is written by `stmatrix`, `tma.load` and other "
                           "instructions, tensors by `store`"));
  const auto all = [](const syntax::Expr& e) {
    const auto* slice = e.as<syntax::Slice>();
    return slice != nullptr && !slice->from && !slice->to && !slice->step;
  };
  Fragment to = *registers;
  if (!std::all_of(s.indices.begin(), s.indices.end(), all)) {
    TESSERA_TRY(v, subscript(of, s, span));
    to = *v.as<Fragment>();
  }
  TESSERA_TRY(elements, elementwise(value, span));
  return compute(to, elements, span);
}

Status Elaborator::augmented(const syntax::Assign& a, Span span) {
  TESSERA_TRY(old, evaluate(a.targets.front()));
  TESSERA_TRY(by, evaluate(*a.value));
  TESSERA_TRY(value, binary(a.op, old, by, span));
  if (const auto* f = old.as<Fragment>()) {
    TESSERA_TRY(elements, elementwise(value, span));
    return compute(*f, elements, span);
  }
  return assign_to(a.targets.front(), std::move(value), span);
}

Status Elaborator::loop(const syntax::For& f, Span span) {
  TESSERA_TRY(over, evaluate(f.over));
  std::vector<std::string> names;
  for (const syntax::Expr& t : f.targets) {
    const auto* name = t.as<syntax::Name>();
    if (name == nullptr)
      return error(fail(wrong_place, "a loop counts in names")
                       .label(label(t.span))
                       .help("write `for k in ...`"));
    names.push_back(name->id);
  }
  const auto turn = [&](const std::vector<Value>& values) -> Status {
    for (std::size_t i = 0; i < names.size(); ++i)
      TESSERA_CHECK(bind(names[i], values[i], f.targets[i].span));
    return block(f.body);
  };
  if (const auto* items = over.as<Sequence>()) {
    if (names.size() != 1)
      return error(fail(wrong_kind, "the loop gives one value a turn")
                       .label(label(f.targets.front().span))
                       .help("name one"));
    for (const Value& v : *items->items) TESSERA_CHECK(turn({v}));
    return {};
  }
  const auto* loop = over.as<LoopRef>();
  if (loop == nullptr)
    return error(fail(wrong_kind, "cannot iterate over {}", kind_of(over))
                     .label(label(f.over.span, std::string(kind_of(over))))
                     .expect("range, unrolled, parts, ring, tiles, or a tuple")
                     .help("write `for i in range(n):`"));
  if (static_cast<int>(names.size()) != loop->yields)
    return error(fail(wrong_call, "`{}` gives {} values a turn", loop->name, loop->yields)
                     .label(label(f.targets.front().span.to(f.targets.back().span)))
                     .expect("{} names", loop->yields)
                     .but_found("{}", names.size())
                     .help("name each of them"));
  TESSERA_CHECK(settle(span));
  return loop->run(*this, names.front(), turn);
}

Status Elaborator::branch(const syntax::If& i, Span span) {
  TESSERA_TRY(c, condition(i.condition));
  if (const bool* known = std::get_if<bool>(&c)) return block(*known ? i.body : i.otherwise);
  const Term test = std::get<Term>(c);
  if (of_elements(test))
    return error(fail(wrong_place, "the condition is another one for each element")
                     .label(label(i.condition.span))
                     .expect("a condition of the thread, of a loop or of the launch")
                     .but_found("`indices` of a tile in it")
                     .help("choose elements by `where(condition, a, b)`"));
  TESSERA_TRY(b, emit(span));
  Status yes, no;
  const bool apart = threads_.apart;
  threads_.apart = apart || depends_on_thread(test);
  const bool some_turns = some_turns_;
  some_turns_ = some_turns || term::any_node(test, [&](Term n) {
                  return std::any_of(turns.begin(), turns.end(),
                                     [&](const Turn& t) { return t.of_tiles && t.index == n; });
                });
  const auto write = [&](const syntax::Block& body, Status& status) {
    status = machine_block([&] { return block(body); });
    b->stand_at(span);
  };
  if (i.otherwise.empty())
    b->when(test, [&] { write(i.body, yes); });
  else
    b->when(test, [&] { write(i.body, yes); }, [&] { write(i.otherwise, no); });
  threads_.apart = apart;
  some_turns_ = some_turns;
  return yes ? no : yes;
}

Status Elaborator::with(const syntax::With& w, std::size_t item, Span span) {
  if (item == w.items.size()) return block(w.body);
  const syntax::WithItem& i = w.items[item];
  TESSERA_TRY(v, evaluate(i.value));
  const auto* scope = v.as<ScopeRef>();
  if (scope == nullptr)
    return error(fail(wrong_kind, "`with` cannot enter this")
                     .label(label(i.value.span, std::string(kind_of(v))))
                     .expect("`role(...)` or `one_thread()`")
                     .help("write `with role(\"loader\", warpgroups=1):`"));
  if (i.name)
    return error(fail(wrong_place, "what `with` enters has no name")
                     .label(label(i.value.span))
                     .help("take the `as {}` away", *i.name));
  return scope->enter(*this, [&] { return with(w, item + 1, span); });
}

Status Elaborator::check(const syntax::Assert& a) {
  TESSERA_TRY(c, condition(a.condition));
  std::string why = "it does not hold";
  if (a.message) {
    TESSERA_TRY(m, evaluate(*a.message));
    if (const auto* text = m.as<std::string>()) why = *text;
  }
  const auto known = [&] {
    std::string out;
    if (builder_ == nullptr) return out;
    for (const auto& [name, n] : builder_->kernel().constants)
      if (source_->text(a.condition.span).find(name) != std::string_view::npos)
        out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, n);
    return out;
  };
  if (const bool* holds = std::get_if<bool>(&c)) {
    if (*holds) return {};
    return error(fail(assertion, "{}", why)
                     .label(label(a.condition.span))
                     .expect("{}", source_->text(a.condition.span))
                     .but_found("{}", known().empty() ? "False" : known())
                     .help("set the constants so that it holds"));
  }
  const term::Verdict v = term::always(std::get<Term>(c));
  if (v.proved()) return {};
  return error(fail(assertion, "{}", why)
                   .label(label(a.condition.span, v.refuted() ? "not for all launches"
                                                              : "not known for all launches"))
                   .expect("{}", source_->text(a.condition.span))
                   .but_found("{}", term::to_string(v, *builder_->kernel().pool))
                   .help("declare what is known of the integers: `K: index(multiple=8)`"));
}

Status Elaborator::give_back(const syntax::Return& r, Span span) {
  if (calls_.size() < 2)
    return error(fail(wrong_place, "a kernel gives nothing back")
                     .label(label(span))
                     .help("write results by `store` or `tma.store`"));
  if (machine_depth_ > 0)
    return error(fail(wrong_place, "`return` stands in a loop or a branch of the machine")
                     .label(label(span))
                     .help("let it be the last line of the function"));
  returned_ = Value{};
  if (r.value) {
    TESSERA_TRY(v, evaluate(*r.value));
    returned_ = v;
  }
  return {};
}

}  // namespace tessera::language
