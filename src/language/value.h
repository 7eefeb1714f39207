// What an expression of a kernel file stands for while the file is elaborated: something known, an
// integer that the machine computes (a term), or a handle of storage. Values are copied freely.
#pragma once

#include <functional>
#include <map>

#include "arch/instruction.h"

#include "core/kernel.h"
#include "pointwise/pointwise.h"
#include "syntax/ast.h"

namespace tessera::language {

using core::Term;

struct Value;
class Elaborator;
struct Builtin;

struct None {};

/// Elements [start, start + size) of an extent, start = index * size: a turn of `tiles` or `ring`,
/// or a `part`.
struct Position {
  Term index, start;
  int64_t size = 1;
  Term count;          // of a ring: turns of it before this one, over all loops around it
  int64_t stages = 0;  // of a ring: its slots; 0: no ring
};

struct TensorRef {
  core::TensorId id;
  std::vector<bool> has =
      {};  // of each dimension of the text, whether the tensor has it; empty: all
};
/// A box of a tensor. Dimensions of one index are not part of its shape.
struct BoxRef {
  struct Dim {
    Term start;
    int64_t extent = 1;
    bool kept = true;
  };
  core::TensorId id;
  std::vector<Dim> dims;  // one a dimension of the tensor
};
struct MapValue {
  core::MapId id;
};
/// A part of shared memory.
struct SharedRef {
  core::SharedId id;
  std::vector<Term> at;          // where it begins, one a mode
  std::vector<int> kept;         // the modes that are its dimensions
  std::vector<int64_t> extents;  // of these
  bool transposed = false;       // of two dimensions: read with the last one first
};
struct BarriersRef {
  core::BarriersId id;
};
struct BarrierRef {
  core::BarriersId id;
  Term slot;
  Term count;  // of the ring position that chose the slot; empty: chosen by an integer
};
/// Named barriers of the block, where warps meet: `count` from `first` on, or one of them.
struct NamedRef {
  Term first;
  int64_t count = 1;
  int64_t threads = 0;  // that come to each of its turns
  bool one = false;
};

/// A tile in registers, or a part of one.
struct Fragment {
  core::RegistersId id;
  std::vector<int64_t> tile;  // extents
  bool whole = true;
  // Of a part: slots first + steps(i) of the registers are the slots i of `layout`, which maps
  // (thread, slot) to the element's index in `tile`, as core::Registers has it.
  Term first;
  Layout steps;
  Layout layout;
};
/// Elements that are still to be computed, from fragments of one layout and from integers.
struct Elementwise {
  pointwise::Dag dag;  // one result
  struct Input {
    std::variant<Fragment, Term> from;
    int version = 0;  // of a fragment's registers when it was taken
  };
  std::vector<Input> inputs;
  DType element = DType::float32;
  std::vector<int64_t> tile;
};

/// A function of the file.
struct UserFunction {
  const syntax::Function* function = nullptr;
  /// Given to a kernel for a parameter `fn`: its own tensors and integers of the launch, by name.
  std::shared_ptr<const std::map<std::string, Value>> own = {};
};
struct BuiltinRef {
  const Builtin* builtin = nullptr;
  std::shared_ptr<const Value> self;  // of a method
};
struct FormRef {
  const arch::Form* form = nullptr;
};
struct PointwiseRef {
  const pointwise::Function* function = nullptr;
  /// It stands for a function of more values, and takes the first of them.
  bool first_values = false;
};
/// A lambda, as an argument of a word that takes one: what it is of values, where it stands.
struct LambdaRef {
  const syntax::Lambda* lambda = nullptr;
  Span span;
};
/// What dotted names begin with: `tma`, `fence`.
struct Namespace {
  std::string path;
};

/// What `with` enters.
struct ScopeRef {
  std::function<Status(Elaborator&, const std::function<Status()>& body)> enter;
};
/// What `for` goes over. `run` writes the loop, or its turns one by one, and calls the body with
/// one value a target; `counter` is the first target's name.
struct LoopRef {
  using Body = std::function<Status(const std::vector<Value>&)>;
  std::string name;  // "ring"
  std::function<Status(Elaborator&, const std::string& counter, const Body&)> run;
  int yields = 1;
  std::function<Result<Value>(Elaborator&, std::string_view name)> attribute;  // may be empty
  /// Of a ring, and of tiles that are taken in a loop: the turns of one run of the loop.
  std::function<Term(Elaborator&)> turns = {};
  int64_t stages = 0;  // of a ring
};
/// `index(...)`: an integer of the launch.
struct IndexType {
  int64_t at_least = 1, below = int64_t{1} << 31, multiple = 1;
};
/// `Tensor[...]`
struct TensorType {
  using Number = std::variant<std::string, int64_t>;  // a name, or known
  DType element = DType::float32;
  std::vector<Number> extents;
  std::vector<Number> strides;  // empty: row-major
  std::vector<bool> has;        // of each dimension of the text, whether its extent is not None
  core::Access access = core::Access::input;
};
struct Sequence {
  std::shared_ptr<const std::vector<Value>> items;
};

struct Value {
  std::variant<None, bool, int64_t, double, std::string, DType, Term, Sequence, Position, TensorRef,
               BoxRef, MapValue, SharedRef, BarriersRef, BarrierRef, NamedRef, Fragment,
               Elementwise, UserFunction, BuiltinRef, FormRef, PointwiseRef, LambdaRef, Namespace,
               ScopeRef, LoopRef, IndexType, TensorType>
      data;

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&data);
  }
};

/// What a value is, for messages: "an integer", "a box of a tensor".
std::string_view kind_of(const Value& v);
/// The word that methods of the value's kind are registered under: "barrier" for `barrier.wait`.
std::string_view method_key(const Value& v);
/// `[128, 64]`
std::string shape_text(const std::vector<int64_t>& extents);
std::vector<int64_t> shape_of(const BoxRef& b);
std::vector<int64_t> shape_of(const SharedRef& s);

}  // namespace tessera::language
