"""Learning dynamic networks: by counting where everything is seen, by EM (Baum and Welch's) where it is not."""
