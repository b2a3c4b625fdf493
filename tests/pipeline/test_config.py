import pytest

from xbert.artifacts.errors import InputError, UsageError
from xbert.pipeline.config import read
from xbert.stages.match.linear import LinearConfig


@pytest.fixture
def write(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"text": "a", "labels": ["x"]}\n')

    def write_file(content):
        path = tmp_path / "e.toml"
        path.write_text(content, encoding="utf-8")
        return path

    return write_file


def test_defaults_come_from_the_methods(write):
    experiment = read(write('[data]\ntrain = "train.jsonl"\n'))
    assert list(experiment.models) == ["linear"]
    assert experiment.models["linear"]["rank"].config.post_processor == "l3-hinge"
    assert experiment.folder == experiment.path.parent / "runs" / "e"


def test_paths_are_relative_to_the_file(write, tmp_path):
    assert read(write('[data]\ntrain = "train.jsonl"\n')).shared["data"].config.train == str(tmp_path / "train.jsonl")


def test_a_model_overrides_what_all_share(write):
    content = '[index]\nclusters = 8\nseed = 1\n[[model]]\nname = "a"\n[[model]]\nname = "b"\nindex.seed = 2\n'
    models = read(write(content)).models
    assert [(m["index"].config.clusters, m["index"].config.seed) for m in models.values()] == [(8, 1), (8, 2)]


def test_a_model_with_another_method_begins_with_that_methods_defaults(write):
    """What all share is written for their method: another one would not know the settings."""
    content = '[match]\nmethod = "neural"\nepochs = 7\n[[model]]\nname = "a"\n[[model]]\nname = "b"\nmatch.method = "linear"\n'
    models = read(write(content)).models
    assert models["a"]["match"].config.epochs == 7
    assert (models["b"]["match"].method.name, models["b"]["match"].config) == ("linear", LinearConfig())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[index]\ncluters = 8\n", r"\[index\] has no setting 'cluters'; did you mean 'clusters'\?"),
        ("[indx]\nclusters = 8\n", r"no section \[indx\]; did you mean 'index'\?"),
        ('[index]\nmethod = "kmean"\n', r"method = 'kmean' is not known; did you mean 'kmeans'\?"),
        ("[index]\nclusters = 1\n", r"\[index\] clusters = 1: must be at least 2, or 'auto'"),
        ('[index]\nclusters = "few"\n', r"clusters = 'few': must be a whole number, or 'auto'"),
        ("[rank]\ncost_positive = true\n", r"cost_positive = True: must be a number"),
        ("[rank]\nthreshold = nan\n", r"threshold = nan: must be at least"),
        ('[rank]\npost_processor = "l9"\n', r"post_processor = 'l9': must be one of 'sigmoid'"),
        ('[match]\ntrain_scores = "in-sample"\n', r"train_scores = 'out-of-fold' in \[match\]"),
        ("[features]\nsublinear = 1\n", r"sublinear = 1: must be true or false"),
        ("index = 3\n", r"\[index\] must be a section"),
        ("[run]\nthread = 2\n", r"\[run\] has no setting 'thread'; did you mean 'threads'\?"),
        ("[run]\nthreads = -1\n", r"threads = -1"),
        ("[[model]]\nindex.seed = 1\n", r"\[\[model\]\] name = None"),
        ('[[model]]\nname = "a"\n[[model]]\nname = "a"\n', r"two \[\[model\]\] sections have the name 'a'"),
        ('[[model]]\nname = "a"\nevaluate.few = 1\n', r"model 'a' has no section 'evaluate'"),
        ('[[model]]\nname = "a"\nindex.sed = 1\n', r"model a: \[index\] has no setting 'sed'; did you mean 'seed'\?"),
        ("[index\n", r"not valid TOML: .*line 1"),
    ],
)
def test_what_cannot_be_is_one_sentence(write, content, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read(write(content))
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_how_to_write_one(tmp_path):
    with pytest.raises(InputError, match="xbert init linear"):
        read(tmp_path / "none.toml")


def test_a_value_from_the_command_line_wins(write):
    overrides = ["index.clusters=16", "rank.post_processor=sigmoid", "data.train=train.jsonl"]
    choices = read(write("[index]\nclusters = 8\n"), overrides).models["linear"]
    assert choices["index"].config.clusters == 16
    assert choices["rank"].config.post_processor == "sigmoid"


def test_a_models_value_from_the_command_line(write):
    content = '[[model]]\nname = "a"\n[[model]]\nname = "b"\n'
    models = read(write(content), ["model.b.index.seed=5"]).models
    assert models["a"]["index"].config.seed == 0
    assert models["b"]["index"].config.seed == 5


@pytest.mark.parametrize(
    "override", ["index.clusters", "clusters=3", ".=3", "index.cluters=3", "model.c.index.seed=1", "index.clusters=1"]
)
def test_a_wrong_override_is_a_usage_error(write, override):
    with pytest.raises(UsageError):
        read(write('[[model]]\nname = "a"\n'), [override])
