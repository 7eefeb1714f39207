// Writes a kernel op by op, for generators and for the language's elaboration. The first failure is
// kept and `finish` returns it, so that writers read without a check a line.
//
//   Builder b("gemm", 384);
//   Term k = b.parameter("K", 1, 65536);
//   SharedId a = b.shared("a", DType::bfloat16, layout, arch::SwizzleMode::bytes_128);
//   b.role("consumer", 4, 8, [&](Term warp) { ... b.issue("wgmma.fence"); ... });
//   Result<Kernel> kernel = b.finish();
//
// Wrong instructions, arguments and storages are the verifier's business, not the builder's.
#pragma once

#include <functional>

#include "core/kernel.h"

namespace tessera::core {

inline constexpr Code bad_kernel{"TS0811", "core.bad_kernel"};

class Builder {
 public:
  Builder(std::string name, int threads, int cluster = 1);

  [[nodiscard]] Kernel& kernel() { return kernel_; }
  [[nodiscard]] const Coordinates& at() const { return kernel_.at; }
  Term number(int64_t n) { return kernel_.pool->constant(n); }
  /// The term, or the kept failure and 0.
  Term take(Result<Term> t);
  /// Operators as Pool::make has them; a failure is kept.
  Term make(term::Op op, std::vector<Term> args);
  /// ceil(a / b).
  Term divide_up(Term a, int64_t b);
  Term select(Term p, Term yes, Term no) { return make(term::Op::select, {p, yes, no}); }

  /// An integer of the launch in [lower, upper), a multiple of `modulus`.
  Term parameter(const std::string& name, int64_t lower, int64_t upper, int64_t modulus = 1);
  TensorId tensor(Tensor t);
  MapId map(TensorMap m);
  /// Behind all shared memory so far, aligned as the swizzle asks, to 128 bytes at least.
  SharedId shared(const std::string& name, DType element, Layout layout,
                  arch::SwizzleMode swizzle = arch::SwizzleMode::none);
  /// Behind all shared memory so far.
  BarriersId barriers(const std::string& name, int64_t count);
  /// Declared in the body that is being written.
  RegistersId registers(const std::string& name, DType element, std::vector<int64_t> tile,
                        Layout layout);

  /// An instruction by the name of its form; a name that no form has is a failure.
  void issue(std::string_view form, std::vector<Argument> arguments = {},
             arch::Choices choices = {});
  void compute(Compute c) { add(std::move(c)); }
  void tag(Tag t) { add(std::move(t)); }
  void assert_tag(AssertTag a) { add(std::move(a)); }
  void loop(const std::string& counter, Term lower, Term upper, Term step,
            const std::function<void(Term)>& body);
  /// The sum of `amount` over the turns before, of the loop that is being written and has
  /// `counter`. Of equal amounts one sum, by the first name.
  Term carried(Term counter, const std::string& name, Term amount);
  /// counter = 0, ..., count - 1, unrolled.
  void unrolled(const std::string& counter, int64_t count, const std::function<void(Term)>& body);
  void when(Term condition, const std::function<void()>& body,
            const std::function<void()>& otherwise = nullptr);
  void elected(const std::function<void()>& body);
  void role(const std::string& name, int first_warp, int warps,
            const std::function<void(Term warp)>& body);

  /// The author's text that the next ops come from.
  void stand_at(Span s) { span_ = s; }
  void fail_with(Diagnostic d) {
    if (!failure_) failure_ = std::move(d);
  }
  [[nodiscard]] const std::optional<Diagnostic>& failure() const { return failure_; }
  Result<Kernel> finish();

 private:
  template <class Node>
  void add(Node node) {
    body_->push_back(Op{std::move(node), span_});
  }
  Body fill(const std::function<void()>& body);

  Kernel kernel_;
  Body top_;
  Body* body_ = &top_;
  struct Open {
    Term counter;
    std::vector<Carried> carried;
  };
  std::vector<Open> open_;  // loops that are being written, the outermost first
  Span span_;
  std::optional<Diagnostic> failure_;
};

}  // namespace tessera::core
