"""`trimtab replay` of records in every format."""

from pathlib import Path

from trimtab.cli import answer
from trimtab.decide.horizontal.records.record import dumps, loads

HPAS = Path(__file__, "../../../../data/records/hpas.jsonl").resolve()
COUNT = len(HPAS.read_bytes().splitlines())


def test_records_of_an_earlier_program_come_out_the_same(capsys):
    assert answer(["replay", "--quiet", str(HPAS)]) == 0
    assert capsys.readouterr().err == f"{COUNT} decisions came out the same, 0 did not\n"


def test_so_do_the_same_records_in_the_new_format(tmp_path, capsys):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"".join(dumps(loads(line)) + b"\n" for line in HPAS.read_bytes().splitlines()))
    assert answer(["replay", "--quiet", str(path)]) == 0
    assert capsys.readouterr().err == f"{COUNT} decisions came out the same, 0 did not\n"


def test_one_decision_is_counted_as_one(tmp_path, capsys):
    """The line said `1 decisions`."""
    path = tmp_path / "records.jsonl"
    path.write_bytes(HPAS.read_bytes().splitlines(keepends=True)[0])
    assert answer(["replay", "--quiet", str(path)]) == 0
    assert capsys.readouterr().err == "1 decision came out the same, 0 did not\n"
