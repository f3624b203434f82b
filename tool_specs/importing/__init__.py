"""Tool lists of other people: forms, dialects of JSON Schema, names, licences, injections.

It reads answers and files and starts nothing.
"""
