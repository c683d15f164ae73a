"""Identification: what may be adjusted for, and the formula of an effect, its value or its bounds."""
