"""The interactive page: what answers it (a server, a notebook, or the file itself), and the answers.

Its own parts, HTML, style and JavaScript, are in `static/`.
"""
