"""How a conversation with tools is written as text: Kimi K2's format, declarations of tools."""
