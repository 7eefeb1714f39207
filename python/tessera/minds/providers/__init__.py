"""The folder is the registry: every file is a provider (tessera/minds/provider.py says what it defines)."""
