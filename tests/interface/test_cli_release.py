"""``privfit release``: keeps its budget, prints no cell, and writes nothing after a mistake."""

from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.accounting import Budget, Ledger
from privfit.cli import MISTAKE, REFUSED
from privfit.mechanisms import load_release, tasks

BUDGET = ["--epsilon", "6", "--delta", "1e-6"]
QUICK = ["--mechanism", "gaussian"]
COLUMNS = ["--column", "age:17:90", "--column", "hours:1:99"]


def test_release_prints_its_guarantee_and_no_cell(privfit, table, tmp_path):
    out = tmp_path / "out.parquet"
    options = [*COLUMNS, "--label", "income:low,high", *BUDGET, *QUICK]
    code, text, err = privfit.call("release", table, out, *options)
    assert (code, err) == (0, "")
    for words in ("record", "attribute", "numerical slack", "left out: region, name"):
        assert words in text
    for cell in ("SECRET", "Name1", "77777", "17.3"):
        assert cell not in text
    released = load_release(out)
    assert released.columns == ("age", "hours", "income") and released.n_rows == 3001
    (row,) = released.guarantee().deltas([6.0])
    assert row["record"] <= 1e-6


def test_release_says_what_missing_cells_count_as_and_does_so(privfit, tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    path.write_text("age,income\n" + ",SECRET\n" * 100)
    options = ["release", path, out, "--column", "age:20:80", "--label", "income:low,high", *QUICK]
    _, text, err = privfit.call(*options, "--epsilon", 10, "--delta", "1e-6", "--label-epsilon", 8)
    assert err == "" and "FIRST declared label" in text and "the middle of its range" in text
    assert "FIRST declared label" in privfit.call("release", "--help")[1]
    frame = load_release(out, kind="pandas").frame
    # the label is told truthfully with probability e^8/(e^8 + 1): 90 of 100 fail with less than 1e-20
    assert (frame["income"] == "low").sum() > 90
    # five standard errors of the mean of 100 rows
    assert abs(frame["age"].mean() - 50) < 5 * frame["age"].std() / 10


@pytest.mark.parametrize(
    "options, sentence",
    [
        (
            [*COLUMNS, "--label", "income:low,high"],
            "Split of epsilon = 6: label income takes epsilon = 0.9, "
            "the numbers age, hours together take the remaining epsilon = 5.1, with delta = 1e-06.",
        ),
        (COLUMNS[:2], "Split of epsilon = 6: the number age takes all of it, with delta = 1e-06."),
        (["--label", "income:low,high"], "Split of epsilon = 6: label income takes epsilon = 6."),
        (
            [*COLUMNS[:2], "--label", "income:low,high", "--protect", "attribute"],
            "Budget of each single column: label income takes epsilon = 6, "
            "number age takes epsilon = 6 with delta = 1e-06.",
        ),
    ],
)
def test_release_says_how_the_budget_is_split(privfit, table, tmp_path, options, sentence):
    out = tmp_path / "out.parquet"
    assert sentence in privfit.call("release", table, out, *options, *BUDGET, *QUICK)[1]


def test_release_as_json(privfit, table, tmp_path):
    found = privfit.as_json("release", table, tmp_path / "o.parquet", *COLUMNS, "--public", "region", *BUDGET)
    assert found["rows"] == 3001 and found["public"] == ["region"] and found["left_out"] == ["income", "name"]
    assert found["epsilon"][0]["record"] <= 6.0 and found["numerical_slack"] > 0


def test_release_of_labels_alone_and_at_attribute_level(privfit, table, tmp_path):
    options = ["release", table, tmp_path / "a.parquet", "--label", "income:low,high"]
    alone = privfit.as_json(*options, "--epsilon", 2, "--delta", 0)
    assert alone["law"]["parts"][0]["law"]["epsilon"] == 2
    each = privfit.as_json(*options, *COLUMNS, *BUDGET, *QUICK, "--protect", "attribute", "--force")
    assert each["epsilon"][0]["attribute"] <= 6.0 + 1e-9
    # beyond epsilon = 12 the slack of floating-point noise exceeds delta: no record-level statement
    assert each["epsilon"][0]["record"] is None
    assert each["law"]["parts"][1]["law"]["epsilon"] == 6


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "zil", "symmetric-laplace"])
def test_release_with_every_mechanism(privfit, table, tmp_path, mechanism):
    found = privfit.as_json("release", table, tmp_path / "m.parquet", *COLUMNS, *BUDGET, "--mechanism", mechanism)
    assert found["epsilon"][0]["record"] <= 6.0
    assert bool(found["rows_expected_exact"]) == (mechanism == "zil")


