// The guards of a composed module in one call: compares what a call meets with what Python expects
// (fast_guard.py lays it out, in the order of `Guard::read`), object by object, and answers with
// the call's tensors, or with None where anything is another than expected. It never says what:
// Python's guards look closely then (call_guard.py).
//
// Everything that is compared with is owned by the tuple that Python gave. Nothing here changes
// anything, and an exception on the way is no more than an answer of None.
#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <Python.h>
#include <algorithm>
#include <array>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/SmallVector.h>
#include <cmath>
#include <cstdint>
#include <exception>
#include <string_view>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <utility>
#include <vector>

namespace {

using Ints = c10::SmallVector<int64_t, 5>;
using Range = std::pair<uintptr_t, uintptr_t>;  // first byte, behind the last one; equal: none

PyObject* at(PyObject* list, Py_ssize_t i) {
  return PyList_Check(list) ? PyList_GET_ITEM(list, i) : PyTuple_GET_ITEM(list, i);
}
Py_ssize_t length(PyObject* list) {
  return PyList_Check(list) ? PyList_GET_SIZE(list) : PyTuple_GET_SIZE(list);
}
Ints ints(PyObject* list) {
  Ints made;
  for (Py_ssize_t i = 0; i < length(list); ++i) made.push_back(PyLong_AsLongLong(at(list, i)));
  return made;
}

const c10::TensorImpl& impl_of(PyObject* tensor) {
  return *THPVariable_Unpack(tensor).unsafeGetTensorImpl();
}

/// How a tensor lies in memory, and as what.
struct Lie {
  Ints shape, strides;
  c10::ScalarType type{};

  Lie() = default;
  Lie(PyObject* sizes, PyObject* steps, PyObject* dtype)
      : shape(ints(sizes)),
        strides(ints(steps)),
        type(reinterpret_cast<THPDtype*>(dtype)->scalar_type) {}

  [[nodiscard]] bool is(const c10::TensorImpl& t) const {
    return t.dtype() == type && t.sizes() == c10::IntArrayRef(shape) &&
           t.strides() == c10::IntArrayRef(strides);
  }
  [[nodiscard]] Range range(uintptr_t begin) const {
    uintptr_t reach = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0) return {begin, begin};
      reach += static_cast<uintptr_t>((shape[d] - 1) * strides[d]);
    }
    return {begin, begin + (reach + 1) * c10::elementSize(type)};
  }
};

uintptr_t address(const c10::TensorImpl& t) {
  return reinterpret_cast<uintptr_t>(t.numel() == 0 ? nullptr : t.data());
}
bool meet(const Range& a, const Range& b) {
  return a.first < b.second && b.first < a.second;
}

struct Input {
  Lie lie;
  c10::Device device{c10::DeviceType::CPU};
  uint64_t keys = 0, inference_keys = 0;
  std::size_t first = 0;      // the first input that is the same object
  PyObject* state = nullptr;  // the parameter or buffer that it is
  bool written = false;
};

struct Held {  // a parameter or buffer that the graph reads
  PyObject* tensor = nullptr;
  Lie lie;
  uintptr_t address = 0;
  int64_t version = -1;  // -1: whatever it holds
  bool written = false;
};

struct Form {  // how a call spells its arguments
  Py_ssize_t positional = 0;
  PyObject* names = nullptr;
  Ints places;                                           // of the tensors
  std::vector<std::pair<Py_ssize_t, PyObject*>> others;  // what else there is
};

enum class Kind : uint8_t { dict, list, other, code, defaults, named_defaults, cell, attribute };

struct Place {
  Kind kind = Kind::other;
  PyObject *container = nullptr, *key = nullptr, *value = nullptr;
  Py_ssize_t index = 0;
};

struct Dict {
  PyObject* dict = nullptr;
  std::vector<PyObject*> keys, values;
};

/// Whether two plain values are the same to any program; false where that is not known at once.
bool same_plain(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return x == y && std::signbit(x) == std::signbit(y);
  }
  return (PyLong_CheckExact(a) || PyUnicode_CheckExact(a)) &&
         PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

