import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from xbert.stages.evaluate.evaluate import Evaluate, EvaluateConfig

VOID = {"meta", "br", "link", "img"}


class Reader(HTMLParser):
    """Collects ids, text and whatever is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.text, self.wrong = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.fixture
def page(example, work):
    return Evaluate().run(example, EvaluateConfig(bootstrap=20), work).report


def test_every_tag_is_closed_and_every_id_is_unique(page):
    reader = read(page)
    assert (reader.open, reader.wrong) == ([], [])
    assert len(reader.ids) == len(set(reader.ids))


def test_links_lead_to_places_on_the_page(page):
    reader = read(page)
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)


def test_nothing_is_loaded_from_outside(page):
    assert not re.search(r"https?:|//|src=|url\(|@import|<script|<link", page)


def test_every_chart_is_xml_with_title_and_description(page):
    charts = [text for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if "aria-hidden" not in text]
    assert len(charts) == 2 * 4 + 2
    for text in charts:
        root = ElementTree.fromstring(text)
        assert root.find("title").text
        assert root.find("desc").text


def test_no_coordinate_is_missing_or_endless(page):
    assert not re.search(r'"[^"]*\b(nan|inf|None)\b[^"]*"', page)


def test_whatever_the_user_named_is_escaped(example, work):
    evil = "<script>alert('&\"')</script>"
    for part in ("index", "match", "rank"):
        example[f"{evil}/{part}"] = example.pop(f"one/{part}")
    example["data"].facts[evil] = [evil, {"nested": evil}]
    page = Evaluate().run(example, EvaluateConfig(bootstrap=0), work).report
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert read(page).wrong == []


def test_the_page_says_how_to_read_it(page):
    text = " ".join(read(page).text)
    for words in (
        "not calibrated probabilities",
        "95% bootstrap intervals from 20 draws",
        "quote the numbers of test",
        "4 documents, 6 true assignments of 5 different labels out of 6",
        "A = 0.55 and B = 1.5",
        "Labels without a training document: 1 of these",
    ):
        assert words in text


def test_every_metric_of_the_tables_is_defined(page):
    terms = " ".join(re.findall(r"<dt>(.*?)</dt>", page))
    for name in ("P@k", "R@k", "nDCG@k", "PSP@k", "RP@k", "coverage@5", "macro P@5, R@5, F@5", "matcher recall"):
        assert name in terms


def test_facts_of_the_data_are_shown_flat(page):
    assert "files.train" in page
    assert "train.jsonl" in page


def test_without_draws_the_page_says_so(example, work):
    page = Evaluate().run(example, EvaluateConfig(bootstrap=0), work).report
    assert "No intervals were asked for" in page
    assert "whisker" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


def test_a_single_model_has_no_gain_to_show(example, work):
    inputs = {name: value for name, value in example.items() if not name.startswith(("two/", "ensemble"))}
    page = Evaluate().run(inputs, EvaluateConfig(bootstrap=0), work).report
    assert "Gain of the ensemble" not in page
    assert "ensemble costs" not in page


def test_a_split_without_any_true_label_can_be_shown(example, work, dataset):
    example["data"] = dataset(6, train=[[0], [1]], valid=[[], []], test=[[], [], [], []])
    page = Evaluate().run(example, EvaluateConfig(bootstrap=5), work).report
    assert "Documents without a true label: 4" in page
