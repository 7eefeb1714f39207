// Where Python looks for installed packages, told without running it.
#pragma once

#include <filesystem>
#include <vector>

namespace tessera {

/// The folders of packages of the interpreter `python`, in Python's order: those of $PYTHONPATH,
/// then the site-packages and dist-packages of its installation (an empty path has none), then the
/// user's own below $HOME/.local. Folders that do not exist are left out, but for those of
/// $PYTHONPATH.
std::vector<std::filesystem::path> python_packages(const std::filesystem::path& python);

/// The same of one installation or virtual environment `root`, whose `lib` holds folders named
/// python3.X.
std::vector<std::filesystem::path> packages_below(const std::filesystem::path& root);

}  // namespace tessera
