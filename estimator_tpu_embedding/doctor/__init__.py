"""`etpe doctor`: says what a folder of TF1 code needs to run, without running any of it."""
