"""The clients of model servers (tools.md §4).

Owns how a request becomes bytes for a server and how its reply becomes an `Answer`, one HTTP attempt at a time. Never
retries, never prices, never prints; keys leave it only towards the address they belong to. Read `client.py` first,
then `providers.py` (who is where), `transport.py` (bytes in and out), the wires `openai.py` and `anthropic.py`,
`embedded.py` and `adapter.py`.
"""
