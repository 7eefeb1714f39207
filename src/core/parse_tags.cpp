// What an author says and asserts of tags, in a kernel's text:
//
//   tag(A[i, k], "k", k, over=[(i, M), (k, K)])
//   assert_tag(a[s, i, k], "k", b[s, j, k], over=[(i, 64), (j, 128), (k, 64)])
#include "core/reader.h"

namespace tessera::core {

using syntax::Expr;

bool Reader::is_tags(std::string_view name) {
  return name == "tag" || name == "reset_tag" || name == "assert_tag" || name == "assert_apart";
}

Result<std::vector<Term>> Reader::over(const Expr& e) {
  const auto* list = e.as<syntax::List>();
  if (list == nullptr)
    return wrong(e.span, "symbols and their extents are listed", "`over=[(i, 64), (j, K)]`");
  std::vector<Term> out;
  for (const Expr& item : list->items) {
    const auto* pair = item.as<syntax::Tuple>();
    const std::string* name =
        pair != nullptr && pair->items.size() == 2 ? name_of(pair->items[0]) : nullptr;
    if (name == nullptr) return wrong(item.span, "this is no symbol with its extent", "`(i, 64)`");
    TESSERA_TRY(extent, scope_.term(pool(), pair->items[1]));
    TESSERA_CHECK(scope_.define(*name, Term(), item.span));
    const Result<Term> symbol = extent->op == term::Op::constant
                                    ? pool().coordinate(*name, extent->value)
                                    : pool().counter(*name, pool().constant(0), extent);
    if (!symbol) return placed(symbol.error(), item.span);
    scope_.redefine(*name, *symbol);
    out.push_back(*symbol);
  }
  return out;
}

Result<Tagged> Reader::tagged(const Expr& e) {
  TESSERA_TRY(at, argument(e));
  if (auto* g = std::get_if<GlobalAt>(&at)) return Tagged(std::move(*g));
  if (auto* s = std::get_if<SharedAt>(&at)) return Tagged(std::move(*s));
  if (auto* r = std::get_if<Slice>(&at)) return Tagged(*r);
  return error(bad_text_at(*source_, e.span, "what lies here carries no tags",
                           "an element of a tensor, of shared memory, or a slot of registers")
                   .but_found("{}", scope_.quoted(e.span)));
}

Status Reader::tags(std::string_view name, const syntax::Call& c, const syntax::Statement& s,
                    Body& body) {
  static const Signature says{"tag", {"at", "name", "value"}, {"over"}, {"over"}};
  static const Signature resets{"reset_tag", {"at", "name"}, {"over"}, {"over"}};
  static const Signature asserts{"assert_tag", {"at", "name", "to"}, {"over"}, {"over"}};
  static const Signature apart{"assert_apart", {"at", "name", "to"}, {"over"}, {"over"}};
  const Signature& signature = name == "tag"          ? says
                               : name == "reset_tag"  ? resets
                               : name == "assert_tag" ? asserts
                                                      : apart;
  TESSERA_TRY(given, Call::bind(*source_, signature, c, s.span));
  TESSERA_TRY(under, scope_.string(given["name"], "a tag's name"));
  scope_.open();
  std::vector<Term> symbols;
  if (const Expr* e = given.find("over")) {
    TESSERA_TRY(all, over(*e));
    symbols = std::move(all);
  }
  TESSERA_TRY(at, tagged(given["at"]));
  if (name == "tag" || name == "reset_tag") {
    Tag out{std::move(at), under, {}, std::move(symbols)};
    if (name == "tag") {
      TESSERA_TRY(value, scope_.term(pool(), given["value"]));
      out.value = value;
    }
    body.push_back({std::move(out), s.span});
  } else {
    AssertTag out{std::move(at), under, name == "assert_apart", {}, std::move(symbols)};
    const auto* sub = given["to"].as<syntax::Subscript>();
    if (sub != nullptr) {
      TESSERA_TRY(other, tagged(given["to"]));
      out.to = std::move(other);
    } else {
      TESSERA_TRY(value, scope_.term(pool(), given["to"]));
      out.to = value;
    }
    body.push_back({std::move(out), s.span});
  }
  scope_.close();
  return {};
}

}  // namespace tessera::core
