#include "tile/parse.h"

#include "base/text.h"
#include "tile/op_record.h"
#include "tile/parse_head.h"

#include "syntax/parse.h"

namespace tessera::tile {
namespace {

using syntax::Expr;
using syntax::Statement;

class Reader {
 public:
  explicit Reader(const Source& source) : source_(source) {}

  Result<Program> run(const syntax::Module& module) {
    for (const Statement& s : module.body) {
      const auto* f = s.as<syntax::Function>();
      if (f == nullptr)
        return error(wrong(s.span, "only kernels stand here", "`@kernel(...)` and `def`"));
      TESSERA_CHECK(kernel(*f));
    }
    if (program_.kernels.empty())
      return error(fail(bad_kernel_text, "{} has no kernel", source_.name()));
    program_.name = program_.kernels.back().name;
    return std::move(program_);
  }

 private:
  struct Scope {
    std::map<std::string, ValueId> values;
    std::map<std::string, VarId> vars;
  };

  [[nodiscard]] Diagnostic wrong(Span span, std::string_view what,
                                 std::string_view expected) const {
    return fail(bad_kernel_text, "{}", what).label(source_.label(span)).expect("{}", expected);
  }
  /// A diagnostic of a type rule, at the place of its op.
  [[nodiscard]] Diagnostic placed(Diagnostic d, Span span) const {
    return std::move(d).label(source_.label(span));
  }

  Status kernel(const syntax::Function& f) {
    TESSERA_TRY(head, read_head(source_, f));
    if (program_.kernels.empty()) program_.tensors = head.tensors;
    if (program_.tensors != head.tensors)
      return error(wrong(f.name_span,
                         fmt::format("`{}` takes other tensors than the kernel before it", f.name),
                         "the same tensors, in the same order"));
    KernelBuilder builder(program_, f.name, head.threads);
    builder.kernel().min_blocks = head.min_blocks;
    builder.kernel().constants = std::move(head.constants);
    builder_ = &builder;
    names_.clear();
    Scope scope;
    TESSERA_CHECK(block(f.body, f.body.size(), scope));
    return builder.finish();
  }

  /// The first `count` statements of a block.
  Status block(const syntax::Block& b, std::size_t count, Scope& scope) {
    for (std::size_t i = 0; i < count; ++i) {
      std::string_view f;
      const auto* a = b[i].as<syntax::Assign>();
      if (a != nullptr && a->value && call_of(*a->value, &f) != nullptr && f == "carry") {
        if (i + 2 >= count)
          return error(wrong(b[i].span, "nothing is carried through",
                             "a loop or a branch, and what comes out of it"));
        TESSERA_CHECK(carried(b[i], b[i + 1], b[i + 2], scope));
        i += 2;
        continue;
      }
      TESSERA_CHECK(statement(b[i], scope));
    }
    return {};
  }

  Status statement(const Statement& s, Scope& scope) {
    if (const auto* e = s.as<syntax::Evaluate>()) return call(e->value, {}, s.span, scope);
    if (const auto* a = s.as<syntax::Assign>();
        a != nullptr && a->value && a->op.empty() && !a->annotation) {
      TESSERA_TRY(names, targets(a->targets));
      std::string_view f;
      const syntax::Call* c = call_of(*a->value, &f);
      if (c != nullptr && f == "span" && names.size() == 1)
        return declaration(*c, *a->value, names[0], scope);
      return call(*a->value, names, s.span, scope);
    }
    if (s.as<syntax::Pass>() != nullptr) return {};
    TESSERA_TRY(region, region_of(s));
    TESSERA_TRY(ignored, open(region, {}, scope));
    Scope inner = scope_of(region, scope);
    TESSERA_CHECK(block(*region.body, region.body->size(), inner));
    builder_->close();
    return checked(s.span);
  }

  /// `j = span(128, 64)`: a loop's variable that is named before its loop.
  Status declaration(const syntax::Call& c, const Expr& e, const std::string& name, Scope& scope) {
    FieldReader fields(source_, program_, *builder_, c, e.span);
    fields.vars = &scope.vars;
    fields.declare(e, name);
    if (fields.failure) return error(*fields.failure);
    return {};
  }

  Result<std::vector<std::string>> targets(const std::vector<Expr>& all) const {
    std::vector<std::string> names;
    for (const Expr& e : all) {
      const std::string* n = name_of(e);
      if (n == nullptr) return error(wrong(e.span, "only names are assigned to", "a name"));
      names.push_back(*n);
    }
    return names;
  }

