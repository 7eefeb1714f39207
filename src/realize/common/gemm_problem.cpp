#include "realize/common/gemm_problem.h"

#include <algorithm>
#include <numeric>

#include "base/integers.h"

namespace tessera::realize {
namespace {

using rules::TensorView;

/// Shape and strides of a view brought to three dims.
struct View3 {
  int64_t shape[3] = {1, 1, 1};
  int64_t strides[3] = {0, 0, 0};
};

Result<View3> three_dims(const TensorView& v, const char* what) {
  if (v.shape.size() > 3 || v.shape.size() != v.strides.size()) {
    return error(fail(unsupported_gemm, "{} has {} dims", what, v.shape.size())
                     .expect("[batch, rows, columns]"));
  }
  View3 out;
  const std::size_t skip = 3 - v.shape.size();
  for (std::size_t i = 0; i < v.shape.size(); ++i) {
    out.shape[skip + i] = v.shape[i];
    // A dim of size 1 may have any stride; 0 says that nothing moves along it.
    out.strides[skip + i] = v.shape[i] == 1 ? 0 : v.strides[i];
  }
  return out;
}

/// The leading stride of a matrix whose leading dim has one element: unused, but TMA wants a legal
/// number.
int64_t leading(int64_t stride, int64_t contiguous_extent) {
  return stride != 0 ? stride : round_up(std::max<int64_t>(contiguous_extent, 1), 16);
}

Result<Matrix> matrix_of(const TensorView& v, const char* what) {
  TESSERA_TRY(d, three_dims(v, what));
  Matrix m;
  m.tensor = v.tensor;
  m.dtype = v.dtype;
  m.offset = v.offset;
  m.batch = d.strides[0];
  const bool columns_move = d.shape[2] > 1;
  const bool rows_move = d.shape[1] > 1;
  const bool columns_unit = columns_move && d.strides[2] == 1;
  const bool rows_unit = rows_move && d.strides[1] == 1;
  const bool broadcast = (rows_move && d.strides[1] == 0) || (columns_move && d.strides[2] == 0);
  if (columns_unit && !(rows_move && d.strides[1] <= 0)) {
    m.columns_contiguous = true;
    m.ld = leading(d.strides[1], d.shape[2]);
  } else if (rows_unit && !(columns_move && d.strides[2] <= 0)) {
    m.columns_contiguous = false;
    m.ld = leading(d.strides[2], d.shape[1]);
  } else if (!columns_move && !broadcast) {
    m.columns_contiguous = true;  // one column: its rows are `stride` apart
    m.ld = leading(d.strides[1], 1);
  } else {
    return error(fail(unsupported_gemm, "{} has no contiguous direction", what)
                     .expect("stride 1 along rows or columns")
                     .but_found("strides {}, {} for shape {} x {}", d.strides[1], d.strides[2],
                                d.shape[1], d.shape[2]));
  }
  return m;
}

Result<Leaf> leaf_of(const TensorView& v, int64_t m, int64_t n, int index) {
  const std::string what = fmt::format("epilogue operand {}", index);
  TESSERA_TRY(d, three_dims(v, what.c_str()));
  if (!is_floating(v.dtype) || v.dtype == DType::float64) {
    return error(fail(unsupported_gemm, "{} is {}", what, name_of(v.dtype))
                     .expect("float32, bfloat16, float16 or float8"));
  }
  // A dim that the result does not move along needs no stride of the operand either.
  const bool rows = m > 1 && d.strides[1] != 0;
  const bool columns = n > 1 && d.strides[2] != 0;
  Leaf leaf;
  leaf.matrix.tensor = v.tensor;
  leaf.matrix.dtype = v.dtype;
  leaf.matrix.offset = v.offset;
  leaf.matrix.batch = d.strides[0];
  if (rows && columns) {
    TESSERA_TRY(matrix, matrix_of(v, what.c_str()));
    leaf.matrix = matrix;
    return leaf;
  }
  leaf.kind = columns ? Leaf::Kind::row : rows ? Leaf::Kind::column : Leaf::Kind::scalar;
  const int64_t stride = columns ? d.strides[2] : rows ? d.strides[1] : 1;
  if (stride != 1) {
    return error(
        fail(unsupported_gemm, "{} is a vector with stride {}", what, stride).expect("stride 1"));
  }
  return leaf;
}

Status check_types(const GemmProblem& p) {
  if (p.a.dtype != p.b.dtype) {
    return error(
        fail(unsupported_gemm, "A is {} and B is {}", name_of(p.a.dtype), name_of(p.b.dtype))
            .expect("one type for both"));
  }
  if (p.outputs.empty()) return error(fail(unsupported_gemm, "the product has no output"));
  if (p.outputs.size() != p.epilogue.results.size()) {
    return error(fail(unsupported_gemm, "{} results for {} outputs", p.epilogue.results.size(),
                      p.outputs.size()));
  }
  for (const Matrix& d : p.outputs) {
    if (!is_floating(d.dtype) || d.dtype == DType::float64) {
      return error(fail(unsupported_gemm, "the result is {}", name_of(d.dtype)));
    }
  }
  return {};
}

double matrix_bytes(const Matrix& m, int64_t rows, int64_t columns, int64_t l) {
  return static_cast<double>(rows * columns * (m.batch == 0 ? 1 : l)) * size_of(m.dtype);
}

Result<PartOperand> part_operand(const TensorView& v, const rules::ColumnPart& part, int64_t m) {
  if (!is_floating(v.dtype) || size_of(v.dtype) < 2 || v.dtype == DType::float64) {
    return error(fail(unsupported_gemm, "an operand of a part is {}", name_of(v.dtype))
                     .expect("float32, bfloat16 or float16"));
  }
  const std::size_t inner = part.period == 0 ? 1 : 2;  // dims behind the rows
  const std::size_t rows = v.shape.size() - inner;
  if (v.shape.size() <= inner || rows > 2) {
    return error(fail(unsupported_gemm, "an operand of a part has {} dims", v.shape.size()));
  }
  PartOperand x{v.tensor, v.dtype, v.offset, v.strides[rows - 1], 0, m};
  if (inner == 2) x.distance = v.strides[rows];
  if (v.strides.back() != 1 && v.strides.back() != 0) {
    return error(fail(unsupported_gemm, "an operand of a part has stride {} along the columns",
                      v.strides.back())
                     .expect("stride 1, or 0"));
  }
  x.along_columns = v.strides.back() == 1;
  if (rows == 2 && v.strides[0] != v.strides[1] * v.shape[1]) {
    if (v.strides[0] != 0 && v.shape[0] != 1)
      return error(fail(unsupported_gemm, "the rows of an operand of a part have two strides"));
    x.rows = v.shape[1];
  }
  return x;
}

Result<Part> part_of(const rules::ColumnPart& stated, int64_t m) {
  Part part{stated.first, stated.columns, stated.period, stated.dag, {}, stated.plain()};
  for (const TensorView& v : stated.operands) {
    TESSERA_TRY(x, part_operand(v, stated, m));
    part.operands.push_back(x);
  }
  return part;
}

}  // namespace

bool PartOperand::adjacent() const {
  return offset % 2 == 0 && ld % 2 == 0 && distance % 2 == 0;
}

int Matrix::alignment() const {
  const int64_t per_vector = 16 / size_of(dtype);
  const int64_t common =
      std::gcd(std::gcd(ld, batch), std::gcd(std::gcd(offset, outer), per_vector));
  return static_cast<int>(std::max<int64_t>(common, 1));
}

bool Matrix::aligned() const {
  return alignment() * size_of(dtype) == 16;
}

Matrix Matrix::transposed() const {
  Matrix t = *this;
  t.columns_contiguous = !columns_contiguous;
  return t;
}

int GemmProblem::source_leaf() const {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind == Leaf::Kind::full && leaves[i].matrix.aligned())
      return static_cast<int>(i);
  }
  return -1;
}

