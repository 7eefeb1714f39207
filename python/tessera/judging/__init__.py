"""Whether kernels and composed modules are right, and how fast they are."""
