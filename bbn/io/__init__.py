"""Reading and writing networks: one file per format, one registry, load and save by suffix."""

from bbn.io.registry import FORMATS, Format, dumps, find_format, load, loads, save

__all__ = ["FORMATS", "Format", "dumps", "find_format", "load", "loads", "save"]
