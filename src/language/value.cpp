#include "language/value.h"

#include "base/text.h"

namespace tessera::language {
namespace {

struct Word {
  std::string_view kind, key;
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

Word word(const Value& v) {
  return std::visit(
      Overloaded{
          [](const None&) { return Word{"nothing", "nothing"}; },
          [](bool) { return Word{"a truth value", "truth"}; },
          [](int64_t) { return Word{"an integer", "integer"}; },
          [](double) { return Word{"a number with a point", "real"}; },
          [](const std::string&) { return Word{"a text", "text"}; },
          [](DType) { return Word{"an element type", "element"}; },
          [](Term t) {
            return t->predicate() ? Word{"a condition", "condition"}
                                  : Word{"an integer", "integer"};
          },
          [](const Sequence&) { return Word{"a list", "list"}; },
          [](const Position& p) {
            return p.stages > 0 ? Word{"a turn of a ring", "position"}
                                : Word{"a position", "position"};
          },
          [](const TensorRef&) { return Word{"a tensor", "tensor"}; },
          [](const BoxRef&) { return Word{"a box of a tensor", "box"}; },
          [](const MapValue&) { return Word{"a tensor map", "map"}; },
          [](const SharedRef&) { return Word{"shared memory", "shared"}; },
          [](const BarriersRef&) { return Word{"several barriers", "barriers"}; },
          [](const BarrierRef&) { return Word{"a barrier", "barrier"}; },
          [](const NamedRef& n) {
            return n.one ? Word{"a named barrier", "named"}
                         : Word{"several named barriers", "several_named"};
          },
          [](const Fragment&) { return Word{"registers", "registers"}; },
          [](const Elementwise&) { return Word{"elements", "elements"}; },
          [](const UserFunction&) { return Word{"a function", "function"}; },
          [](const BuiltinRef&) { return Word{"a function of the language", "function"}; },
          [](const FormRef&) { return Word{"an instruction", "function"}; },
          [](const PointwiseRef&) { return Word{"a function of elements", "function"}; },
          [](const LambdaRef&) { return Word{"a lambda", "lambda"}; },
          [](const Namespace&) { return Word{"a group of names", "names"}; },
          [](const ScopeRef&) { return Word{"what `with` enters", "scope"}; },
          [](const LoopRef&) { return Word{"what `for` goes over", "loop"}; },
          [](const IndexType&) { return Word{"the type of an integer", "type"}; },
          [](const TensorType&) { return Word{"the type of a tensor", "type"}; },
      },
      v.data);
}

}  // namespace

std::string_view kind_of(const Value& v) {
  return word(v).kind;
}
std::string_view method_key(const Value& v) {
  return word(v).key;
}

std::string shape_text(const std::vector<int64_t>& extents) {
  std::vector<std::string> parts;
  for (int64_t e : extents) parts.push_back(std::to_string(e));
  return "[" + join(parts, ", ") + "]";
}

std::vector<int64_t> shape_of(const BoxRef& b) {
  std::vector<int64_t> out;
  for (const BoxRef::Dim& d : b.dims)
    if (d.kept) out.push_back(d.extent);
  return out;
}
std::vector<int64_t> shape_of(const SharedRef& s) {
  if (s.transposed) return {s.extents.rbegin(), s.extents.rend()};
  return s.extents;
}

}  // namespace tessera::language