bool GemmProblem::paired() const {
  return !leaves.empty() && leaves.front().kind == Leaf::Kind::product;
}

double GemmProblem::flops() const {
  return (paired() ? 4.0 : 2.0) * static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(k) * static_cast<double>(l);
}

double GemmProblem::bytes() const {
  double total = matrix_bytes(a, m, k, l) + matrix_bytes(b, n, k, l);
  for (const Matrix& d : outputs) total += matrix_bytes(d, m, n, l);
  for (const Leaf& x : leaves) {
    if (x.kind == Leaf::Kind::full) total += matrix_bytes(x.matrix, m, n, l);
    if (x.kind == Leaf::Kind::product) total += matrix_bytes(x.matrix, n, k, l);
  }
  for (const Part& part : parts) {
    for (const PartOperand& x : part.operands) {
      const int64_t columns = !x.along_columns                      ? 1
                              : x.distance != 0 || part.period == 0 ? part.columns
                                                                    : part.period / 2;
      total += static_cast<double>((x.ld != 0 ? x.rows : 1) * columns) * size_of(x.dtype);
    }
  }
  return total;
}

GemmProblem exchange(const GemmProblem& p) {
  GemmProblem t = p;
  std::swap(t.m, t.n);
  std::swap(t.a, t.b);
  for (Matrix& d : t.outputs) d = d.transposed();
  for (Leaf& x : t.leaves) {
    if (x.kind == Leaf::Kind::full)
      x.matrix = x.matrix.transposed();
    else if (x.kind == Leaf::Kind::row)
      x.kind = Leaf::Kind::column;
    else if (x.kind == Leaf::Kind::column)
      x.kind = Leaf::Kind::row;
  }
  t.exchanged = !p.exchanged;
  return t;
}

