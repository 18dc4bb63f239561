"""Ids, lookups and update rules as functions from tensors to tensors, in stock TensorFlow ops.

They create no variable, use no session and know no hosts.
"""
