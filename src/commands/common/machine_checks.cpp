#include "commands/common/machine_checks.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tessera::commands {
namespace {

using State = Check::State;

Check check(std::string name, bool there, bool needed, std::string found, std::string needed_for,
            std::string how) {
  const State state = there ? State::ok : needed ? State::missing : State::optional;
  return {std::move(name), state,
          there           ? std::move(found)
          : found.empty() ? "not found"
                          : std::move(found),
          std::move(needed_for), there ? "" : std::move(how)};
}

std::string text(const Json& j, const char* key) {
  return j.contains(key) && j.at(key).is_string() ? j.at(key).get<std::string>() : "";
}

Check check_place(const PlaceFacts& p) {
  constexpr double enough_gib = 1;
  const bool fine = p.writable && p.free_gib >= enough_gib;
  const std::string why = p.writable ? "" : ", not writable";
  return check(p.name, fine, true,
               fmt::format("{} ({:.1f} GiB free{})", p.path.string(), p.free_gib, why),
               "what is built and learned",
               "set TESSERA_HOME to a writable folder with at least 1 GiB free");
}

/// The compiler, and why host sides cost what they need not where they do.
std::string compiler_line(const toolchain::Toolchain& t) {
  std::string line = fmt::format("{} {}", t.nvcc.string(), t.nvcc_version);
  if (t.together_because.empty()) return line;
  return fmt::format("{}, compiling host sides as well: {}", line, t.together_because);
}

}  // namespace

std::vector<Check> judge(const MachineFacts& f) {
  const bool gpu = !f.gpus.empty();
  const std::string torch = text(f.packages, "torch");
  const std::string torch_gpu = text(f.packages, "gpu");
  const std::string interpreter = f.python.empty() ? "python3" : f.python.string();
  const auto pip = [&](const char* package) {
    return fmt::format("{} -m pip install {}", interpreter, package);
  };
  std::vector<Check> out;
  out.push_back(check("processor", true, true, f.processor, "kernels on host", ""));
  out.push_back(check("c++ compiler", !f.tools.cxx.empty(), true,
                      fmt::format("{} {}", f.tools.cxx.string(), f.tools.cxx_version),
                      "kernels on host",
                      "apt-get install g++ (or any compiler with C++20), or set CXX"));
  if (f.tools.cxx.empty()) out.back().found = "not found";
  out.push_back(check("headers", !f.tools.own_include.empty(), true, f.tools.own_include.string(),
                      "every kernel that is built",
                      "install the wheel again, or set TESSERA_INCLUDE to the include folder of "
                      "the source tree"));
  out.push_back(check("python", !f.python.empty() && !text(f.packages, "python").empty(), true,
                      text(f.packages, "python").empty()
                          ? text(f.packages, "error")
                          : fmt::format("{} ({})", text(f.packages, "python"), interpreter),
                      "tracing, verifying and measuring",
                      "install Python 3.10 or newer, or set TESSERA_PYTHON"));
  out.push_back(check("torch", !torch.empty(), true, torch, "tracing, verifying and measuring",
                      pip("torch")));
  out.push_back(check("gpu", gpu, false, join(f.gpus, ", "), "kernels for CUDA",
                      "without an NVIDIA GPU and its driver, tessera works on `host`"));
  out.push_back(check("torch on the gpu", !torch_gpu.empty(), gpu && !torch.empty(), torch_gpu,
                      "kernels for CUDA",
                      "install a torch built for CUDA: https://pytorch.org/get-started"));
  out.push_back(check("nvcc", !f.tools.nvcc.empty(), gpu,
                      f.tools.nvcc.empty() ? "" : compiler_line(f.tools), "kernels for CUDA",
                      pip("nvidia-cuda-nvcc nvidia-cuda-cccl") + ", or set TESSERA_NVCC"));
  out.push_back(check("cutlass", !f.tools.cutlass.empty(), gpu,
                      f.tools.cutlass.empty()
                          ? ""
                          : fmt::format("{} {}", f.tools.cutlass.string(), f.tools.cutlass_version),
                      "CUTLASS kernels",
                      pip("nvidia-cutlass==4.2.0.0") + ", or set TESSERA_CUTLASS_DIR"));
  out.push_back(check("plotly", !text(f.packages, "plotly").empty(), false,
                      text(f.packages, "plotly"), "plots in the HTML report", pip("plotly")));
  out.push_back(check("z3", !f.solver.empty(), false, f.solver.empty() ? f.solver_fault : f.solver,
                      "proofs that index arithmetic alone leaves open",
                      pip("z3-solver") + ", or set TESSERA_LIBZ3 to a libz3.so"));
  out.push_back(check("sandbox", !f.sandbox.empty(), false,
                      f.sandbox.empty() ? f.sandbox_fault : f.sandbox,
                      "kernels that others wrote (`tessera try`, `tessera mcp`)",
                      "allow user namespaces, or run on a kernel with Landlock (5.13 or newer)"));
  for (const PlaceFacts& p : f.places) out.push_back(check_place(p));
  return out;
}

}  // namespace tessera::commands
