"""Values in texts meant for people: numbers, amounts, dates and times as they are written, in the
languages that have a table here."""
