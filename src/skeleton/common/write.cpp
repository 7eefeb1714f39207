// The source around the loops: head, element types, the contract.
#include <fmt/ranges.h>

#include "base/text.h"

#include "skeleton/common/unused.h"
#include "skeleton/skeleton.h"

namespace tessera::skeleton {
namespace {

/// How an element of a type is read and written; `type` is the C++ name.
struct Element {
  std::string_view type, declared, load, store;
};

constexpr Element host_elements[] = {
    {"bf16", "struct bf16 { uint16_t bits; };\n",
     "FN float load(bf16 x) { return tsr_as_float(uint32_t(x.bits) << 16); }\n",
     R"(FN void store(bf16* to, float v) {
  const uint32_t b = tsr_as_uint(v);
  to->bits = v != v ? uint16_t((b >> 16) | 0x40u) : uint16_t((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}
)"},
    {"f16", "struct f16 { uint16_t bits; };\n",
     "FN float load(f16 x) { _Float16 h; __builtin_memcpy(&h, &x, 2); return float(h); }\n",
     "FN void store(f16* to, float v) {\n  const _Float16 h = _Float16(v);\n"
     "  __builtin_memcpy(to, &h, 2);\n}\n"},
};

constexpr Element cuda_elements[] = {
    {"bf16", "using bf16 = __nv_bfloat16;\n",
     "FN float load(bf16 x) { return __bfloat162float(x); }\n",
     "FN void store(bf16* to, float v) { *to = __float2bfloat16_rn(v); }\n"},
    {"f16", "using f16 = __half;\n", "FN float load(f16 x) { return __half2float(x); }\n",
     "FN void store(f16* to, float v) { *to = __float2half_rn(v); }\n"},
};

constexpr Element both_elements[] = {
    {"float", "", "FN float load(float x) { return x; }\n",
     "FN void store(float* to, float v) { *to = v; }\n"},
    {"double", "", "FN float load(double x) { return float(x); }\n",
     "FN void store(double* to, float v) { *to = v; }\n"},
    {"bool", "", "FN float load(bool x) { return x ? 1.0f : 0.0f; }\n",
     "FN void store(bool* to, float v) { *to = v != 0; }\n"},
    {"int64_t", "", "FN float load(int64_t x) { return float(x); }\n",
     "FN void store(int64_t* to, float v) { *to = int64_t(v); }\n"},
    {"int32_t", "", "FN float load(int32_t x) { return float(x); }\n",
     "FN void store(int32_t* to, float v) { *to = int32_t(v); }\n"},
};

Result<std::string_view> c_type(DType t) {
  switch (t) {
    case DType::float32:
      return "float";
    case DType::float64:
      return "double";
    case DType::bfloat16:
      return "bf16";
    case DType::float16:
      return "f16";
    case DType::boolean:
      return "bool";
    case DType::int64:
      return "int64_t";
    case DType::int32:
      return "int32_t";
    default:
      return error(fail(no_skeleton, "a skeleton has no loads of {}", name_of(t))
                       .help("begin with a kernel of another pattern, and take its contract"));
  }
}

struct Tensor {
  std::string type;  // of C++
  std::string line;  // of the head
};

Result<std::vector<Tensor>> tensors_of(const rules::Pattern& p, const graph::Graph& g) {
  std::vector<Tensor> out;
  const auto add = [&](graph::ValueId id, std::string_view what) -> Status {
    const graph::Value& v = g.value(id);
    TESSERA_TRY(type, c_type(v.type.dtype));
    const bool input = what == "input";
    out.push_back({.type = (input ? "const " : "") + std::string(type),
                   .line = fmt::format("//   t{} {:6} {} ({}):({})  %{}{}\n", out.size(), what,
                                       name_of(v.type.dtype), fmt::join(v.type.shape, ","),
                                       fmt::join(v.type.strides, ","), v.name,
                                       v.facts.empty() ? "" : "  " + v.facts.dump())});
    return {};
  };
  for (const graph::ValueId id : p.inputs) TESSERA_CHECK(add(id, "input"));
  for (const graph::ValueId id : p.outputs) TESSERA_CHECK(add(id, "output"));
  return out;
}

/// Of the types that the tensors have, and no others.
std::string accesses(const std::vector<Tensor>& tensors, bool cuda) {
  const auto has = [&](const std::string& type) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const Tensor& t) { return t.type == type; });
  };
  std::string out = "\n";
  const auto add = [&](const auto& elements) {
    for (const Element& e : elements) {
      const bool loaded = has("const " + std::string(e.type)), stored = has(std::string(e.type));
      if (loaded || stored) out += e.declared;
      if (loaded) out += e.load;
      if (stored) out += e.store;
    }
  };
  if (cuda)
    add(cuda_elements);
  else
    add(host_elements);
  add(both_elements);
  return out + "\n";
}

std::string head(const rules::Pattern& p, const graph::Graph& g, const arch::Arch& arch,
                 const std::vector<Tensor>& tensors) {
  std::string out = fmt::format(
      "// {} {}: {}, for {}. A naive kernel to start from.\n//\n// Meaning, as ATen nodes; a "
      "result "
      "is held against them in fp64:\n",
      p.id, p.rule, p.summary, arch.name);
  for (const graph::NodeId n : p.nodes) out += "//   " + graph::to_text(g, n);
  out += "//\n// Tensors of a launch, in order, as shape:strides in elements:\n";
  for (const Tensor& t : tensors) out += t.line;
  out += fmt::format(
      R"(//
// Shapes and strides are those of this pattern and may be constants of the code: nothing else is asked
// of a launch. A tensor begins where PyTorch puts it: rely on the alignment of its element type, and test
// an address before wider accesses. Inputs are drawn anew for each run, of several distributions.
//
// Budgets: {} accuracy (errors beside eager's, docs/measuring.md); {:.4g} FLOP and {:.4g} bytes at
// least, {:.4g} ms on the roofline. Nothing beside a tensor may be written, no input changed, no
// element left out; what lies around the inputs is NaN.
//
// The machine: {}.
//
// A line `// tunable: TILE = 16, 32, 64` makes TILE a macro, and `tessera try` sweeps its values; the
// first is the default.
)",
      name_of(p.precision), p.flops, p.min_bytes, p.floor_ms, arch::resources_of(arch));
  return out;
}

