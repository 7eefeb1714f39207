// Python expressions as values of fields.
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tile/fields.h"
#include "tile/parse.h"
#include "tile/program.h"

namespace tessera::tile {
namespace {

using syntax::Expr;

/// A whole number, with its sign.
std::optional<int64_t> integer(const Expr& e) {
  if (const auto* i = e.as<syntax::Integer>()) return i->value;
  const auto* u = e.as<syntax::Unary>();
  const auto* i = u == nullptr ? nullptr : u->operand->as<syntax::Integer>();
  if (i != nullptr && u->op == "-") return -i->value;
  return std::nullopt;
}

std::optional<double> number(const Expr& e) {
  if (const auto i = integer(e)) return static_cast<double>(*i);
  if (const auto* f = e.as<syntax::Float>()) return f->value;
  if (const auto* n = e.as<syntax::Name>()) {
    if (n->id == "inf") return std::numeric_limits<double>::infinity();
    if (n->id == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  const auto* u = e.as<syntax::Unary>();
  if (u == nullptr || u->op != "-") return std::nullopt;
  const auto below = number(*u->operand);
  return below ? std::optional(-*below) : std::nullopt;
}

/// The call's function where it is a plain name.
std::string_view called(const syntax::Call& c) {
  const auto* n = c.function->as<syntax::Name>();
  return n == nullptr ? std::string_view() : n->id;
}

/// A lambda's body as a DAG.
struct DagReader {
  const Source& source;
  std::map<std::string, int> names;
  pointwise::Dag dag;

  Diagnostic wrong(const Expr& e, std::string_view expected) const {
    return fail(bad_kernel_text, "this is no function of single elements")
        .label(source.label(e.span))
        .expect("{}", expected);
  }

  Result<int> node(const Expr& e) {
    if (const auto* n = e.as<syntax::Name>(); n != nullptr && names.count(n->id) > 0)
      return names.at(n->id);
    if (const auto value = number(e)) return dag.add_constant(*value);
    if (const auto* n = e.as<syntax::Named>()) {
      TESSERA_TRY(i, node(*n->value));
      names[n->name] = i;
      return i;
    }
    const auto* c = e.as<syntax::Call>();
    if (c == nullptr)
      return error(wrong(e, "a parameter, a number or a call of a pointwise function"));
    const pointwise::Function* f = pointwise::find(called(*c));
    if (f == nullptr) {
      std::vector<std::string> known;
      for (const auto& other : pointwise::functions()) known.emplace_back(other.name);
      const std::string near = nearest(called(*c), known);
      Diagnostic d = fail(bad_kernel_text, "no pointwise function is called `{}`", called(*c))
                         .label(source.label(c->function->span));
      return error(near.empty() ? std::move(d) : std::move(d).help("did you mean `{}`?", near));
    }
    if (static_cast<int>(c->arguments.size()) != f->arity)
      return error(fail(bad_kernel_text, "`{}` is given {} arguments", f->name, c->arguments.size())
                       .label(source.label(e.span))
                       .expect("{}", f->arity));
    std::vector<int> arguments;
    for (const syntax::Argument& a : c->arguments) {
      TESSERA_TRY(i, node(a.value));
      arguments.push_back(i);
    }
    return dag.add_call(f->name, std::move(arguments));
  }
};

}  // namespace

FieldReader::FieldReader(const Source& source, const Program& program, KernelBuilder& builder,
                         const syntax::Call& call, Span span)
    : source_(source), program_(program), builder_(builder), call_(call), span_(span) {}

const Expr* FieldReader::keyword(std::string_view name) {
  for (const syntax::Argument& a : call_.arguments) {
    if (a.keyword != name) continue;
    taken_.insert(&a);
    return &a.value;
  }
  return nullptr;
}

void FieldReader::miss(std::string_view name) {
  if (failure) return;
  failure = fail(bad_kernel_text, "`{}` is not told its `{}`", called(call_), name)
                .label(source_.label(span_))
                .help("add `{}=...`", name);
}

void FieldReader::wrong(const Expr& e, std::string_view expected) {
  if (failure) return;
  failure = fail(bad_kernel_text, "`{}` does not fit here", source_.text(e.span))
                .label(source_.label(e.span))
                .expect("{}", expected);
}

void FieldReader::tensor(int& index) {
  first_is_tensor_ = true;
  if (call_.arguments.empty() || !call_.arguments[0].keyword.empty()) return miss("tensor");
  const syntax::Argument& a = call_.arguments[0];
  taken_.insert(&a);
  const auto* name = a.value.as<syntax::Name>();
  for (std::size_t i = 0; name != nullptr && i < program_.tensors.size(); ++i) {
    if (program_.tensors[i].name != name->id) continue;
    index = static_cast<int>(i);
    return;
  }
  wrong(a.value, "the name of one of the kernel's tensors");
}

void FieldReader::subscript(std::size_t operand, std::vector<Index>& indices) {
  if (operand >= call_.arguments.size()) return miss("view");
  const Expr& e = call_.arguments[operand].value;
  const auto* s = e.as<syntax::Subscript>();
  if (s == nullptr) return wrong(e, "a view with its indices: `view[r, :]`");
  subscripts_[operand] = s;
  for (const Expr& i : s->indices) {
    Index index;
    const auto* slice = i.as<syntax::Slice>();
    const auto* c = i.as<syntax::Call>();
    if (slice != nullptr && !slice->from && !slice->to && !slice->step) {
      indices.push_back(index);
      continue;
    }
    const bool picks = c != nullptr && called(*c) == "pick" && c->arguments.size() == 1;
    index.kind = picks ? Index::Kind::pick : Index::Kind::tile;
    read(picks ? c->arguments[0].value : i, index.var);
    indices.push_back(index);
  }
}

void FieldReader::declare(const Expr& e, const std::string& name) {
  const auto* c = e.as<syntax::Call>();
  if (c == nullptr || called(*c) != "span" || c->arguments.size() < 2)
    return wrong(e, "`span(total, step)`, or the name of a span above");
  TileVar v;
  read(c->arguments[0].value, v.total);
  read(c->arguments[1].value, v.step);
  for (std::size_t i = 2; i < c->arguments.size(); ++i) {
    const syntax::Argument& a = c->arguments[i];
    if (a.keyword == "until") {
      read(a.value, v.until_var);
    } else if (a.keyword == "offset") {
      read(a.value, v.until_offset);
    } else if (a.keyword == "reversed") {
      read(a.value, v.reversed);
    } else {
      wrong(a.value, "`until=`, `offset=` or `reversed=`");
    }
  }
  if (failure) return;
  if (v.total < 0 || v.step < 1) return wrong(e, "a total of at least 0 and a step of at least 1");
  const VarId id = builder_.var_until(name, v.total, v.step, v.until_var, v.until_offset);
  builder_.kernel().vars[id.index].reversed = v.reversed;
  if (builder_.kernel().vars[id.index].name != name)
    return wrong(e, fmt::format("another name than `{}`, which is taken", name));
  (*vars)[name] = id;
}

void FieldReader::walks(std::vector<VarId>& walked) {
  positions_are_walks_ = true;
  std::size_t i = 0;
  for (const syntax::Argument& a : call_.arguments) {
    if (!a.keyword.empty()) break;
    taken_.insert(&a);
    if (i < targets.size() && !failure) {
      const auto* known = a.value.as<syntax::Name>();
      const bool declared =
          known != nullptr && known->id == targets[i] && vars->count(known->id) > 0;
      if (!declared) declare(a.value, targets[i]);
      if (!failure) walked.push_back(vars->at(targets[i]));
    }
    ++i;
  }
  if (i != targets.size() && !failure)
    failure = fail(bad_kernel_text, "{} variables walk over {} spans", targets.size(), i)
                  .label(source_.label(span_));
}

Result<std::vector<ValueId>> FieldReader::finish(const std::map<std::string, ValueId>& values) {
  std::vector<ValueId> operands;
  std::size_t position = 0;
  for (const syntax::Argument& a : call_.arguments) {
    const std::size_t at = position++;
    if (failure) break;
    if (taken_.count(&a) > 0) continue;
    if (!a.keyword.empty()) {
      failure = fail(bad_kernel_text, "`{}` has no `{}`", called(call_), a.keyword)
                    .label(source_.label(a.span));
      break;
    }
    const auto s = subscripts_.find(at);
    const Expr& e = s == subscripts_.end() ? a.value : *s->second->of;
    const auto* name = e.as<syntax::Name>();
    if (name == nullptr || values.count(name->id) == 0) {
      wrong(e, "a value that is defined above");
      break;
    }
    operands.push_back(values.at(name->id));
  }
  if (failure) return error(*failure);
  return operands;
}

void FieldReader::read(const Expr& e, bool& v) {
  const auto* c = e.as<syntax::Constant>();
  if (c == nullptr || (*c != syntax::Constant::truth && *c != syntax::Constant::falsehood))
    return wrong(e, "True or False");
  v = *c == syntax::Constant::truth;
}
void FieldReader::read(const Expr& e, int64_t& v) {
  const auto i = integer(e);
  if (!i) return wrong(e, "a whole number");
  v = *i;
}
void FieldReader::read(const Expr& e, int& v) {
  const auto i = integer(e);
  if (!i || *i > std::numeric_limits<int>::max() || *i < std::numeric_limits<int>::min())
    return wrong(e, "a whole number of 32 bits");
  v = static_cast<int>(*i);
}
void FieldReader::read(const Expr& e, double& v) {
  const auto x = number(e);
  if (!x) return wrong(e, "a number");
  v = *x;
}
void FieldReader::read(const Expr& e, DType& v) {
  const auto* n = e.as<syntax::Name>();
  const Result<DType> t =
      n == nullptr ? Result<DType>(error(fail(bad_kernel_text, ""))) : parse_dtype(n->id);
  if (!t) return wrong(e, "an element type: f32, bf16, f16, ...");
  v = *t;
}
void FieldReader::read(const Expr& e, Layout& v) {
  const auto* s = e.as<syntax::String>();
  if (s == nullptr) return wrong(e, "a layout in quotes: \"(8,4):(4,1)\"");
  Result<Layout> l = parse_layout(s->value);
  if (!l) return wrong(e, l.error().message);
  v = std::move(*l);
}
void FieldReader::read(const Expr& e, std::vector<int64_t>& v) {
  const auto* l = e.as<syntax::List>();
  if (l == nullptr) return wrong(e, "a list of whole numbers");
  v.assign(l->items.size(), 0);
  for (std::size_t i = 0; i < v.size(); ++i) read(l->items[i], v[i]);
}
void FieldReader::read(const Expr& e, VarId& v) {
  const auto* n = e.as<syntax::Name>();
  if (n == nullptr || vars->count(n->id) == 0) return wrong(e, "a variable of a loop around this");
  v = vars->at(n->id);
}

void FieldReader::read_axes(const Expr& e, Type& t) {
  const auto* l = e.as<syntax::List>();
  if (l == nullptr) return wrong(e, "a list of extents: `[8, cut(64, j)]`");
  for (const Expr& item : l->items) {
    Axis a;
    const auto* c = item.as<syntax::Call>();
    const bool cut = c != nullptr && called(*c) == "cut" && c->arguments.size() == 2;
    read(cut ? c->arguments[0].value : item, a.extent);
    if (cut) read(c->arguments[1].value, a.var);
    t.axes.push_back(a);
    t.cover.push_back(a.extent);
  }
}

void FieldReader::read(const Expr& e, Type& t) {
  const auto* c = e.as<syntax::Call>();
  if (c == nullptr || called(*c) != "tile" || c->arguments.size() < 3 ||
      !c->arguments[0].keyword.empty() || !c->arguments[1].keyword.empty())
    return wrong(e, "`tile(element, [extents], layout=\"...\")`");
  read(c->arguments[0].value, t.element);
  read_axes(c->arguments[1].value, t);
  for (std::size_t i = 2; i < c->arguments.size(); ++i) {
    const syntax::Argument& a = c->arguments[i];
    const auto* word = a.value.as<syntax::Name>();
    if (a.keyword == "layout") {
      read(a.value, t.layout);
    } else if (a.keyword == "cover") {
      read(a.value, t.cover);
    } else if (a.keyword == "space" && word != nullptr && word->id == "shared") {
      t.space = Space::shared;
    } else {
      wrong(a.value, "`layout=`, `cover=` or `space=shared`");
    }
  }
}
void FieldReader::read(const Expr& e, std::optional<Type>& v) {
  const auto* c = e.as<syntax::Constant>();
  v.reset();
  if (c != nullptr && *c == syntax::Constant::none) return;
  read(e, v.emplace());
}

void FieldReader::read(const Expr& e, std::shared_ptr<const pointwise::Dag>& v) {
  const auto* l = e.as<syntax::Lambda>();
  if (l == nullptr) return wrong(e, "a lambda: `lambda x0, x1: add(x0, x1)`");
  DagReader reader{source_, {}, {}};
  for (std::size_t i = 0; i < l->parameters.size(); ++i)
    reader.names[l->parameters[i]] = reader.dag.add_operand(static_cast<int>(i));
  const auto* tuple = l->body->as<syntax::Tuple>();
  const std::vector<Expr> results = tuple == nullptr ? std::vector<Expr>{*l->body} : tuple->items;
  for (const Expr& r : results) {
    Result<int> node = reader.node(r);
    if (!node) {
      if (!failure) failure = node.error();
      return;
    }
    reader.dag.results.push_back(*node);
  }
  v = std::make_shared<const pointwise::Dag>(std::move(reader.dag));
}

void FieldReader::read(const Expr& e, const arch::Mma*& v) {
  const auto* s = e.as<syntax::String>();
  v = s == nullptr ? nullptr : arch::find_mma(s->value);
  if (v == nullptr) wrong(e, "the name of a matrix instruction: \"m16n8k8.tf32\"");
}

}  // namespace tessera::tile