/// torch's settings that can be read without Python, by the names that surroundings.py gives them.
struct Native {
  std::string_view name;
  int64_t (*read)();
};
template <c10::DeviceType device>
int64_t autocast_type() {
  return at::autocast::is_autocast_enabled(device)
             ? static_cast<int64_t>(at::autocast::get_autocast_dtype(device))
             : -1;
}
int64_t transform() {
  return static_cast<int64_t>(
      c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode));
}
int64_t default_type() {
  return static_cast<int64_t>(c10::typeMetaToScalarType(c10::get_default_dtype()));
}
#define TESSERA_OF_CONTEXT(name, function)                                    \
  Native {                                                                    \
    name, [] { return static_cast<int64_t>(at::globalContext().function()); } \
  }
const std::array natives{
    Native{"transform", transform},
    Native{"dispatch_modes", c10::impl::TorchDispatchModeTLS::stack_len},
    Native{"function_modes", at::impl::PythonTorchFunctionTLS::stack_len},
    Native{"default_type", default_type},
    Native{"autocast_cpu", autocast_type<c10::DeviceType::CPU>},
    Native{"autocast_cuda", autocast_type<c10::DeviceType::CUDA>},
    TESSERA_OF_CONTEXT("deterministic", deterministicAlgorithms),
    TESSERA_OF_CONTEXT("deterministic_warns", deterministicAlgorithmsWarnOnly),
    TESSERA_OF_CONTEXT("deterministic_fill", deterministicFillUninitializedMemory),
    TESSERA_OF_CONTEXT("mkldnn", userEnabledMkldnn),
    TESSERA_OF_CONTEXT("sdp_flash", userEnabledFlashSDP),
    TESSERA_OF_CONTEXT("sdp_blocks", userEnabledMemEfficientSDP),
    TESSERA_OF_CONTEXT("sdp_math", userEnabledMathSDP),
    TESSERA_OF_CONTEXT("sdp_cudnn", userEnabledCuDNNSDP),
    TESSERA_OF_CONTEXT("cudnn", userEnabledCuDNN),
    TESSERA_OF_CONTEXT("cudnn_deterministic", deterministicCuDNN),
};
#undef TESSERA_OF_CONTEXT

struct Guard {
  PyObject* expected = nullptr;  // owned
  std::vector<Input> inputs;
  std::vector<PyObject*> state;  // every parameter and buffer, in order of address
  std::vector<Held> held;
  std::vector<Range> held_ranges;
  std::vector<Form> forms;
  std::vector<Dict> dicts;
  std::vector<Place> places;
  std::vector<std::pair<PyObject*, Py_ssize_t>> sizes;
  std::vector<std::pair<PyObject*, PyObject*>> sets;
  std::vector<std::array<PyObject*, 3>> calls;  // functions, arguments, answers
  std::vector<std::pair<int64_t (*)(), int64_t>> settings;
  bool identity = false, writes = false;
  uintptr_t alignment = 1;

  // Reading what Python expects

  void read() {
    PyObject* const e = expected;
    for (Py_ssize_t i = 0; i < length(at(e, 0)); ++i) read_input(at(at(e, 0), i));
    for (Py_ssize_t i = 0; i < length(at(e, 1)); ++i) read_form(at(at(e, 1), i));
    for (Py_ssize_t i = 0; i < length(at(e, 2)); ++i) read_held(at(at(e, 2), i));
    for (Py_ssize_t i = 0; i < length(at(e, 3)); ++i) read_dict(at(at(e, 3), i));
    read_places(at(e, 4), false);
    read_places(at(e, 5), true);
    PyObject *of_sizes = at(e, 6), *of_sets = at(e, 7), *of_calls = at(e, 8);
    for (Py_ssize_t i = 0; i < length(at(of_sizes, 0)); ++i)
      sizes.emplace_back(at(at(of_sizes, 0), i), PyLong_AsSsize_t(at(at(of_sizes, 1), i)));
    for (Py_ssize_t i = 0; i < length(at(of_sets, 0)); ++i)
      sets.emplace_back(at(at(of_sets, 0), i), at(at(of_sets, 1), i));
    for (Py_ssize_t i = 0; i < length(at(of_calls, 0)); ++i)
      calls.push_back({at(at(of_calls, 0), i), at(at(of_calls, 1), i), at(at(of_calls, 2), i)});
    identity = PyObject_IsTrue(at(e, 9)) == 1;
    writes = PyObject_IsTrue(at(e, 10)) == 1;
    alignment = static_cast<uintptr_t>(PyLong_AsLong(at(e, 11)));
    for (Py_ssize_t i = 0; i < length(at(e, 12)); ++i) read_setting(at(at(e, 12), i));
    std::sort(state.begin(), state.end());
  }

