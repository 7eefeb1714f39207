// What an author says of tags, in terms of the core. They are made when the kernel is written to
// its end, so that no term of an instruction comes out in another order for it.
#include <algorithm>

#include "language/elaborator.h"

namespace tessera::language {

void Elaborator::say_later(Span span, std::function<Result<Said>()> make) {
  core::Tag here;
  here.name = std::to_string(later_.size());
  later_.push_back({frames_, active_counters_, threads_, std::move(make)});
  builder_->stand_at(span);
  builder_->tag(std::move(here));
}

Result<std::vector<Elaborator::Said>> Elaborator::said() {
  std::vector<Said> out;
  const std::set<std::string> named = named_;  // an integer is not the launch's for it
  for (Later& l : later_) {
    std::swap(frames_, l.frames);
    std::swap(active_counters_, l.counters);
    std::swap(threads_, l.threads);
    TESSERA_TRY(made, l.make());
    std::swap(frames_, l.frames);
    std::swap(active_counters_, l.counters);
    std::swap(threads_, l.threads);
    out.push_back(std::move(made));
  }
  named_ = named;
  TESSERA_CHECK(builder_failure(kernel_.name_span));
  return out;
}

Result<Term> Elaborator::value_of(const LambdaRef& l, const std::vector<Value>& arguments) {
  if (l.lambda->parameters.size() != arguments.size())
    return error(fail(wrong_call, "the lambda has other parameters than there are indices")
                     .label(label(l.span))
                     .expect("{}, one a dimension", arguments.size())
                     .but_found("{}", l.lambda->parameters.size())
                     .help("name an index for each dimension"));
  Frame frame{{}, Frame::Of::machine};
  for (std::size_t i = 0; i < arguments.size(); ++i)
    frame.names[l.lambda->parameters[i]] = {arguments[i], l.span};
  frames_.push_back(std::move(frame));
  Result<Value> value = evaluate(*l.lambda->body);
  frames_.pop_back();
  if (!value) return error(std::move(value.error()));
  return number(*value, l.lambda->body->span);
}

Result<Term> Elaborator::symbol_below(const std::string& wanted, Term extent, Span span) {
  term::Pool& pool = *builder_->kernel().pool;
  const auto fixed = extent->facts.constant();
  const Term zero = builder_->number(0);
  if (fixed && *fixed < 1)
    return error(fail(wrong_shape, "there is nothing along this dimension").label(label(span)));
  std::string name = wanted;
  for (int i = 2;; ++i) {
    const term::Symbol* known = pool.find(name);
    const bool same = known != nullptr && known->bounds.upper == extent &&
                      known->kind == (fixed ? term::Op::coordinate : term::Op::counter) &&
                      (fixed || known->bounds.lower == zero);
    const bool active =
        std::find(active_counters_.begin(), active_counters_.end(), name) != active_counters_.end();
    if (!active && used_names_.count(name) == 0 && (known == nullptr || same)) break;
    name = fmt::format("{}_{}", wanted, i);
  }
  auto made = fixed ? pool.coordinate(name, *fixed) : pool.counter(name, zero, extent);
  if (!made) return error(std::move(made.error()).label(label(span)));
  return *made;
}

}  // namespace tessera::language
