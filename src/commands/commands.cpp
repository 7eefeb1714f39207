// `tessera commands`: the command table as data, which other doors render.
#include "commands/commands.h"

namespace tessera::commands {
namespace {

std::string_view name_of(Parameter::Type type) {
  using Type = Parameter::Type;
  switch (type) {
    case Type::text:
      return "text";
    case Type::integer:
      return "integer";
    case Type::real:
      return "real";
    case Type::flag:
      return "flag";
    case Type::list:
      return "list";
    case Type::numbers:
      return "numbers";
  }
  return "text";
}

std::string_view name_of(Parameter::Names names) {
  using Names = Parameter::Names;
  switch (names) {
    case Names::nothing:
      return "nothing";
    case Names::model:
      return "model";
    case Names::source:
      return "source";
    case Names::kernel_file:
      return "kernel_file";
    case Names::input:
      return "input";
    case Names::output:
      return "output";
    case Names::place:
      return "place";
  }
  return "nothing";
}

Json json_of(const Parameter& p) {
  return {{"name", p.name},
          {"type", name_of(p.type)},
          {"doc", p.doc},
          {"preset", p.preset},
          {"positional", p.positional},
          {"required", p.required},
          {"choices", p.choices},
          {"words", p.words},
          {"not_negative", p.not_negative},
          {"names", name_of(p.names)},
          {"only_when", p.only_when},
          {"option", p.option}};
}

Json json_of(const Command& c) {
  Json parameters = Json::array();
  for (const Parameter& p : c.parameters) parameters.push_back(json_of(p));
  return {{"name", c.name},       {"doc", c.doc},
          {"details", c.details}, {"schemas", c.schemas},
          {"door", c.door},       {"keeps", c.keeps},
          {"hidden", c.hidden},   {"parameters", std::move(parameters)}};
}

Result<Outcome> run(const Json&, Context&) {
  Outcome out;
  out.data = {{"schema", "tessera.commands/1"}, {"commands", Json::array()}};
  for (const Command* c : all()) {
    if (c->hidden) continue;
    out.data["commands"].push_back(json_of(*c));
    out.text += std::string(c->name) + "  " + std::string(c->doc) + "\n";
  }
  return out;
}

}  // namespace

extern const Command commands = {
    .name = "commands",
    .doc = "the commands; with --json their parameters too, as other programs read them",
    .run = run,
    .schemas = {"tessera.commands/1"},
};

}  // namespace tessera::commands
