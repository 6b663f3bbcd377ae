"""Options that describe a mechanism on the command line, and the curve that they mean.

The options are the fields of `Description`; `describes_mechanism` gives them to a command, which receives them as
one object. A mechanism is one line of FAMILIES.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve

__all__ = ["FAMILIES", "Description", "Family", "describes_mechanism"]


@dataclass(frozen=True)
class Family:
    """How the options of one mechanism become a curve.

    Parameters
    ----------
    main : str or None
        The option that says how private it is; None if there is more than one.
    build : function
        Maps a description and the value of `main` to a curve.
    others : tuple of str
        Options that it needs besides.
    extras : tuple of str
        Options that it may take.
    grows : bool
        Whether a larger value of `main` is more private.
    """

    main: str | None
    build: Callable[[Any, float], TradeOffCurve]
    others: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    grows: bool = False


def _make(name: str, *arguments: Any, **options: Any) -> TradeOffCurve:
    from privfit import accounting

    made: TradeOffCurve = getattr(accounting, name)(*arguments, **options)
    return made


def _whole(value: float) -> Any:
    return int(value) if value == int(value) else value


FAMILIES: dict[str, Family] = {
    "gaussian": Family("mu", lambda o, v: _make("gaussian", v)),
    "laplace": Family("epsilon", lambda o, v: _make("laplace", v)),
    "symmetric-laplace": Family(
        "shift", lambda o, v: _make("symmetric_laplace", o.dim or 1, v, _whole(o.shape)), extras=("dim", "shape")
    ),
    "symmetric-laplace-limit": Family(
        "shift", lambda o, v: _make("symmetric_laplace_limit", v, _whole(o.shape)), extras=("shape",)
    ),
    "zil": Family("shift", lambda o, v: _make("zil", o.dim or 1, v, o.delta0), ("delta0",), ("dim",)),
    "zil-limit": Family("shift", lambda o, v: _make("zil_limit", v, o.delta0), ("delta0",)),
    "l2-laplace": Family("epsilon", lambda o, v: _make("l2_laplace", o.dim or 1, v), extras=("dim",)),
    "generalized-gaussian": Family("shift", lambda o, v: _make("generalized_gaussian", v, o.power), ("power",)),
    "discrete-laplace": Family(
        "epsilon", lambda o, v: _make("discrete_laplace", v, o.sensitivity), extras=("sensitivity",)
    ),
    "discrete-gaussian": Family(
        "sigma", lambda o, v: _make("discrete_gaussian", v, o.sensitivity), extras=("sensitivity",), grows=True
    ),
    "randomized-response": Family(
        "epsilon", lambda o, v: _make("randomized_response", v, o.categories), extras=("categories",)
    ),
    "unary-encoding": Family(None, lambda o, v: _make("unary_encoding", o.keep, o.flip), ("keep", "flip")),
    "symmetric-unary-encoding": Family("epsilon", lambda o, v: _make("symmetric_unary_encoding", v)),
    "optimized-unary-encoding": Family("epsilon", lambda o, v: _make("optimized_unary_encoding", v)),
    "exponential-mechanism": Family("epsilon", lambda o, v: _make("exponential_mechanism", v)),
    "approximate-dp": Family(None, lambda o, v: _make("approximate_dp", o.epsilon, o.delta), ("epsilon", "delta")),
    "zcdp": Family("rho", lambda o, v: _make("from_zcdp", v)),
}
ANY = ("mechanism", "curve_file", "delta0", "shuffle", "rate", "scheme", "times", "group")
PANEL = "What the mechanism is"
MORE = "What happens to it"


def _option(text: str, *names: str, panel: str = PANEL, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, metavar=metavar)


@dataclass(frozen=True)
class Description:
    """A mechanism as the options describe it, and what is done with it.

    Its curve is that of the mechanism, zero-inflated by `delta0`, shuffled, subsampled, run `times` times, and
    seen by a `group` of records, in this order.

    Examples
    --------
    >>> Description(mechanism="gaussian", mu=0.5, times=4).curve()
    GaussianCurve(mu=1.0)
    """

    mechanism: Annotated[str | None, _option("One of " + ", ".join(FAMILIES) + ".")] = None
    curve_file: Annotated[
        Path | None,
        _option("Instead of --mechanism: a curve, from 'privfit curve --json'.", "--curve", metavar="FILE"),
    ] = None
    mu: Annotated[float | None, _option("gaussian: sensitivity over the standard deviation of the noise.")] = None
    epsilon: Annotated[
        float | None,
        _option(
            "laplace, l2-laplace, discrete-laplace: sensitivity over the scale b; randomized-response, "
            "symmetric- and optimized-unary-encoding, exponential-mechanism, approximate-dp: epsilon."
        ),
    ] = None
    delta: Annotated[float | None, _option("approximate-dp: delta.")] = None
    rho: Annotated[float | None, _option("zcdp: rho; the curve is what rho-zCDP implies.")] = None
    dim: Annotated[int | None, _option("symmetric-laplace, zil, l2-laplace: number of columns; 1 by default.")] = None
    shift: Annotated[
        float | None,
        _option(
            "symmetric-laplace, zil and their limits: distance of two records over the standard deviation of the "
            "noise; generalized-gaussian: sensitivity over the scale."
        ),
    ] = None
    shape: Annotated[float, _option("symmetric-laplace and its limit: shape of the noise; 1 by default.")] = 1.0
    power: Annotated[float | None, _option("generalized-gaussian: exponent of the density, 1 to 100.")] = None
    sigma: Annotated[float | None, _option("discrete-gaussian: scale of the noise.")] = None
    sensitivity: Annotated[
        int, _option("discrete-laplace, discrete-gaussian: sensitivity, a whole number; 1 by default.")
    ] = 1
    categories: Annotated[int, _option("randomized-response: number of labels; 2 by default.")] = 2
    keep: Annotated[float | None, _option("unary-encoding: probability that a 1 is reported as 1.")] = None
    flip: Annotated[float | None, _option("unary-encoding: probability that a 0 is reported as 1.")] = None
    delta0: Annotated[
        float | None, _option("Probability of no noise at all; zil needs it, any mechanism takes it.")
    ] = None
    shuffle: Annotated[
        int | None, _option("Number of local reports whose order a trusted shuffler removes.", panel=MORE)
    ] = None
    rate: Annotated[float | None, _option("Share of the records in a random subsample.", panel=MORE)] = None
    scheme: Annotated[
        str,
        _option(
            "How it is drawn: 'poisson' (neighbours add or remove a record; the default) or 'without_replacement' "
            "(neighbours replace one).",
            panel=MORE,
        ),
    ] = "poisson"
    times: Annotated[int, _option("Number of runs on the same records; 1 by default.", panel=MORE)] = 1
    group: Annotated[int, _option("Number of records that differ between neighbours; 1 by default.", panel=MORE)] = 1

    def __str__(self) -> str:
        names = [f.name for f in dataclasses.fields(self) if f.name not in ("mechanism", "curve_file")]
        changed = [name for name in names if getattr(self, name) != type(self).__dataclass_fields__[name].default]
        what = self.mechanism or (self.curve_file.name if self.curve_file else "")
        return ", ".join([what, *(f"{name} {_text(getattr(self, name))}" for name in changed)])

    @property
    def family(self) -> Family:
        """The line of FAMILIES.

        Raises
        ------
        ValueError
            If there is none, or an option belongs to another mechanism.
        """
        from privfit.accounting.validation import check_choice

        name = check_choice("--mechanism", self.mechanism, tuple(FAMILIES))
        found = FAMILIES[name]
        known = {*ANY, found.main, *found.others, *found.extras}
        for field in dataclasses.fields(self):
            if field.name not in known and getattr(self, field.name) != field.default:
                raise ValueError(f"{name} does not take --{field.name}.")
        return found

    def with_main(self, value: float) -> Description:
        """The same mechanism with another value of the option that says how private it is."""
        changed: dict[str, Any] = {str(self.family.main): value}
        return dataclasses.replace(self, **changed)

    def missing(self) -> list[str]:
        """Options that the mechanism needs and that are not given, the main one first."""
        family = self.family
        needed = ([family.main] if family.main else []) + list(family.others)
        return [name for name in needed if getattr(self, name) is None]

    def local(self) -> TradeOffCurve:
        """Curve of the mechanism itself."""
        from privfit.accounting import symmetrized, zero_inflated

        if self.curve_file is not None:
            if self.mechanism is not None:
                raise ValueError("give either --curve or --mechanism.")
            made = symmetrized(_read_curve(self.curve_file))
            return zero_inflated(made, self.delta0) if self.delta0 is not None else made
        if missing := self.missing():
            raise ValueError(f"{self.mechanism} needs {' and '.join('--' + name for name in missing)}.")
        family = self.family
        curve = symmetrized(family.build(self, getattr(self, family.main) if family.main else 0.0))
        own = "delta0" in family.others
        return curve if own or self.delta0 is None else zero_inflated(curve, self.delta0)

    def single(self) -> TradeOffCurve:
        """Curve of one run: shuffled and subsampled."""
        from privfit.accounting import shuffled

        curve = self.local()
        if self.shuffle is not None:
            kind = "randomized_response" if self.mechanism == "randomized-response" else "any"
            curve = shuffled(curve, self.shuffle, randomizer=kind)
        if self.rate is None:
            if self.scheme != "poisson":
                raise ValueError("--scheme needs --rate.")
            return curve
        return curve.subsample(self.rate, scheme=self.scheme)

    def curve(self) -> TradeOffCurve:
        """Curve of all runs, for the stated number of records."""
        one = self.single()
        together = one.self_compose(self.times)
        return together.group(self.group)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _read_curve(path: Path) -> TradeOffCurve:
    from privfit.accounting import TradeOffCurve

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text; --curve takes what 'privfit curve --json' prints.") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON document; --curve takes what 'privfit curve --json' prints.") from error
    inner = data.get("curve") if isinstance(data, dict) else None
    found = inner if isinstance(inner, dict) else data
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no curve; --curve takes what 'privfit curve --json' prints.")
    return TradeOffCurve.from_dict(found)


def describes_mechanism(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Description`; its parameter ``described`` receives them.

    Examples
    --------
    >>> @describes_mechanism
    ... def show(described: Description, *, loud: bool = False) -> None:
    ...     print(described)
    >>> show(mechanism="gaussian", mu=1.0)
    gaussian, mu 1
    """
    hints = get_type_hints(Description, include_extras=True)
    names = [field.name for field in dataclasses.fields(Description)]
    options = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in dataclasses.fields(Description)
    ]
    own_hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=own_hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "described"
    ]

    def run(**given: Any) -> None:
        described = Description(**{name: given.pop(name) for name in names if name in given})
        command(described=described, **given)

    first = [p for p in own if isinstance(_marker(p.annotation), typer.models.ArgumentInfo)]
    parameters = [*first, *options, *(p for p in own if p not in first)]
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _marker(annotation: Any) -> Any:
    return next(iter(getattr(annotation, "__metadata__", ())), None)
