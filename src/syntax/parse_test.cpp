#include "syntax/parse.h"

#include <gtest/gtest.h>

#include "syntax/testing/print.h"

namespace tessera::syntax {
namespace {

Expr expression(const std::string& text) {
  Result<Expr> e = parse_expression(Source("e", text));
  EXPECT_TRUE(e) << text << "\n" << (e ? "" : to_text(e.error()));
  return e ? *e : Expr{};
}

Module module(const std::string& text) {
  Parsed p = parse(Source("k.py", text));
  EXPECT_TRUE(p.errors.empty()) << text << "\n" << to_text(p.errors.at(0));
  return p.module;
}

TEST(Expressions, BindAsPythonsDo) {
  for (const auto& [text, brackets] : std::vector<std::pair<std::string, std::string>>{
           {"a + b * c", "a + (b * c)"},
           {"a - b - c", "(a - b) - c"},
           {"-a ** -b ** c", "-(a ** (-(b ** c)))"},
           {"a | b ^ c & d << e + f", "a | (b ^ (c & (d << (e + f))))"},
           {"not a == b and c or d", "((not (a == b)) and c) or d"},
           {"a if b else c if d else e", "a if b else (c if d else e)"},
           {"lambda x: x + 1", "lambda x: (x + 1)"},
           {"a // b % c @ d", "((a // b) % c) @ d"},
           {"~a.b[c](d)", "~((a.b)[c](d))"}}) {
    EXPECT_EQ(expression(text), expression(brackets)) << text;
    EXPECT_NE(expression(text), expression("(" + brackets + ",)"));
  }
  EXPECT_NE(expression("(a < b) < c"), expression("a < b < c"));
}

TEST(Expressions, KnowTheirPlaces) {
  const Source s("e", "f(a,\n  b + cd)");
  Result<Expr> e = parse_expression(s);
  ASSERT_TRUE(e);
  const Call& call = *e->as<Call>();
  EXPECT_EQ(s.text(call.arguments[1].span), "b + cd");
  EXPECT_EQ(s.text(call.arguments[1].value.as<Binary>()->right->span), "cd");
  EXPECT_EQ(s.text(e->span), s.text());
}

TEST(Expressions, IndicesMayBeSlices) {
  const Expr e = expression("a[i, :, j:, :k, 0:n:2]");
  const Subscript& s = *e.as<Subscript>();
  ASSERT_EQ(s.indices.size(), 5U);
  EXPECT_EQ(s.indices[1], (Expr{{}, Slice{}}));
  EXPECT_TRUE(s.indices[2].as<Slice>()->from && !s.indices[2].as<Slice>()->to);
  EXPECT_TRUE(s.indices[4].as<Slice>()->step);
}

TEST(Numbers, HoldWhatWasWritten) {
  EXPECT_EQ(expression("0x1F").as<Integer>()->value, 31);
  EXPECT_EQ(expression("0b101").as<Integer>()->value, 5);
  EXPECT_EQ(expression("1_000").as<Integer>()->value, 1000);
  EXPECT_EQ(expression("9223372036854775807").as<Integer>()->value, INT64_MAX);
  EXPECT_EQ(expression("1.5e-3").as<Float>()->value, 1.5e-3);
  EXPECT_EQ(expression(".5").as<Float>()->value, 0.5);
  EXPECT_EQ(expression("'a\\n\"'").as<String>()->value, "a\n\"");
}

TEST(Statements, OfAKernel) {
  const Module m = module(R"(from tessera.language import *

@kernel(means=matmul)
def gemm(A: Tensor[bf16, "M", "K"], BM: const = 128, epilogue: fn = identity) -> None:
    """What it computes."""
    full, empty = barrier(4, arrivals=1), barrier(4, arrivals=2)
    with role(warpgroups=1, registers=40) as producer:
        for m, n in tiles(M, BM, N, BN, group=8):  # a comment
            for k in ring(K, BK, STAGES):
                empty[k].wait()
    acc: f32 = zeros(f32, [BM, BN])
    acc += 1
    if BM == 128 and not BN % 2:
        pass
    elif x:
        y = 1
    else:
        return
    assert k.a == k.b, "they agree"
)");
  ASSERT_EQ(m.body.size(), 2U);
  const Function& f = *m.body[1].as<Function>();
  EXPECT_EQ(f.parameters.size(), 3U);
  EXPECT_EQ(f.body.size(), 7U);
  EXPECT_EQ(f.body[1].as<Assign>()->targets.size(), 2U);
  EXPECT_EQ(f.body[2].as<With>()->items[0].name, "producer");
  EXPECT_EQ(f.body[4].as<Assign>()->op, "+");
  EXPECT_NE(f.body[5].as<If>()->otherwise[0].as<If>(), nullptr);
  EXPECT_EQ(module(to_string(m)), m);
}

TEST(Statements, EveryWrongOneIsTold) {
  const Parsed p = parse(Source("k.py", R"(x = 1 +
for i in range(3):
    y = (a, b
    z = 2
)"));
  ASSERT_EQ(p.errors.size(), 1U);  // the bracket runs to the end
  const Parsed q = parse(Source("k.py", R"(x = 1 +
for i in range(3):
    y = ) + 1
    z = 2
while True:
    a = 1
b = 2
)"));
  ASSERT_EQ(q.errors.size(), 1U);
  const Parsed r = parse(Source("k.py", R"(x = 1 +
for i in range(3):
    y = 1 1
    z = 2
while True:
    a = 1
b = 2
)"));
  ASSERT_EQ(r.errors.size(), 3U);
  EXPECT_EQ(r.errors[0].place.line, 1);
  EXPECT_EQ(r.errors[1].place.line, 3);
  EXPECT_EQ(r.errors[2].place.line, 5);
  EXPECT_EQ(to_string(r.module), "for i in range(3):\n    z = 2\nb = 2\n");
}

TEST(Statements, NestingHasAnEnd) {
  EXPECT_FALSE(parse_expression(Source("e", std::string(100000, '(') + std::string(100000, ')'))));
  EXPECT_FALSE(parse_expression(Source("e", std::string(100000, '-') + "1")));
  std::string nots;
  for (int i = 0; i < 100000; ++i) nots += "not ";
  EXPECT_FALSE(parse_expression(Source("e", nots + "1")));
  std::string powers = "1";
  for (int i = 0; i < 100000; ++i) powers += " ** 1";
  EXPECT_FALSE(parse_expression(Source("e", powers)));
  std::string sums = "1";
  for (int i = 0; i < 100000; ++i) sums += " + 1";
  EXPECT_FALSE(parse_expression(Source("e", sums)));
  std::string calls = "f";
  for (int i = 0; i < 100000; ++i) calls += "()";
  EXPECT_FALSE(parse_expression(Source("e", calls)));
  std::string blocks;
  for (int i = 0; i < 2000; ++i) blocks += std::string(i, ' ') + "if x:\n";
  EXPECT_FALSE(parse(Source("e", blocks)).errors.empty());
  std::string branches = "if x:\n    a\n";
  for (int i = 0; i < 100000; ++i) branches += "elif x:\n    a\n";
  EXPECT_FALSE(parse(Source("e", branches)).errors.empty());
}

}  // namespace
}  // namespace tessera::syntax
