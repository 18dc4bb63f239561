"""The version, alone, so that setup.cfg can read it without importing anything."""

VERSION = '0.1.0'
