#include "commands/common/model.h"

#include <filesystem>
#include <fmt/format.h>

#include "arch/arch.h"
#include "base/files.h"
#include "toolchain/ready.h"

namespace tessera::commands {
namespace {

inline constexpr Code no_such_file{"TS0001", "input.no_such_file"};

}  // namespace

std::vector<Parameter> model_parameters(std::vector<Parameter> more) {
  using Type = Parameter::Type;
  std::vector<Parameter> out = {
      {.type = Type::text,
       .name = "model",
       .doc =
           "a Python file with a torch.nn.Module: MODEL.py or MODEL.py:Class; "
           "KernelBench problem files (Model, get_inputs, get_init_inputs) are taken as they are",
       .positional = true,
       .required = true,
       .names = Parameter::Names::model},
      {.type = Type::text,
       .name = "arch",
       .doc = "architecture to build for; auto takes the one of the device",
       .preset = "auto"},
      {.type = Type::text,
       .name = "precision",
       .doc = "cast the module and its inputs, or set torch's own fp32 flags; "
              "auto keeps the module's dtypes",
       .preset = "auto",
       .choices = {"auto", "fp32", "tf32", "bf16", "fp16"}},
      {.type = Type::text,
       .name = "device",
       .doc = "where the module runs",
       .preset = "auto",
       .choices = {"auto", "cpu", "cuda"}},
      {.type = Type::text,
       .name = "cache",
       .doc = "folder of built kernels (default: the user's cache)",
       .names = Parameter::Names::place},
      {.type = Type::text,
       .name = "registry",
       .doc = "registry file (default: the user's)",
       .names = Parameter::Names::place},
      {.type = Type::text,
       .name = "dump",
       .doc = "folder to write the result of every stage to",
       .names = Parameter::Names::output},
  };
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

Result<Model> load_model(const Json& arguments, Context& context) {
  const std::string spec = arguments.at("model");
  const std::size_t colon = spec.rfind(':');
  const std::string path = colon == std::string::npos ? spec : spec.substr(0, colon);
  const std::string cls = colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (!std::filesystem::is_regular_file(path)) {
    return error(
        fail(no_such_file, "there is no file `{}`", path)
            .expect("MODEL.py or MODEL.py:Class")
            .help(
                "give the path of a Python file that defines a torch.nn.Module and get_inputs()"));
  }
  if (const std::string name = arguments.value("arch", "auto"); name != "auto")
    TESSERA_CHECK(arch::find(name));  // before the long way to where it is needed
  Model model;
  model.stem = std::filesystem::path(path).stem();
  if (!cls.empty()) model.stem += "-" + cls;
  const std::filesystem::path log = cache_home() / "logs" / "tracer.log";
  TESSERA_CHECK(toolchain::ready_cache(log.parent_path()));
  if (context.progress) context.progress({{"stage", "trace"}, {"message", "tracing " + spec}});
  TESSERA_TRY(tracer, bridge::spawn(bridge::find_python(), "tessera.tracer_process", log));
  model.tracer = std::move(tracer);
  if (context.progress) {
    model.tracer->on_notification = [&context](const std::string& method, const Json& params) {
      if (method == "progress") context.progress(params);
    };
  }
  TESSERA_TRY(reply, model.tracer->call("trace",
                                        {{"path", std::filesystem::absolute(path).string()},
                                         {"class", cls},
                                         {"precision", arguments.value("precision", "auto")},
                                         {"device", arguments.value("device", "auto")},
                                         {"seconds", arguments.value("total-seconds", 0.0) / 2}},
                                        std::chrono::seconds(600)));
  model.traced = reply.at("graph");
  return model;
}

pipeline::Options options_for(const Model& model, const Json& arguments, double after) {
  pipeline::Options out = pipeline::options_from(arguments);
  out.begun = model.begun;
  if (out.total_seconds > 0) out.total_seconds = std::max(1.0, out.total_seconds - after);
  return out;
}

}  // namespace tessera::commands
