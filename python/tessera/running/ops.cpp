// Turns built kernels (include/tessera/kernel.h) into PyTorch operators, over torch's stable ABI
// only.
//
// The extension holds a table of slots. Python defines an operator's schema and its fake;
// tessera_ops_register() loads the kernel's library into a free slot and registers that slot's
// entry function for the CPU and CUDA dispatch keys. An entry function gets no closure from the
// dispatcher, so each slot has one of its own (a template on the slot's number). Nothing here
// depends on a plan: the extension is compiled once for a version of torch.
//
// A call checks its inputs against the traced types, allocates outputs and workspace from torch's
// caching allocator (stream-ordered, so safe on side streams and under CUDA graph capture), and
// enqueues on the current stream.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>
#include <torch/headeronly/util/shim_utils.h>
#include <utility>
#include <vector>

#include "tessera/kernel.h"

// Present in libtorch_cuda only; null where torch was built without CUDA.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device,
                                                                                   void** stream);

namespace {

constexpr int kSlots = 4096;
constexpr int64_t kWorkspaceAlignment = 256;  // bytes, promised by kernel.h
constexpr int64_t kInputAlignment = 16;       // bytes: the widest vector access that kernels make
constexpr int kMaxTensors = 64;
constexpr int32_t kUint8 = 0;  // c10::ScalarType::Byte

void check(AOTITorchError code, const char* what) {
  if (code != TORCH_SUCCESS)
    throw std::runtime_error(std::string("tessera: ") + what + " failed in libtorch");
}

struct TensorType {
  int32_t dtype = 0;  // c10::ScalarType
  std::vector<int64_t> shape, strides;
};

class Handle {
 public:
  Handle() = default;
  explicit Handle(AtenTensorHandle h) : h_(h) {}
  Handle(Handle&& o) noexcept : h_(std::exchange(o.h_, nullptr)) {}
  Handle& operator=(Handle&& o) noexcept {
    std::swap(h_, o.h_);
    return *this;
  }
  ~Handle() {
    if (h_ != nullptr) aoti_torch_delete_tensor_object(h_);
  }
  [[nodiscard]] AtenTensorHandle get() const { return h_; }
  AtenTensorHandle release() { return std::exchange(h_, nullptr); }

 private:
  AtenTensorHandle h_ = nullptr;
};

struct Kernel {
  std::string name;
  int inputs = 0, outputs = 0;
  std::vector<TensorType> types;  // of inputs, then outputs
  std::vector<int64_t> ints;
  decltype(&tessera_workspace_size) workspace_size = nullptr;
  decltype(&tessera_run) run = nullptr;
  decltype(&tessera_last_error) last_error = nullptr;
  // A function of `ints` alone, so asked for once. -1: not yet known.
  std::atomic<int64_t> workspace{-1};
  std::atomic<int64_t> calls{0}, relayouts{0};
};

std::array<std::unique_ptr<Kernel>, kSlots> slots;
int used = 0;
std::mutex mutex;
thread_local std::string last_error;

std::string text(const int64_t* v, std::size_t n) {
  std::string s = "[";
  for (std::size_t i = 0; i < n; ++i) s += (i ? ", " : "") + std::to_string(v[i]);
  return s + "]";
}

Handle empty(const TensorType& t, int32_t device_type, int32_t device) {
  AtenTensorHandle h = nullptr;
  check(aoti_torch_empty_strided(static_cast<int64_t>(t.shape.size()), t.shape.data(),
                                 t.strides.data(), t.dtype, device_type, device, &h),
        "allocation of an output");
  return Handle(h);
}

/// Whether strides address the same elements; those of dims of extent 1 are never used.
bool same_layout(const TensorType& t, const int64_t* strides) {
  for (std::size_t d = 0; d < t.shape.size(); ++d)
    if (t.shape[d] != 1 && t.strides[d] != strides[d]) return false;
  return true;
}

/// A copy of `source` in the layout of `t`, for an input that arrived with other strides or
/// unaligned.
Handle relayout(const TensorType& t, AtenTensorHandle source, int32_t device_type, int32_t device) {
  Handle fresh = empty(t, device_type, device);
  AtenTensorHandle to = nullptr, from = nullptr;  // the dispatcher takes these over
  check(aoti_torch_new_tensor_handle(fresh.get(), &to), "aoti_torch_new_tensor_handle");
  check(aoti_torch_new_tensor_handle(source, &from), "aoti_torch_new_tensor_handle");
  std::array<StableIValue, 3> stack{};
  std::memcpy(&stack[0], &to, sizeof to);
  std::memcpy(&stack[1], &from, sizeof from);
  check(torch_call_dispatcher("aten::copy_", "", stack.data(), TORCH_ABI_VERSION), "aten::copy_");
  AtenTensorHandle result = nullptr;
  std::memcpy(&result, &stack[0], sizeof result);
  Handle dropped(result);
  return fresh;
}

/// Checks input `i` against its traced type; its data pointer, of a copy (kept in `copy`) where the
/// layout differs.
const void* input_pointer(Kernel& k, int i, AtenTensorHandle h, int32_t device_type, int32_t device,
                          Handle& copy) {
  const TensorType& t = k.types[static_cast<std::size_t>(i)];
  int32_t dtype = 0, own_type = 0, own_device = 0;
  int64_t dim = 0, *shape = nullptr, *strides = nullptr;
  check(aoti_torch_get_dtype(h, &dtype), "aoti_torch_get_dtype");
  check(aoti_torch_get_dim(h, &dim), "aoti_torch_get_dim");
  check(aoti_torch_get_sizes(h, &shape), "aoti_torch_get_sizes");
  check(aoti_torch_get_strides(h, &strides), "aoti_torch_get_strides");
  check(aoti_torch_get_device_type(h, &own_type), "aoti_torch_get_device_type");
  check(aoti_torch_get_device_index(h, &own_device), "aoti_torch_get_device_index");
  if (dtype != t.dtype || dim != static_cast<int64_t>(t.shape.size()) ||
      std::memcmp(shape, t.shape.data(), t.shape.size() * sizeof(int64_t)) != 0)
    throw std::runtime_error("tessera::" + k.name + ": input " + std::to_string(i) + " has shape " +
                             text(shape, static_cast<std::size_t>(dim)) + " and scalar type " +
                             std::to_string(dtype) + "; the kernel was built for " +
                             text(t.shape.data(), t.shape.size()) + " and scalar type " +
                             std::to_string(t.dtype));
  if (own_type != device_type || own_device != device)
    throw std::runtime_error("tessera::" + k.name + ": input " + std::to_string(i) +
                             " is on another device than input 0");
  const void* p = nullptr;
  check(torch_get_const_data_ptr(h, &p), "torch_get_const_data_ptr");
  if (same_layout(t, strides) && reinterpret_cast<uintptr_t>(p) % kInputAlignment == 0) return p;
  k.relayouts.fetch_add(1, std::memory_order_relaxed);
  copy = relayout(t, h, device_type, device);
  check(torch_get_const_data_ptr(copy.get(), &p), "torch_get_const_data_ptr");
  return p;
}

/// Makes `device` current for the time of a launch, when it is not already.
class OnDevice {
 public:
  OnDevice(int32_t device, int32_t cuda) : cuda_(cuda) {
    int32_t now = 0;
    if (cuda_ == 0) return;
    check(aoti_torch_get_current_device_index(&now), "aoti_torch_get_current_device_index");
    if (now != device)
      check(aoti_torch_create_device_guard(device, &guard_), "aoti_torch_create_device_guard");
  }
  ~OnDevice() {
    if (guard_ != nullptr) aoti_torch_delete_device_guard(guard_);
  }