std::string parameters(const std::vector<Tensor>& tensors, bool types) {
  std::string out;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    out += types ? fmt::format(", {}* t{}", tensors[i].type, i) : fmt::format(", t{}", i);
  return out;
}

std::string functions(const std::vector<Loop>& loops, const std::vector<Tensor>& tensors,
                      bool cuda) {
  std::string out;
  for (const Loop& l : loops) {
    out += fmt::format("FN void {}(Index item{}) {{\n{}}}\n\n", l.name, parameters(tensors, true),
                       l.body);
    if (!cuda) continue;
    out += fmt::format(
        "__global__ void {0}_kernel(Index items{1}) {{\n"
        "  const Index step = Index(gridDim.x) * blockDim.x;\n"
        "  for (Index item = Index(blockIdx.x) * blockDim.x + threadIdx.x; item < items; item += "
        "step)\n    {0}(item{2});\n}}\n\n",
        l.name, parameters(tensors, true), parameters(tensors, false));
  }
  return out;
}

std::string launches(const std::vector<Loop>& loops, const std::vector<Tensor>& tensors,
                     bool cuda) {
  std::string out;
  for (const Loop& l : loops) {
    if (!cuda) {
      out += fmt::format(
          "#pragma omp parallel for\n  for (Index item = 0; item < {}; ++item) "
          "{}(item{});\n",
          l.items, l.name, parameters(tensors, false));
      continue;
    }
    constexpr int64_t threads = 128, most = 1 << 20;
    const int64_t blocks = std::clamp<int64_t>((l.items + threads - 1) / threads, 1, most);
    out += fmt::format(
        "  {}_kernel<<<{}, {}, 0, static_cast<cudaStream_t>(stream)>>>({}{});\n"
        "  if (cudaError_t e = cudaGetLastError(); e != cudaSuccess) return message = "
        "cudaGetErrorString(e), 2;\n",
        l.name, blocks, threads, l.items, parameters(tensors, false));
  }
  return out;
}

std::string contract(const std::vector<Loop>& loops, const std::vector<Tensor>& tensors, bool cuda,
                     const rules::Pattern& p, const arch::Arch& arch) {
  Json described = {{"abi", 1}, {"name", "skeleton_" + p.rule}, {"ints", Json::array()}};
  described["tensors"] = Json::array();
  std::string casts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    described["tensors"].push_back(fmt::format("t{}", i));
    casts +=
        fmt::format("  {0}* t{1} = static_cast<{0}*>(launch->tensors[{1}]);\n", tensors[i].type, i);
  }
  described["arch"] = arch.name;
  return fmt::format(
      R"text(static thread_local const char* message = "";
extern "C" const char* tessera_describe(void) {{ return R"({})"; }}
extern "C" const char* tessera_last_error(void) {{ return message; }}
extern "C" int64_t tessera_workspace_size(const tessera_launch*) {{ return 0; }}
extern "C" int tessera_run(const tessera_launch* launch, void* workspace, void* stream) {{
  if (launch->tensor_count != {}) return message = "{} tensors are needed", 1;
{}  (void)workspace, (void)stream;
{}  return 0;
}}
)text",
      described.dump(), tensors.size(), tensors.size(), casts, launches(loops, tensors, cuda));
}

}  // namespace

Result<Written> write(const rules::Pattern& pattern, const graph::Graph& g,
                      const arch::Arch& arch) {
  const Skeleton* writer = nullptr;
  for (const Skeleton* s : all()) {
    if (s->rule == pattern.rule) writer = s;
  }
  if (writer == nullptr)
    return error(fail(no_skeleton, "the rule {} has no skeleton", pattern.rule)
                     .help("write one in src/skeleton/{}.cpp", pattern.rule));
  TESSERA_TRY(tensors, tensors_of(pattern, g));
  TESSERA_TRY(loops, writer->write(pattern));
  const bool cuda = arch.device == "cuda";
  std::string text = head(pattern, g, arch, tensors);
  text += "#include <stdint.h>\n\n#include \"tessera/kernel.h\"\n";
  if (cuda) text += "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n";
  text += "\n// Functions of single elements.\n" +
          pointwise::prelude(cuda ? pointwise::Target::cuda : pointwise::Target::host);
  text += fmt::format(
      "\n#define FN {}\nusing Index = int64_t;\nusing accumulator = double;\n",
      cuda ? "[[maybe_unused]] static __device__ inline" : "[[maybe_unused]] static inline");
  text += accesses(tensors, cuda) + functions(loops, tensors, cuda) +
          contract(loops, tensors, cuda, pattern, arch);
  Written out{
      .text = without_unused(text, "TSR_FN "), .ending = cuda ? ".cu" : ".cpp", .missing = {}};
  for (const Loop& l : loops) {
    for (const std::string& op : l.missing)
      if (std::find(out.missing.begin(), out.missing.end(), op) == out.missing.end())
        out.missing.push_back(op);
  }
  return out;
}

}  // namespace tessera::skeleton
