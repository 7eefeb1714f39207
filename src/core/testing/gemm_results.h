// The way of a product's sums to the output: functions of them and of other tensors, then through
// shared memory and TMA, or straight from registers.
#pragma once

#include "core/builder.h"
#include "core/testing/gemm.h"

namespace tessera::core::testing {

class Results {
 public:
  Results(Builder& b, const GemmShape& s) : b_(b), s_(s) {}

  /// Storages, each where the kernel declares its own of the kind. `batches` is null where there
  /// are none.
  void tensors(Term rows, Term columns, Term batches);
  void map();
  void shared();
  void registers();

  /// The tile of a turn: its corner, and the registers of its sums.
  struct From {
    RegistersId sums;
    Term warp, row, column, batch, turn;
  };
  void store(const From& f);
  [[nodiscard]] std::string means() const;

  MapId c_map;

 private:
  [[nodiscard]] bool has_bias() const {
    return s_.epilogue == Epilogue::bias || s_.epilogue == Epilogue::residual;
  }
  [[nodiscard]] bool has_residual() const { return s_.epilogue == Epilogue::residual; }
  [[nodiscard]] DType result() const {
    return s_.direct || size_of(s_.element) == 1 ? s_.result : s_.element;
  }
  [[nodiscard]] std::shared_ptr<pointwise::Dag> function() const;
  void compute(const From& f, Term part);
  void through_shared(const From& f, Term part);
  void direct(const From& f, Term part);
  GlobalAt pair(const From& f, TensorId tensor, Term part, Term v, Term& inside);

  Builder& b_;
  const GemmShape& s_;
  Term m_, n_, l_;
  TensorId c_, d_, x0_, x1_;
  SharedId c_shared_;
  RegistersId out_, second_, bias_, residual_;
};

}  // namespace tessera::core::testing
