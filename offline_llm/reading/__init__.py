"""How the offline model reads a request: sections, tools, records, results, matching words."""
