from dataclasses import replace

import pytest

from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.kinds.evaluation import Evaluation
from xbert.stages.evaluate.evaluate import Evaluate, EvaluateConfig

QUICK = EvaluateConfig(bootstrap=50)


def run(inputs, work, config=QUICK):
    return Evaluate().run(inputs, config, work)


def test_every_model_and_the_ensemble_is_measured_on_every_held_out_split(example, work):
    metrics = run(example, work).metrics
    assert list(metrics) == ["one", "two", "ensemble", "comparison"]
    assert all(set(splits) == {"valid", "test"} for splits in metrics.values())


def test_the_numbers_are_those_counted_by_hand(example, work):
    found = run(example, work).metrics["one"]["test"]
    assert found["P@1"] == 50  # documents 1 and 2 of 4
    assert found["P@3"] == pytest.approx(33.33)  # 1 + 2 + 0 + 1 of 12
    assert found["R@5"] == 75  # (1 + 1 + 0 + 1) / 4
    assert found["coverage@5"] == 80  # labels 0, 1, 2, 3 of 0, 1, 2, 3, 5
    assert found["matcher"]["recall"]["1"] == 66.67  # 0 of document 1, 1 of 2, 5 of 3, 3 of 4, of 6


def test_an_entry_holds_what_is_promised(example, work):
    found = run(example, work).metrics["two"]["valid"]
    for name in ("P", "R", "nDCG", "PSP", "RP"):
        for k in (1, 3, 5):
            low, high = found["intervals"][f"{name}@{k}"]
            assert low <= found[f"{name}@{k}"] <= high
    assert set(found["by_frequency"]) == {"few", "medium", "many", "unseen"}
    assert {"R@5", "share"} <= set(found["head"])
    assert {"R@5", "share"} <= set(found["tail"])
    assert {"recall", "P@1", "P@3", "P@5"} <= set(found["matcher"])


def test_the_ensemble_has_gains_and_no_matcher(example, work):
    metrics = run(example, work).metrics
    together, single = metrics["ensemble"]["test"], metrics["one"]["test"]
    assert "matcher" not in together
    assert together["gain"]["one"]["P@1"] == together["P@1"] - single["P@1"]
    assert set(together["gain"]["two"]["intervals"]) == {"P@1", "P@3", "P@5"}


def test_a_single_model_needs_no_ensemble(example, work):
    inputs = {name: value for name, value in example.items() if not name.startswith(("two/", "ensemble"))}
    assert list(run(inputs, work).metrics) == ["one"]


def test_the_same_inputs_give_the_same_bytes(example, work):
    first, second = run(example, work), run(example, work)
    assert first.metrics == second.metrics
    assert first.report == second.report


def test_what_is_kept_is_what_was_measured(example, work):
    made = run(example, work)
    made.save(work.folder)
    again = Evaluation.load(work.folder)
    assert (again.metrics, again.report) == (made.metrics, made.report)


def test_without_draws_there_are_no_intervals(example, work):
    found = run(example, work, EvaluateConfig(bootstrap=0)).metrics["ensemble"]["test"]
    assert found["intervals"] == {}
    assert found["gain"]["one"]["intervals"] == {}


def test_further_depths_are_measured_and_their_shortness_is_said(example, work):
    found = run(example, work, EvaluateConfig(ks="10, 2", bootstrap=0)).metrics["one"]["test"]
    assert {"P@1", "P@2", "P@3", "P@5", "P@10"} <= set(found)
    assert "one, test: at most 3 labels are kept per document, so metrics at 10 are too low" in work.said


def test_documents_without_labels_are_said_and_counted(example, work, dataset):
    example["data"] = dataset(6, train=[[0], [1]], valid=[[0], []], test=[[0], [1], [2], [3]])
    assert run(example, work).metrics["one"]["valid"]["unlabelled"] == 1
    assert "valid: 1 of 2 documents have no true label and count 0" in work.said


def test_a_dataset_without_held_out_documents_is_refused(example, work, dataset):
    example["data"] = dataset(6, train=[[0], [1]])
    with pytest.raises(InputError, match="no documents to measure on"):
        run(example, work)


def test_an_empty_split_is_passed_over(example, work, dataset):
    example["data"] = dataset(6, train=[[0], [1]], valid=[], test=[[0], [1], [2], [3]])
    assert set(run(example, work).metrics["one"]) == {"test"}


def test_scores_of_other_documents_are_refused(example, work, ranking):
    example["one/rank"] = replace(example["one/rank"], scores={"valid": ranking([[0]], 6), "test": ranking([[0]], 6)})
    with pytest.raises(ArtifactError, match="one/rank scores 1 documents of valid, the dataset has 2"):
        run(example, work)


def test_scores_of_other_labels_are_refused(example, work, ranking):
    example["ensemble"] = replace(example["ensemble"], scores={"valid": ranking([[0], [1]], 7)})
    with pytest.raises(ArtifactError, match="ensemble knows 7 labels, 6 are expected"):
        run(example, work)


def test_scores_without_a_split_are_refused(example, work, ranking):
    example["one/match"] = replace(example["one/match"], scores={"valid": ranking([[0], [1]], 3)})
    with pytest.raises(ArtifactError, match="one/match has no scores for the test split"):
        run(example, work)


def test_an_index_of_other_labels_is_refused(example, work, index):
    example["two/index"] = index([0, 1])
    with pytest.raises(ArtifactError, match="two/index has 2 labels, the dataset 6"):
        run(example, work)


@pytest.mark.parametrize("name", ["ensemble", "comparison"])
def test_a_model_cannot_bear_the_name_of_another_part_of_the_metrics(example, work, name):
    example[f"{name}/rank"] = example["one/rank"]
    with pytest.raises(InputError, match=f"a model is called '{name}'"):
        run(example, work)


@pytest.mark.parametrize("ks", ["", "1,,3", "0", "1.5", "-1", "1001", "99999999999", "five", "²"])
def test_depths_that_are_no_depths_are_refused_at_once(ks):
    with pytest.raises(InputError, match="whole numbers between 1 and 1000"):
        EvaluateConfig(ks=ks)


def test_depths_are_sorted_and_always_hold_the_usual_ones():
    assert EvaluateConfig(ks="10,3,10").depths() == (1, 3, 5, 10)


def test_frequency_bounds_must_ascend():
    with pytest.raises(InputError, match="few must be the smaller"):
        EvaluateConfig(few=100, medium=100)
