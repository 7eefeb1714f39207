// Tags: what elements are of, as an author says it, and what is asserted of it.
#include <algorithm>

#include "language/elaborator.h"

namespace tessera::language {
namespace {

using Said = Elaborator::Said;

/// All elements of something, by indices of its own.
struct Elements {
  core::Tagged at;
  std::vector<Term> over;
  std::vector<Value> indices;  // one a dimension; of one that a tensor lacks: nothing
};

Diagnostic no_elements(Call& c, const Value& v, Span span, std::string_view expected) {
  return fail(wrong_kind, "this has no elements that carry tags")
      .label(c.e.label(span, std::string(kind_of(v))))
      .expect("{}", expected)
      .but_found("{}", kind_of(v))
      .help("elements that are still to be computed have no place: assign them to registers");
}

/// Slots first + steps(e) of the element e.
Term slot_of(const core::Run& run, Term element) {
  const std::vector<int64_t> extents = flatten(run.steps.shape()),
                             strides = flatten(run.steps.stride());
  Term out = run.first, rest = element;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool last = i + 1 == extents.size();
    if (strides[i] != 0) {
      const Term digit = last ? rest : floor_mod(rest, extents[i]);
      const Term part = strides[i] == 1 ? digit : digit * strides[i];
      out = out->op == term::Op::constant && out->value == 0 ? part : out + part;
    }
    if (!last) rest = floor_div(rest, extents[i]);
  }
  return out;
}

Result<Elements> of_registers(Elaborator& e, const Fragment& f, Span span) {
  TESSERA_TRY(element, e.element_of(f, span));
  TESSERA_TRY(run, e.run_of(f, span));
  Elements out{core::Slice{f.id, slot_of(run, element)}, {element}, {}};
  for (std::size_t d = 0; d < f.tile.size(); ++d) {
    TESSERA_TRY(index, e.index_of_elements(f, static_cast<int>(d), span));
    out.indices.push_back(Value{index});
  }
  return out;
}

/// With these indices, or with symbols of its own where there are none.
Result<Elements> of_shared(Elaborator& e, const SharedRef& s, const std::vector<std::string>& names,
                           std::vector<Term> indices, Span span) {
  Elements out{core::SharedAt{s.id, s.at}, {}, {}};
  auto& at = std::get<core::SharedAt>(out.at).at;
  const std::vector<int64_t> shape = shape_of(s);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d >= indices.size()) {
      TESSERA_TRY(symbol, e.symbol_below(names[d], e.builder().number(shape[d]), span));
      out.over.push_back(symbol);
      indices.push_back(symbol);
    }
    out.indices.push_back(Value{indices[d]});
    const std::size_t own = s.transposed ? shape.size() - 1 - d : d;
    Term& to = at[static_cast<std::size_t>(s.kept[own])];
    to = to->op == term::Op::constant && to->value == 0 ? indices[d] : to + indices[d];
  }
  return out;
}

Result<Elements> of_tensor(Elaborator& e, const TensorRef& t, const std::vector<std::string>& names,
                           Span span) {
  const core::Tensor& tensor = e.builder().kernel()[t.id];
  Elements out{core::GlobalAt{t.id, {}}, {}, {}};
  const std::size_t dims = t.has.empty() ? tensor.extents.size() : t.has.size();
  std::size_t own = 0;
  for (std::size_t d = 0; d < dims; ++d) {
    if (!t.has.empty() && !t.has[d]) {
      out.indices.emplace_back();
      continue;
    }
    TESSERA_TRY(symbol,
                e.symbol_below(d < names.size() ? names[d] : "i", tensor.extents[own++], span));
    out.over.push_back(symbol);
    out.indices.push_back(Value{symbol});
  }
  std::get<core::GlobalAt>(out.at).at = out.over;
  return out;
}

std::vector<std::string> default_names(std::size_t dims) {
  static const std::vector<std::string> names = {"i", "j", "t", "u", "v", "w", "x", "y"};
  return {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(dims, names.size()))};
}

/// The shape of what has elements; nothing for other values.
std::optional<std::vector<int64_t>> shape_of_elements(const Value& v) {
  if (const auto* f = v.as<Fragment>()) return f->tile;
  if (const auto* s = v.as<SharedRef>()) return shape_of(*s);
  return std::nullopt;
}

/// `tensors`: whether these may be named.
Result<Elements> elements_of(Call& c, const Value& v, std::vector<std::string> names, Span span) {
  if (const auto* f = v.as<Fragment>()) return of_registers(c.e, *f, span);
  if (const auto* t = v.as<TensorRef>()) return of_tensor(c.e, *t, names, span);
  const auto* s = v.as<SharedRef>();
  if (s == nullptr) return error(no_elements(c, v, span, "a tensor, shared memory or registers"));
  const std::vector<std::string> more = default_names(8);
  while (names.size() < shape_of(*s).size()) names.push_back(more[names.size() % more.size()]);
  return of_shared(c.e, *s, names, {}, span);
}

