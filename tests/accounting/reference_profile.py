"""Error rates and profiles at many digits by adaptive quadrature with mpmath: plain integrals of textbook densities."""

import mpmath as mp


def gaussian_delta(mu, eps):
    """Phi(-x) - e^eps Phi(-x - mu) with x = eps/mu - mu/2."""
    mu, eps = mp.mpf(mu), mp.mpf(eps)
    x = eps / mu - mu / 2
    tail = lambda y: mp.erfc(y / mp.sqrt(2)) / 2  # noqa: E731
    return tail(x) - mp.exp(eps) * tail(x + mu)


def gaussian_alpha(mu, t):
    return mp.erfc((mp.mpf(t) / mu + mp.mpf(mu) / 2) / mp.sqrt(2)) / 2


def limit_mixture(function, c, shape, t):
    """E function(c / sqrt(W), t) for W ~ Gamma(shape, rate shape), in y = log W."""
    k = mp.mpf(shape)
    weight = lambda y: mp.exp(k * (y - mp.exp(y)) + k * mp.log(k) - mp.loggamma(k))  # noqa: E731
    integrand = lambda y: weight(y) * function(mp.mpf(c) * mp.exp(-y / 2), t)  # noqa: E731
    step = mp.log(mp.mpf(c) ** 2 / (2 * abs(mp.mpf(t)) + mp.mpf(c) ** 2))  # where the Gaussian values turn
    low, high = min(step, 0) - 80 / k - 1, mp.log(1 + mp.sqrt(200 / k) + 120 / k)
    width = 16 / mp.sqrt(2 * abs(mp.mpf(t)) + 1)
    grid = sorted([*mp.linspace(low, high, 300), *(step + width * x for x in mp.linspace(-1, 1, 100))])
    values = [integrand(y) for y in grid]
    kept = [i for i, value in enumerate(values) if value > max(values) * mp.mpf(10) ** -40]
    low, high = grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, len(grid) - 1)]
    edges = {*mp.linspace(low, high, 40), *(step + width * x for x in mp.linspace(-1, 1, 13))}
    return mp.quad(integrand, sorted(x for x in edges if low <= x <= high))


def symmetric_laplace_delta(dim, c, shape, t):
    """P[L > t], Q[L > t] and delta(t) of generalised Laplace noise with |shape - dim/2| = 1/2.

    Then the density at radius r is proportional to exp(-rate r), or to exp(-rate r)/r, and every radius with a given
    density is elementary (a Lambert function). A sphere about the centre of P or of Q meets the region in a cap.
    """
    d, k, c, t = mp.mpf(dim), mp.mpf(shape), mp.mpf(c), mp.mpf(t)
    rate, pole = mp.sqrt(2 * k), shape < dim / 2
    constant = (d - pole) * mp.log(rate) - mp.loggamma(d - pole)

    def log_density(r):
        return -rate * r - (mp.log(r) if pole else 0)

    def radius_at(level):
        return mp.lambertw(rate * mp.exp(-level)).real / rate if pole else -level / rate

    def weight(u):
        r = mp.exp(u)
        return mp.exp(constant + d * u + log_density(r))

    def from_p(u):
        r, other = mp.exp(u), radius_at(log_density(mp.exp(u)) + t)
        return (r * r + c * c - other**2) / (2 * c * r) if other > 0 else mp.mpf(2)

    def from_q(u):
        r = mp.exp(u)
        return (radius_at(log_density(r) - t) ** 2 - r * r - c * c) / (2 * c * r)

    low = -90 / (d - pole) + mp.log(d / rate) - 3 - (t if pole else 0)
    high = mp.log((d + 20 * mp.sqrt(d) + 140) / rate)
    alpha, exceed = (_in_caps(d, weight, cosine, low, high, mp.log(c)) for cosine in (from_p, from_q))
    return alpha, exceed, exceed - mp.exp(t) * alpha


def _cap(d, cosine):
    if abs(cosine) >= 1 or d == 1:
        return mp.mpf(0 if cosine >= 1 else 1 if cosine <= -1 else 0.5)
    half = mp.betainc((d - 1) / 2, 0.5, 0, 1 - cosine**2, regularized=True) / 2
    return half if cosine >= 0 else 1 - half


def _in_caps(d, weight, cosine, low, high, centre):
    """Integral of weight times cap over u = log r, cut where the cosine passes 1 and -1."""
    # the other centre is a point of the grid: a region that is a tiny ball about it must not be missed
    grid = sorted([*mp.linspace(low, high, 300), centre])
    level = [cosine(u) for u in grid]
    cuts = set(mp.linspace(low, high, 20 + int(3 * mp.sqrt(d))))
    for bound in (1, -1):
        for i in range(len(grid) - 1):
            if (level[i] > bound) != (level[i + 1] > bound):
                cuts.add(_crossing(cosine, bound, grid[i], grid[i + 1]))
    return mp.quad(lambda u: weight(u) * _cap(d, cosine(u)), sorted(cuts))


def _crossing(function, bound, left, right):
    above = function(left) > bound
    for _ in range(mp.mp.prec + 10):
        middle = (left + right) / 2
        left, right = (middle, right) if (function(middle) > bound) == above else (left, middle)
    return left
