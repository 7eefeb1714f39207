"""Language models, asked by their providers' own packages (docs/mind.md). A provider is a file of `providers/`."""