def test_release_warns_where_the_numbers_are_careless(privfit, table, tmp_path):
    options = ["release", table, tmp_path / "w.parquet", *COLUMNS, "--epsilon", 6, "--delta", "0.01"]
    found = privfit.as_json(*options, "--mechanism", "zil")
    # delta0 = delta/10 of 3,001 rows is three exact rows
    assert len(found["warnings"]) == 2 and "without noise" in found["warnings"][0]
    assert found["warnings"][1] == "delta times rows is 30: choose delta well below 1 / rows."
    code, out, err = privfit.call(*options, *QUICK, "--force")
    assert (code, err) == (0, "") and "WARNING: delta times rows is 30" in out


def test_release_does_not_overwrite(privfit, table, tmp_path):
    out = tmp_path / "out.parquet"
    out.write_text("precious")
    options = ["release", table, out, *COLUMNS, *BUDGET, *QUICK]
    assert "--force" in privfit.mistake(*options)
    assert out.read_text() == "precious"
    assert privfit.call(*options, "--force")[0] == 0
    assert load_release(out).n_rows == 3001


@pytest.mark.parametrize(
    "options, words",
    [
        ([*BUDGET], "name at least one column"),
        ([*BUDGET, "--column", "wage:0:1"], "no column 'wage' among its"),
        ([*BUDGET, *COLUMNS, "--label", "income:low"], "--label must be NAME:LABEL"),
        (
            [*BUDGET, *COLUMNS, "--label", "income:low,high", "--label-epsilon", "6"],
            "must leave some of epsilon",
        ),
        (
            [*BUDGET, *COLUMNS, "--label", "income:low,high", "--label-epsilon", "-1"],
            "--label-epsilon must be",
        ),
        ([*BUDGET, "--column", "age:17:90", "--public", "age"], "got age more than once"),
        ([*BUDGET, "--column", "age:17:90", "--label", "age:a,b"], "more than once"),
        (["--epsilon", "40", "--delta", "1e-6", *COLUMNS], "numerical slack"),
        (["--epsilon", "6", "--delta", "0", *COLUMNS], "numerical slack"),
        (["--epsilon", "inf", "--delta", "1e-6", *COLUMNS], "--epsilon must be"),
        (
            [*BUDGET, *COLUMNS, "--column", "name:0:1"],
            "column 'name' holds text, not numbers; release it as --label name:LABEL,LABEL,..., or, if its labels have "
            "an order, as --ordered name:LABEL,LABEL,...;",
        ),
        ([*BUDGET, *COLUMNS, "--ordered", "income:low"], "--ordered must be NAME:LABEL"),
        ([*BUDGET, *COLUMNS, "--ordered", "income:low,low"], "labels of --ordered income must be distinct"),
        ([*BUDGET, *COLUMNS, "--ordered", "income:a,b", "--label", "income:a,b"], "got income more than once"),
        ([*BUDGET, *COLUMNS, "--ordered", "age:a,b"], "got age more than once"),
        ([*BUDGET, *COLUMNS, "--fill", "wage:3"], "--fill must be NAME:VALUE, once for each column that"),
        ([*BUDGET, *COLUMNS, "--fill", "age"], "got 'age'"),
        ([*BUDGET, *COLUMNS, "--fill", "age:40", "--fill", "age:40"], "once for each column"),
        ([*BUDGET, *COLUMNS, "--fill", "age:16"], "--fill must be a number between the bounds of its column, 17.0 and"),
        ([*BUDGET, *COLUMNS, "--fill", "age:91"], "got 'age:91'"),
        ([*BUDGET, *COLUMNS, "--fill", "age:nan"], "got 'age:nan'"),
        ([*BUDGET, *COLUMNS, "--fill", "age:old"], "got 'age:old'"),
        ([*BUDGET, "--ordered", "income:low,high", "--fill", "income:mid"], "must be one of the labels low, high of"),
        ([*BUDGET, "--ordered", "income:low,high", "--fill", "income:1"], "must be one of the labels low, high of"),
        (
            [*BUDGET, "--column", "age:1900-01-01:2000-01-01", "--fill", "age:2000-01-02"],
            "--fill must be a date between the bounds of its column, 1900-01-01 and 2000-01-01, got 'age:2000-01-02'",
        ),
        ([*COLUMNS], "Missing option"),
        ([*BUDGET, *COLUMNS, "--mechanism", "none"], "--mechanism must be one of"),
    ],
)
def test_release_mistakes_write_nothing(privfit, table, tmp_path, options, words):
    assert words in privfit.mistake("release", table, tmp_path / "o.parquet", *options)
    assert not list(tmp_path.iterdir())


