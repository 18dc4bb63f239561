"""What `fixes` needs to rewrite one file; needs the package libcst."""
