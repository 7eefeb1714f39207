#include "bridge/bridge.h"

#include <fstream>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

namespace tessera::bridge {
namespace {
namespace fs = std::filesystem;
using std::chrono::seconds;

// A peer written in plain Python over the package's protocol module, run from a file.
const char* const script = R"(
import os, sys, time, signal
from tessera.common.errors import fail as failure
from tessera.common.protocol import over_stdio
def fail(p): raise failure("TS0102", "test.wrong", "wrong", helps=["right it"])
def die(p):
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
def nested(p): return {"got": connection.call("double", {"x": 21})["x"]}
def noisy(p):
    print("this must not break the protocol")
    os.system("echo nor this")
    connection.notify("progress", {"step": 1})
    return {}
def rubbish(p):
    os.write(connection._writer.fileno(), b"no line of JSON\n")
    time.sleep(60)
connection = over_stdio({"echo": lambda p: p, "fail": fail, "die": die, "hang": lambda p: time.sleep(60),
                         "nested": nested, "noisy": noisy, "rubbish": rubbish})
connection.serve()
)";

class Bridge : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder.path() / "bridge_test_peer.py") << script;
    const std::string path = folder.path().string() + ":" + source_folder() + "/python";
    ::setenv("PYTHONPATH", path.c_str(), 1);
    auto spawned = spawn(find_python(), "bridge_test_peer", folder.path() / "log");
    ASSERT_TRUE(spawned) << to_text(spawned.error());
    peer = std::move(*spawned);
  }
  TemporaryFolder folder;
  std::unique_ptr<Peer> peer;
};

TEST_F(Bridge, TellsWhatIsLeftUntilTheDeadline) {
  peer->deadline = std::chrono::steady_clock::now() + seconds(20);
  const auto r = peer->call("echo", {{"x", 1}}, seconds(30));
  ASSERT_TRUE(r) << to_text(r.error());
  EXPECT_EQ(r->at("x"), 1);
  EXPECT_GT(r->at("limit").get<double>(), 1);
  EXPECT_LE(r->at("limit").get<double>(), 20);
  peer->deadline = std::chrono::steady_clock::now() - seconds(1);
  EXPECT_EQ(peer->call("echo", Json::object(), seconds(30))->at("limit"), 0);
  peer->deadline.reset();
  EXPECT_FALSE(peer->call("echo", Json::object(), seconds(30))->contains("limit"));
}

TEST_F(Bridge, AnswersAndErrorsComeBack) {
  const auto r = peer->call("echo", {{"x", 1.5}, {"s", "ü"}}, seconds(30));
  ASSERT_TRUE(r) << to_text(r.error());
  EXPECT_EQ(r->at("x"), 1.5);
  const auto e = peer->call("fail", Json::object(), seconds(30));
  ASSERT_FALSE(e);
  EXPECT_EQ(e.error().code, "TS0102");
  EXPECT_EQ(e.error().helps.at(0), "right it");
  const auto u = peer->call("no_such", Json::object(), seconds(30));
  ASSERT_FALSE(u);
  EXPECT_EQ(u.error().code, "TS0705");
  EXPECT_TRUE(peer->alive());
}

TEST_F(Bridge, RequestsNestBothWays) {
  peer->on_request = [](const std::string& method, const Json& p) -> Result<Json> {
    EXPECT_EQ(method, "double");
    return Json{{"x", p.at("x").get<int>() * 2}};
  };
  const auto r = peer->call("nested", Json::object(), seconds(30));
  ASSERT_TRUE(r) << to_text(r.error());
  EXPECT_EQ(r->at("got"), 42);
}

TEST_F(Bridge, PrintsGoElsewhereAndNotificationsArrive) {
  int steps = 0;
  peer->on_notification = [&](const std::string& method, const Json&) {
    steps += method == "progress";
  };
  const auto r = peer->call("noisy", Json::object(), seconds(30));
  ASSERT_TRUE(r) << to_text(r.error());
  EXPECT_EQ(steps, 1);
}

TEST_F(Bridge, DeathSaysHowAndLastWords) {
  const auto r = peer->call("die", Json::object(), seconds(30));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0702");
  EXPECT_NE(r.error().found.find("signal 11"), std::string::npos) << to_text(r.error());
  EXPECT_NE(to_text(r.error()).find("last words"), std::string::npos);
  EXPECT_FALSE(peer->alive());
  EXPECT_FALSE(peer->call("echo", Json::object(), seconds(1)));
}

TEST_F(Bridge, HangIsEnded) {
  const auto r = peer->call("hang", Json::object(), seconds(2));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0703");
  EXPECT_FALSE(peer->alive());
}

TEST_F(Bridge, WhatIsNoMessageEndsIt) {
  const auto r = peer->call("rubbish", Json::object(), seconds(30));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0704");
  EXPECT_EQ(r.error().found, "no line of JSON");
  EXPECT_FALSE(peer->alive());
}

TEST(Spawn, NoSuchInterpreterIsADiagnostic) {
  const TemporaryFolder folder;
  const auto r = spawn("/nowhere/python", "x", folder.path() / "log");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "TS0701");
}

}  // namespace
}  // namespace tessera::bridge
