"""The best structure, proved: which parent sets can matter, and searches among them."""