  Status checked(Span span) const {
    if (!builder_->failure()) return {};
    return error(placed(*builder_->failure(), span));
  }

  const OpRecord* record_of(std::string_view name) const { return find_op(name); }

  Diagnostic no_op(const Expr& e, std::string_view name) const {
    std::vector<std::string> known;
    for (const OpFamily* family : ops::all())
      for (const OpRecord& r : family->records) known.emplace_back(r.name);
    const std::string near = nearest(name, known);
    Diagnostic d =
        fail(bad_kernel_text, "no operation is called `{}`", name).label(source_.label(e.span));
    return near.empty() ? std::move(d) : std::move(d).help("did you mean `{}`?", near);
  }

  Status define(const std::string& name, ValueId v, Span span, Scope& scope) {
    if (!names_.insert(name).second || scope.vars.count(name) > 0)
      return error(wrong(span, fmt::format("`{}` is defined already", name),
                         "another name: each is given once"));
    builder_->rename(v, name);
    scope.values[name] = v;
    return {};
  }

  Status call(const Expr& e, const std::vector<std::string>& names, Span span, Scope& scope) {
    std::string_view name;
    const syntax::Call* c = call_of(e, &name);
    if (c == nullptr)
      return error(wrong(e.span, "this does nothing", "an operation: `y = load(...)`"));
    const OpRecord* record = record_of(name);
    if (record == nullptr) return error(no_op(*c->function, name));
    if (record->form != Form::call)
      return error(
          wrong(e.span, fmt::format("`{}` has a block", name), "`for`, `if` or `with` before it"));
    FieldReader fields(source_, program_, *builder_, *c, e.span);
    fields.vars = &scope.vars;
    Payload payload = record->read == nullptr ? Payload() : record->read(fields);
    TESSERA_TRY(operands, fields.finish(scope.values));
    const auto given = static_cast<int>(operands.size());
    if (record->operands != OpRecord::any && given != record->operands)
      return error(wrong(e.span, fmt::format("`{}` is given {} values", name, given),
                         std::to_string(record->operands)));
    const std::vector<ValueId> results =
        builder_->add(name, std::move(operands), std::move(payload));
    TESSERA_CHECK(checked(e.span));
    if (results.size() != names.size())
      return error(wrong(span, fmt::format("`{}` has {} results", name, results.size()),
                         fmt::format("as many names; there are {}", names.size())));
    for (std::size_t i = 0; i < names.size(); ++i)
      TESSERA_CHECK(define(names[i], results[i], span, scope));
    return {};
  }

  struct Block {
    const OpRecord* record = nullptr;
    const syntax::Call* call = nullptr;
    Span span;
    std::vector<std::string> targets;
    const syntax::Block* body = nullptr;
  };

  /// A `for`, an `if` or a `with`, and the operation in its head.
  Result<Block> region_of(const Statement& s) const {
    Block out;
    out.span = s.span;
    const Expr* head = nullptr;
    Form form = Form::call;
    if (const auto* f = s.as<syntax::For>()) {
      TESSERA_TRY(names, targets(f->targets));
      out.targets = std::move(names);
      head = &f->over, out.body = &f->body, form = Form::loop;
    } else if (const auto* i = s.as<syntax::If>(); i != nullptr && i->otherwise.empty()) {
      head = &i->condition, out.body = &i->body, form = Form::branch;
    } else if (const auto* w = s.as<syntax::With>(); w != nullptr && w->items.size() == 1) {
      head = &w->items[0].value, out.body = &w->body, form = Form::scope;
    } else {
      return error(wrong(s.span, "this statement is not one of the core's",
                         "an operation, a loop, a branch or a role"));
    }
    std::string_view name;
    out.call = call_of(*head, &name);
    if (out.call == nullptr) return error(wrong(head->span, "no operation stands here", "a call"));
    out.record = record_of(name);
    if (out.record == nullptr) return error(no_op(*out.call->function, name));
    if (out.record->form != form)
      return error(wrong(head->span, fmt::format("`{}` does not open this kind of block", name),
                         "`for` before tiles and steps, `if` before when, `with` before role"));
    return out;
  }

