#include "kernel/candidate.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace tessera::kernel {
namespace {

constexpr std::string_view cuda = "cuda";
constexpr std::string_view cxx = "cxx";

// Of everything that a compiler gets.
std::string hash_of(const Json& source) {
  return content_hash(source.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json to_json(const toolchain::Source& s) {
  return {{"name", s.name},      {"language", s.language == toolchain::Language::cuda ? cuda : cxx},
          {"text", s.text},      {"arch", s.arch},
          {"flags", s.flags},    {"links", s.links},
          {"cutlass", s.cutlass}};
}

toolchain::Source source_from_json(const Json& j) {
  return {
      .name = j.at("name"),
      .language = j.at("language") == cuda ? toolchain::Language::cuda : toolchain::Language::cxx,
      .text = j.at("text"),
      .arch = j.at("arch"),
      .flags = j.at("flags"),
      .links = j.at("links"),
      .cutlass = j.at("cutlass")};
}

}  // namespace

std::string_view name_of(Kind kind) {
  return kind == Kind::synthesized ? "synthesized" : "library";
}

double Candidate::build_seconds() const {
  if (!source) return 0;
  return source->cutlass ? cutlass_build_seconds : 3;
}

std::string Candidate::label() const {
  std::string text = realizer;
  const auto pick = [&](const char* key) -> const Json* {
    const auto it = config.find(key);
    return it == config.end() ? nullptr : &*it;
  };
  const auto extents = [&](const Json& list) {
    std::string out;
    for (const Json& x : list) out += (out.empty() ? "" : "x") + x.dump();
    return out;
  };
  for (const char* key : {"tile", "cluster"}) {
    if (const Json* v = pick(key)) text += " " + (v->is_array() ? extents(*v) : v->dump());
  }
  for (const char* key :
       {"schedule", "scheduler", "slices", "splits", "promote", "algo", "backend"}) {
    const Json* v = pick(key);
    if (v == nullptr) continue;
    if (v->is_string()) {
      if (*v != "persistent") text += " " + v->get<std::string>();
    } else {
      text += fmt::format(" {}={}", key, v->dump());
    }
  }
  if (config.value("fast_accum", false)) text += " fast_accum";
  if (config.value("epilogue", "") == "registers") text += " from registers";
  if (const Json* copies = pick("copies"); copies != nullptr)
    for (const Json& operand : *copies) text += " copy=" + operand.get<std::string>();
  if (const Json* source = pick("source"); source != nullptr && source->is_string())
    text += " " + source->get<std::string>();
  if (const Json* tunables = pick("tunables"); tunables != nullptr && tunables->is_object()) {
    for (const auto& [name, value] : tunables->items())
      text += fmt::format(" {}={}", name, value.dump());
  }
  return text;
}

Json to_json(const Candidate& c) {
  Json j = {{"realizer", c.realizer}, {"kind", name_of(c.kind)}, {"config", c.config}};
  if (c.source) {
    j["source"] = to_json(*c.source);
    j["source_hash"] = hash_of(j.at("source"));
  }
  if (c.call) j["call"] = {{"function", c.call->function}, {"arguments", c.call->arguments}};
  if (!c.unread.empty()) j["unread"] = c.unread;
  return j;
}

Result<Candidate> candidate_from_json(const Json& j) {
  try {
    Candidate c;
    c.realizer = j.at("realizer");
    c.kind = j.at("kind") == name_of(Kind::library) ? Kind::library : Kind::synthesized;
    c.config = j.at("config");
    c.unread = j.value("unread", c.unread);
    if (j.contains("source")) {
      if (j.value("source_hash", "") != hash_of(j.at("source"))) {
        return error(fail(bad_candidate,
                          "a stored source text of `{}` is not the one that was stored", c.realizer)
                         .help("`tessera registry prune` drops the entry; the pattern is then "
                               "tuned anew"));
      }
      c.source = source_from_json(j.at("source"));
    }
    if (j.contains("call")) {
      c.call = LibraryCall{.function = j.at("call").at("function"),
                           .arguments = j.at("call").at("arguments")};
    }
    return c;
  } catch (const Json::exception& e) {
    return error(fail(bad_candidate, "a stored candidate cannot be read")
                     .but_found("{}", e.what())
                     .help("remove it with `tessera registry prune` and optimize again"));
  }
}

}  // namespace tessera::kernel
