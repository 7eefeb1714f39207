#include "diag/diagnostic.h"

#include "diag/result.h"
#include "diag/snippet.h"

namespace tessera {
namespace {

std::string_view level_name(Level level) {
  switch (level) {
    case Level::error:
      return "error";
    case Level::warning:
      return "warning";
    case Level::note:
      return "note";
  }
  return "error";
}

std::vector<std::string> strings(const Json& j, const char* key) {
  return j.contains(key) ? j.at(key).get<std::vector<std::string>>() : std::vector<std::string>{};
}

}  // namespace

Diagnostic::Diagnostic() : data(Json::object()) {}
Diagnostic::Diagnostic(const Code& c, std::string text)
    : code(c.id), name(c.name), message(std::move(text)), data(Json::object()) {}
Diagnostic::Diagnostic(const Diagnostic&) = default;
Diagnostic::Diagnostic(Diagnostic&&) noexcept = default;
Diagnostic& Diagnostic::operator=(const Diagnostic&) = default;
Diagnostic& Diagnostic::operator=(Diagnostic&&) noexcept = default;
Diagnostic::~Diagnostic() = default;

Diagnostic&& Diagnostic::expect_text(std::string text) && {
  expected = std::move(text);
  return std::move(*this);
}

Diagnostic&& Diagnostic::but_found_text(std::string text) && {
  found = std::move(text);
  return std::move(*this);
}

Diagnostic&& Diagnostic::note_text(std::string text) && {
  notes.push_back(std::move(text));
  return std::move(*this);
}

Diagnostic&& Diagnostic::help_text(std::string text) && {
  helps.push_back(std::move(text));
  return std::move(*this);
}

Diagnostic&& Diagnostic::at(Place where) && {
  place = std::move(where);
  return std::move(*this);
}

Diagnostic&& Diagnostic::label(Label l) && {
  if (labels.empty()) place = l.from;
  labels.push_back(std::move(l));
  return std::move(*this);
}

Diagnostic&& Diagnostic::with(std::string_view key, Json value) && {
  data[std::string(key)] = std::move(value);
  return std::move(*this);
}

tl::unexpected<Diagnostic> error(Diagnostic d) {
  return tl::unexpected<Diagnostic>(std::move(d));
}

std::string to_text(const Diagnostic& d) {
  std::string out = fmt::format("{}[{}]: {}\n", level_name(d.level), d.code, d.message);
  if (!d.place.file.empty()) {
    out += fmt::format("  --> {}", d.place.file);
    if (d.place.line > 0) out += fmt::format(":{}", d.place.line);
    if (d.place.column > 0) out += fmt::format(":{}", d.place.column);
    out += "\n";
  }
  out += snippet(d.labels);
  if (!d.expected.empty()) out += fmt::format("  = expected: {}\n", d.expected);
  if (!d.found.empty()) out += fmt::format("  = found: {}\n", d.found);
  for (const std::string& n : d.notes) out += fmt::format("  = note: {}\n", n);
  for (const std::string& h : d.helps) out += fmt::format("  = help: {}\n", h);
  return out;
}

Json to_json(const Diagnostic& d) {
  Json j = {{"schema", "tessera.diagnostic/1"},
            {"code", d.code},
            {"name", d.name},
            {"level", level_name(d.level)},
            {"message", d.message}};
  if (!d.expected.empty()) j["expected"] = d.expected;
  if (!d.found.empty()) j["found"] = d.found;
  if (!d.notes.empty()) j["notes"] = d.notes;
  if (!d.helps.empty()) j["help"] = d.helps;
  if (!d.place.file.empty()) {
    j["place"] = {{"file", d.place.file}, {"line", d.place.line}, {"column", d.place.column}};
  }
  for (const Label& l : d.labels) {
    j["labels"].push_back({{"file", l.from.file},
                           {"line", l.from.line},
                           {"column", l.from.column},
                           {"length", l.length},
                           {"text", l.text},
                           {"source", l.line}});
  }
  if (!d.data.empty()) j["data"] = d.data;
  return j;
}

Diagnostic diagnostic_from_json(const Json& j) {
  Diagnostic d;
  d.code = j.value("code", "TS0900");
  d.name = j.value("name", "");
  const std::string level = j.value("level", "error");
  d.level = level == "warning" ? Level::warning : level == "note" ? Level::note : Level::error;
  d.message = j.value("message", "");
  d.expected = j.value("expected", "");
  d.found = j.value("found", "");
  d.notes = strings(j, "notes");
  d.helps = strings(j, "help");
  if (j.contains("place")) {
    const Json& p = j.at("place");
    d.place = {
        .file = p.value("file", ""), .line = p.value("line", 0), .column = p.value("column", 0)};
  }
  for (const Json& l : j.value("labels", Json::array())) {
    d.labels.push_back({.from = {.file = l.value("file", ""),
                                 .line = l.value("line", 0),
                                 .column = l.value("column", 0)},
                        .length = l.value("length", 1),
                        .text = l.value("text", ""),
                        .line = l.value("source", "")});
  }
  if (j.contains("data")) d.data = j.at("data");
  return d;
}

Exit exit_code(const Diagnostic& d) {
  const std::string family = d.code.substr(0, 4);
  if (family == "TS09") return Exit::internal;
  if (family == "TS05") return Exit::refuted;
  if (family == "TS04") return Exit::undecided;
  return Exit::bad_input;
}

}  // namespace tessera
