#include "realize/testing/run_logged.h"

#include <cstdlib>
#include <fstream>

namespace tessera::realize::testing {

std::pair<int, std::string> run_logged(const std::vector<std::string>& argv,
                                       const std::filesystem::path& folder) {
  std::string command;
  for (const std::string& a : argv) command += "'" + a + "' ";
  const int status = std::system((command + " > " + (folder / "log").string() + " 2>&1").c_str());
  std::ifstream log(folder / "log");
  return {status, std::string((std::istreambuf_iterator<char>(log)), {})};
}

}  // namespace tessera::realize::testing
