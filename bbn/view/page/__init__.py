"""The interactive page: who answers it (server, notebook, or the file itself), and what it is told.

Its own parts, HTML, style and JavaScript, are in `static/`.
"""
