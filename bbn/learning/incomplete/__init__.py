"""Tables from incomplete data: EM, gradient ascent, and the checkpoints that let them go on."""
