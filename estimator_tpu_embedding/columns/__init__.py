"""TF1 feature columns, read once, turned into specs and a featurize function."""