  /// It has just been looked at: what it is now is what is expected.
  void read_setting(PyObject* name) {
    for (const Native& n : natives)
      if (PyUnicode_CompareWithASCIIString(name, n.name.data()) == 0)
        return settings.emplace_back(n.read, n.read()), void();
    PyErr_Format(PyExc_KeyError, "no setting %R is known", name);
  }

  void read_input(PyObject* row) {
    Input made;
    made.lie = Lie(at(row, 0), at(row, 1), at(row, 2));
    made.device = reinterpret_cast<THPDevice*>(at(row, 3))->device;
    made.keys = PyLong_AsUnsignedLongLong(at(at(row, 4), 0));
    made.inference_keys = PyLong_AsUnsignedLongLong(at(at(row, 4), 1));
    made.first = PyLong_AsSize_t(at(row, 5));
    made.state = at(row, 6) == Py_None ? nullptr : at(row, 6);
    made.written = at(row, 7) == Py_True;
    inputs.push_back(std::move(made));
  }

  void read_form(PyObject* row) {
    Form made;
    made.positional = PyLong_AsSsize_t(at(row, 0));
    made.names = at(row, 1);
    made.places = ints(at(row, 2));
    for (Py_ssize_t i = 0; i < length(at(row, 3)); ++i)
      made.others.emplace_back(PyLong_AsSsize_t(at(at(at(row, 3), i), 0)),
                               at(at(at(row, 3), i), 1));
    forms.push_back(std::move(made));
  }

  void read_held(PyObject* row) {
    Held made;
    made.tensor = at(row, 0);
    PyObject* const lie = at(row, 1);
    made.address = PyLong_AsSize_t(at(lie, 0));
    made.lie = Lie(at(lie, 2), at(lie, 3), at(lie, 1));
    made.version = PyLong_AsLongLong(at(row, 2));
    made.written = at(row, 3) == Py_True;
    held_ranges.push_back(made.lie.range(made.address));
    held.push_back(std::move(made));
  }

  void read_dict(PyObject* row) {
    Dict made;
    made.dict = at(row, 0);
    for (Py_ssize_t i = 0; i < length(at(row, 1)); ++i) {
      made.keys.push_back(at(at(row, 1), i));
      made.values.push_back(at(at(row, 2), i));
      if (made.values.back() != Py_None) state.push_back(made.values.back());
    }
    dicts.push_back(std::move(made));
  }

  void read_places(PyObject* columns, bool fields) {
    for (Py_ssize_t i = 0; i < length(at(columns, 0)); ++i) {
      Place p{Kind::other, at(at(columns, 0), i), at(at(columns, 1), i), at(at(columns, 2), i), 0};
      if (fields) {
        const auto named = [&](const char* name) {
          return PyFunction_Check(p.container) &&
                 PyUnicode_CompareWithASCIIString(p.key, name) == 0;
        };
        p.kind = named("__code__")           ? Kind::code
                 : named("__defaults__")     ? Kind::defaults
                 : named("__kwdefaults__")   ? Kind::named_defaults
                 : PyCell_Check(p.container) ? Kind::cell
                                             : Kind::attribute;
      } else if (PyDict_Check(p.container) && PyUnicode_CheckExact(p.key)) {
        p.kind = Kind::dict;
      } else if (PyList_CheckExact(p.container)) {
        p.kind = Kind::list;
        p.index = PyLong_AsSsize_t(p.key);
      }
      places.push_back(p);
    }
  }

  // A call

  static bool stands(const Place& p) {
    PyObject* found = nullptr;
    switch (p.kind) {
      case Kind::dict:
        return PyDict_GetItemWithError(p.container, p.key) == p.value;
      case Kind::list:
        return p.index < PyList_GET_SIZE(p.container) &&
               PyList_GET_ITEM(p.container, p.index) == p.value;
      case Kind::cell:
        return PyCell_GET(p.container) == p.value;
      case Kind::code:
        return PyFunction_GET_CODE(p.container) == p.value;
      case Kind::defaults:
        found = PyFunction_GET_DEFAULTS(p.container);
        return (found == nullptr ? Py_None : found) == p.value;
      case Kind::named_defaults:
        found = PyFunction_GET_KW_DEFAULTS(p.container);
        return (found == nullptr ? Py_None : found) == p.value;
      case Kind::attribute:
        found = PyObject_GetAttr(p.container, p.key);
        break;
      case Kind::other:
        found = PyObject_GetItem(p.container, p.key);
        break;
    }
    Py_XDECREF(found);
    return found == p.value;
  }

