"""How a part is rewritten: settings, styles and perspectives, the request, gates."""
