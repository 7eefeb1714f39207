#include "core/scope.h"

#include <ranges>

#include "base/text.h"

#include "core/parse.h"

namespace tessera::core {
namespace {

constexpr int64_t most = int64_t{1} << 31;

bool is_small(const Layout& l) {
  const std::vector<int64_t> extents = flatten(l.shape()), strides = flatten(l.stride());
  __int128 size = 1, last = 0;
  for (std::size_t i = 0; i < extents.size() && size <= most; ++i) {
    size *= extents[i];
    last += static_cast<__int128>(extents[i] - 1) * strides[i];
  }
  return size <= most && last < most;
}

}  // namespace

std::string_view kind_of(const Meaning& m) {
  static constexpr std::array<std::string_view, 7> names = {
      "an integer", "a tensor",          "a tensor map", "shared memory", "an array of mbarriers",
      "registers",  "a tuner's constant"};
  return names.at(m.index());
}

Status Scope::define(const std::string& name, Meaning m, Span span) {
  if (const Meaning* known = find(name); known != nullptr)
    return error(bad_text_at(source_, span, fmt::format("`{}` is defined already", name),
                             "a name that means nothing here yet")
                     .but_found("`{}`, which is {}", name, kind_of(*known)));
  levels_.back().emplace(name, m);
  return {};
}

const Meaning* Scope::find(std::string_view name) const {
  for (const auto& level : std::views::reverse(levels_))
    if (const auto found = level.find(name); found != level.end()) return &found->second;
  return nullptr;
}

Result<Meaning> Scope::at(const std::string& name, Span span) const {
  if (const Meaning* m = find(name)) return *m;
  std::vector<std::string> known;
  for (const auto& level : levels_)
    for (const auto& [other, meaning] : level) known.push_back(other);
  return error(
      with_nearest(bad_text_at(source_, span, fmt::format("`{}` is not defined here", name),
                               "a name that is defined above, in this block or around it"),
                   name, known));
}

std::string Scope::quoted(Span span) const {
  const std::string_view text = source_.text(span);
  return text.size() > 40 ? fmt::format("`{}...`", text.substr(0, 37)) : fmt::format("`{}`", text);
}

Result<int64_t> Scope::number(const syntax::Expr& e, std::string_view what) const {
  if (const auto* i = e.as<syntax::Integer>()) return i->value;
  if (const auto* u = e.as<syntax::Unary>(); u != nullptr && u->op == "-")
    if (const auto* i = u->operand->as<syntax::Integer>()) return -i->value;
  return error(bad_text_at(source_, e.span, fmt::format("{} is no whole number", what),
                           "a number that is written out")
                   .but_found("{}", quoted(e.span)));
}

Result<int64_t> Scope::small(const syntax::Expr& e, std::string_view what) const {
  TESSERA_TRY(n, number(e, what));
  if (n >= 0 && n <= most) return n;
  return error(bad_text_at(source_, e.span, fmt::format("{} is out of range", what),
                           fmt::format("0 to {}", most))
                   .but_found("{}", n));
}

Result<std::vector<int64_t>> Scope::numbers(const syntax::Expr& e, std::string_view what) const {
  const auto* l = e.as<syntax::List>();
  if (l == nullptr)
    return error(
        bad_text_at(source_, e.span, fmt::format("{} is no list", what), "whole numbers in `[...]`")
            .but_found("{}", quoted(e.span)));
  std::vector<int64_t> out;
  for (const syntax::Expr& item : l->items) {
    TESSERA_TRY(n, small(item, what));
    out.push_back(n);
  }
  return out;
}

Result<std::string> Scope::string(const syntax::Expr& e, std::string_view what) const {
  if (const auto* s = e.as<syntax::String>()) return s->value;
  return error(bad_text_at(source_, e.span, fmt::format("{} is no string", what), "text in quotes")
                   .but_found("{}", quoted(e.span)));
}

Result<Layout> Scope::layout(const syntax::Expr& e) const {
  TESSERA_TRY(text, string(e, "a layout"));
  Result<Layout> l = parse_layout(text);
  if (l && is_small(*l)) return l;
  if (l)
    return error(bad_text_at(source_, e.span, "this layout is too large",
                             fmt::format("at most {} elements and offsets", most))
                     .but_found("{}", quoted(e.span)));
  return error(bad_text_at(source_, e.span, "this is no layout",
                           "shape and stride, nested alike: \"(4,8):(8,1)\"")
                   .but_found("{}", quoted(e.span))
                   .note("{}", l.error().message));
}

Result<DType> Scope::element(const syntax::Expr& e) const {
  const auto* n = e.as<syntax::Name>();
  const Result<DType> type = parse_dtype(n == nullptr ? "" : n->id);
  if (type && short_name(*type) == n->id) return *type;
  const std::vector<std::string> known = {"f64", "f32", "bf16", "f16", "e4m3", "e5m2",
                                          "i64", "i32", "i16",  "i8",  "u8",   "b1"};
  return error(with_nearest(
      bad_text_at(source_, e.span, "this is no element type", "one of: " + join(known, ", "))
          .but_found("{}", quoted(e.span)),
      source_.text(e.span), known));
}

}  // namespace tessera::core
