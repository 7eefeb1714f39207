// How tensors lie in memory, and what is expected of a call's and of the module's.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>
#include <c10/util/SmallVector.h>
#include <cstdint>
#include <string_view>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <utility>

namespace tessera {

using Ints = c10::SmallVector<int64_t, 5>;
using Range = std::pair<uintptr_t, uintptr_t>;  // first byte, behind the last one; equal: none

/// Of a list or a tuple.
inline PyObject* at(PyObject* list, Py_ssize_t i) {
  return PyList_Check(list) ? PyList_GET_ITEM(list, i) : PyTuple_GET_ITEM(list, i);
}
inline Py_ssize_t length(PyObject* list) {
  return PyList_Check(list) ? PyList_GET_SIZE(list) : PyTuple_GET_SIZE(list);
}
inline Ints ints(PyObject* list) {
  Ints made;
  for (Py_ssize_t i = 0; i < length(list); ++i) made.push_back(PyLong_AsLongLong(at(list, i)));
  return made;
}

inline const c10::TensorImpl& impl_of(PyObject* tensor) {
  return *THPVariable_Unpack(tensor).unsafeGetTensorImpl();
}
inline uintptr_t address(const c10::TensorImpl& t) {
  return reinterpret_cast<uintptr_t>(t.numel() == 0 ? nullptr : t.data());
}
inline bool meet(const Range& a, const Range& b) {
  return a.first < b.second && b.first < a.second;
}

/// Whether it has entries in its `__dict__` beside Dynamo's notes (input_guard.py). No dictionary
/// is made where it has none: CPython keeps no values within an object that torch allocates.
inline bool has_attributes(PyObject* tensor) {
  PyObject** const own = _PyObject_GetDictPtr(tensor);
  if (own == nullptr || *own == nullptr) return false;
  PyObject* key = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(*own, &position, &key, nullptr) != 0;) {
    const char* const name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
    if (name == nullptr || !std::string_view(name).starts_with("_dynamo_")) return true;
  }
  return false;
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

/// An argument. Row: shape, strides, dtype, device, keys of plain tensors, the first input that is
/// the same object, the parameter or buffer that it is or None, whether forward writes to it, where
/// in its storage it begins, or -1 where that does not matter, torch.Tensor or nn.Parameter, or
/// None where it may be of either class.
struct Input {
  Lie lie;
  c10::Device device;
  uint64_t keys, inference_keys;
  std::size_t first;
  PyObject* state;
  bool written;
  int64_t offset;
  PyObject* kind;

  explicit Input(PyObject* row)
      : lie(at(row, 0), at(row, 1), at(row, 2)),
        device(reinterpret_cast<THPDevice*>(at(row, 3))->device),
        keys(PyLong_AsUnsignedLongLong(at(at(row, 4), 0))),
        inference_keys(PyLong_AsUnsignedLongLong(at(at(row, 4), 1))),
        first(PyLong_AsSize_t(at(row, 5))),
        state(at(row, 6) == Py_None ? nullptr : at(row, 6)),
        written(at(row, 7) == Py_True),
        offset(PyLong_AsLongLong(at(row, 8))),
        kind(at(row, 9) == Py_None ? nullptr : at(row, 9)) {}

  [[nodiscard]] bool is(PyObject* x, uintptr_t alignment) const {
    const bool of_kind = kind == nullptr ? THPVariable_CheckExact(x)
                                         : reinterpret_cast<PyObject*>(Py_TYPE(x)) == kind;
    if (!of_kind || has_attributes(x)) return false;
    const c10::TensorImpl& t = impl_of(x);
    const uint64_t now = t.key_set().raw_repr();
    return (now == keys || now == inference_keys) && t.device() == device && lie.is(t) &&
           (offset < 0 || t.storage_offset() == offset) && address(t) % alignment == 0;
  }
};

/// A parameter or buffer that the graph reads. Row: the tensor, (address, dtype, shape, strides),
/// its version or -1 where its content does not matter, whether forward writes to it.
struct Held {
  PyObject* tensor;
  uintptr_t begin;
  Lie lie;
  int64_t version;
  bool written;
  Range range;

  explicit Held(PyObject* row)
      : tensor(at(row, 0)),
        begin(PyLong_AsSize_t(at(at(row, 1), 0))),
        lie(at(at(row, 1), 2), at(at(row, 1), 3), at(at(row, 1), 1)),
        version(PyLong_AsLongLong(at(row, 2))),
        written(at(row, 3) == Py_True),
        range(lie.range(begin)) {}

  [[nodiscard]] bool lies() const {
    const c10::TensorImpl& t = impl_of(tensor);
    return lie.is(t) && address(t) == begin &&
           (version < 0 || t.version_counter().current_version() == version);
  }
};

}  // namespace tessera
