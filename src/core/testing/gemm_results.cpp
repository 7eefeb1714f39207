#include "core/testing/gemm_results.h"

#include "core/testing/fragments.h"

namespace tessera::core::testing {

void Results::tensors(Term rows, Term columns, Term batches) {
  m_ = rows, n_ = columns, l_ = batches;
  const Term one = b_.number(1);
  const auto tensor = [&](const std::string& name, DType element, Term height, Access access) {
    Tensor t{name, element, {height, n_}, {n_, one}, access};
    if (l_) {
      t.extents.insert(t.extents.begin(), l_);
      t.strides.insert(t.strides.begin(), height == one ? n_ : height * n_);
    }
    return b_.tensor(std::move(t));
  };
  c_ = tensor("C", result(), m_, Access::output);
  if (s_.two) d_ = tensor("D", result(), m_, Access::output);
  if (has_bias())
    x0_ = l_ ? tensor("X0", DType::float32, one, Access::input)
             : b_.tensor({"X0", DType::float32, {n_}, {one}});
  if (has_residual()) x1_ = tensor("X1", result(), m_, Access::input);
}

void Results::map() {
  if (s_.direct) return;
  TensorMap m{"C_map", c_, {1, 0}, {64, 64}, arch::SwizzleMode::bytes_128};
  if (l_) m.dims = {2, 1, 0}, m.box = {64, 64, 1};
  c_map = b_.map(std::move(m));
}

void Results::shared() {
  if (s_.direct) return;
  c_shared_ = b_.shared("c", result(),
                        Layout(IntTuple::flat({s_.consumers(), s_.buffers, 64, 64}),
                               IntTuple::flat({int64_t{4096} * s_.buffers, 4096, 64, 1})),
                        arch::SwizzleMode::bytes_128);
}

void Results::registers() {
  const Layout part = fragment(s_.bm, 64, s_.consumers());
  const auto make = [&](const std::string& name, DType element) {
    return b_.registers(name, element, {s_.bm, 64}, part);
  };
  out_ = make("out", result());
  if (s_.two) second_ = make("second", result());
  if (has_bias()) bias_ = make("bias", DType::float32);
  if (has_residual()) residual_ = make("residual", result());
}

std::string Results::means() const {
  const std::string at = l_ ? "[b, i, j]" : "[i, j]";
  const std::string sum = std::string("sum(") + (l_ && !s_.one_a ? "A[b, i, k]" : "A[i, k]") +
                          " * " +
                          (!l_        ? "B[j, k]"
                           : s_.one_b ? "B[0, j, k]"
                                      : "B[b, j, k]") +
                          ", k)";
  const std::string bias = l_ ? "X0[b, 0, j]" : "X0[j]";
  std::string out = "C" + at + " = ";
  if (s_.epilogue == Epilogue::none) out += sum;
  if (s_.epilogue == Epilogue::relu) out += "relu(" + sum + " * -0.5)";
  if (s_.epilogue == Epilogue::bias) out += sum + " + " + bias;
  if (s_.epilogue == Epilogue::residual) out += "relu(" + sum + " * 0.5 + " + bias + ") + X1" + at;
  return s_.two ? out + "; D" + at + " = " + sum : out;
}

std::shared_ptr<pointwise::Dag> Results::function() const {
  const Function f;
  const int sum = f.operand(0);
  switch (s_.epilogue) {
    case Epilogue::none:
      return f.giving(sum);
    case Epilogue::relu:
      return f.giving(f.call("relu", {f.call("mul", {f.number(-0.5), sum})}));
    case Epilogue::bias:
      return f.giving(f.call("add", {f.operand(1), sum}));
    case Epilogue::residual:
      return f.giving(f.call(
          "add",
          {f.call("relu", {f.call("add", {f.call("mul", {sum, f.number(0.5)}), f.operand(1)})}),
           f.operand(2)}));
  }
  return f.giving(sum);
}

/// Two neighbours of a row, the v-th of a thread's 16 pairs in a part; `inside`: both lie in the
/// tensor.
GlobalAt Results::pair(const From& f, TensorId tensor, Term part, Term v, Term& inside) {
  const Term lane = b_.at().lane;
  const Term row = f.row + f.warp * 16 + floor_div(lane, 4) + floor_mod(v, 2) * 8;
  const Term column = f.column + part * 64 + floor_div(v, 2) * 8 + floor_mod(lane, 4) * 2;
  const std::vector<Term>& extents = b_.kernel()[tensor].extents;
  GlobalAt out{tensor, {column}};
  Term in = less(column, n_);
  if (extents.size() > 1) {
    const bool one = extents[extents.size() - 2] == b_.number(1);
    out.at.insert(out.at.begin(), one ? b_.number(0) : row);
    if (!one) in = logical_and(less(row, m_), in);
  }
  if (extents.size() > 2) out.at.insert(out.at.begin(), f.batch);
  inside = b_.select(in, b_.number(1), b_.number(0));
  return out;
}

void Results::compute(const From& f, Term part) {
  const Run whole{out_, b_.number(0), Layout(32, 1)};
  const auto filled = [&](TensorId tensor, RegistersId to) {
    const Function zero;
    b_.compute({zero.giving(zero.number(0)), {}, {Run{to, b_.number(0), Layout(32, 1)}}, 32, {}});
    b_.unrolled("pair", 16, [&](Term v) {
      Term inside;
      const GlobalAt at = pair(f, tensor, part, v, inside);
      const auto bytes = 2 * size_of(b_.kernel()[tensor].element);
      b_.issue(fmt::format("load.global.{}.bounded", bytes),
               {Slice{to, v * 2}, at, Integers{{inside}}});
    });
  };
  if (has_bias()) filled(x0_, bias_);
  if (has_residual()) filled(x1_, residual_);
  std::vector<std::variant<Run, Term>> inputs = {Run{f.sums, part * 32, Layout(32, 1)}};
  if (has_bias()) inputs.emplace_back(Run{bias_, b_.number(0), Layout(32, 1)});
  if (has_residual()) inputs.emplace_back(Run{residual_, b_.number(0), Layout(32, 1)});
  b_.compute({function(), inputs, {whole}, 32, {}});
  if (!s_.two) return;
  const Function same;
  b_.compute({same.giving(same.operand(0)),
              {Run{f.sums, part * 32, Layout(32, 1)}},
              {Run{second_, b_.number(0), Layout(32, 1)}},
              32,
              {}});
}

void Results::direct(const From& f, Term part) {
  for (const auto& [tensor, from] : {std::pair{c_, out_}, {d_, second_}}) {
    if (!tensor.valid()) continue;
    b_.unrolled("pair", 16, [&, tensor = tensor, from = from](Term v) {
      Term inside;
      const GlobalAt at = pair(f, tensor, part, v, inside);
      b_.issue(fmt::format("store.global.{}.bounded", 2 * size_of(result())),
               {at, Slice{from, v * 2}, Integers{{inside}}});
    });
  }
}

void Results::store(const From& f) {
  b_.unrolled("part", s_.bn / 64, [&](Term part) {
    if (!s_.direct) return through_shared(f, part);
    compute(f, part);
    direct(f, part);
  });
}

/// 64 columns at a time, through the warpgroup's buffers by turns; a tile's first part waits for
/// all of the last one's.
void Results::through_shared(const From& f, Term part) {
  const Term group = floor_div(f.warp, 4);
  const auto one_of_group = [&](const std::function<void()>& body) {
    b_.when(equals(floor_mod(f.warp, 4), b_.number(0)), [&] { b_.elected(body); });
  };
  const auto meet = [&] {
    b_.issue("barrier.sync", {Integers{{group + 1}}, Integers{{b_.number(128)}}});
  };
  const Term buffer = floor_mod(part, s_.buffers);
  const auto wait = [&](int64_t left) {
    b_.issue("bulk.wait_read", {Integers{{b_.number(left)}}});
  };
  one_of_group([&] {
    b_.when(equals(part, b_.number(0)), [&] { wait(0); }, [&] { wait(s_.buffers - 1); });
  });
  meet();
  compute(f, part);
  b_.unrolled("j", 4, [&](Term j) {
    const Term row = floor_mod(f.warp, 4) * 16 + floor_mod(b_.at().lane, 16);
    const Term column = j * 16 + floor_div(b_.at().lane, 16) * 8;
    b_.issue("stmatrix", {SharedAt{c_shared_, {group, buffer, row, column}}, Slice{out_, j * 8}},
             {{"matrices", "4"}});
  });
  b_.issue("fence.async.shared::cta");
  meet();
  one_of_group([&] {
    Integers corner{{f.column + part * 64, f.row + group * 64}};
    if (l_) corner.values.push_back(f.batch);
    b_.issue(
        "tma.store",
        {MapRef{c_map}, corner, SharedAt{c_shared_, {group, buffer, b_.number(0), b_.number(0)}}},
        {{"rank", std::to_string(corner.values.size())}});
    b_.issue("bulk.commit");
  });
}

}  // namespace tessera::core::testing
