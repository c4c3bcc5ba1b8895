"""Reads an invoice as JSON and fails, saying by how much, where its lines are not its total."""

import json
import sys
from decimal import Decimal

invoice = json.load(sys.stdin, parse_float=Decimal)
missing = invoice["total"] - sum(line["amount"] for line in invoice["lines"])
if missing:
    sys.exit(f"the lines and the total differ by {missing}")