def test_release_mistakes_about_files(privfit, table, tmp_path):
    options = [*COLUMNS, *BUDGET]
    assert "no file" in privfit.mistake("release", tmp_path / "none.csv", tmp_path / "o.parquet", *options)
    assert ".parquet" in privfit.mistake("release", table, tmp_path / "o.xlsx", *options)
    (tmp_path / "there").mkdir()
    assert "already" in privfit.mistake("release", table, tmp_path / "there", *options, "--force")
    assert "no folder" in privfit.mistake("release", table, tmp_path / "no" / "o.parquet", *options)
    bad = tmp_path / "bad.csv"
    bad.write_text("age,hours\n1,2\nSECRET,3,4\n")
    assert "rows of equal length" in privfit.mistake("release", bad, tmp_path / "o.parquet", *options)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_release_of_dates_as_days(privfit, tmp_path, suffix):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    path, out = tmp_path / f"in.{suffix}", tmp_path / "out.parquet"
    days = [date(1990, 6, 15), date(1890, 1, 1), None] * 2000
    write = {
        "csv": lambda table: path.write_text("born,age\n" + "".join(f"{day or ''},30\n" for day in days)),
        "parquet": lambda table: pq.write_table(table, path),
        "feather": lambda table: feather.write_feather(table, path),
    }
    write[suffix](pa.table({"born": days, "age": [30.0] * len(days)}))
    columns = ["--column", "born:1900-01-01:2020-12-31", "--column", "age:17:90"]
    assert privfit.as_json("release", path, out, *columns, *BUDGET, *QUICK)["columns"] == ["born", "age"]
    released = load_release(out, kind="pandas")
    assert released.domain.encoding[0].kind == "date" and released.domain.intervals[0] == (-25567.0, 18627.0)
    # each third: the date, the lower bound, the middle; five standard errors of their mean
    for start, wanted in enumerate((7470, -25567, -3470)):
        third = released.frame["born"][start::3]
        assert abs(third.mean() - wanted) < 5 * released.law.scales(2)[0] / 2000**0.5


ORDERED = [
    *("--column", "age:20:80", "--column", "born:1970-01-01:1970-04-11"),
    *("--ordered", "school:none,some,degree", "--ordered", "stage:1,2,3,4", "--label", "y:no,yes"),
]
FILLS = {"age": ("30", 30), "born": ("1970-01-11", 10), "school": ("degree", 2), "stage": ("2", 1), "y": ("yes", "yes")}
ROWS = 300


