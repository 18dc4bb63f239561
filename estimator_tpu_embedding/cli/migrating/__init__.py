"""The commands of `etpe migrate`."""
