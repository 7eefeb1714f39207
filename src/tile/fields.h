// What an op is besides its operands, as a value with named fields.
//
// A payload is a plain struct whose `fields` names each member once:
//
//   struct Fold {
//     Kind kind = Kind::sum;
//     int axis = 0;
//     template <class Self, class V>
//     static void fields(Self& s, V& v) { v("by", s.kind), v("axis", s.axis); }
//   };
//
// The writer of text and its reader are two visitors of that list, so a field that is not named
// does not exist. `v(name, value)` is a keyword of the call; with a third argument it may be left
// out where it has that value. `v.subscript(i, indices)` are the brackets behind operand i, and
// `v.tensor(t)` is a tensor of the program, as the first argument.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>

#include "arch/mma.h"
#include "diag/source.h"
#include "tile/type.h"

#include "pointwise/pointwise.h"
#include "syntax/ast.h"

namespace tessera::tile {

struct Program;
struct Kernel;
struct TileVar;
class KernelBuilder;

/// How one mode of a view is indexed.
struct Index {
  enum class Kind : uint8_t {
    all,   // `:`  the whole mode
    tile,  // `r`  the tile of this variable; the variable's step is the axis extent
    pick,  // `pick(r)`  one element: the variable's step is 1 and the axis disappears
  } kind = Kind::all;
  VarId var;
};

/// Writes the fields of a payload as the arguments of its call.
class FieldWriter {
 public:
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  std::string first;                              // the tensor, or what a loop walks over
  std::vector<std::string> walked;                // the variables of a loop
  mutable std::vector<VarId> named;               // the variables that the fields name
  const std::set<VarId>* declared = nullptr;      // those that stand above
  std::map<std::size_t, std::string> subscripts;  // by operand
  std::string keywords;                           // ", axis=0", each with its comma

  template <class T>
  void operator()(std::string_view name, const T& value) {
    keywords += ", " + std::string(name) + "=" + text(value);
  }
  template <class T>
  void operator()(std::string_view name, const T& value, const T& usual) {
    if (!(value == usual)) (*this)(name, value);
  }
  void subscript(std::size_t operand, const std::vector<Index>& indices);
  void tensor(int index);
  /// The variables of a loop: what they walk over, by position; a variable that is declared above
  /// by its name.
  void walks(const std::vector<VarId>& vars);
  /// `span(total, step, ...)`.
  [[nodiscard]] std::string span(VarId v) const;

  [[nodiscard]] std::string text(bool v) const { return v ? "True" : "False"; }
  [[nodiscard]] std::string text(int v) const { return std::to_string(v); }
  [[nodiscard]] std::string text(int64_t v) const { return std::to_string(v); }
  [[nodiscard]] std::string text(double v) const;
  [[nodiscard]] std::string text(DType v) const { return std::string(short_name(v)); }
  [[nodiscard]] std::string text(const Layout& v) const { return "\"" + to_string(v) + "\""; }
  [[nodiscard]] std::string text(const std::vector<int64_t>& v) const;
  [[nodiscard]] std::string text(VarId v) const;
  [[nodiscard]] std::string text(const Type& v) const;
  [[nodiscard]] std::string text(const std::optional<Type>& v) const;
  [[nodiscard]] std::string text(const std::shared_ptr<const pointwise::Dag>& v) const;
  [[nodiscard]] std::string text(const arch::Mma* v) const;
  /// Enumerations by the words of `words(E)`, beside their type.
  template <class E>
    requires std::is_enum_v<E>
  [[nodiscard]] std::string text(E v) const {
    return std::string(words(v)[static_cast<std::size_t>(v)]);
  }
};

/// Sets the fields of a payload from the arguments of its call; what is wrong is kept in `failure`,
/// with its place.
class FieldReader {
 public:
  FieldReader(const Source& source, const Program& program, KernelBuilder& builder,
              const syntax::Call& call, Span span);

