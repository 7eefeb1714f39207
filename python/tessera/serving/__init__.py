"""The command table as tools for an agent: schemas, files that travel as text, calls of the program."""
