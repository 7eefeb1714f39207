#include "language/builtin.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "language/elaborator.h"

namespace tessera::language {
namespace {

constexpr std::array keywords = {std::string_view("async"), std::string_view("global"),
                                 std::string_view("in"),    std::string_view("and"),
                                 std::string_view("or"),    std::string_view("not"),
                                 std::string_view("is")};

constexpr int64_t most_extent = 1 << 20;  // of storage; no memory on a chip holds more

}  // namespace

const Builtin* find_builtin(std::string_view name) {
  static const auto* const table = [] {
    auto* out = new std::map<std::string_view, const Builtin*>();
    for (const Group* g : groups::all())
      for (const Builtin& b : g->builtins) (*out)[b.name] = &b;
    return out;
  }();
  const auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

std::vector<std::string> builtin_names(std::string_view prefix) {
  std::vector<std::string> out;
  for (const Group* g : groups::all())
    for (const Builtin& b : g->builtins)
      if (b.name.substr(0, prefix.size()) == prefix && (!prefix.empty() || b.name[0] != '.'))
        out.emplace_back(b.name);
  for (const arch::Family* family : arch::instructions::all())
    for (const arch::Form& f : family->forms())
      if (!prefix.empty() && path_of(f).substr(0, prefix.size()) == prefix)
        out.push_back(path_of(f));
  return out;
}

std::string path_of(const arch::Form& form) {
  std::string out;
  bool after_keyword = false;
  for (std::string part : split(form.name, '.')) {
    if (const auto cta = part.find("::cta"); cta != std::string::npos) part.resize(cta);
    part = replace_all(part, "::", "_");
    const bool digit = std::isdigit(static_cast<unsigned char>(part[0])) != 0;
    if (!out.empty()) out += after_keyword ? "" : digit ? "_" : ".";
    after_keyword = std::find(keywords.begin(), keywords.end(), part) != keywords.end();
    out += part + (after_keyword ? "_" : "");
  }
  return out;
}

const arch::Form* find_form_by_path(std::string_view path) {
  static const auto* const table = [] {
    auto* out = new std::map<std::string, const arch::Form*, std::less<>>();
    for (const arch::Family* family : arch::instructions::all())
      for (const arch::Form& f : family->forms()) (*out)[path_of(f)] = &f;
    return out;
  }();
  const auto found = table->find(path);
  return found == table->end() ? nullptr : found->second;
}

bool is_namespace(std::string_view path) {
  return !builtin_names(std::string(path) + ".").empty();
}

const Call::Bound* Call::find(std::string_view name) const {
  for (const Bound& b : bound)
    if (b.name == name) return &b;
  return nullptr;
}

const Value& Call::operator[](std::string_view name) const {
  static const Value nothing;
  const Bound* const b = find(name);
  return b == nullptr ? nothing : b->value;
}

Span Call::span_of(std::string_view name) const {
  const Bound* const b = find(name);
  return b == nullptr ? span : b->span;
}

Diagnostic Call::wrong(std::string_view name, std::string_view wanted) const {
  return fail(wrong_kind, "`{}` of `{}` is of another kind", name, builtin.name)
      .label(e.label(span_of(name), std::string(kind_of((*this)[name]))))
      .expect("{}", wanted)
      .but_found("{}", kind_of((*this)[name]))
      .help("`{}({})`", builtin.name, builtin.parameters);
}

Result<int64_t> Call::integer(std::string_view name, int64_t otherwise) const {
  const Bound* const b = find(name);
  if (b == nullptr) return otherwise;
  if (const auto* n = b->value.as<int64_t>()) return *n;
  if (b->value.as<Term>() != nullptr)
    return error(
        fail(not_constant, "`{}` of `{}` has to be known before the launch", name, builtin.name)
            .label(e.label(b->span, "chosen by the launch or the thread"))
            .help("write a number, or make it a `const` of the kernel"));
  return error(wrong(name, "an integer"));
}

Result<bool> Call::flag(std::string_view name, bool otherwise) const {
  const Bound* const b = find(name);
  if (b == nullptr) return otherwise;
  return the<bool>(name, "True or False");
}

Result<std::string> Call::text(std::string_view name, std::string otherwise) const {
  const Bound* const b = find(name);
  if (b == nullptr) return otherwise;
  return the<std::string>(name, "a text in quotes");
}

Result<DType> Call::element(std::string_view name) const {
  return the<DType>(name, "an element type: bf16, f16, f32, ...");
}

Result<Term> Call::number(std::string_view name) const {
  return e.number((*this)[name], span_of(name));
}

Result<std::vector<int64_t>> Call::extents(std::string_view name) const {
  TESSERA_TRY(items, the<Sequence>(name, "a list of extents: [128, 64]"));
  std::vector<int64_t> out;
  for (const Value& v : *items.items) {
    if (v.as<Term>() != nullptr)
      return error(fail(not_constant, "an extent of storage has to be known before the launch")
                       .label(e.label(span_of(name), "the launch chooses one of them"))
                       .expect("numbers that are known")
                       .but_found("{}", e.source().text(span_of(name)))
                       .help("write numbers and `const`s of the kernel"));
    const auto* n = v.as<int64_t>();
    if (n == nullptr || *n < 1 || *n > most_extent)
      return error(fail(wrong_kind, "an extent is a number from 1 to 2^20")
                       .label(e.label(span_of(name)))
                       .expect("1 to {}", most_extent)
                       .but_found("{}", n == nullptr ? std::string(kind_of(v)) : std::to_string(*n))
                       .help("write numbers and `const`s of the kernel"));
    out.push_back(*n);
  }
  return out;
}

}  // namespace tessera::language
