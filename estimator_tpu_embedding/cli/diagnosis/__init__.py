"""The forms in which `etpe doctor` prints a diagnosis."""
