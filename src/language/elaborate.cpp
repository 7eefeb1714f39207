#include <algorithm>

#include "language/elaborator.h"
#include "language/means_text.h"
#include "syntax/parse.h"

namespace tessera::language {
namespace {

bool is_kernel(const syntax::Function& f) {
  return std::any_of(f.decorators.begin(), f.decorators.end(), [](const syntax::Expr& d) {
    const auto* call = d.as<syntax::Call>();
    const auto* name = (call == nullptr ? d : *call->function).as<syntax::Name>();
    return name != nullptr && name->id == "kernel";
  });
}

Result<const syntax::Function*> find_kernel(const Source& source, const syntax::Module& module,
                                            std::string_view name) {
  std::vector<std::string> kernels;
  for (const syntax::Statement& s : module.body) {
    const auto* f = s.as<syntax::Function>();
    if (f == nullptr) continue;
    if (f->name == name && is_kernel(*f)) return f;
    if (f->name == name)
      return error(fail(no_such_name, "`{}` is a function, not a kernel", name)
                       .label(source.label(f->name_span))
                       .help("write `@kernel` above it"));
    if (is_kernel(*f)) kernels.push_back(f->name);
  }
  const std::string near = nearest(name, kernels);
  return error(fail(no_such_name, "`{}` has no kernel `{}`", source.name(), name)
                   .expect("{}", kernels.empty() ? "a function under `@kernel`"
                                                 : "one of: " + join(kernels, ", "))
                   .help("{}", near.empty() ? "name a kernel of the file"
                                            : fmt::format("did you mean `{}`?", near))
                   .at({.file = source.name()}));
}

}  // namespace

Result<core::Kernel> elaborate(const Source& source, std::string_view kernel,
                               const Options& options) {
  const auto own = std::make_shared<const Source>(source);
  const syntax::Parsed parsed = syntax::parse(*own);
  if (!parsed.errors.empty()) return error(parsed.errors.front());
  TESSERA_TRY(function, find_kernel(*own, parsed.module, kernel));
  Elaborator first(own, parsed.module, *function, options, {});
  TESSERA_TRY(draft, first.run());
  TESSERA_TRY(measured, first.measure(draft));
  return Elaborator(own, parsed.module, *function, options, measured).run();
}

Elaborator::Elaborator(std::shared_ptr<const Source> source, const syntax::Module& module,
                       const syntax::Function& kernel, const Options& options,
                       const Measured& measured)
    : source_(std::move(source)),
      module_(module),
      kernel_(kernel),
      options_(options),
      measured_(measured) {}

Status Elaborator::module_names() {
  frames_.push_back({{}, Frame::Of::module});
  for (const syntax::Statement& s : module_.body) {
    if (const auto* f = s.as<syntax::Function>()) {
      if (is_kernel(*f)) continue;
      TESSERA_CHECK(bind(f->name, {UserFunction{f}}, f->name_span));
    } else if (const auto* import = s.as<syntax::Import>()) {
      if (import->module != "tessera.language" && import->module != "__future__")
        return error(fail(no_such_name, "there is no module `{}` in the language", import->module)
                         .label(label(s.span))
                         .help("import from `tessera.language` alone"));
    } else {
      TESSERA_CHECK(statement(s));
    }
  }
  return {};
}

/// What has been said of tags, where its place has been kept by a number.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
static void put_in_place(core::Body& body, std::vector<Elaborator::Said>& said) {
  for (core::Op& op : body) {
    if (auto* t = std::get_if<core::Tag>(&op.node)) {
      Elaborator::Said& what = said.at(std::stoul(t->name));
      if (auto* asserted = std::get_if<core::AssertTag>(&what)) {
        core::AssertTag a = std::move(*asserted);
        op.node = std::move(a);
      } else {
        core::Tag tag = std::move(std::get<core::Tag>(what));
        op.node = std::move(tag);
      }
    } else if (auto* f = std::get_if<core::For>(&op.node)) {
      put_in_place(f->body, said);
    } else if (auto* i = std::get_if<core::If>(&op.node)) {
      put_in_place(i->body, said);
      put_in_place(i->otherwise, said);
    } else if (auto* e = std::get_if<core::Elected>(&op.node)) {
      put_in_place(e->body, said);
    } else if (auto* r = std::get_if<core::Role>(&op.node)) {
      put_in_place(r->body, said);
    }
  }
}

Result<core::Kernel> Elaborator::run() {
  TESSERA_CHECK(module_names());
  frames_.push_back({{}, Frame::Of::function});
  calls_.push_back(&kernel_);
  TESSERA_CHECK(signature());
  threads_ = {.warps = std::max(measured_.threads / 32, 1), .warp = builder_->at().warp};
  in_body_ = true;
  TESSERA_CHECK(block(kernel_.body));
  TESSERA_CHECK(emit(kernel_.name_span));
  if (!unlaid_.empty()) {
    const Span span = registers_span_.at(*unlaid_.begin());
    return error(fail(no_layout, "no instruction says how these registers lie in the threads")
                     .label(label(span, "never given to an instruction"))
                     .expect("a tile that is used")
                     .but_found("one that nothing takes")
                     .help("use the tile in `wgmma`, assign elements to it, or leave it out"));
  }
  core::Kernel& k = builder_->kernel();
  k.min_blocks = min_blocks_;
  k.means = with_numbers(options_.means.empty() ? means_ : options_.means, numbers_);
  k.source = source_;
  k.span = kernel_.name_span;
  TESSERA_TRY(said, this->said());
  TESSERA_TRY(kernel, builder_->finish());
  put_in_place(kernel.body, said);
  return kernel;
}

Result<core::Builder*> Elaborator::emit(Span span) {
  if (!begun_) {
    begun_ = true;
    make_barriers();
  }
  builder_->stand_at(span);
  TESSERA_CHECK(builder_failure(span));
  return builder_.get();
}

Status Elaborator::builder_failure(Span span) {
  if (!builder_->failure()) return {};
  Diagnostic d = *builder_->failure();
  if (d.labels.empty()) return error(std::move(d).label(label(span)));
  return error(std::move(d));
}

std::string Elaborator::fresh(const std::string& name) {
  const std::string base = name.empty() ? "unnamed" : name;
  std::string out = base;
  for (int i = 2; !used_names_.insert(out).second; ++i) out = fmt::format("{}_{}", base, i);
  return out;
}

std::string Elaborator::counter_name(const std::string& wanted, Term lower, Term upper) {
  std::string out = wanted;
  for (int i = 2;; ++i) {
    const term::Symbol* const known = builder_->kernel().pool->find(out);
    const bool active =
        std::find(active_counters_.begin(), active_counters_.end(), out) != active_counters_.end();
    if (!active &&
        (known == nullptr || (known->kind == term::Op::counter && known->bounds.lower == lower &&
                              known->bounds.upper == upper)))
      return out;
    out = fmt::format("{}_{}", wanted, i);
  }
}

/// A name is a counter's while its loop is written.
class CounterScope {
 public:
  CounterScope(Elaborator& e, std::string name) : e_(e) {
    e_.active_counters_.push_back(std::move(name));
  }
  ~CounterScope() { e_.active_counters_.pop_back(); }
  CounterScope(const CounterScope&) = delete;
  CounterScope& operator=(const CounterScope&) = delete;

 private:
  Elaborator& e_;
};

Status machine_loop(Elaborator& e, const std::string& counter, Term upper, bool unroll, Span span,
                    const std::function<Status(Term)>& body) {
  TESSERA_TRY(b, e.emit(span));
  const Term zero = b->number(0);
  const std::string name = e.counter_name(counter, zero, upper);
  const CounterScope scope(e, name);
  Status status;
  const auto write = [&](Term i) {
    status = e.machine_block([&] { return body(i); });
    b->stand_at(span);
  };
  if (unroll)
    b->unrolled(name, upper->value, write);
  else
    b->loop(name, zero, upper, b->number(1), write);
  return status;
}

}  // namespace tessera::language
