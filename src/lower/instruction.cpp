#include "lower/instruction.h"

#include "base/text.h"

namespace tessera::lower {
namespace {

using arch::Form;
using arch::Operand;
using By = Passed::By;

/// Nothing may be moved across what touches memory or orders anything.
bool touches_memory(const arch::Effects& e) {
  for (const arch::Access& a : e.accesses)
    if (a.space != arch::Space::registers) return true;
  return !e.events.empty() || !e.fences.empty() || !e.needs.empty();
}

std::string parameter(const Operand& o, const Passed& p, int64_t registers) {
  const std::string name(o.name);
  switch (p.by) {
    case By::value:
      return p.type + " " + name;
    case By::values: {
      std::vector<std::string> all;
      for (int64_t i = 0; i < registers; ++i)
        all.push_back(fmt::format("{} {}{}", p.type, name, i));
      return join(all, ", ");
    }
    case By::pointer:
      return (o.direction == arch::Direction::in ? "const " : "") + p.type + "* " + name;
    case By::reference:
      return p.type + "& " + name;
    case By::constant:
      return "";
  }
  return "";
}

std::string element(const Operand& o, const Passed& p, int64_t i) {
  std::string name(o.name);
  if (p.by == By::values) return fmt::format("{}{}", name, i);
  if (p.by == By::pointer) return fmt::format("{}[{}]", name, i);
  return name;
}

/// Products take tf32 as 32 bits, and no register of a float.
bool takes_bits(const Form& form) {
  return form.name.starts_with("wgmma.") || form.name.starts_with("mma.");
}

/// `"r"(barrier)`. A 32-bit register may hold a float where the instruction does not care.
std::string bound(const Form& form, const arch::Slot& slot, const Operand& o, const Passed& p) {
  std::string constraint = slot.constraint;
  if (constraint.back() == 'r' && p.type == "float") {
    if (takes_bits(form) && o.direction == arch::Direction::in)
      return fmt::format("\"{}\"(__float_as_uint({}))", constraint,
                         element(o, p, slot.register_index));
    constraint.back() = 'f';
  }
  return fmt::format("\"{}\"({})", constraint, element(o, p, slot.register_index));
}

/// Lines of PTX as adjacent literals.
std::string literal(const std::string& ptx) {
  std::string out;
  const std::vector<std::string> lines = split(ptx, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += fmt::format("      \"{}{}\"\n", replace_all(lines[i], "\"", "\\\""),
                       i + 1 < lines.size() ? "\\n" : "");
  return out;
}

std::string wrapped(const std::vector<std::string>& items) {
  std::string out, line;
  for (const std::string& s : items) {
    if (line.size() + s.size() > 88) {
      out += line + "\n        ";
      line.clear();
    }
    line += s + (&s == &items.back() ? "" : ", ");
  }
  return out + line;
}

std::string function(const Form& form, const arch::Rendered& r, const std::string& name,
                     const std::vector<Passed>& operands) {
  std::vector<std::string> parameters, constants, written, read;
  std::vector<int64_t> registers(operands.size());
  for (const arch::Slot& s : r.slots) ++registers[s.operand];
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& o = form.operands[i];
    if (operands[i].by == By::constant)
      constants.push_back(fmt::format("int {}", o.name));
    else
      parameters.push_back(parameter(o, operands[i], registers[i]));
  }
  for (const arch::Slot& s : r.slots) {
    const Operand& o = form.operands[s.operand];
    (o.direction == arch::Direction::in ? read : written)
        .push_back(bound(form, s, o, operands[s.operand]));
  }
  std::string out = fmt::format("/// {}.\n", form.doc);
  if (!constants.empty()) out += fmt::format("template <{}>\n", join(constants, ", "));
  out += fmt::format("__device__ __forceinline__ void {}({}) {{\n  asm volatile(\n{}", name,
                     join(parameters, ", "), literal(r.text));
  out += fmt::format("      : {}\n      : {}", wrapped(written), wrapped(read));
  out += touches_memory(form.effects) ? "\n      : \"memory\");\n" : ");\n";
  return out + "}\n";
}

/// "tma.load" of rank 2: tma_load_2.
std::string function_name(const Form& form, const arch::Choices& choices) {
  std::string name = form.name;
  for (const auto& [modifier, value] : choices) name += "." + value;
  return name;
}

}  // namespace

std::string_view type_of(arch::OperandKind k) {
  switch (k) {
    case arch::OperandKind::global:
    case arch::OperandKind::tensor_map:
      return "const void*";
    case arch::OperandKind::descriptor:
    case arch::OperandKind::b64:
      return "uint64_t";
    case arch::OperandKind::b16:
      return "uint16_t";
    case arch::OperandKind::f32:
      return "float";
    case arch::OperandKind::immediate:
      return "int";
    case arch::OperandKind::shared:
    case arch::OperandKind::cluster_shared:
    case arch::OperandKind::b32:
      return "uint32_t";
  }
  return "";
}

Result<std::string> Instructions::call(const Form& form, const arch::Choices& choices,
                                       const std::vector<Passed>& operands) {
  TESSERA_TRY(rendered, arch::render(form, choices));
  Key key{function_name(form, choices), {}};
  std::vector<std::string> arguments, constants;
  for (const Passed& p : operands) {
    key.operands.emplace_back(p.by, p.type);
    std::vector<std::string>& to = p.by == By::constant ? constants : arguments;
    to.insert(to.end(), p.texts.begin(), p.texts.end());
  }
  auto found = known_.find(key);
  if (found == known_.end()) {
    const std::string name = names_.claim(key.what);
    functions_ += function(form, rendered, name, operands);
    found = known_.emplace(std::move(key), name).first;
  }
  const std::string chosen = constants.empty() ? "" : "<" + join(constants, ", ") + ">";
  return fmt::format("{}{}({});", found->second, chosen, join(arguments, ", "));
}

}  // namespace tessera::lower
