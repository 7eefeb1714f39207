// Every instruction of arch/ by its own name.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

Result<Value> issue(Call& c) {
  TESSERA_TRY(name, c.text("form", ""));
  const arch::Form* const form = arch::find_form(name);
  if (form == nullptr) {
    std::vector<std::string> names;
    for (const arch::Family* family : arch::instructions::all())
      for (const arch::Form& f : family->forms()) names.push_back(f.name);
    const std::string near = nearest(name, names);
    return error(fail(no_such_name, "there is no instruction `{}`", name)
                     .label(c.e.label(c.span_of("form")))
                     .expect("a name of docs/instructions.md")
                     .but_found("`{}`", name)
                     .help("{}", near.empty() ? "docs/instructions.md lists them"
                                              : fmt::format("did you mean `{}`?", near)));
  }
  std::vector<Call::Bound> given;
  for (const Call::Bound& b : c.bound)
    if (b.name != "form") given.push_back({b.name == "operands" ? "" : b.name, b.value, b.span});
  TESSERA_CHECK(c.e.issue(*form, given, c.span));
  return Value{};
}

constexpr Builtin records[] = {
    {"issue", "form, *operands, **", "An instruction by its name in docs/instructions.md", issue},
};

}  // namespace

namespace groups {
extern const Group forms = {records};
}

}  // namespace tessera::language