namespace {

Result<GemmProblem> whole_problem(const rules::GemmBody& body, Precision precision) {
  GemmProblem p;
  p.m = body.m;
  p.n = body.n;
  p.k = body.k;
  p.l = body.batch;
  p.precision = precision;
  p.epilogue = body.epilogue;
  if (p.m <= 0 || p.n <= 0 || p.k <= 0 || p.l <= 0) {
    return error(fail(unsupported_gemm, "an extent is zero: {}x{}x{}x{}", p.l, p.m, p.n, p.k));
  }
  TESSERA_TRY(a, matrix_of(body.a, "A"));
  TESSERA_TRY(b, matrix_of(body.b, "B"));
  p.a = a;
  p.b = b;
  for (std::size_t i = 0; i < body.operands.size(); ++i) {
    TESSERA_TRY(leaf, leaf_of(body.operands[i], p.m, p.n, static_cast<int>(i)));
    p.leaves.push_back(leaf);
  }
  for (const TensorView& v : body.outputs) {
    TESSERA_TRY(d, matrix_of(v, "the result"));
    p.outputs.push_back(d);
  }
  if (p.epilogue.empty()) p.epilogue.results = {p.epilogue.add_operand(0)};
  TESSERA_CHECK(check_types(p));
  return p;
}

}  // namespace

Result<GemmProblem> gemm_problem(const rules::GemmBody& body, Precision precision) {
  if (!body.parts.empty()) {
    return error(
        fail(unsupported_gemm, "columns in {} parts with their own epilogues", body.parts.size())
            .expect("one epilogue for all columns")
            .help("wgmma_gemm and cutlass_gemm write parts on sm_90a"));
  }
  return whole_problem(body, precision);
}