def write_ordered(path):
    """Each column: three blocks of rows of which the first is known, the second missing, the third undeclared."""
    table = pa.table(
        {
            "age": pa.array([50.0] * ROWS + [None] * ROWS + [1000.0] * ROWS),
            "born": pa.array([date(1970, 1, 3)] * ROWS + [None] * ROWS + [date(1999, 1, 1)] * ROWS),
            "school": pa.array(["some"] * ROWS + [None] * ROWS + ["SECRET"] * ROWS),
            "stage": pa.array([4] * ROWS + [None] * ROWS + [99] * ROWS, pa.int16()),
            "y": pa.array(["no"] * ROWS + [None] * ROWS + ["SECRET"] * ROWS).dictionary_encode(),
        }
    )
    if path.suffix == ".csv":
        rows = [["" if cell is None else str(cell) for cell in row.values()] for row in table.to_pylist()]
        path.write_text("\n".join(",".join(row) for row in [table.column_names, *rows]))
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with (pa.ipc.new_file if path.stem == "file" else pa.ipc.new_stream)(str(path), table.schema) as sink:
            sink.write_table(table)


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "file.arrow", "stream.arrow"])
def test_fill_and_ordered_labels(privfit, tmp_path, name, filled):
    path, out = tmp_path / name, tmp_path / "out.parquet"
    write_ordered(path)
    options = [word for column, (text, _) in FILLS.items() for word in ("--fill", f"{column}:{text}")] if filled else []
    budget = ["--epsilon", 9, "--delta", "1e-6", "--label-epsilon", 7, "--protect", "attribute"]
    code, text, err = privfit.call("release", path, out, *ORDERED, *options, *budget, *QUICK, "--workers", 1)
    assert (code, err) == (0, "") and "SECRET" not in text
    assert "school is released as numbers: none = 0, some = 1, degree = 2" in text
    assert ("--fill says otherwise: age:30, born:1970-01-11, school:degree, stage:2, y:yes." in text) == filled
    released = load_release(out, kind="pandas")
    box = next(part for part in released.domain if part.columns[0] == "age")
    assert box.intervals == ((20, 80), (0, 100), (0, 2), (0, 3))
    fills = [value for _, value in FILLS.values()] if filled else [50, 50, 1, 1.5, "no"]
    assert list(box.fill) == fills[:4]
    scales = dict(zip(box.columns, released.parts[box.columns].scales(4), strict=True))
    # what the three blocks stand for: numbers outside are clipped, labels that are not declared are filled
    wanted = {"age": (50, 80), "born": (2, 100), "school": (1, None), "stage": (3, None)}
    for (column, (known, outside)), fill in zip(wanted.items(), fills, strict=False):
        for block, value in enumerate((known, fill, fill if outside is None else outside)):
            mean = released.frame[column][block * ROWS : (block + 1) * ROWS].mean()
            # six standard errors: 48 comparisons fail by chance with less than 1e-7
            assert abs(mean - value) < 6 * scales[column] / ROWS**0.5
    # told truthfully with probability e^7/(e^7 + 1): 15 lies of 300 have a probability below 1e-15
    for block, value in enumerate(("no", fills[4], fills[4])):
        assert (released.frame["y"][block * ROWS : (block + 1) * ROWS] == value).sum() > ROWS - 15


@pytest.mark.parametrize("name", ["in.csv", "in.parquet"])
def test_ordered_labels_as_json_and_alone(privfit, tmp_path, name):
    write_ordered(tmp_path / name)
    options = ["--ordered", "school:none,some,degree", "--fill", "school:none", *BUDGET, *QUICK]
    found = privfit.as_json("release", tmp_path / name, tmp_path / "o.csv", *options)
    assert found["columns"] == ["school"] and found["ordered"] == {"school": ["none", "some", "degree"]}
    assert "--fill says otherwise: school:none." in found["missing"] and "the number school takes all" in (
        found["budget"]["split"]
    )
    assert load_release(tmp_path / "o.csv").domain.fill == (0.0,)


