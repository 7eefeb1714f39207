#include "commands/common/output_folder.h"

#include "base/files.h"

namespace tessera::commands {

Status writable_output(const std::filesystem::path& folder) {
  try {
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / ".probe", "");
    std::filesystem::remove(folder / ".probe");
    return {};
  } catch (const std::filesystem::filesystem_error& e) {
    return error(fail(Code{"TS0033", "input.output_not_writable"},
                      "the output folder {} cannot be written", folder.string())
                     .expect("a folder that can be made and written")
                     .but_found("{}", e.code().message())
                     .help("give another one with -o DIR"));
  }
}

}  // namespace tessera::commands