  Result<std::vector<ValueId>> open(const Block& b, const std::vector<ValueId>& carried,
                                    Scope& scope) {
    FieldReader fields(source_, program_, *builder_, *b.call, b.span);
    inner_vars_ = scope.vars;
    fields.vars = &inner_vars_;
    fields.targets = b.targets;
    Payload payload = b.record->read == nullptr ? Payload() : b.record->read(fields);
    TESSERA_TRY(operands, fields.finish(scope.values));
    if (!operands.empty())
      return error(wrong(b.span, "a block takes no operands", "`carry(...)` before it"));
    return builder_->open(b.record->name, carried, std::move(payload));
  }
  /// What is known inside: what is known outside, and the loop's variables.
  Scope scope_of(const Block&, const Scope& outer) const { return {outer.values, inner_vars_}; }

  /// `a, b = carry(x, y)`, the block that ends with `a, b = ...`, and `p, q = a, b`.
  Status carried(const Statement& before, const Statement& s, const Statement& after,
                 Scope& scope) {
    const auto& first = *before.as<syntax::Assign>();
    TESSERA_TRY(arguments, targets(first.targets));
    std::vector<ValueId> values;
    for (const syntax::Argument& a : first.value->as<syntax::Call>()->arguments) {
      TESSERA_TRY(v, value(a.value, scope));
      values.push_back(v);
    }
    if (values.size() != arguments.size())
      return error(
          wrong(before.span, "other names are given than values carried", "one name a value"));
    TESSERA_TRY(region, region_of(s));
    TESSERA_TRY(inside, open(region, values, scope));
    Scope inner = scope_of(region, scope);
    for (std::size_t i = 0; i < inside.size(); ++i)
      TESSERA_CHECK(define(arguments[i], inside[i], before.span, inner));
    const auto* last = region.body->empty() ? nullptr : region.body->back().as<syntax::Assign>();
    const auto* out = after.as<syntax::Assign>();
    if (last == nullptr || out == nullptr || !last->value || !out->value)
      return error(wrong(s.span, "carried values are not passed on",
                         "the block to end with `a = ...`, and `x = a` behind it"));
    TESSERA_TRY(again, targets(last->targets));
    if (again != arguments)
      return error(wrong(region.body->back().span, "the block does not end with what it carries",
                         fmt::format("`{} = ...`", fmt::join(arguments, ", "))));
    TESSERA_CHECK(block(*region.body, region.body->size() - 1, inner));
    TESSERA_TRY(yields, tuple(*last->value, inner));
    TESSERA_TRY(passed, tuple(*out->value, inner));
    if (yields.size() != arguments.size() || passed != inside)
      return error(wrong(after.span, "carried values come out otherwise than they went in",
                         fmt::format("`... = {}`", fmt::join(arguments, ", "))));
    const std::vector<ValueId> results = builder_->close(std::move(yields));
    TESSERA_CHECK(checked(s.span));
    TESSERA_TRY(names, targets(out->targets));
    if (names.size() != results.size())
      return error(
          wrong(after.span, "other names are given than values carried", "one name a value"));
    for (std::size_t i = 0; i < names.size(); ++i)
      TESSERA_CHECK(define(names[i], results[i], after.span, scope));
    return {};
  }

  Result<ValueId> value(const Expr& e, const Scope& scope) const {
    const std::string* n = name_of(e);
    const auto found = n == nullptr ? scope.values.end() : scope.values.find(*n);
    if (found == scope.values.end())
      return error(wrong(e.span, fmt::format("`{}` is not defined here", source_.text(e.span)),
                         "a value that is defined above"));
    return found->second;
  }
  Result<std::vector<ValueId>> tuple(const Expr& e, const Scope& scope) const {
    std::vector<ValueId> all;
    const auto* t = e.as<syntax::Tuple>();
    if (t == nullptr) {
      TESSERA_TRY(v, value(e, scope));
      all.push_back(v);
      return all;
    }
    for (const Expr& item : t->items) {
      TESSERA_TRY(v, value(item, scope));
      all.push_back(v);
    }
    return all;
  }

  const Source& source_;
  Program program_;
  KernelBuilder* builder_ = nullptr;
  std::map<std::string, VarId> inner_vars_;
  std::set<std::string> names_;
};

}  // namespace

Result<Program> parse(const Source& source) {
  syntax::Parsed parsed = syntax::parse(source);
  if (!parsed.errors.empty()) return error(std::move(parsed.errors.front()));
  return Reader(source).run(parsed.module);
}

}  // namespace tessera::tile