  static bool has_size(PyObject* container, Py_ssize_t size) {
    if (PyDict_Check(container)) return PyDict_GET_SIZE(container) == size;
    if (PyList_Check(container)) return PyList_GET_SIZE(container) == size;
    return PyObject_Size(container) == size;
  }

  static bool has_members(PyObject* set, PyObject* members) {
    PyObject* now = PySequence_List(set);
    if (now == nullptr) return false;
    bool same = PyList_GET_SIZE(now) == PyList_GET_SIZE(members);
    for (Py_ssize_t i = 0; same && i < PyList_GET_SIZE(now); ++i)
      same = PyList_GET_ITEM(now, i) == PyList_GET_ITEM(members, i);
    Py_DECREF(now);
    return same;
  }

  static bool answers(const std::array<PyObject*, 3>& call) {
    PyObject* now = PyObject_Call(call[0], call[1], nullptr);
    if (now == nullptr) return false;
    const bool same = same_plain(now, call[2]);
    Py_DECREF(now);
    return same;
  }

  static bool holds(const Dict& d) {
    if (PyDict_GET_SIZE(d.dict) != static_cast<Py_ssize_t>(d.keys.size())) return false;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    for (std::size_t i = 0; PyDict_Next(d.dict, &position, &key, &value) != 0; ++i)
      if (key != d.keys[i] || value != d.values[i]) return false;
    return true;
  }

  [[nodiscard]] bool surroundings_are() const {
    return std::all_of(settings.begin(), settings.end(),
                       [](auto& s) { return s.first() == s.second; }) &&
           std::all_of(calls.begin(), calls.end(), answers) &&
           std::all_of(sizes.begin(), sizes.end(),
                       [](auto& s) { return has_size(s.first, s.second); }) &&
           std::all_of(dicts.begin(), dicts.end(), holds) &&
           std::all_of(places.begin(), places.end(), stands) &&
           std::all_of(sets.begin(), sets.end(),
                       [](auto& s) { return has_members(s.first, s.second); });
  }

  static bool lies(const Held& h) {
    const c10::TensorImpl& t = impl_of(h.tensor);
    if (!h.lie.is(t) || address(t) != h.address) return false;
    return h.version < 0 || t.version_counter().current_version() == h.version;
  }