def test_ordered_labels_fit_their_column(privfit, tmp_path):
    write_ordered(tmp_path / "in.parquet")
    words = privfit.mistake("release", tmp_path / "in.parquet", tmp_path / "o", "--ordered", "stage:a,b", *BUDGET)
    assert "column 'stage' holds integers, so --label (or --ordered) must list integers" in words


def test_release_help_has_an_example_of_ordered_labels(privfit):
    text = privfit.call("release", "--help")[1]
    assert "--ordered school:none,some,degree --fill age:40 --fill school:some" in " ".join(text.split())


@pytest.mark.parametrize("text", ["born:1900-01-01:5", "born:1900-01-01:2020-02-30", "born:1900-01-01", "born:x:y"])
def test_bounds_that_are_no_two_dates(privfit, table, tmp_path, text):
    code, _, err = privfit.call("release", table, tmp_path / "o.parquet", "--column", text, *BUDGET)
    assert code != 0 and "two numbers or two dates, for instance age:17:90 or born:1900-01-01:2020-12-31" in err


def test_release_of_no_rows_is_refused(privfit, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("age\n")
    code, _, err = privfit.call("release", path, tmp_path / "o.parquet", *COLUMNS[:2], *BUDGET)
    assert code != 0 and "in.csv has columns and no rows" in err and not (tmp_path / "o.parquet").exists()


@pytest.fixture
def stored(table, tmp_path):
    """The private table as Parquet."""
    import pyarrow.csv

    path = tmp_path / "private.parquet"
    pq.write_table(pyarrow.csv.read_csv(table), path, row_group_size=500)
    return path


NAMED = [*COLUMNS, "--label", "income:low,high", "--public", "region"]


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow", "o.csv", "o"])
@pytest.mark.parametrize("source", ["table", "stored"])
def test_release_to_every_kind_of_file(privfit, request, tmp_path, source, name):
    given = request.getfixturevalue(source)
    found = privfit.as_json("release", given, tmp_path / name, *NAMED, *BUDGET, *QUICK)
    assert found["rows"] == 3001 and found["left_out"] == ["name"] and found["columns"] == ["age", "hours", "income"]
    loaded = load_release(tmp_path / name)
    assert loaded.n_rows == 3001 and loaded.public == ("region",) and set(loaded.columns) == {"age", "hours", "income"}
    assert not (tmp_path / (name + ".unfinished")).exists()


def test_release_of_files_and_of_a_table_in_memory_print_the_same(privfit, table, stored, tmp_path):
    texts = []
    for source, name in ((table, "1.parquet"), (stored, "2.parquet")):
        code, text, err = privfit.call("release", source, tmp_path / name, *NAMED, *BUDGET, *QUICK)
        assert (code, err) == (0, "")
        texts.append([line for line in text.splitlines() if not line.startswith(("written:", "columns with noise"))])
    assert texts[0] == texts[1]


def test_release_of_a_folder_of_files_and_of_an_arrow_stream(privfit, stored, tmp_path):
    whole = pq.read_table(stored)
    (tmp_path / "in").mkdir()
    for k, start in enumerate((0, 2000)):
        pq.write_table(whole.slice(start, 2000), tmp_path / "in" / f"{k}.parquet")
    with pa.ipc.new_stream(str(tmp_path / "in.arrow"), whole.schema) as writer:
        writer.write_table(whole)
    for source, out in (("in", "1.parquet"), ("in.arrow", "2.parquet")):
        privfit.as_json("release", tmp_path / source, tmp_path / out, *NAMED, *BUDGET, *QUICK)
        assert load_release(tmp_path / out).n_rows == 3001


def test_a_stopped_release_says_how_it_goes_on_and_does(privfit, stored, tmp_path, monkeypatch):
    out = tmp_path / "o.parquet"
    options = ["release", stored, out, *NAMED, *QUICK, "--workers", 1]

    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "write_part", stop)
        code, text, err = privfit.call(*options, *BUDGET)
    assert code == MISTAKE and text == "" and "stopped." in err and "the same call goes on from there" in err
    assert (tmp_path / "o.parquet.unfinished").is_dir() and not out.exists()
    other = privfit.mistake(*options, "--epsilon", 5, "--delta", "1e-6")
    assert "differs from this call in: law" in other and "delete" in other
    assert privfit.call(*options, *BUDGET)[0] == 0
    assert load_release(out).n_rows == 3001 and not (tmp_path / "o.parquet.unfinished").exists()


