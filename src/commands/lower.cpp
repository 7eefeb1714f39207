// `tessera lower FILE.py`: what a kernel file becomes: the core's text, CUDA C++, PTX or machine
// code.
#include "lower/lower.h"

#include "bridge/bridge.h"
#include "commands/common/kernel_file.h"
#include "toolchain/device_text.h"

#include "core/print.h"

namespace tessera::commands {
namespace {

Result<std::string> text_of(const core::Kernel& kernel, const std::string& emit) {
  if (emit == "core") return core::to_string(kernel);
  TESSERA_TRY(lowered, tessera::lower::lower(kernel));
  if (emit == "cuda") return lowered.text;
  toolchain::Source source;
  source.name = lowered.name;
  source.text = lowered.text;
  source.arch = "sm_90a";
  return toolchain::device_text(toolchain::locate(bridge::find_python()), source,
                                emit == "ptx" ? toolchain::Stage::ptx : toolchain::Stage::sass,
                                std::chrono::minutes(10));
}

Result<Outcome> run(const Json& arguments, Context&) {
  TESSERA_TRY(kernel, load_kernel(arguments));
  TESSERA_TRY(text, text_of(kernel, arguments.at("emit").get<std::string>()));
  Outcome out;
  out.text = text;
  out.data = {{"schema", "tessera.lowered/1"},
              {"kernel", kernel.name},
              {"emit", arguments.at("emit")},
              {"text", out.text}};
  return out;
}

}  // namespace

extern const Command lower;
const Command lower = {
    .name = "lower",
    .doc = "print what a kernel file becomes: the core's text, CUDA C++, PTX or machine code",
    .details =
        "PTX and machine code (sass) are made by nvcc with the flags of a build; lines of the "
        "kernel file stand above what they became. Machine code is printed by nvdisasm, which lies "
        "beside nvcc or on PATH.",
    .parameters = kernel_parameters({{.type = Parameter::Type::text,
                                      .name = "emit",
                                      .doc = "what to print",
                                      .preset = "cuda",
                                      .choices = {"core", "cuda", "ptx", "sass"}}}),
    .run = run,
    .schemas = {"tessera.lowered/1"},
};

}  // namespace tessera::commands
