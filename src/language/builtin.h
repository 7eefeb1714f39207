// The language's words as records, one file a group in builtins/. A new word is a record in a file
// of that folder; nothing else knows it.
#pragma once

#include <span>

#include "language/value.h"

namespace tessera::language {

/// A call with its arguments bound to the record's parameters.
class Call {
 public:
  Call(Elaborator& e, const Builtin& builtin, Span span) : e(e), builtin(builtin), span(span) {}

  Elaborator& e;
  const Builtin& builtin;
  Span span;  // of the whole call

  struct Bound {
    std::string name;  // empty: by place
    Value value;
    Span span;
  };
  std::vector<Bound> bound;
  std::shared_ptr<const Value> self;

  [[nodiscard]] const Bound* find(std::string_view name) const;
  [[nodiscard]] const Value& operator[](std::string_view name) const;
  /// Where the argument stands, or the whole call.
  [[nodiscard]] Span span_of(std::string_view name) const;

  // Each fails with the argument's place when it is of another kind.
  [[nodiscard]] Result<int64_t> integer(std::string_view name, int64_t otherwise = 0) const;
  [[nodiscard]] Result<bool> flag(std::string_view name, bool otherwise) const;
  [[nodiscard]] Result<std::string> text(std::string_view name, std::string otherwise) const;
  [[nodiscard]] Result<DType> element(std::string_view name) const;
  [[nodiscard]] Result<std::vector<int64_t>> extents(std::string_view name) const;
  /// A number of the machine, or a constant as one.
  [[nodiscard]] Result<Term> number(std::string_view name) const;
  template <class T>
  [[nodiscard]] Result<T> the(std::string_view name, std::string_view wanted) const {
    const Bound* b = find(name);
    if (const T* t = b == nullptr ? nullptr : b->value.as<T>()) return *t;
    return error(wrong(name, wanted));
  }
  [[nodiscard]] Diagnostic wrong(std::string_view name, std::string_view wanted) const;
};

struct Builtin {
  std::string_view name;  // "tma.load"; of a method: ".barrier.wait"; of a property: the same
  /// Parameters in order: "count, arrivals=, *more": a `=` makes one optional, which is then given
  /// by keyword or place; one with `*` takes all further places, `**` all further keywords.
  std::string_view parameters;
  std::string_view doc;
  Result<Value> (*run)(Call& call);
  bool property = false;  // of a method: named without brackets
  bool anywhere = false;  // also outside of a kernel's body: it needs nothing of the kernel
};

struct Group {
  std::span<const Builtin> builtins;
};

namespace groups {
std::span<const Group* const> all();
}

const Builtin* find_builtin(std::string_view name);
/// Names of all words that start with `prefix`.
std::vector<std::string> builtin_names(std::string_view prefix);
/// The form that this path of Python names calls: `load.global_16.bounded` is
/// `load.global.16.bounded`. What is no name in Python is joined by `_` to what stands before it
/// (digits), or takes a `_` for its dot (keywords); `::cta` falls away.
const arch::Form* find_form_by_path(std::string_view path);
std::string path_of(const arch::Form& form);
/// True when a word or a form begins with `path` and a dot.
bool is_namespace(std::string_view path);

}  // namespace tessera::language
