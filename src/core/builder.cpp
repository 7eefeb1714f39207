#include "core/builder.h"

#include <algorithm>

#include "base/integers.h"

namespace tessera::core {

Builder::Builder(std::string name, int threads, int cluster)
    : kernel_(std::move(name), threads, cluster) {}

Term Builder::take(Result<Term> t) {
  if (t) return *t;
  fail_with(t.error());
  return number(0);
}

Term Builder::make(term::Op op, std::vector<Term> args) {
  return take(kernel_.pool->make(op, std::move(args)));
}

Term Builder::divide_up(Term a, int64_t b) {
  return floor_div(a + (b - 1), b);
}

Term Builder::parameter(const std::string& name, int64_t lower, int64_t upper, int64_t modulus) {
  const Term t = take(kernel_.pool->parameter(name, {number(lower), number(upper), modulus, 0}));
  kernel_.parameters.push_back(t);
  return t;
}

TensorId Builder::tensor(Tensor t) {
  kernel_.tensors.push_back(std::move(t));
  return TensorId(kernel_.tensors.size() - 1);
}

MapId Builder::map(TensorMap m) {
  kernel_.maps.push_back(std::move(m));
  return MapId(kernel_.maps.size() - 1);
}

SharedId Builder::shared(const std::string& name, DType element, Layout layout,
                         arch::SwizzleMode swizzle) {
  const int64_t alignment = std::max<int64_t>(arch::alignment_of(swizzle), 128);
  kernel_.shared.push_back(
      {name, element, std::move(layout), swizzle, round_up(kernel_.shared_bytes(), alignment)});
  return SharedId(kernel_.shared.size() - 1);
}

BarriersId Builder::barriers(const std::string& name, int64_t count) {
  kernel_.barriers.push_back({name, count, round_up(kernel_.shared_bytes(), int64_t{8})});
  return BarriersId(kernel_.barriers.size() - 1);
}

RegistersId Builder::registers(const std::string& name, DType element, std::vector<int64_t> tile,
                               Layout layout) {
  kernel_.registers.push_back({name, element, std::move(tile), std::move(layout)});
  const RegistersId id(kernel_.registers.size() - 1);
  add(Declare{id});
  return id;
}

void Builder::issue(std::string_view form, std::vector<Argument> arguments, arch::Choices choices) {
  const arch::Form* const found = arch::find_form(form);
  if (found == nullptr)
    return fail_with(fail(bad_kernel, "there is no instruction `{}`", form)
                         .help("docs/instructions.md lists them"));
  add(Issue{found, std::move(choices), std::move(arguments)});
}

Body Builder::fill(const std::function<void()>& body) {
  Body filled;
  Body* const outside = body_;
  body_ = &filled;
  body();
  body_ = outside;
  return filled;
}

void Builder::loop(const std::string& counter, Term lower, Term upper, Term step,
                   const std::function<void(Term)>& body) {
  const Term i = take(kernel_.pool->counter(counter, lower, upper));
  open_.push_back({i, {}});
  Body filled = fill([&] { body(i); });
  std::vector<Carried> carried = std::move(open_.back().carried);
  open_.pop_back();
  add(For{i, lower, upper, step, false, std::move(filled), std::move(carried)});
}

Term Builder::carried(Term counter, const std::string& name, Term amount) {
  const auto loop =
      std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.counter == counter; });
  if (loop == open_.end()) {
    fail_with(fail(bad_kernel, "no loop over `{}` is being written", term::to_string(counter)));
    return number(0);
  }
  for (const Carried& c : loop->carried)
    if (c.amount == amount) return c.symbol;
  const Term symbol = take(kernel_.pool->counter(name, number(0), number(most_carried)));
  loop->carried.push_back({symbol, amount});
  return symbol;
}

void Builder::unrolled(const std::string& counter, int64_t count,
                       const std::function<void(Term)>& body) {
  const Term i = take(kernel_.pool->counter(counter, number(0), number(count)));
  add(For{i, number(0), number(count), number(1), true, fill([&] { body(i); })});
}

void Builder::when(Term condition, const std::function<void()>& body,
                   const std::function<void()>& otherwise) {
  Body yes = fill(body);
  add(If{condition, std::move(yes), otherwise ? fill(otherwise) : Body()});
}

void Builder::elected(const std::function<void()>& body) {
  add(Elected{fill(body)});
}

void Builder::role(const std::string& name, int first_warp, int warps,
                   const std::function<void(Term)>& body) {
  const Term warp = take(kernel_.pool->coordinate(name + "_warp", warps));
  add(Role{name, first_warp, warps, warp, fill([&] { body(warp); })});
}

Result<Kernel> Builder::finish() {
  if (failure_) return error(*failure_);
  kernel_.body = std::move(top_);
  return std::move(kernel_);
}

}  // namespace tessera::core