  /// The tensors of a call in the order of the traced inputs; none where its form is not known.
  [[nodiscard]] std::vector<PyObject*> tensors(PyObject* args, PyObject* kwargs) const {
    std::vector<PyObject*> given(&PyTuple_GET_ITEM(args, 0),
                                 &PyTuple_GET_ITEM(args, 0) + PyTuple_GET_SIZE(args));
    std::vector<PyObject*> names, found;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(kwargs, &position, &key, &value) != 0;) {
      names.push_back(key);
      given.push_back(value);
    }
    for (const Form& f : forms) {
      if (f.positional != PyTuple_GET_SIZE(args) ||
          length(f.names) != static_cast<Py_ssize_t>(names.size()))
        continue;
      bool fits = true;
      for (std::size_t i = 0; fits && i < names.size(); ++i)
        fits = same_plain(at(f.names, static_cast<Py_ssize_t>(i)), names[i]);
      for (const auto& [i, other] : f.others)
        fits = fits && same_plain(other, given[static_cast<std::size_t>(i)]);
      if (!fits) continue;
      for (const int64_t i : f.places) found.push_back(given[static_cast<std::size_t>(i)]);
      break;
    }
    return found;
  }

  [[nodiscard]] bool is(const Input& in, PyObject* x) const {
    if (!THPVariable_CheckExact(x)) return false;
    const c10::TensorImpl& t = impl_of(x);
    const uint64_t keys = t.key_set().raw_repr();
    return (keys == in.keys || keys == in.inference_keys) && t.device() == in.device &&
           in.lie.is(t) && address(t) % alignment == 0;
  }

  [[nodiscard]] bool are_themselves(const std::vector<PyObject*>& given) const {
    for (std::size_t i = 0; i < given.size(); ++i) {
      std::size_t first = 0;
      while (given[first] != given[i]) ++first;
      if (first != inputs[i].first) return false;
      const bool own = std::binary_search(state.begin(), state.end(), given[i]);
      if (inputs[i].state == nullptr ? own : given[i] != inputs[i].state) return false;
    }
    return true;
  }

  [[nodiscard]] bool recording(const std::vector<PyObject*>& given) const {
    const auto wants = [](PyObject* t) { return THPVariable_Unpack(t).requires_grad(); };
    return std::any_of(given.begin(), given.end(), wants) ||
           std::any_of(held.begin(), held.end(), [&](const Held& h) { return wants(h.tensor); });
  }

  /// Of what is written to, only what a call brings is looked at: the rest was when it last moved.
  [[nodiscard]] bool overlaps(const std::vector<PyObject*>& given) const {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (inputs[i].first != i) continue;
      const Range mine = inputs[i].lie.range(address(impl_of(given[i])));
      for (std::size_t j = 0; j < i; ++j)
        if (inputs[j].first == j && (inputs[i].written || inputs[j].written) &&
            meet(mine, inputs[j].lie.range(address(impl_of(given[j])))))
          return true;
      for (std::size_t j = 0; j < held.size(); ++j)
        if ((inputs[i].written || held[j].written) && held[j].tensor != given[i] &&
            meet(mine, held_ranges[j]))
          return true;
    }
    return false;
  }

  [[nodiscard]] PyObject* check(PyObject* args, PyObject* kwargs) const {
    if (!surroundings_are()) return nullptr;
    if (!std::all_of(held.begin(), held.end(), lies)) return nullptr;
    const std::vector<PyObject*> given = tensors(args, kwargs);
    if (given.size() != inputs.size()) return nullptr;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!is(inputs[i], given[i])) return nullptr;
    if ((identity && !are_themselves(given)) || (writes && overlaps(given))) return nullptr;
    if (c10::GradMode::is_enabled() && recording(given)) return nullptr;
    PyObject* made = PyList_New(static_cast<Py_ssize_t>(given.size()));
    for (std::size_t i = 0; made != nullptr && i < given.size(); ++i)
      PyList_SET_ITEM(made, static_cast<Py_ssize_t>(i), Py_NewRef(given[i]));
    return made;
  }
};

// The Python type: made of one tuple, with a method `check(args, kwargs)`.

struct Object {
  PyObject_HEAD Guard* guard;
};

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* expected = nullptr;
  if (PyArg_ParseTuple(args, "O!", &PyTuple_Type, &expected) == 0) return nullptr;
  auto* self = reinterpret_cast<Object*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->guard = new Guard;
  self->guard->expected = Py_NewRef(expected);
  self->guard->read();
  if (PyErr_Occurred() != nullptr) Py_CLEAR(self);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* check(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyTuple_Check(args[0]) || !PyDict_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "check takes a call's positional arguments and those by name");
    return nullptr;
  }
  try {
    PyObject* made = reinterpret_cast<Object*>(self)->guard->check(args[0], args[1]);
    if (made != nullptr) return made;
  } catch (const std::exception&) {  // of torch: a tensor that has lost its memory
  }
  PyErr_Clear();
  Py_RETURN_NONE;
}

int visit(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (reinterpret_cast<Object*>(self)->guard != nullptr)
    Py_VISIT(reinterpret_cast<Object*>(self)->guard->expected);
  return 0;
}

void drop(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* const type = Py_TYPE(self);
  if (Guard* const guard = reinterpret_cast<Object*>(self)->guard) {
    Py_XDECREF(guard->expected);
    delete guard;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"check", reinterpret_cast<PyCFunction>(check), METH_FASTCALL, nullptr},
                         {}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_methods, methods},
                       {Py_tp_traverse, reinterpret_cast<void*>(visit)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(drop)},
                       {0, nullptr}};
PyType_Spec spec = {"tessera_guards.Guard", sizeof(Object), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "tessera_guards",
                          nullptr,
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_tessera_guards() {
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr || PyModule_AddObject(module, "Guard", type) < 0) Py_CLEAR(module);
  return module;
}