  template <class T>
  void operator()(std::string_view name, T& value) {
    if (const syntax::Expr* e = keyword(name))
      read(*e, value);
    else
      miss(name);
  }
  template <class T>
  void operator()(std::string_view name, T& value, const T& usual) {
    value = usual;
    if (const syntax::Expr* e = keyword(name)) read(*e, value);
  }
  void subscript(std::size_t operand, std::vector<Index>& indices);
  void tensor(int& index);
  void walks(std::vector<VarId>& vars);

  /// Defines `name` as the variable of `span(total, step, ...)`.
  void declare(const syntax::Expr& e, const std::string& name);
  /// After all fields: the operands, by position; an argument that nobody took is a failure.
  Result<std::vector<ValueId>> finish(const std::map<std::string, ValueId>& values);

  std::optional<Diagnostic> failure;
  std::map<std::string, VarId>* vars = nullptr;  // in scope; a loop adds its own
  std::vector<std::string> targets;              // names of the loop's variables

 private:
  const syntax::Expr* keyword(std::string_view name);
  void miss(std::string_view name);
  void wrong(const syntax::Expr& e, std::string_view expected);
  void read(const syntax::Expr& e, bool& v);
  void read(const syntax::Expr& e, int& v);
  void read(const syntax::Expr& e, int64_t& v);
  void read(const syntax::Expr& e, double& v);
  void read(const syntax::Expr& e, DType& v);
  void read(const syntax::Expr& e, Layout& v);
  void read(const syntax::Expr& e, std::vector<int64_t>& v);
  void read(const syntax::Expr& e, VarId& v);
  void read(const syntax::Expr& e, Type& v);
  void read(const syntax::Expr& e, std::optional<Type>& v);
  void read(const syntax::Expr& e, std::shared_ptr<const pointwise::Dag>& v);
  void read(const syntax::Expr& e, const arch::Mma*& v);
  template <class E>
    requires std::is_enum_v<E>
  void read(const syntax::Expr& e, E& v) {
    const auto& all = words(v);
    const auto* name = e.as<syntax::Name>();
    std::string known;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (name != nullptr && name->id == all[i]) {
        v = static_cast<E>(i);
        return;
      }
      known += (i > 0 ? " or " : "") + std::string(all[i]);
    }
    wrong(e, known);
  }
  void read_axes(const syntax::Expr& e, Type& v);

  const Source& source_;
  const Program& program_;
  KernelBuilder& builder_;
  const syntax::Call& call_;
  Span span_;
  std::set<const syntax::Argument*> taken_;
  std::map<std::size_t, const syntax::Subscript*> subscripts_;
  bool first_is_tensor_ = false;
  bool positions_are_walks_ = false;
};

/// A payload of any type; empty for an op that has none.
class Payload {
 public:
  Payload() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, Payload>)
  Payload(T value)
      : held_(std::make_shared<const Holder<T>>(std::move(value))) {}  // NOLINT: as a T

  template <class T>
  [[nodiscard]] const T* find() const {
    const auto* h = dynamic_cast<const Holder<T>*>(held_.get());
    return h == nullptr ? nullptr : &h->value;
  }
  /// A bug of ours where it is another type.
  template <class T>
  [[nodiscard]] const T& get() const {
    const T* v = find<T>();
    if (v == nullptr) throw std::logic_error(std::string("no payload of type ") + typeid(T).name());
    return *v;
  }
  void write(FieldWriter& w) const {
    if (held_) held_->write(w);
  }
  /// A T with the fields that the reader finds.
  template <class T>
  static Payload read(FieldReader& r) {
    T value;
    T::fields(value, r);
    return value;
  }

 private:
  struct Base {
    Base() = default;
    Base(const Base&) = delete;
    Base& operator=(const Base&) = delete;
    virtual ~Base() = default;
    virtual void write(FieldWriter& w) const = 0;
  };
  template <class T>
  struct Holder : Base {
    explicit Holder(T v) : value(std::move(v)) {}
    void write(FieldWriter& w) const override { T::fields(value, w); }
    T value;
  };
  std::shared_ptr<const Base> held_;
};

}  // namespace tessera::tile
