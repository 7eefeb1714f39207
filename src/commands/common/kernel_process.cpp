#include "commands/common/kernel_process.h"

#include <charconv>

#include "base/files.h"
#include "bridge/bridge.h"
#include "commands/common/kernel_build.h"
#include "commands/common/kernel_file.h"
#include "toolchain/ready.h"

namespace tessera::commands {
namespace {

constexpr Code no_size{"TS0039", "input.no_size"};

}  // namespace

std::vector<Parameter> running_parameters() {
  return building_parameters({{.type = Parameter::Type::list,
                               .name = "size",
                               .doc = "NAME=NUMBER: an integer of the launch, as M=512; strides "
                                      "that are left out are as dense as they may be"},
                              {.type = Parameter::Type::integer,
                               .name = "seed",
                               .doc = "of the inputs",
                               .preset = "0",
                               .not_negative = true}});
}

Result<Outcome> on_the_gpu(const std::string& method, const Json& arguments, Context& context) {
  TESSERA_TRY(given, assignments(arguments, "size"));
  Json sizes = Json::object();
  for (const auto& [name, text] : given) {
    int64_t n = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (status != std::errc() || end != text.data() + text.size())
      return error(fail(no_size, "the size `{}` of `{}` is no whole number", text, name)
                       .help("write --size {}=512", name));
    sizes[name] = n;
  }
  TESSERA_TRY(out, built(arguments, context));
  if (out.exit != Exit::ok) return out;
  const std::filesystem::path log = cache_home() / "logs" / "kernel.log";
  TESSERA_CHECK(toolchain::ready_cache(log.parent_path()));
  TESSERA_TRY(peer, bridge::spawn(bridge::find_python(), "tessera.kernel_process", log));
  if (context.progress)
    context.progress({{"stage", method}, {"message", "on the GPU, beside PyTorch"}});
  TESSERA_TRY(reply, peer->call(method,
                                {{"report", out.data},
                                 {"sizes", sizes},
                                 {"seed", arguments.at("seed").get<int64_t>()}},
                                std::chrono::seconds(600)));
  out.text = reply.at("text").get<std::string>();
  out.data = reply.at("data");
  if (!reply.at("right").get<bool>()) out.exit = Exit::refuted;
  return out;
}

}  // namespace tessera::commands
