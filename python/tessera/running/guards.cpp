// The guards of a composed module in one call: compares what a call meets with what Python expects
// (fast_guard.py lays it out), object by object, and answers with the call's tensors, or with None
// where anything is another than expected. It never says what: Python's guards look closely then
// (call_guard.py).
//
// Everything that is compared with is owned by the tuple that Python gave. Nothing here changes
// anything, and an exception on the way is no more than an answer of None.
#include <Python.h>
#include <algorithm>
#include <c10/core/GradMode.h>
#include <exception>
#include <utility>
#include <vector>

#include "guards_places.h"
#include "guards_tensors.h"

namespace tessera {
namespace {

/// How a call spells its arguments. Row: how many are positional, the others' names, places of the
/// tensors, (place, value) of what else there is.
struct Form {
  Py_ssize_t positional;
  PyObject* names;
  Ints places;
  std::vector<std::pair<std::size_t, PyObject*>> others;

  explicit Form(PyObject* row)
      : positional(PyLong_AsSsize_t(at(row, 0))), names(at(row, 1)), places(ints(at(row, 2))) {
    for (Py_ssize_t i = 0; i < length(at(row, 3)); ++i)
      others.emplace_back(PyLong_AsSize_t(at(at(at(row, 3), i), 0)), at(at(at(row, 3), i), 1));
  }
};

using Objects = c10::SmallVector<PyObject*, 16>;

struct Guard {
  PyObject* expected;  // owned
  std::vector<Input> inputs;
  std::vector<Form> forms;
  std::vector<Held> held;
  std::vector<PyObject*> state;  // every parameter and buffer, in order of address
  Watched watched;
  bool identity, writes, gradients;  // what is looked at besides
  uintptr_t alignment;

  explicit Guard(PyObject* e)
      : expected(Py_NewRef(e)),
        watched(at(e, 3), at(e, 4), at(e, 5), at(e, 6), at(e, 7), at(e, 11)),
        identity(at(e, 8) == Py_True),
        writes(at(e, 9) == Py_True),
        gradients(at(e, 12) == Py_True),
        alignment(PyLong_AsSize_t(at(e, 10))) {
    for (Py_ssize_t i = 0; i < length(at(e, 0)); ++i) inputs.emplace_back(at(at(e, 0), i));
    for (Py_ssize_t i = 0; i < length(at(e, 1)); ++i) forms.emplace_back(at(at(e, 1), i));
    for (Py_ssize_t i = 0; i < length(at(e, 2)); ++i) held.emplace_back(at(at(e, 2), i));
    for (const Dict& d : watched.dicts)
      for (const auto& [key, value] : d.entries)
        if (value != Py_None) state.push_back(value);
    std::ranges::sort(state);
  }
  ~Guard() { Py_DECREF(expected); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// The tensors of a call in the order of the traced inputs; none where its form is not known.
  [[nodiscard]] Objects tensors(PyObject* args, PyObject* kwargs) const {
    PyObject** const first = &PyTuple_GET_ITEM(args, 0);
    Objects given(first, first + PyTuple_GET_SIZE(args)), names, found;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(kwargs, &position, &key, &value) != 0;) {
      names.push_back(key);
      given.push_back(value);
    }
    for (const Form& f : forms) {
      bool fits = f.positional == PyTuple_GET_SIZE(args) &&
                  length(f.names) == static_cast<Py_ssize_t>(names.size());
      for (std::size_t i = 0; fits && i < names.size(); ++i)
        fits = same_plain(at(f.names, static_cast<Py_ssize_t>(i)), names[i]);
      for (const auto& [i, other] : f.others) fits = fits && same_plain(other, given[i]);
      if (!fits) continue;
      for (const int64_t i : f.places) found.push_back(given[static_cast<std::size_t>(i)]);
      break;
    }
    return found;
  }

  [[nodiscard]] bool are_themselves(const Objects& given) const {
    for (std::size_t i = 0; i < given.size(); ++i) {
      std::size_t first = 0;
      while (given[first] != given[i]) ++first;
      if (first != inputs[i].first) return false;
      const bool own = std::ranges::binary_search(state, given[i]);
      if (inputs[i].state == nullptr ? own : given[i] != inputs[i].state) return false;
    }
    return true;
  }

