"""Linear-Gaussian networks in rational arithmetic: every digit of a variance, however ill-conditioned the problem."""

import math
from fractions import Fraction


class Rational:
    """The joint normal of Gaussians without discrete parents, conditioned on one number after the other."""

    def __init__(self, net):
        self.place = {name: i for i, name in enumerate(net.names)}
        self.mean, self.covariance = [], []
        for name in net.names:
            gaussian = net[name]
            weights = {
                self.place[p.name]: Fraction(float(w))
                for p, w in zip(gaussian.continuous_parents, gaussian.weights, strict=True)
            }
            self.mean.append(
                Fraction(float(gaussian.means)) + sum(w * self.mean[j] for j, w in weights.items())
            )
            across = [sum(w * row[j] for j, w in weights.items()) for row in self.covariance]
            own = Fraction(float(gaussian.variances)) + sum(w * across[j] for j, w in weights.items())
            for row, value in zip(self.covariance, across, strict=True):
                row.append(value)
            self.covariance.append([*across, own])
        self.log_density = 0.0

    def observe(self, name, number):
        """Condition on a number, and add its log-density to what came before."""
        i, apart = self.place[name], Fraction(number)
        apart -= self.mean[i]
        row = list(self.covariance[i])
        own = row[i]
        self.log_density -= 0.5 * (float(apart * apart / own) + math.log(own) + math.log(2 * math.pi))
        for j, value in enumerate(row):
            if value:
                gain = value / own
                self.mean[j] += gain * apart
                self.covariance[j] = [a - gain * b for a, b in zip(self.covariance[j], row, strict=True)]

    def moments(self, name):
        """Mean and variance, rounded once."""
        i = self.place[name]
        return float(self.mean[i]), float(self.covariance[i][i])
