"""The language of operational semantics: values, expressions, statements, declarations."""
