"""Run the fuzz targets for a while: ``python tests/fuzz/fuzzing.py --seconds 600 [--only files] [--engine atheris]``.

Every target runs in a process of its own, so that a crash of a library is a finding and no end. With atheris the
drawing is guided by the code that is reached; hypothesis alone draws at random, and shrinks what fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import secrets
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def by_hypothesis(name: str, seconds: float, seed: int) -> int:
    """Draw examples in rounds until the time is over; the first failure raises. Returns the number drawn."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded
    from targets import TARGETS

    strategy, check = TARGETS[name]
    drawn, end = 0, time.monotonic() + seconds

    def counted(value: object) -> None:
        nonlocal drawn
        drawn += 1
        # examples that come after the end are passed over: only a round as a whole can be stopped
        if time.monotonic() < end:
            check(value)

    while time.monotonic() < end:
        rounds = settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        seeded(seed)(rounds(given(strategy)(counted)))()
        seed += 1
    return drawn


def by_atheris(name: str, seconds: float, seed: int) -> None:
    """Let atheris (libFuzzer) choose the bytes that hypothesis draws from; ends the process."""
    import atheris

    with atheris.instrument_imports(include=["privfit"]):
        from targets import TARGETS

    from hypothesis import given, settings

    strategy, check = TARGETS[name]
    test = settings(deadline=None, database=None)(given(strategy)(check))
    # without a corpus libFuzzer would begin with a few bytes, from which hypothesis draws nothing
    lengths = ["-len_control=0", "-max_len=4096"]
    options = [f"-max_total_time={int(seconds)}", f"-seed={seed}", "-timeout=60", "-verbosity=0", *lengths]
    atheris.Setup([sys.argv[0], *options], test.hypothesis.fuzz_one_input)
    atheris.Fuzz()


def main() -> int:
    """Run the targets one after the other; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all targets together")
    parser.add_argument("--only", help="one target: laws, domains, files, metadata or releases")
    parser.add_argument("--engine", choices=["auto", "hypothesis", "atheris"], default="auto")
    parser.add_argument("--seed", type=int, default=None, help="of the draws, to repeat a run")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    own = parser.parse_args()
    engine = own.engine
    if engine == "auto":
        engine = "atheris" if importlib.util.find_spec("atheris") else "hypothesis"
    seed = own.seed if own.seed is not None else secrets.randbelow(2**31 - 1) + 1
    if own.here:
        if engine == "atheris":
            by_atheris(own.only, own.seconds, seed)
        else:
            print(f"{own.only}: {by_hypothesis(own.only, own.seconds, seed)} examples", flush=True)
        return 0
    from targets import TARGETS

    names = [own.only] if own.only else list(TARGETS)
    failed = []
    for name in names:
        share = own.seconds / len(names)
        print(f"{name}: {share:.0f} s with {engine}, seed {seed}", flush=True)
        command = [sys.executable, __file__, "--here", "--only", name, "--engine", engine]
        done = subprocess.run([*command, "--seconds", str(share), "--seed", str(seed)], timeout=3 * share + 300)
        if done.returncode:
            failed.append(f"{name} (exit {done.returncode})")
    print(f"failed: {', '.join(failed)}" if failed else "no failures", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
