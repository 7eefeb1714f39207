"""What every room shares: errors, the protocol, precision classes, places of files, and nodes of a graph run by ATen."""