 private:
  int32_t cuda_;
  DeviceGuardHandle guard_ = nullptr;
};

void* current_stream(int32_t device) {
  if (aoti_torch_get_current_cuda_stream == nullptr)
    throw std::runtime_error("tessera: a CUDA tensor, but this torch has no CUDA");
  void* stream = nullptr;
  check(aoti_torch_get_current_cuda_stream(device, &stream), "aoti_torch_get_current_cuda_stream");
  return stream;
}

/// Scratch memory for one launch; freed in stream order when `owner` goes.
void* workspace_of(Kernel& k, const tessera_launch& launch, int32_t device_type, int32_t device,
                   Handle& owner) {
  int64_t bytes = k.workspace.load(std::memory_order_relaxed);
  if (bytes < 0) {
    bytes = k.workspace_size(&launch);
    if (bytes < 0) throw std::runtime_error("tessera::" + k.name + ": " + k.last_error());
    k.workspace.store(bytes, std::memory_order_relaxed);
  }
  if (bytes == 0) return nullptr;
  owner = empty({kUint8, {bytes + kWorkspaceAlignment}, {1}}, device_type, device);
  void* p = nullptr;
  check(torch_get_mutable_data_ptr(owner.get(), &p), "torch_get_mutable_data_ptr");
  const auto address = reinterpret_cast<uintptr_t>(p);
  return reinterpret_cast<void*>((address + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
                                 kWorkspaceAlignment);
}

void call(int slot, StableIValue* stack, uint64_t given, uint64_t wanted) {
  Kernel& k = *slots[static_cast<std::size_t>(slot)];
  std::array<Handle, kMaxTensors> owned, copies;
  for (uint64_t i = 0; i < given; ++i) {
    AtenTensorHandle h = nullptr;
    std::memcpy(&h, &stack[i], sizeof h);
    owned[i] = Handle(h);
  }
  if (given != static_cast<uint64_t>(k.inputs) || wanted != static_cast<uint64_t>(k.outputs))
    throw std::runtime_error("tessera::" + k.name +
                             ": called with another number of tensors than registered");
  int32_t device_type = 0, device = 0;
  check(aoti_torch_get_device_type(owned[0].get(), &device_type), "aoti_torch_get_device_type");
  check(aoti_torch_get_device_index(owned[0].get(), &device), "aoti_torch_get_device_index");
  const bool cuda = device_type == aoti_torch_device_type_cuda();
  OnDevice on_device(device, cuda ? 1 : 0);
  std::array<void*, kMaxTensors> pointers{};
  for (int i = 0; i < k.inputs; ++i)
    pointers[static_cast<std::size_t>(i)] =
        const_cast<void*>(input_pointer(k, i, owned[static_cast<std::size_t>(i)].get(), device_type,
                                        device, copies[static_cast<std::size_t>(i)]));
  for (int i = k.inputs; i < k.inputs + k.outputs; ++i) {
    const auto n = static_cast<std::size_t>(i);
    owned[n] = empty(k.types[n], device_type, device);
    check(torch_get_mutable_data_ptr(owned[n].get(), &pointers[n]), "torch_get_mutable_data_ptr");
  }
  const tessera_launch launch{pointers.data(), k.inputs + k.outputs, k.ints.data(),
                              static_cast<int32_t>(k.ints.size())};
  Handle workspace;
  void* scratch = workspace_of(k, launch, device_type, device, workspace);
  if (k.run(&launch, scratch, cuda ? current_stream(device) : nullptr) != 0)
    throw std::runtime_error("tessera::" + k.name + ": " + k.last_error());
  k.calls.fetch_add(1, std::memory_order_relaxed);
  for (int o = 0; o < k.outputs; ++o) {
    AtenTensorHandle h = owned[static_cast<std::size_t>(k.inputs + o)].release();
    stack[o] = 0;
    std::memcpy(&stack[o], &h, sizeof h);
  }
}

using Entry = void (*)(StableIValue*, uint64_t, uint64_t);

template <int slot>
void entry(StableIValue* stack, uint64_t given, uint64_t wanted) {
  call(slot, stack, given, wanted);
}

template <int... slot>
constexpr std::array<Entry, sizeof...(slot)> make_entries(std::integer_sequence<int, slot...>) {
  return {&entry<slot>...};
}
constexpr auto entries = make_entries(std::make_integer_sequence<int, kSlots>{});

/// Reads [inputs, outputs, count of ints, ints..., then for each tensor dtype, dims, shape...,
/// strides...].
std::unique_ptr<Kernel> decode(const char* name, const int64_t* code) {
  auto k = std::make_unique<Kernel>();
  k->name = name;
  k->inputs = static_cast<int>(*code++);
  k->outputs = static_cast<int>(*code++);
  const int64_t ints = *code++;
  k->ints.assign(code, code + ints);
  code += ints;
  for (int i = 0; i < k->inputs + k->outputs; ++i) {
    TensorType t;
    t.dtype = static_cast<int32_t>(*code++);
    const int64_t dims = *code++;
    t.shape.assign(code, code + dims);
    t.strides.assign(code + dims, code + 2 * dims);
    code += 2 * dims;
    k->types.push_back(std::move(t));
  }
  return k;
}

template <class F>
void symbol(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(dlsym(library, name));
  if (f == nullptr)
    throw std::runtime_error(std::string("the kernel library has no symbol ") + name);
}

void load(Kernel& k, const char* path) {
  // It stays loaded: an operator cannot be taken back.
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  symbol(library, "tessera_workspace_size", k.workspace_size);
  symbol(library, "tessera_run", k.run);
  symbol(library, "tessera_last_error", k.last_error);
}

int add(const char* name, const char* path, const int64_t* code) {
  const std::lock_guard lock(mutex);
  if (used == kSlots) throw std::runtime_error("all operator slots of this process are taken");
  auto k = decode(name, code);
  if (k->inputs < 1 || k->outputs < 1 || k->inputs + k->outputs > kMaxTensors)
    throw std::runtime_error(
        "a kernel takes at least one input, gives at least one output, and at most 64 of both");
  load(*k, path);
  for (const char* key : {"CPU", "CUDA"}) {
    TorchLibraryHandle library = nullptr;  // kept: deleting it would take the registration back
    check(aoti_torch_library_init_impl("tessera", key, __FILE__, __LINE__, &library),
          "aoti_torch_library_init_impl");
    check(torch_library_impl(library, name, entries[static_cast<std::size_t>(used)],
                             TORCH_ABI_VERSION),
          "torch_library_impl");
  }
  slots[static_cast<std::size_t>(used)] = std::move(k);
  return used++;
}

}  // namespace

#define TESSERA_API extern "C" __attribute__((visibility("default")))

/// The slot of the new operator `tessera::<name>`, whose schema is defined already; -1:
/// tessera_ops_error() says why.
TESSERA_API int tessera_ops_register(const char* name, const char* library, const int64_t* code) {
  try {
    return add(name, library, code);
  } catch (const std::exception& e) {
    last_error = e.what();
    return -1;
  }
}
TESSERA_API const char* tessera_ops_error() {
  return last_error.c_str();
}
/// How often the operator was launched, and how often one of its inputs had to be copied into the
/// traced layout.
TESSERA_API int64_t tessera_ops_calls(int slot) {
  return slots[static_cast<std::size_t>(slot)]->calls;
}
TESSERA_API int64_t tessera_ops_relayouts(int slot) {
  return slots[static_cast<std::size_t>(slot)]->relayouts;
}
