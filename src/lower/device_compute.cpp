// Computes of the device side: functions of elements over registers. Values are float32; 16-bit
// results are rounded two at a time where two neighbours share a register.
#include <algorithm>

#include "base/text.h"

#include "lower/codes.h"
#include "lower/device.h"
#include "pointwise/approximate.h"

namespace tessera::lower {
namespace {

using core::Run;

bool is_16_bit(DType t) {
  return t == DType::bfloat16 || t == DType::float16;
}

/// steps(e) for a text e.
std::string stepped(const Layout& steps, const std::string& element) {
  const Layout simple = coalesce(steps);
  const std::vector<int64_t> extents = flatten(simple.shape()), strides = flatten(simple.stride());
  std::vector<std::string> parts;
  int64_t below = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::string digit = below == 1 ? element : fmt::format("({}) / {}", element, below);
    if (i + 1 < extents.size()) digit = fmt::format("({}) % {}", digit, extents[i]);
    if (strides[i] == 1) parts.push_back(i + 1 < extents.size() || below > 1 ? digit : element);
    if (strides[i] > 1) parts.push_back(fmt::format("({}) * {}", digit, strides[i]));
    below *= extents[i];
  }
  return join(parts, " + ");
}

/// One of four in a register: a whole number, or a truth value.
bool is_8_bit(DType t) {
  return t == DType::uint8 || t == DType::int8 || t == DType::boolean;
}

bool is_contiguous(const Layout& steps, int64_t count) {
  return count == 1 || coalesce(steps) == coalesce(Layout(count, 1));
}

bool same(const Run& a, const Run& b) {
  return a.registers == b.registers && a.first == b.first && a.steps == b.steps;
}

}  // namespace

std::string Device::slot_of(const Run& r, const std::string& element) {
  if (!is_constant_in_text(r.first))
    refuse(fail(bad_slice, "registers have constant numbers, and `{}` is none",
                term::to_string(r.first))
               .help("use counters of unrolled loops alone"));
  const std::string steps = stepped(r.steps, element);
  const bool zero = r.first->op == term::Op::constant && r.first->value == 0;
  if (steps.empty()) return expressions_.text(r.first);
  return zero ? steps : expressions_.operand(r.first) + " + " + steps;
}

std::string Device::value_of(const Run& r, const std::string& element) {
  const core::Registers& of = kernel_[r.registers];
  const std::string& array = registers_.at(r.registers.index);
  const std::string slot = slot_of(r, element);
  if (of.element == DType::float32) return fmt::format("{}[{}]", array, slot);
  if (is_16_bit(of.element)) {
    const std::string helper = "of_" + std::string(tessera::name_of(of.element));
    helpers_.insert(helper);
    return fmt::format("{0}({1}[({2}) / 2], ({2}) % 2)", helper, array, slot);
  }
  if (is_8_bit(of.element)) {
    helpers_.insert("field");
    const std::string bits = fmt::format("field<8>({0}[({1}) / 4], ({1}) % 4)", array, slot);
    if (of.element == DType::boolean) return fmt::format("({} != 0 ? 1.0f : 0.0f)", bits);
    return fmt::format("static_cast<float>(static_cast<{}>({}))",
                       of.element == DType::int8 ? "int8_t" : "uint8_t", bits);
  }
  refuse(fail(unsupported, "a compute reads elements of {}: `{}`", short_name(of.element), of.name)
             .expect("f32, bf16, f16, or 8 bits that are no float"));
  return "0.0f";
}

/// Exact in float32, or refused.
std::string Device::value_of(Term t) {
  const std::string text = expressions_.text(t);
  if (t->predicate()) return fmt::format("(({}) ? 1.0f : 0.0f)", text);
  constexpr int64_t exact = int64_t{1} << 24;
  if (!ranges_.of(t).within(-exact, exact))
    refuse(fail(unbounded, "`{}` may be no number of float32", term::to_string(t))
               .expect("between -2^24 and 2^24")
               .help("compare indices by a predicate, which is 0 or 1"));
  return fmt::format("static_cast<float>({})", text);
}

void Device::keep(const Run& r, const std::string& element, const std::string& value) {
  const core::Registers& of = kernel_[r.registers];
  const std::string& array = registers_.at(r.registers.index);
  const std::string slot = slot_of(r, element);
  if (of.element == DType::float32) return text_.line("{}[{}] = {};", array, slot, value);
  if (of.element == DType::boolean) {
    helpers_.insert("set_field");
    return text_.line("set_field<8>({0}[({1}) / 4], ({1}) % 4, {2} != 0.0f ? 1 : 0);", array, slot,
                      value);
  }
  // Zero, which what lies outside of a tensor is filled with, has no bits in any format.
  if (size_of(of.element) == 1 && value == "0.0f") {
    helpers_.insert("set_field");
    return text_.line("set_field<8>({0}[({1}) / 4], ({1}) % 4, 0);", array, slot);
  }
  if (!is_16_bit(of.element))
    return refuse(
        fail(unsupported, "a compute writes elements of {}: `{}`", short_name(of.element), of.name)
            .expect("f32, bf16, f16 or b1, or zeros of 8 bits"));
  const std::string two = "two_" + std::string(tessera::name_of(of.element));
  helpers_.insert({two, "set_field"});
  text_.line("set_field<16>({0}[({1}) / 2], ({1}) % 2, {2}({3}, {3}));", array, slot, two, value);
}

