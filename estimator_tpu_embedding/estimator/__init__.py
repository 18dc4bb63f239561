"""Holds the TF1 names, such as `TPUEstimator`, as thin layers over the runner."""
