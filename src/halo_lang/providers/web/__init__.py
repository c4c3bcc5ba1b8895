"""What `Http` is made of: addresses that may be reached, paths below one, bodies that stay within bounds.

Read `addresses.py`, `targets.py`, `bodies.py`.
"""