/// Registers are said something of by all threads; shared memory and tensors by whoever is here.
Status placed(Call& c, const Value& v, Span span, bool tensors) {
  const Threads& t = c.e.threads();
  if (v.as<Fragment>() != nullptr && t.who != Threads::Who::all)
    return error(fail(wrong_place, "registers carry tags of all threads that have them")
                     .label(c.e.label(span))
                     .but_found("{}", t.text())
                     .help("take it out of `one_thread`"));
  const bool tensor = tensors && v.as<TensorRef>() != nullptr;
  if (tensor && (!c.e.turns.empty() || !t.role.empty()))
    return error(fail(wrong_place, "a tensor is tagged outside of roles and loops")
                     .label(c.e.label(c.span))
                     .help("move the line to the kernel's own body, before the roles"));
  if (const auto* ref = v.as<TensorRef>();
      tensor && c.e.builder().kernel()[ref->id].access != core::Access::input)
    return error(fail(wrong_kind,
                      "only inputs are tagged: what the kernel writes carries the tags "
                      "of what is written")
                     .label(c.e.label(span))
                     .help("assert them of the registers that are stored"));
  if (tensor || shape_of_elements(v)) return {};
  return error(no_elements(
      c, v, span, tensors ? "a tensor, shared memory or registers" : "shared memory or registers"));
}

Result<LambdaRef> lambda_of(Call& c, const Call::Bound& b) {
  if (const auto* l = b.value.as<LambdaRef>()) return *l;
  return error(fail(wrong_kind, "`{}` is a function of the indices", b.name)
                   .label(c.e.label(b.span, std::string(kind_of(b.value))))
                   .expect("`{}=lambda i, j: ...`, an index a dimension", b.name)
                   .but_found("{}", kind_of(b.value))
                   .help("write a lambda; integers of the launch and positions may stand in it"));
}

/// `name=lambda ...` for each name that the call has, done by `make`.
template <class Make>
Status each_lambda(Call& c, bool tensors, const Make& make) {
  const Value of = c["of"];
  const Span span = c.span_of("of");
  TESSERA_CHECK(placed(c, of, span, tensors));
  if (c.bound.size() < 2)
    return error(fail(wrong_call, "no tag is named")
                     .label(c.e.label(c.span))
                     .expect("`row=lambda i, j: i`, for each name of a tag")
                     .help("name what the elements carry"));
  for (const Call::Bound& b : c.bound) {
    if (b.name == "of") continue;
    TESSERA_TRY(lambda, lambda_of(c, b));
    c.e.say_later(c.span, [c = c, of, span, lambda, name = b.name, make]() mutable -> Result<Said> {
      TESSERA_TRY(elements, elements_of(c, of, lambda.lambda->parameters, span));
      TESSERA_TRY(value, c.e.value_of(lambda, elements.indices));
      return make(name, std::move(elements), value);
    });
  }
  return {};
}

Result<Value> tag(Call& c) {
  TESSERA_CHECK(each_lambda(c, true, [](const std::string& name, Elements e, Term value) -> Said {
    return core::Tag{std::move(e.at), name, value, std::move(e.over)};
  }));
  return Value{};
}

Result<Value> assert_tag(Call& c) {
  TESSERA_CHECK(each_lambda(c, false, [](const std::string& name, Elements e, Term value) -> Said {
    return core::AssertTag{std::move(e.at), name, false, value, std::move(e.over)};
  }));
  return Value{};
}

/// The names at a call's end.
Result<std::vector<std::string>> names_of(Call& c) {
  std::vector<std::string> out;
  for (const Call::Bound& b : c.bound) {
    if (b.name != "names") continue;
    const auto* text = b.value.as<std::string>();
    if (text == nullptr)
      return error(fail(wrong_kind, "a tag is named by a text")
                       .label(c.e.label(b.span, std::string(kind_of(b.value))))
                       .help("write its name in quotes: \"k\""));
    out.push_back(*text);
  }
  if (!out.empty()) return out;
  return error(fail(wrong_call, "no tag is named")
                   .label(c.e.label(c.span))
                   .help("write its name in quotes behind: \"k\""));
}

Result<Value> reset_tags(Call& c) {
  const Value of = c["of"];
  const Span span = c.span_of("of");
  TESSERA_CHECK(placed(c, of, span, false));
  TESSERA_TRY(names, names_of(c));
  for (const std::string& name : names)
    c.e.say_later(c.span, [c = c, of, span, name]() mutable -> Result<Said> {
      TESSERA_TRY(elements, elements_of(c, of, {}, span));
      return core::Tag{std::move(elements.at), name, {}, std::move(elements.over)};
    });
  return Value{};
}

