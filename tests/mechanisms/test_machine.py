"""The note of a pass: its key follows everything that computes, and only a sound file counts."""

import multiprocessing
import os
import platform
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from privfit.mechanisms import keystream, machine, samplers
from privfit.mechanisms.machine import cache_folder, fingerprint, note_pass, passed_before

KEY = "5" * 64
posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PRIVFIT_CACHE", str(tmp_path / "new" / "cache"))
    return tmp_path / "new" / "cache"


def test_a_note_counts_for_its_own_key_only(folder):
    assert not passed_before(KEY)
    note_pass(KEY)
    assert passed_before(KEY) and not passed_before("6" * 64)
    note_pass(KEY)
    (file,) = folder.iterdir()
    file.rename(folder / file.name.replace("5", "6"))
    assert not passed_before("6" * 64)


@posix
def test_a_note_is_its_owners(folder):
    note_pass(KEY)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    file.chmod(0o620)
    assert not passed_before(KEY)
    file.chmod(0o602)
    assert not passed_before(KEY)
    file.chmod(0o644)
    assert passed_before(KEY)


@posix
def test_somebody_elses_note_does_not_count(folder, monkeypatch):
    note_pass(KEY)
    monkeypatch.setattr(machine.os, "getuid", lambda: os.geteuid() + 1)
    assert not passed_before(KEY)


DAMAGES = [lambda b: b"", lambda b: b[:-1], lambda b: b + b"\n", lambda b: b[1:], lambda b: b"\xff" * 100]
NO_FILES = {
    "folder": Path.mkdir,
    "fifo": getattr(os, "mkfifo", None),
    "link": lambda path: path.symlink_to(path.parent / "elsewhere"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_note_does_not_count_and_is_replaced(folder, damage):
    note_pass(KEY)
    (file,) = folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert not passed_before(KEY)
    note_pass(KEY)
    assert passed_before(KEY)


@posix
@pytest.mark.parametrize("kind", NO_FILES)
def test_things_that_are_no_file_do_not_count(folder, kind):
    note_pass(KEY)
    (file,) = folder.iterdir()
    file.rename(folder / "elsewhere")
    NO_FILES[kind](file)
    assert not passed_before(KEY)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for chosen in (tmp_path / "file" / "below", tmp_path / "file", Path("/proc/nothing"), Path("nul\0byte")):
        if "\0" in str(chosen):
            monkeypatch.setattr(machine, "cache_folder", lambda chosen=chosen: chosen)
        else:
            monkeypatch.setenv("PRIVFIT_CACHE", str(chosen))
        note_pass(KEY)
        assert not passed_before(KEY)


@pytest.mark.parametrize("broken", ["replace", "fdopen"])
def test_a_crash_while_writing_leaves_no_note(folder, monkeypatch, broken):
    def fail(*arguments, **keywords):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(machine.os, broken, fail)
        note_pass(KEY)
    assert not passed_before(KEY) and not list(folder.iterdir())
    note_pass(KEY)
    assert passed_before(KEY)


def write_and_read(folder):
    os.environ["PRIVFIT_CACHE"] = str(folder)
    seen = []
    for _ in range(50):
        note_pass(KEY)
        seen.append(passed_before(KEY))
    return all(seen)


def test_concurrent_threads_see_whole_notes(folder):
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write_and_read, [folder] * 4)) == [True] * 4
    assert len(list(folder.iterdir())) == 1


@pytest.mark.slow
def test_concurrent_processes_see_whole_notes(folder):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(write_and_read, [folder] * 4) == [True] * 4
    assert len(list(folder.iterdir())) == 1


def test_an_empty_key_or_folder_notes_nothing(folder, monkeypatch):
    note_pass("")
    assert not passed_before("") and not folder.exists()
    monkeypatch.setenv("PRIVFIT_CACHE", "")
    note_pass(KEY)
    assert cache_folder() is None and not passed_before(KEY)


@pytest.mark.parametrize(
    ("system", "variables", "wanted"),
    [
        ("Linux", {}, "home/.cache/privfit"),
        ("Linux", {"XDG_CACHE_HOME": "ROOT/xdg"}, "xdg/privfit"),
        ("Linux", {"XDG_CACHE_HOME": "relative"}, "home/.cache/privfit"),
        ("FreeBSD", {"XDG_CACHE_HOME": "ROOT/xdg"}, "xdg/privfit"),
        ("Darwin", {"XDG_CACHE_HOME": "ROOT/xdg"}, "home/Library/Caches/privfit"),
        ("Windows", {"LOCALAPPDATA": "ROOT/local"}, "local/privfit"),
        ("Windows", {}, "home/AppData/Local/privfit"),
        ("Linux", {"PRIVFIT_CACHE": "ROOT/own", "XDG_CACHE_HOME": "ROOT/xdg"}, "own"),
    ],
)
def test_the_usual_places(system, variables, wanted, monkeypatch, tmp_path):
    for name in ("PRIVFIT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("ROOT", str(tmp_path)))
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert cache_folder() == tmp_path / wanted


def test_without_a_home_there_is_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("no home")

    monkeypatch.delenv("PRIVFIT_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert cache_folder() is None


CHANGES = {
    "python": lambda patch: patch.setattr(sys, "version", "3.99"),
    "numpy": lambda patch: patch.setattr(np, "__version__", "9.9"),
    "dispatch": lambda patch: patch.setattr(np, "show_config", lambda mode: {"SIMD Extensions": {"found": []}}),
    "libc": lambda patch: patch.setattr(platform, "libc_ver", lambda: ("glibc", "9.9")),
    "machine": lambda patch: patch.setattr(platform, "machine", lambda: "abacus"),
    "preload": lambda patch: patch.setenv("LD_PRELOAD", "/libfast.so"),
    "tunables": lambda patch: patch.setenv("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2_Usable"),
    "processor": lambda patch: patch.setattr(Path, "read_text", lambda self, **k: "model name : other\nflags : fpu\n"),
    "sampler": lambda patch: patch.setattr(machine.inspect, "getsource", lambda module: "changed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_key_follows_what_computes(change, monkeypatch):
    before = fingerprint(samplers, keystream)
    assert before == fingerprint(samplers, keystream) and len(before) == 64
    CHANGES[change](monkeypatch)
    assert len(fingerprint(samplers, keystream)) == 64 and fingerprint(samplers, keystream) != before


def test_clock_speeds_do_not_change_the_key(monkeypatch):
    texts = iter([f"model name : m\nflags : fpu\ncpu MHz : {speed}\nmodel name : m\nflags : fpu\n" for speed in (1, 2)])
    monkeypatch.setattr(Path, "read_text", lambda self, **k: next(texts))
    assert fingerprint() == fingerprint()


def test_a_sampler_without_source_has_no_key(monkeypatch):
    def gone(module):
        raise OSError("could not get source code")

    monkeypatch.setattr(machine.inspect, "getsource", gone)
    assert fingerprint(samplers) == "" and fingerprint() != ""


def test_other_systems_have_a_key_without_proc(monkeypatch):
    def gone(self, **keywords):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", gone)
    assert len(fingerprint(samplers)) == 64