Result<GemmProblem> parted_problem(const rules::GemmBody& body, Precision precision) {
  TESSERA_TRY(p, whole_problem(body, precision));
  if (body.parts.empty()) return p;
  if (p.l != 1 || p.outputs.size() != 1 || !p.leaves.empty() ||
      !p.outputs.front().columns_contiguous) {
    return error(fail(unsupported_gemm, "parts of {} batches and {} results", p.l, p.outputs.size())
                     .expect("one row-major result without operands of its own"));
  }
  for (const rules::ColumnPart& stated : body.parts) {
    TESSERA_TRY(part, part_of(stated, p.m));
    p.parts.push_back(std::move(part));
  }
  return p;
}

Result<GemmProblem> pointer_problem(const rules::GemmBody& body, Precision precision) {
  if (body.a.shape.size() < 4) {
    TESSERA_TRY(one, gemm_problem(body, precision));
    one.inner = one.l;
    return one;
  }
  rules::GemmBody run = body;  // the inner batches of the first outer one
  std::vector<int64_t> outer;
  const auto strip = [&](TensorView& v) {
    outer.push_back(v.strides.front());
    v.shape.erase(v.shape.begin());
    v.strides.erase(v.strides.begin());
  };
  strip(run.a);
  strip(run.b);
  for (TensorView& v : run.operands) strip(v);
  for (TensorView& v : run.outputs) strip(v);
  run.batch = body.a.shape[1];
  TESSERA_TRY(p, gemm_problem(run, precision));
  p.inner = p.l;
  p.l = body.batch;
  std::size_t at = 0;
  p.a.outer = outer[at++];
  p.b.outer = outer[at++];
  for (Leaf& x : p.leaves) x.matrix.outer = outer[at++];
  for (Matrix& d : p.outputs) d.outer = outer[at++];
  return p;
}

namespace {

/// One of the two products, without an epilogue.
rules::GemmBody one_product(const rules::GatedMlpBody& body, const TensorView& weight) {
  rules::GemmBody one;
  one.m = body.m;
  one.n = body.n;
  one.k = body.k;
  one.a = body.a;
  one.b = weight;
  return one;
}

}  // namespace

Result<GatedProblem> gated_problem(const rules::GatedMlpBody& body, Precision precision) {
  rules::GemmBody value = one_product(body, body.b1);
  TensorView scratch;
  scratch.tensor = -1;
  scratch.dtype = body.a.dtype;
  scratch.shape = {1, body.m, body.n};
  // Rows start at multiples of 16 bytes, so that TMA can store and load them for any n.
  scratch.strides = {0, round_up(body.n, 16), 1};
  value.outputs = {scratch};

  rules::GemmBody gate = one_product(body, body.b0);
  gate.outputs = body.outputs;
  // The DAG's operands are (gate, value, operands...): the value's product becomes the first leaf,
  // so the numbers stay.
  gate.epilogue = body.epilogue;
  gate.operands = {scratch};
  gate.operands.insert(gate.operands.end(), body.operands.begin(), body.operands.end());

  GatedProblem g;
  TESSERA_TRY(first, gemm_problem(value, precision));
  TESSERA_TRY(second, gemm_problem(gate, precision));
  g.value = std::move(first);
  g.gate = std::move(second);
  return g;
}

Result<GemmProblem> paired_problem(const rules::GatedMlpBody& body, Precision precision) {
  rules::GemmBody gate = one_product(body, body.b0);
  gate.outputs = body.outputs;
  gate.epilogue = body.epilogue;
  gate.operands = body.operands;
  TESSERA_TRY(p, gemm_problem(gate, precision));
  TESSERA_TRY(value, matrix_of(body.b1, "the value's weight"));
  if (value.dtype != p.b.dtype || value.columns_contiguous != p.b.columns_contiguous ||
      value.ld != p.b.ld || value.batch != p.b.batch) {
    return error(fail(unsupported_gemm, "the two weights lie differently in memory")
                     .expect("one type, order and leading stride")
                     .but_found("strides {} and {}", p.b.ld, value.ld));
  }
  // The DAG's operands are (gate, value, operands...).
  p.leaves.insert(p.leaves.begin(), Leaf{Leaf::Kind::product, value});
  return p;
}

}  // namespace tessera::realize