/// Whether the second's elements have the indices of the first's: all of them, or that of one
/// dimension while the others are free.
Status comparable(Call& c, std::optional<int64_t> axis) {
  const auto x = *shape_of_elements(c["x"]), y = *shape_of_elements(c["y"]);
  const auto rank = static_cast<int64_t>(x.size());
  if (axis && (*axis < 0 || *axis >= rank))
    return error(fail(wrong_shape, "there is no dimension {}", *axis)
                     .label(c.e.label(c.span_of("axis")))
                     .expect("0 to {}", rank - 1)
                     .help("name the dimension that both have"));
  const auto d = static_cast<std::size_t>(axis.value_or(0));
  if (axis ? x.size() == y.size() && x[d] == y[d] : x == y) return {};
  return error(
      fail(wrong_shape, "the elements of the two do not go together")
          .label(c.e.label(c.span_of("y")))
          .expect("{}{}", shape_text(x), axis ? fmt::format(" along dimension {}", *axis) : "")
          .but_found("{}", shape_text(y))
          .help("take parts of one shape, or say by `axis=` along which dimension they "
                "agree"));
}

/// y's elements, with the indices of x's along `axis`, or along all dimensions.
Result<Elements> beside(Call& c, const Value& y, const Elements& x, std::optional<int64_t> axis,
                        Span span) {
  const auto* s = y.as<SharedRef>();
  if (s == nullptr) {
    TESSERA_TRY(out, of_registers(c.e, *y.as<Fragment>(), span));
    for (std::size_t d = 0; d < out.indices.size(); ++d)
      if (x.over != out.over || *x.indices[d].as<Term>() != *out.indices[d].as<Term>())
        return error(fail(no_layout, "the elements of the two lie in different threads")
                         .label(c.e.label(span))
                         .help("compare registers that lie alike, or one of the two in shared "
                               "memory, named second"));
    return out;
  }
  std::vector<Term> indices;
  Elements out;
  for (std::size_t d = 0; d < x.indices.size(); ++d) {
    if (!axis || static_cast<int64_t>(d) == *axis) {
      indices.push_back(*x.indices[d].as<Term>());
      continue;
    }
    const int64_t extent = shape_of(*s)[d];
    TESSERA_TRY(symbol, c.e.symbol_below(d == 0 ? "n" : "m", c.e.builder().number(extent), span));
    out.over.push_back(symbol);
    indices.push_back(symbol);
  }
  TESSERA_TRY(at, of_shared(c.e, *s, {}, indices, span));
  out.at = std::move(at.at);
  return out;
}

Result<Value> compare(Call& c, bool apart) {
  const Value x = c["x"], y = c["y"];
  const Span at_x = c.span_of("x"), at_y = c.span_of("y");
  TESSERA_CHECK(placed(c, x, at_x, false));
  TESSERA_CHECK(placed(c, y, at_y, false));
  TESSERA_TRY(names, names_of(c));
  std::optional<int64_t> axis;
  if (c.find("axis") != nullptr) {
    TESSERA_TRY(given, c.integer("axis"));
    axis = given;
  }
  TESSERA_CHECK(comparable(c, axis));
  for (const std::string& name : names)
    c.e.say_later(c.span, [=, c = c]() mutable -> Result<Said> {
      TESSERA_TRY(here, elements_of(c, x, {}, at_x));
      TESSERA_TRY(there, beside(c, y, here, axis, at_y));
      core::AssertTag out{here.at, name, apart, there.at, here.over};
      for (const Term s : there.over)
        if (std::find(out.over.begin(), out.over.end(), s) == out.over.end()) out.over.push_back(s);
      return out;
    });
  return Value{};
}

Result<Value> assert_same(Call& c) {
  return compare(c, false);
}
Result<Value> assert_apart(Call& c) {
  return compare(c, true);
}

constexpr Builtin records[] = {
    {"tag", "of, **", "What each element carries under a name: a function of its indices", tag},
    {"reset_tags", "of, *names", "The elements carry nothing under these names from here on",
     reset_tags},
    {"assert_tag", "of, **", "What each element has to carry under a name", assert_tag},
    {"assert_same", "x, y, *names, axis=",
     "Elements of both carry the same under these names, those of one index along `axis`",
     assert_same},
    {"assert_apart", "x, y, *names, axis=", "None of one carries what one of the other does",
     assert_apart},
};

}  // namespace

namespace groups {
extern const Group tags = {records};
}

}  // namespace tessera::language
