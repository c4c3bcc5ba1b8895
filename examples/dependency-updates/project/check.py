"""The tests of this little project: the program must be of the version that it requires."""

import sys

from app import VERSION

with open("requirements.txt", encoding="utf-8") as file:
    required = file.read().strip().partition("==")[2]
if not required:
    sys.exit(2)
if required != VERSION:
    sys.exit(f"app.py is written for {VERSION}, and {required} is required")