std::vector<std::string> Device::results_of(const core::Compute& c, const std::string& element,
                                            const std::string& prefix) {
  std::vector<std::string> inputs, results;
  for (const auto& input : c.inputs)
    inputs.push_back(std::holds_alternative<Run>(input) ? value_of(std::get<Run>(input), element)
                                                        : value_of(std::get<Term>(input)));
  int bits = 0;  // of the finest result
  for (const Run& r : c.results) {
    const DType of = kernel_[r.registers].element;
    bits = std::max(bits, size_of(of) > 2 ? 24 : of == DType::float16 ? 11 : 8);
  }
  const std::string lines = pointwise::emit(*c.dag, inputs, prefix, &results);
  if (!lines.empty()) text_.raw(trim(pointwise::approximated(lines, bits)));
  for (std::string& r : results) r = pointwise::approximated(std::move(r), bits);
  return results;
}

/// Two elements may be computed before either is kept: every 16-bit result begins at a whole
/// register and runs on, and nothing that is written is read for another element.
bool Device::in_pairs(const core::Compute& c) const {
  if (c.count % 2 != 0) return false;
  bool any = false;
  for (const Run& r : c.results) {
    const bool halves = is_16_bit(kernel_[r.registers].element);
    any = any || halves;
    if (halves && (!is_contiguous(r.steps, c.count) || !r.first->facts.multiple_of(2)))
      return false;
    for (const auto& input : c.inputs)
      if (const auto* const from = std::get_if<Run>(&input))
        if (from->registers == r.registers && (!same(*from, r) || !is_injective(r.steps)))
          return false;
  }
  // A term of the element has one value an element.
  for (const auto& input : c.inputs)
    if (const Term* const t = std::get_if<Term>(&input))
      if (c.element && term::any_node(*t, [&](Term n) { return n == c.element; })) return false;
  return any;
}

void Device::write_elements(const core::Compute& c, const std::string& element, bool pairs) {
  const std::vector<std::string> first = results_of(c, element, "tsr_a");
  if (first.size() != c.results.size())
    return refuse(fail(bad_argument, "a compute has {} results", first.size())
                      .but_found("{} runs of registers", c.results.size()));
  if (!pairs) {
    for (std::size_t i = 0; i < first.size(); ++i) keep(c.results[i], element, first[i]);
    return;
  }
  const std::string next = element + " + 1";
  const std::vector<std::string> second = results_of(c, next, "tsr_b");
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Run& r = c.results[i];
    const core::Registers& of = kernel_[r.registers];
    if (!is_16_bit(of.element)) {
      keep(r, element, first[i]);
      keep(r, next, second[i]);
      continue;
    }
    const std::string two = "two_" + std::string(tessera::name_of(of.element));
    helpers_.insert(two);
    text_.line("{}[({}) / 2] = {}({}, {});", registers_.at(r.registers.index), slot_of(r, element),
               two, first[i], second[i]);
  }
}

/// Every run has the compute's elements, within its array.
void Device::check_runs(const core::Compute& c) {
  if (c.dag->operand_count() > static_cast<int>(c.inputs.size()))
    refuse(fail(bad_argument, "a compute's function has {} operands", c.dag->operand_count())
               .but_found("{} inputs", c.inputs.size()));
  const auto check = [&](const Run& r) {
    const core::Registers& of = kernel_[r.registers];
    if (r.steps.size() < c.count)
      return refuse(fail(bad_argument, "a run of {} elements is too short for a compute of {}",
                         r.steps.size(), c.count));
    int64_t last = 0;
    for (int64_t e = 0; e < c.count; ++e) last = std::max(last, r.steps(e));
    const Range first = ranges_.of(r.first);
    if (first.low < 0 || first.high + last >= of.slots())
      refuse(
          fail(bad_slice, "a compute goes {} elements beyond `{}`", last, term::to_string(r.first))
              .expect("within the {} elements of `{}`", of.slots(), of.name));
  };
  for (const auto& input : c.inputs)
    if (const auto* const r = std::get_if<Run>(&input)) check(*r);
  for (const Run& r : c.results) check(r);
}

void Device::write(const core::Compute& c) {
  check_runs(c);
  if (failure_) return;
  const Expressions::Named outside = expressions_.named();
  const bool pairs = in_pairs(c);
  const std::string element = names_.claim("e");
  if (c.element) expressions_.name(c.element, element);
  text_.raw("#pragma unroll");
  text_.open("for (int {0} = 0; {0} < {1}; {2})", element, c.count,
             pairs ? element + " += 2" : "++" + element);
  declare_before(&c, 0);
  const std::size_t at = c.results.size();
  if (at > 0) write_elements(c, element, pairs);
  text_.close();
  expressions_.restore(outside);
}

}  // namespace tessera::lower
