// `tessera lower FILE.py`: what a kernel file becomes: the core's text, or CUDA C++.
#include "lower/lower.h"

#include "commands/common/kernel_file.h"

#include "core/print.h"

namespace tessera::commands {
namespace {

Result<Outcome> run(const Json& arguments, Context&) {
  TESSERA_TRY(kernel, load_kernel(arguments));
  Outcome out;
  if (arguments.at("emit") == "core") {
    out.text = core::to_string(kernel);
  } else {
    TESSERA_TRY(source, tessera::lower::lower(kernel));
    out.text = source.text;
  }
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
    .doc = "print what a kernel file becomes: the core's text or CUDA C++",
    .parameters = kernel_parameters({{.type = Parameter::Type::text,
                                      .name = "emit",
                                      .doc = "what to print",
                                      .preset = "cuda",
                                      .choices = {"core", "cuda"}}}),
    .run = run,
};

}  // namespace tessera::commands
