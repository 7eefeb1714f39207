// Storages of a kernel's text: `a = shared(bf16, "(128,64):(64,1)", swizzle=128, at=0)`.
#include "core/reader.h"

namespace tessera::core {

using syntax::Expr;

Result<bool> Reader::storage(const syntax::Statement& s, Body& body) {
  const auto* a = s.as<syntax::Assign>();
  if (a == nullptr || !a->value || a->targets.size() != 1) return false;
  std::string_view f;
  const syntax::Call* c = call_of(*a->value, &f);
  const std::string* name = name_of(a->targets[0]);
  if (c == nullptr || name == nullptr) return false;
  if (f == "registers") {
    TESSERA_CHECK(registers(*name, *c, s, body));
    return true;
  }
  if (f != "tensor_map" && f != "shared" && f != "barriers") return false;
  if (depth_ > 0)
    return error(bad_text_at(*source_, s.span, fmt::format("`{}` is declared in a block", *name),
                             "tensor maps, shared memory and mbarriers in the kernel's own body"));
  if (f == "tensor_map") TESSERA_CHECK(tensor_map(*name, *c, s));
  if (f == "shared") TESSERA_CHECK(shared(*name, *c, s));
  if (f == "barriers") TESSERA_CHECK(barriers(*name, *c, s));
  return true;
}

Result<arch::SwizzleMode> Reader::swizzle(const Expr& e) const {
  if (const auto* c = e.as<syntax::Constant>(); c != nullptr && *c == syntax::Constant::none)
    return arch::SwizzleMode::none;
  if (const auto* n = e.as<syntax::Integer>())
    for (const auto s :
         {arch::SwizzleMode::bytes_32, arch::SwizzleMode::bytes_64, arch::SwizzleMode::bytes_128})
      if (arch::width_of(s) == n->value) return s;
  return error(bad_text_at(*source_, e.span, "there is no such swizzle", "None, 32, 64 or 128")
                   .but_found("{}", scope_.quoted(e.span)));
}

Status Reader::tensor_map(const std::string& name, const syntax::Call& c,
                          const syntax::Statement& s) {
  static const Signature signature{
      "tensor_map", {"tensor"}, {"dims", "box", "swizzle", "fill", "rounded"}, {"rounded"}};
  TESSERA_TRY(given, Call::bind(*source_, signature, c, s.span));
  const std::string* of = name_of(given["tensor"]);
  if (of == nullptr)
    return wrong(given["tensor"].span, "a tensor map is made of a tensor", "a tensor's name");
  TESSERA_TRY(meaning, scope_.at(*of, given["tensor"].span));
  const auto* tensor = std::get_if<TensorId>(&meaning);
  if (tensor == nullptr)
    return error(bad_text_at(*source_, given["tensor"].span, fmt::format("`{}` is no tensor", *of),
                             "a tensor's name")
                     .but_found("{}", kind_of(meaning)));
  TESSERA_TRY(dims, scope_.numbers(given["dims"], "`dims`"));
  TESSERA_TRY(box, scope_.numbers(given["box"], "`box`"));
  TESSERA_TRY(mode, swizzle(given["swizzle"]));
  TensorMap m{name, *tensor, {dims.begin(), dims.end()}, std::move(box), mode};
  m.span = s.span;
  const Expr& fill = given["fill"];
  const std::string* word = name_of(fill);
  const auto* zero = fill.as<syntax::Integer>();
  if ((zero == nullptr || zero->value != 0) && (word == nullptr || *word != "nan"))
    return error(bad_text_at(*source_, fill.span, "nothing else fills a box", "0 or nan")
                     .but_found("{}", scope_.quoted(fill.span)));
  m.fill = word != nullptr ? arch::OutOfBounds::nan : arch::OutOfBounds::zeros;
  if (const Expr* e = given.find("rounded")) {
    const auto* truth = e->as<syntax::Constant>();
    if (truth == nullptr || *truth != syntax::Constant::truth)
      return wrong(e->span, "`rounded` is said of maps that round alone", "`rounded=True`");
    m.rounded = true;
  }
  TESSERA_CHECK(scope_.define(name, MapId(kernel_->maps.size()), s.span));
  kernel_->maps.push_back(std::move(m));
  return {};
}

Status Reader::shared(const std::string& name, const syntax::Call& c, const syntax::Statement& s) {
  static const Signature signature{"shared", {"element", "layout"}, {"swizzle", "at"}};
  TESSERA_TRY(given, Call::bind(*source_, signature, c, s.span));
  TESSERA_TRY(element, scope_.element(given["element"]));
  TESSERA_TRY(layout, scope_.layout(given["layout"]));
  TESSERA_TRY(mode, swizzle(given["swizzle"]));
  TESSERA_TRY(at, scope_.small(given["at"], "`at`"));
  TESSERA_CHECK(scope_.define(name, SharedId(kernel_->shared.size()), s.span));
  kernel_->shared.push_back({name, element, std::move(layout), mode, at, s.span});
  return {};
}

Status Reader::barriers(const std::string& name, const syntax::Call& c,
                        const syntax::Statement& s) {
  static const Signature signature{"barriers", {"count"}, {"at"}};
  TESSERA_TRY(given, Call::bind(*source_, signature, c, s.span));
  TESSERA_TRY(count, scope_.small(given["count"], "`count`"));
  TESSERA_TRY(at, scope_.small(given["at"], "`at`"));
  TESSERA_CHECK(scope_.define(name, BarriersId(kernel_->barriers.size()), s.span));
  kernel_->barriers.push_back({name, count, at, s.span});
  return {};
}

Status Reader::registers(const std::string& name, const syntax::Call& c, const syntax::Statement& s,
                         Body& body) {
  static const Signature signature{"registers", {"element", "tile", "layout"}, {}};
  TESSERA_TRY(given, Call::bind(*source_, signature, c, s.span));
  TESSERA_TRY(element, scope_.element(given["element"]));
  TESSERA_TRY(tile, scope_.numbers(given["tile"], "a tile"));
  TESSERA_TRY(layout, scope_.layout(given["layout"]));
  const RegistersId id(kernel_->registers.size());
  TESSERA_CHECK(scope_.define(name, id, s.span));
  kernel_->registers.push_back({name, element, std::move(tile), std::move(layout), s.span});
  body.push_back({Declare{id}, s.span});
  return {};
}

}  // namespace tessera::core
