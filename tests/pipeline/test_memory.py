import pytest

from xbert.artifacts.errors import InputError
from xbert.pipeline import memory


@pytest.mark.parametrize(
    ("text", "size"),
    [("8G", 8 * 10**9), ("500M", 5 * 10**8), ("1.5GiB", 3 * 2**29), ("2 gb", 2 * 10**9), ("300000000", 3 * 10**8)],
)
def test_a_size_is_read_as_people_write_it(text, size):
    assert memory.parse(text) == size


@pytest.mark.parametrize("text", ["", "many", "8X", "-8G", "8G8", "100M", "0"])
def test_a_size_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="memory"):
        memory.parse(text)


def test_what_is_free_is_no_more_than_there_is():
    import os

    assert 0 < memory.free() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(("size", "shown"), [(0, "0 kB"), (1_500_000, "1.5 MB"), (8e9, "8.0 GB"), (2.4e13, "24 TB")])
def test_sizes_are_shown_for_people(size, shown):
    assert memory.show(size) == shown
