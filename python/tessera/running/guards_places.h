// Places where Python finds something (watched.py), and torch's settings (surroundings.py): whether
// the same objects stand there.
#pragma once

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <Python.h>
#include <algorithm>
#include <array>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "guards_tensors.h"

namespace tessera {

/// Whether two plain values are the same to any program; false where that is not known at once.
inline bool same_plain(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return x == y && std::signbit(x) == std::signbit(y);
  }
  return (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a)) &&
         PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

/// torch's settings that can be read without Python, by the names that surroundings.py gives them.
struct Native {
  const char* name;
  int64_t (*read)();
};

template <c10::DeviceType device>
int64_t autocast_type() {
  if (!at::autocast::is_autocast_enabled(device)) return -1;
  return static_cast<int64_t>(at::autocast::get_autocast_dtype(device));
}

#define TESSERA_OF_CONTEXT(name, function)                                    \
  Native {                                                                    \
    name, [] { return static_cast<int64_t>(at::globalContext().function()); } \
  }
inline const std::array natives = {
    Native{"transform",
           [] {
             using enum c10::DispatchKey;
             return static_cast<int64_t>(
                 c10::impl::tls_is_dispatch_key_included(FuncTorchDynamicLayerFrontMode));
           }},
    Native{"dispatch_modes", c10::impl::TorchDispatchModeTLS::stack_len},
    Native{"function_modes", at::impl::PythonTorchFunctionTLS::stack_len},
    Native{
        "default_type",
        [] { return static_cast<int64_t>(c10::typeMetaToScalarType(c10::get_default_dtype())); }},
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

/// It has just been looked at: what it is now is what is expected.
struct Setting {
  int64_t (*read)() = nullptr;
  int64_t then = 0;

  explicit Setting(PyObject* name) {
    for (const Native& n : natives)
      if (PyUnicode_CompareWithASCIIString(name, n.name) == 0) read = n.read;
    if (read == nullptr)
      PyErr_Format(PyExc_KeyError, "no setting %R is known", name);
    else
      then = read();
  }
  [[nodiscard]] bool is() const { return read() == then; }
};

/// An entry of a container, or the field of an object.
struct Place {
  enum class Kind : uint8_t {
    dict,
    list,
    other,
    code,
    defaults,
    named_defaults,
    cell,
    type,
    attribute
  };

  PyObject *container, *key, *value;
  Kind kind = Kind::other;
  Py_ssize_t index = 0;

  Place(PyObject* columns, Py_ssize_t row, bool field)
      : container(at(at(columns, 0), row)),
        key(at(at(columns, 1), row)),
        value(at(at(columns, 2), row)) {
    const auto named = [&](const char* name) {
      return PyFunction_Check(container) && PyUnicode_CompareWithASCIIString(key, name) == 0;
    };
    if (!field && PyDict_Check(container) && PyUnicode_CheckExact(key)) kind = Kind::dict;
    if (!field && PyList_CheckExact(container)) {
      kind = Kind::list;
      index = PyLong_AsSsize_t(key);
    }
    if (!field) return;
    kind = PyCell_Check(container) ? Kind::cell : Kind::attribute;
    if (PyUnicode_CompareWithASCIIString(key, "__class__") == 0) kind = Kind::type;
    if (named("__code__")) kind = Kind::code;
    if (named("__defaults__")) kind = Kind::defaults;
    if (named("__kwdefaults__")) kind = Kind::named_defaults;
  }

  [[nodiscard]] bool stands() const {
    const auto or_none = [](PyObject* found) { return found == nullptr ? Py_None : found; };
    PyObject* found = nullptr;
    switch (kind) {
      case Kind::dict:
        return PyDict_GetItemWithError(container, key) == value;
      case Kind::list:
        return index < PyList_GET_SIZE(container) && PyList_GET_ITEM(container, index) == value;
      case Kind::type:
        return reinterpret_cast<PyObject*>(Py_TYPE(container)) == value;
      case Kind::cell:
        return PyCell_GET(container) == value;
      case Kind::code:
        return PyFunction_GET_CODE(container) == value;
      case Kind::defaults:
        return or_none(PyFunction_GET_DEFAULTS(container)) == value;
      case Kind::named_defaults:
        return or_none(PyFunction_GET_KW_DEFAULTS(container)) == value;
      case Kind::attribute:
        found = PyObject_GetAttr(container, key);
        break;
      case Kind::other:
        found = PyObject_GetItem(container, key);
        break;
    }
    Py_XDECREF(found);
    return found == value;
  }
};

/// A whole dictionary in its order. `members`: each key, and its value behind it.
struct Dict {
  PyObject* dict;
  std::vector<std::pair<PyObject*, PyObject*>> entries;

  Dict(PyObject* of, PyObject* members) : dict(of) {
    for (Py_ssize_t i = 0; i < length(members); i += 2)
      entries.emplace_back(at(members, i), at(members, i + 1));
  }
  [[nodiscard]] bool stands() const {
    if (PyDict_GET_SIZE(dict) != static_cast<Py_ssize_t>(entries.size())) return false;
    if (PyODict_Check(dict)) return in_its_own_order();
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    for (std::size_t i = 0; PyDict_Next(dict, &position, &key, &value) != 0; ++i)
      if (key != entries[i].first || value != entries[i].second) return false;
    return true;
  }

 private:
  /// An OrderedDict keeps its order beside the dictionary's.
  [[nodiscard]] bool in_its_own_order() const {
    PyObject* keys = PyODict_Type.tp_iter(dict);
    if (keys == nullptr) return false;
    std::size_t i = 0;
    bool stands = true;
    while (PyObject* key = PyIter_Next(keys)) {
      stands = stands && i < entries.size() && key == entries[i].first &&
               PyDict_GetItemWithError(dict, key) == entries[i].second;
      ++i;
      Py_DECREF(key);
    }
    Py_DECREF(keys);
    return stands && i == entries.size();
  }
};

struct Size {
  PyObject* container;
  Py_ssize_t size;

  bool is_dict = PyDict_Check(container) != 0;

  [[nodiscard]] bool stands() const {
    return (is_dict ? PyDict_GET_SIZE(container) : PyObject_Size(container)) == size;
  }
};

/// All that a list or a set holds, in its order.
struct Members {
  PyObject *container, *members;

  [[nodiscard]] bool stand() const {
    if (PyList_CheckExact(container)) return same(container);
    PyObject* now = PySequence_List(container);
    if (now == nullptr) return false;
    const bool stands = same(now);
    Py_DECREF(now);
    return stands;
  }

 private:
  [[nodiscard]] bool same(PyObject* now) const {
    const Py_ssize_t size = PyList_GET_SIZE(members);
    if (PyList_GET_SIZE(now) != size) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (PyList_GET_ITEM(now, i) != PyList_GET_ITEM(members, i)) return false;
    return true;
  }
};

struct Call {
  PyObject *function, *arguments, *then;

  [[nodiscard]] bool answers() const {
    PyObject* now = PyObject_Call(function, arguments, nullptr);
    if (now == nullptr) return false;
    const bool same = same_plain(now, then);
    Py_DECREF(now);
    return same;
  }
};

/// Columns of watched.py, and names of settings.
struct Watched {
  std::vector<Setting> settings;
  std::vector<Dict> dicts;
  std::vector<Place> places;
  std::vector<Size> sizes;
  std::vector<Members> wholes;
  std::vector<Call> calls;

  Watched(PyObject* items, PyObject* fields, PyObject* of_sizes, PyObject* of_wholes,
          PyObject* of_calls, PyObject* names) {
    const auto rows = [](PyObject* columns) { return length(at(columns, 0)); };
    for (Py_ssize_t i = 0; i < length(names); ++i) settings.emplace_back(at(names, i));
    for (Py_ssize_t i = 0; i < rows(items); ++i) places.emplace_back(items, i, false);
    for (Py_ssize_t i = 0; i < rows(fields); ++i) places.emplace_back(fields, i, true);
    for (Py_ssize_t i = 0; i < rows(of_sizes); ++i)
      sizes.push_back({at(at(of_sizes, 0), i), PyLong_AsSsize_t(at(at(of_sizes, 1), i))});
    for (Py_ssize_t i = 0; i < rows(of_wholes); ++i) {
      PyObject *whole = at(at(of_wholes, 0), i), *members = at(at(of_wholes, 1), i);
      if (PyDict_Check(whole))
        dicts.emplace_back(whole, members);
      else
        wholes.push_back({whole, members});
    }
    for (Py_ssize_t i = 0; i < rows(of_calls); ++i)
      calls.push_back({at(at(of_calls, 0), i), at(at(of_calls, 1), i), at(at(of_calls, 2), i)});
  }

  [[nodiscard]] bool stands() const {
    return std::ranges::all_of(settings, &Setting::is) &&
           std::ranges::all_of(calls, &Call::answers) &&
           std::ranges::all_of(sizes, &Size::stands) && std::ranges::all_of(dicts, &Dict::stands) &&
           std::ranges::all_of(places, &Place::stands) &&
           std::ranges::all_of(wholes, &Members::stand);
  }
};

}  // namespace tessera
