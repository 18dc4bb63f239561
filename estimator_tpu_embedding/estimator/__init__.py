"""The TF1 names. Thin: a line here exists for compatibility or not at all."""
