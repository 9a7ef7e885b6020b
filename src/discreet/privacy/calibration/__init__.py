"""What the noise and the cuts of several mechanisms rest on: tails, divergences, conversions; rounded safely."""
