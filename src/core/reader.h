// How parse.cpp, parse_head.cpp, parse_storage.cpp and parse_op.cpp read a kernel; nobody else
// includes this.
#pragma once

#include "core/call.h"
#include "core/parse.h"
#include "core/scope.h"

namespace tessera::core {

class Reader {
 public:
  explicit Reader(std::shared_ptr<const Source> source)
      : source_(std::move(source)), scope_(*source_) {}

  Result<Kernel> run(const syntax::Module& module);

 private:
  // parse_head.cpp: the decorator, the parameters, the grid.
  Status head(const syntax::Function& f);
  Status parameter(const syntax::Parameter& p);
  Status index(const syntax::Parameter& p, const syntax::Subscript& s);
  Status tensor(const syntax::Parameter& p, const syntax::Subscript& s);
  Result<std::vector<Term>> tuple(const syntax::Expr& e, std::string_view what);

  // parse_storage.cpp: `name = tensor_map(...)`, `shared`, `barriers`, `registers`.
  /// True where the statement is such an assignment.
  Result<bool> storage(const syntax::Statement& s, Body& body);
  Status tensor_map(const std::string& name, const syntax::Call& c, const syntax::Statement& s);
  Status shared(const std::string& name, const syntax::Call& c, const syntax::Statement& s);
  Status barriers(const std::string& name, const syntax::Call& c, const syntax::Statement& s);
  Status registers(const std::string& name, const syntax::Call& c, const syntax::Statement& s,
                   Body& body);
  Result<arch::SwizzleMode> swizzle(const syntax::Expr& e) const;

  // parse_op.cpp: instructions and computations.
  Status issue(const syntax::Call& c, const syntax::Statement& s, Body& body);
  Result<std::pair<std::string_view, std::string>> choice(const arch::Form& form,
                                                          const syntax::Argument& a) const;
  Result<Argument> argument(const syntax::Expr& e);
  Status compute(const std::vector<syntax::Expr>& targets, const syntax::Call& c,
                 const syntax::Statement& s, Body& body);
  Status take_inputs(const syntax::Call& c, Compute& out);
  Result<Run> run_of(const syntax::Expr& e);

  // parse_tags.cpp: `tag`, `reset_tag`, `assert_tag`, `assert_apart`.
  /// Whether a call of this name is one of these.
  static bool is_tags(std::string_view name);
  Status tags(std::string_view name, const syntax::Call& c, const syntax::Statement& s, Body& body);
  Result<Tagged> tagged(const syntax::Expr& e);
  /// Defines the symbols of `over=[(i, 64), (j, K)]` in the innermost scope.
  Result<std::vector<Term>> over(const syntax::Expr& e);

  // parse.cpp: blocks.
  Status statements(const syntax::Block& block, Body& body);
  Status statement(const syntax::Statement& s, Body& body);
  Status simple(const syntax::Expr& value, const std::vector<syntax::Expr>& targets,
                const syntax::Statement& s, Body& body);
  Status loop(const syntax::For& f, const syntax::Statement& s, Body& body);
  /// `name = carried(amount)`, in the body of a loop.
  Status carried(const std::string& name, const syntax::Call& c, Span target, Span span);
  Status branch(const syntax::If& i, const syntax::Statement& s, Body& body);
  Status with(const syntax::With& w, const syntax::Statement& s, Body& body);
  Status role(const syntax::Call& c, const syntax::WithItem& item, const syntax::With& w,
              const syntax::Statement& s, Body& body);
  /// A block in a scope of its own.
  Result<Body> inner(const syntax::Block& block);

  [[nodiscard]] tl::unexpected<Diagnostic> wrong(Span span, std::string_view what,
                                                 std::string_view expected) const {
    return error(bad_text_at(*source_, span, what, expected));
  }
  /// A diagnostic of the pool, at its place.
  [[nodiscard]] tl::unexpected<Diagnostic> placed(Diagnostic d, Span span) const {
    return error(std::move(d).label(source_->label(span)));
  }
  [[nodiscard]] term::Pool& pool() { return *kernel_->pool; }

  std::shared_ptr<const Source> source_;
  Scope scope_;
  std::optional<Kernel> kernel_;
  int depth_ = 0;  // of blocks; 0: the kernel's own
  struct OfLoop {
    int depth = 0;  // of its body
    std::vector<Carried>* sums = nullptr;
  };
  std::vector<OfLoop> carried_;  // of the loops that are being read
};

}  // namespace tessera::core
