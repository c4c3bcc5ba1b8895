"""Halo: a small language and its runtime for pipelines of LLM agents."""

__version__ = "0.1.0"
