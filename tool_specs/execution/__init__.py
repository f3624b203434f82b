"""Running operational semantics: state, indexes, plans, statements, the compiler, invariants."""
