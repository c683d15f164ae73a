"""Learning dynamic networks: by counting where everything is observed, otherwise by EM (Baum-Welch)."""
