#include "core/call.h"

#include <algorithm>

#include "base/text.h"

#include "core/parse.h"

namespace tessera::core {

Result<Call> Call::bind(const Source& source, const Signature& signature, const syntax::Call& c,
                        Span span) {
  Call out;
  std::vector<std::string> known(signature.positional.begin(), signature.positional.end());
  known.insert(known.end(), signature.keywords.begin(), signature.keywords.end());
  std::size_t position = 0;
  for (const syntax::Argument& a : c.arguments) {
    std::string name = a.keyword;
    if (name.empty()) {
      if (position == signature.positional.size())
        return error(bad_text_at(
            source, a.span, fmt::format("`{}` is given too many values", signature.name),
            position == 0 ? "none without a name" : fmt::format("{} without a name", position)));
      name = signature.positional[position++];
    } else if (std::find(known.begin(), known.end(), name) == known.end()) {
      return error(with_nearest(
          bad_text_at(source, a.span, fmt::format("`{}` takes no `{}`", signature.name, name),
                      known.empty() ? "no argument" : "one of: " + join(known, ", ")),
          name, known));
    }
    if (!out.given_.emplace(name, &a.value).second)
      return error(bad_text_at(source, a.span,
                               fmt::format("`{}` is told its `{}` twice", signature.name, name),
                               "each argument once"));
  }
  for (const std::string& name : known) {
    const auto& may = signature.optional;
    if (out.given_.count(name) > 0 || std::find(may.begin(), may.end(), name) != may.end())
      continue;
    return error(bad_text_at(source, span,
                             fmt::format("`{}`: missing argument `{}`", signature.name, name),
                             fmt::format("`{}=...`", name)));
  }
  return out;
}

const syntax::Expr* Call::find(std::string_view name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? nullptr : found->second;
}

const syntax::Expr& Call::operator[](std::string_view name) const {
  return *given_.find(name)->second;
}

const std::string* name_of(const syntax::Expr& e) {
  const auto* n = e.as<syntax::Name>();
  return n == nullptr ? nullptr : &n->id;
}

const syntax::Call* call_of(const syntax::Expr& e, std::string_view* name) {
  const auto* c = e.as<syntax::Call>();
  const std::string* f = c == nullptr ? nullptr : name_of(*c->function);
  if (f == nullptr) return nullptr;
  *name = *f;
  return c;
}

}  // namespace tessera::core
