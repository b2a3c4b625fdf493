import json

from xbert.stages.evaluate.evaluate import Evaluate, EvaluateConfig
from xbert.stages.evaluate.table import lines


def metrics_of(example, work):
    return Evaluate().run(example, EvaluateConfig(bootstrap=0), work).metrics


def test_a_row_for_every_model_and_split(example, work):
    text = lines(metrics_of(example, work))
    assert [line.split()[:2] for line in text[2:6]] == [
        ["one", "valid"],
        ["one", "test"],
        ["two", "valid"],
        ["two", "test"],
    ]


def test_the_ensemble_stands_apart(example, work):
    text = lines(metrics_of(example, work))
    assert text[6:8] == ["", "ensemble of the 2 above"]
    assert [line.split()[:2] for line in text[8:]] == [["ensemble", "valid"], ["ensemble", "test"]]


def test_columns_are_aligned(example, work):
    rows = [line for line in lines(metrics_of(example, work)) if line.startswith(("model", "-", "one", "two", "ensemble  "))]
    assert len(rows) == 8
    assert len({len(row) for row in rows}) == 1


def test_a_class_without_labels_is_a_dash(example, work):
    assert lines(metrics_of(example, work))[2].split()[-1] == "-"


def test_metrics_read_back_from_json_make_the_same_rows(example, work):
    metrics = metrics_of(example, work)
    again = json.loads(json.dumps(metrics, sort_keys=True))
    assert sorted(lines(again)) == sorted(lines(metrics))


def test_a_single_model_has_no_ensemble_part(example, work):
    metrics = metrics_of(example, work)
    assert len(lines({"one": metrics["one"]})) == 4