@pytest.mark.parametrize("source", ["table", "stored"])
def test_release_charges_a_ledger_or_is_refused(privfit, request, tmp_path, source):
    given, book = request.getfixturevalue(source), tmp_path / "book.jsonl"
    Ledger(Budget(7.0, 1e-5), book)
    options = [*NAMED, *BUDGET, *QUICK, "--ledger", book, "--ledger-label", "wave 1", "--part", "site A"]
    privfit.as_json("release", given, tmp_path / "1.parquet", *options)
    (entry,) = Ledger.open(book).entries
    assert (entry.label, entry.part) == ("wave 1", "site A")
    # twice epsilon = 6 at 1e-6 is more than 7 at 1e-5
    code, text, err = privfit.call("release", given, tmp_path / "2.parquet", *options)
    assert code == REFUSED and text == "" and "refused" in err and err.count("\n") == 1
    assert len(Ledger.open(book).entries) == 1 and not list(tmp_path.glob("2.parquet*"))


def test_release_mistakes_about_ledgers(privfit, table, tmp_path):
    options = ["release", table, tmp_path / "o.parquet", *COLUMNS, *BUDGET]
    assert "no ledger" in privfit.mistake(*options, "--ledger", tmp_path / "none.jsonl")
    assert "give --ledger" in privfit.mistake(*options, "--part", "A")
    assert not list(tmp_path.iterdir())


def test_release_of_a_stored_table_checks_its_schema_first(privfit, stored, tmp_path):
    before = sorted(tmp_path.iterdir())
    for options, words in [
        (["--column", "wage:0:1"], "no column 'wage' among its"),
        (["--column", "name:0:1"], "holds text, not numbers"),
        (["--column", "age:17:90", "--label", "age:a,b"], "more than once"),
        (["--column", "age:17:90", "--label", "region:a,b"], "must list integers"),
    ]:
        assert words in privfit.mistake("release", stored, tmp_path / "o.parquet", *options, *BUDGET)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["out.csv", "study.csv"])
def test_release_does_not_replace_the_ledger(privfit, table, tmp_path, name):
    # the law of study.csv is written beside it
    ledger = tmp_path / ("out.csv" if name == "out.csv" else "study.csv.law.json")
    Ledger(Budget(4, 1e-5), ledger)
    before = ledger.read_bytes()
    options = [*COLUMNS, *BUDGET, *QUICK, "--ledger", ledger, "--force"]
    assert "must not be the ledger" in privfit.mistake("release", table, tmp_path / name, *options)
    assert ledger.read_bytes() == before


def test_release_does_not_replace_a_law_beside_its_file_unasked(privfit, table, tmp_path):
    (tmp_path / "study.csv.law.json").write_text("somebody's")
    options = ["release", table, tmp_path / "study.csv", *COLUMNS, *BUDGET, *QUICK]
    assert "study.csv.law.json exists" in privfit.mistake(*options)
    assert privfit.call(*options, "--force")[0] == 0


def test_release_that_its_file_cannot_hold_is_not_charged(privfit, tmp_path):
    rows = pa.table({"age": [30.0, 40.0], "paid": pa.array([1, 2], pa.decimal128(5, 2))})
    pq.write_table(rows, tmp_path / "in.parquet")
    ledger = Ledger(Budget(4, 1e-5), tmp_path / "study.jsonl")
    options = ["--column", "age:17:90", "--public", "paid", *BUDGET, *QUICK, "--ledger", tmp_path / "study.jsonl"]
    assert "CSV does not carry" in privfit.mistake("release", tmp_path / "in.parquet", tmp_path / "out.csv", *options)
    assert not ledger.entries and not (tmp_path / "out.csv").exists()