  [[nodiscard]] bool recording(const Objects& given) const {
    const auto wants = [](PyObject* t) { return THPVariable_Unpack(t).requires_grad(); };
    return std::ranges::any_of(given, wants) || std::ranges::any_of(held, wants, &Held::tensor);
  }

  /// Between arguments, and between them and the module's: those were looked at when they moved.
  [[nodiscard]] bool overlaps(const Objects& given) const {
    c10::SmallVector<Range, 16> ranges;
    for (std::size_t i = 0; i < given.size(); ++i) {
      ranges.push_back(inputs[i].lie.range(address(impl_of(given[i]))));
      if (inputs[i].first != i) continue;
      for (std::size_t j = 0; j < i; ++j)
        if (inputs[j].first == j && (inputs[i].written || inputs[j].written) &&
            meet(ranges[i], ranges[j]))
          return true;
      for (const Held& h : held)
        if ((inputs[i].written || h.written) && h.tensor != given[i] && meet(ranges[i], h.range))
          return true;
    }
    return false;
  }

  /// A new list, or null.
  [[nodiscard]] PyObject* check(PyObject* args, PyObject* kwargs) const {
    if (!watched.stands() || !std::ranges::all_of(held, &Held::lies)) return nullptr;
    PyObject** const first = &PyTuple_GET_ITEM(args, 0);
    const Objects given =
        kwargs == Py_None ? Objects(first, first + PyTuple_GET_SIZE(args)) : tensors(args, kwargs);
    if (given.size() != inputs.size()) return nullptr;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!inputs[i].is(given[i], alignment)) return nullptr;
    if ((identity && !are_themselves(given)) || (writes && overlaps(given))) return nullptr;
    if (gradients && c10::GradMode::is_enabled() && recording(given)) return nullptr;
    PyObject* made = PyList_New(static_cast<Py_ssize_t>(given.size()));
    for (std::size_t i = 0; made != nullptr && i < given.size(); ++i)
      PyList_SET_ITEM(made, static_cast<Py_ssize_t>(i), Py_NewRef(given[i]));
    return made;
  }
};

// The Python type: made of one tuple, with a method `check(args, kwargs)`; `check(tensors, None)`
// where Python has found the tensors.

struct Object {
  PyObject_HEAD Guard* guard;
};

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* expected = nullptr;
  if (PyArg_ParseTuple(args, "O!", &PyTuple_Type, &expected) == 0) return nullptr;
  auto* self = reinterpret_cast<Object*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->guard = new Guard(expected);
  if (PyErr_Occurred() != nullptr) Py_CLEAR(self);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* check(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyTuple_Check(args[0]) || !(PyDict_Check(args[1]) || args[1] == Py_None)) {
    PyErr_SetString(PyExc_TypeError,
                    "check takes a call's args and kwargs, or its tensors and None");
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
  if (const Guard* guard = reinterpret_cast<Object*>(self)->guard) Py_VISIT(guard->expected);
  return 0;
}

void drop(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<Object*>(self)->guard;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"check", reinterpret_cast<PyCFunction>(check), METH_FASTCALL, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_methods, methods},
    {Py_tp_traverse, reinterpret_cast<void*>(visit)},
    {Py_tp_dealloc, reinterpret_cast<void*>(drop)},
    {0, nullptr},
};
PyType_Spec spec = {"tessera_guards.Guard", sizeof(Object), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tessera_guards", nullptr, -1, nullptr};

}  // namespace
}  // namespace tessera

PyMODINIT_FUNC PyInit_tessera_guards() {
  PyObject* module = PyModule_Create(&tessera::definition);
  if (module == nullptr) return nullptr;
  PyObject* type = PyType_FromSpec(&tessera::spec);
  if (type == nullptr || PyModule_AddObject(module, "Guard", type) < 0) Py_CLEAR(module);
  return module;
}
