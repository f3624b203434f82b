"""What several commands share: their options, how they print, how they start a flow."""
