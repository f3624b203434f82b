"""Conversations that were made elsewhere, into the tables: files, their shapes, rows."""
