from xml.etree import ElementTree

import pytest

from xbert.stages.evaluate.svg import Axis, Bars, Chart, dash, legend


def chart(y=None):
    names = Axis.named("where", ["a", "b"])
    return Chart("key", "Title", "About", names, y or Axis.linear("percent", 0, 100))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 7, [0, 2, 4, 6, 8]),
        (-0.3, 1.2, [-0.5, 0, 0.5, 1, 1.5]),
        (0, 0, [0, 1]),
    ],
)
def test_linear_axes_have_round_ticks_that_hold_the_values(low, high, ticks):
    axis = Axis.linear("", low, high)
    assert [value for value, _ in axis.ticks] == pytest.approx(ticks)
    assert axis.low <= low
    assert axis.high >= high


def test_logarithmic_axes_have_powers_of_ten():
    axis = Axis.powers("", 4000)
    assert [words for _, words in axis.ticks] == ["1", "10", "100", "1k", "10k"]
    assert axis.at(100) == pytest.approx(0.5)


def test_a_chart_is_xml_with_a_title_and_a_description():
    made = chart()
    made.line([(0, 10), (1, 20)], 0, ["<first>", "second & last"])
    root = ElementTree.fromstring(made.svg())
    assert [root.find("title").text, root.find("desc").text] == ["Title", "About"]
    assert root.get("aria-labelledby").split() == [root.find("title").get("id"), root.find("desc").get("id")]


def test_bars_start_at_zero_and_missing_values_have_none():
    made = chart(Axis.linear("points", -1, 1))
    made.bars(Bars("one", 0, [-1, None], ["down", "none"]), 0, 1)
    (bar,) = ElementTree.fromstring(made.svg()).findall("rect")
    zero = made._y(0)
    assert float(bar.get("y")) == pytest.approx(zero, abs=0.1)
    assert float(bar.get("height")) == pytest.approx(made._y(-1) - zero, abs=0.1)


def test_numbers_stand_above_their_intervals():
    made = chart()
    made.bars(Bars("one", 0, [50, 50], ["", ""], [(30, 80), (50, 50)]), 0, 1)
    first, second = (float(text.get("y")) for text in ElementTree.fromstring(made.svg()).findall("text[@class='value']"))
    assert first < made._y(80) < second


def test_neighbouring_series_and_those_of_one_colour_have_other_dashes():
    assert dash(0) != dash(1)
    assert dash(0) != dash(8)


def test_a_single_series_needs_no_legend():
    assert legend([(0, "one")]) == ""
    assert "&lt;two&gt;" in legend([(0, "one"), (1, "<two>")])
