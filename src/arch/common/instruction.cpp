#include "arch/instruction.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace tessera::arch {
namespace {

constexpr Code no_such_form{"TS0450", "arch.no_such_form"};

const std::string* chosen(const Choices& choices, std::string_view name) {
  for (const auto& [n, value] : choices)
    if (n == name) return &value;
  return nullptr;
}

std::string_view constraint_of(OperandKind k) {
  switch (k) {
    case OperandKind::global:
    case OperandKind::tensor_map:
    case OperandKind::descriptor:
    case OperandKind::b64:
      return "l";
    case OperandKind::b16:
      return "h";
    case OperandKind::f32:
      return "f";
    case OperandKind::immediate:
      return "n";
    case OperandKind::shared:
    case OperandKind::cluster_shared:
    case OperandKind::b32:
      return "r";
  }
  return "";
}

/// The form's text with `of(kind, name)` in the place of every <modifier> and $operand.
template <class Of>
std::string replaced(const std::string& text, Of&& of) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '<' && text[i] != '$') {
      out += text[i];
      continue;
    }
    std::size_t end = i + 1;
    while (end < text.size() && is_name_character(text[end])) ++end;
    out += of(text[i], std::string_view(text).substr(i + 1, end - i - 1));
    i = text[i] == '<' ? end : end - 1;
  }
  return out;
}

}  // namespace

std::string_view name_of(OperandKind k) {
  static constexpr std::array<std::string_view, 10> names = {"shared address",
                                                             "cluster shared address",
                                                             "global address",
                                                             "tensor map",
                                                             "descriptor",
                                                             "b16",
                                                             "b32",
                                                             "b64",
                                                             "f32",
                                                             "immediate"};
  return names.at(static_cast<std::size_t>(k));
}

const Operand* Form::operand(std::string_view wanted) const {
  for (const Operand& o : operands)
    if (o.name == wanted) return &o;
  return nullptr;
}

const Modifier* Form::modifier(std::string_view wanted) const {
  for (const Modifier& m : modifiers)
    if (m.name == wanted) return &m;
  return nullptr;
}

const Form* find_form(std::string_view name) {
  for (const Family* family : instructions::all())
    for (const Form& form : family->forms())
      if (form.name == name) return &form;
  return nullptr;
}

Status check(const Form& form, const Choices& choices) {
  for (const Modifier& m : form.modifiers) {
    const std::string* value = chosen(choices, m.name);
    if (value == nullptr || std::find(m.values.begin(), m.values.end(), *value) == m.values.end())
      return error(fail(no_such_form, "`{}` has no {} = {}", form.name, m.name,
                        value == nullptr ? "(none given)" : *value)
                       .expect("one of: {}", join(m.values, ", ")));
  }
  for (const auto& [name, value] : choices)
    if (form.modifier(name) == nullptr)
      return error(fail(no_such_form, "`{}` has no modifier `{}`", form.name, name));
  return {};
}

std::vector<Choices> combinations(const Form& form) {
  std::vector<Choices> out = {{}};
  for (const Modifier& m : form.modifiers) {
    std::vector<Choices> longer;
    for (const Choices& c : out)
      for (const std::string& value : m.values) {
        longer.push_back(c);
        longer.back().emplace_back(m.name, value);
      }
    out = std::move(longer);
  }
  return out;
}

std::optional<int64_t> value_of(const Amount& a, const Choices& choices) {
  if (a.of == Amount::Of::number) return a.times;
  if (a.of != Amount::Of::modifier) return std::nullopt;
  const std::string* text = chosen(choices, a.name);
  int64_t value = 0;
  if (text == nullptr ||
      std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc())
    return std::nullopt;
  return a.times * value / a.per;
}

Result<Rendered> render(const Form& form, const Choices& choices) {
  TESSERA_CHECK(check(form, choices));
  Rendered out;
  std::vector<std::size_t> first(form.operands.size());
  for (const bool written : {true, false})
    for (std::size_t i = 0; i < form.operands.size(); ++i) {
      const Operand& o = form.operands[i];
      if ((o.direction != Direction::in) != written) continue;
      first[i] = out.slots.size();
      const std::string mark = o.direction == Direction::out     ? "="
                               : o.direction == Direction::inout ? "+"
                                                                 : "";
      for (int64_t r = 0; r < value_of(o.registers, choices).value(); ++r)
        out.slots.push_back({i, r, mark + std::string(constraint_of(o.kind))});
    }
  out.text = replaced(form.ptx, [&](char kind, std::string_view name) -> std::string {
    if (kind == '<') return *chosen(choices, name);
    const Operand* o = form.operand(name);
    const std::size_t at = first.at(static_cast<std::size_t>(o - form.operands.data()));
    const int64_t count = value_of(o->registers, choices).value();
    std::vector<std::string> registers;
    for (int64_t r = 0; r < count; ++r) registers.push_back(fmt::format("%{}", at + r));
    return o->is_list() ? "{" + join(registers, ", ") + "}" : registers.front();
  });
  return out;
}

}  // namespace tessera::arch
