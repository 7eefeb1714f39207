// Calls: of the language's words, of instructions, of functions of the file, which are inlined.
#include <algorithm>

#include "language/elaborator.h"

namespace tessera::language {
namespace {

struct Declared {
  std::string name;
  bool optional = false;
  bool rest = false;
};

std::vector<Declared> parameters_of(const Builtin& b) {
  std::vector<Declared> out;
  for (const std::string& part : split(b.parameters, ',')) {
    std::string name = trim(part);
    if (name.empty() || name == "**") continue;
    Declared d;
    d.rest = name.front() == '*';
    if (d.rest) name.erase(0, 1);
    const auto equals = name.find('=');
    d.optional = equals != std::string::npos;
    d.name = name.substr(0, equals);
    out.push_back(std::move(d));
  }
  return out;
}

std::string signature_text(std::string_view name, const std::vector<Declared>& parameters) {
  std::vector<std::string> parts;
  for (const Declared& d : parameters)
    parts.push_back((d.rest ? "*" : "") + d.name + (d.optional ? "=" : ""));
  return fmt::format("{}({})", name, join(parts, ", "));
}

}  // namespace

Result<std::vector<Call::Bound>> Elaborator::arguments(const syntax::Call& c, bool lambdas) {
  std::vector<Call::Bound> out;
  for (const syntax::Argument& a : c.arguments) {
    if (const auto* l = a.value.as<syntax::Lambda>(); l != nullptr && lambdas) {
      out.push_back({a.keyword, Value{LambdaRef{l, a.value.span}}, a.value.span});
      continue;
    }
    TESSERA_TRY(v, evaluate(a.value));
    out.push_back({a.keyword, std::move(v), a.value.span});
  }
  return out;
}

Result<Value> Elaborator::call(const syntax::Call& c, Span span) {
  Value function;
  const auto path = path_of(*c.function);
  if (const auto word = path ? named(*path) : std::nullopt) {
    function = *word;
  } else {
    TESSERA_TRY(v, evaluate(*c.function));
    function = v;
  }
  TESSERA_TRY(given, arguments(c, function.as<BuiltinRef>() != nullptr));
  if (const auto* b = function.as<BuiltinRef>())
    return invoke(*b->builtin, b->self, std::move(given), span);
  if (const auto* f = function.as<FormRef>()) {
    TESSERA_CHECK(issue(*f->form, given, span));
    return Value{};
  }
  if (const auto* f = function.as<UserFunction>()) return call_user(*f, std::move(given), span);
  if (const auto* f = function.as<PointwiseRef>()) {
    const auto arity = static_cast<std::size_t>(f->function->arity);
    if (f->first_values && given.size() > arity) given.resize(arity);
    return call_pointwise(*f->function, given, span);
  }
  return error(fail(wrong_kind, "this is nothing that can be called")
                   .label(label(c.function->span, std::string(kind_of(function))))
                   .expect("a function or an instruction")
                   .help("take the brackets away, or name what is to be called"));
}

Result<Value> Elaborator::invoke(const Builtin& b, std::shared_ptr<const Value> self,
                                 std::vector<Call::Bound> given, Span span) {
  if (!in_body_ && !b.anywhere && b.name.front() != '.')
    return error(fail(wrong_place, "`{}` stands outside of a kernel's body", b.name)
                     .label(label(span))
                     .expect("numbers, element types and functions")
                     .but_found("`{}`", b.name)
                     .help("move it into the body"));
  const std::vector<Declared> declared = parameters_of(b);
  const std::string_view name = b.name.substr(b.name.find_last_of('.') == 0 ? 1 : 0);
  const auto refuse = [&](Span where, const std::string& what, const std::string& help,
                          const std::string& found = "") {
    return error(fail(wrong_call, "{}", what)
                     .label(label(where))
                     .expect("{}", signature_text(name, declared))
                     .but_found("`{}`", found.empty() ? source_->text(where) : found)
                     .help("{}", help));
  };
  const bool names_are_free = b.parameters.find("**") != std::string_view::npos;
  Call call(*this, b, span);
  call.self = std::move(self);
  std::size_t place = 0;
  for (Call::Bound& g : given) {
    const Declared* to = nullptr;
    if (g.name.empty()) {
      if (place < declared.size()) to = &declared[place];
      if (to == nullptr)
        return refuse(g.span, fmt::format("`{}` takes no further argument", name), "take it away");
      if (!to->rest) ++place;
    } else {
      std::vector<std::string> names;
      for (const Declared& d : declared) {
        if (d.name == g.name) to = &d;
        names.push_back(d.name);
      }
      const std::string near = nearest(g.name, names);
      if (to == nullptr && names_are_free) {
        call.bound.push_back(std::move(g));
        continue;
      }
      if (to == nullptr)
        return refuse(g.span, fmt::format("`{}` has no argument `{}`", name, g.name),
                      near.empty() ? "take it away" : fmt::format("did you mean `{}`?", near),
                      g.name);
      if (call.find(to->name) != nullptr)
        return refuse(g.span, fmt::format("`{}` is told `{}` twice", name, g.name), "tell it once");
    }
    call.bound.push_back({to->name, std::move(g.value), g.span});
  }
  for (const Declared& d : declared)
    if (!d.optional && !d.rest && call.find(d.name) == nullptr)
      return error(fail(wrong_call, "`{}`: missing argument `{}`", name, d.name)
                       .label(label(span))
                       .expect("{}", signature_text(name, declared))
                       .but_found("no `{}`", d.name)
                       .note("{}", b.doc)
                       .help("give it, by its place or as `{}=`", d.name));
  return b.run(call);
}

Result<Value> Elaborator::call_user(const UserFunction& f, std::vector<Call::Bound> given,
                                    Span span) {
  const syntax::Function& function = *f.function;
  if (std::find(calls_.begin(), calls_.end(), &function) != calls_.end())
    return error(fail(recursion, "`{}` calls itself", function.name)
                     .label(label(span, "called again here"))
                     .label(label(function.name_span, "while it is being written"))
                     .expect("calls of other functions")
                     .but_found("`{}` in `{}`", function.name, function.name)
                     .help("functions are put in the place of their calls: write a loop"));
  Frame frame{{}, Frame::Of::function};
  std::size_t place = 0;
  for (Call::Bound& g : given) {
    const auto by_name = [&](const syntax::Parameter& p) { return p.name == g.name; };
    const auto& all = function.parameters;
    const auto to = g.name.empty()
                        ? all.begin() + static_cast<std::ptrdiff_t>(std::min(place++, all.size()))
                        : std::find_if(all.begin(), all.end(), by_name);
    if (to == all.end() || frame.names.count(to->name) != 0)
      return error(fail(wrong_call, "`{}` takes no such argument", function.name)
                       .label(label(g.span))
                       .label(label(function.name_span, "it is made here"))
                       .expect("{} arguments", all.size())
                       .help("give it what its `def` names"));
    frame.names[to->name] = {std::move(g.value), g.span};
  }
  for (const syntax::Parameter& p : function.parameters) {
    if (frame.names.count(p.name) != 0) continue;
    if (f.own && f.own->count(p.name) != 0) {
      frame.names[p.name] = {f.own->at(p.name), p.span};
      continue;
    }
    if (!p.fallback)
      return error(fail(wrong_call, "`{}`: missing argument `{}`", function.name, p.name)
                       .label(label(span))
                       .label(label(p.span, "without a default"))
                       .help("give it a value"));
    TESSERA_TRY(v, evaluate(*p.fallback));
    frame.names[p.name] = {std::move(v), p.span};
  }
  frames_.push_back(std::move(frame));
  calls_.push_back(&function);
  const int depth = std::exchange(machine_depth_, 0);
  machine_around_ += depth;
  const auto outside = std::exchange(returned_, std::nullopt);
  Status status = block(function.body);
  Value out = returned_.value_or(Value{});
  returned_ = outside;
  machine_around_ -= depth;
  machine_depth_ = depth;
  calls_.pop_back();
  frames_.pop_back();
  if (!status) return error(std::move(status.error()).label(label(span, "in this call")));
  return out;
}

Result<Value> Elaborator::call_pointwise(const pointwise::Function& f,
                                         const std::vector<Call::Bound>& given, Span span) {
  std::vector<const Value*> operands;
  for (const Call::Bound& g : given) {
    if (!g.name.empty())
      return error(fail(wrong_call, "functions of elements take no names")
                       .label(label(g.span))
                       .help("write the values alone"));
    operands.push_back(&g.value);
  }
  if (static_cast<int>(operands.size()) != f.arity)
    return error(fail(wrong_call, "`{}` takes {} value{}", f.name, f.arity, f.arity == 1 ? "" : "s")
                     .label(label(span))
                     .expect("{}", f.arity)
                     .but_found("{}", operands.size())
                     .help("give it as many"));
  return apply(f.name, operands, span);
}

}  // namespace tessera::language
