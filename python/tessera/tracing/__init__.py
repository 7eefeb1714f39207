"""A live module to a graph, and the module held with the call that it was traced with."""
