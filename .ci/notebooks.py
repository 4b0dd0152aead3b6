"""nbdev's test of notebooks, where each begins with the warnings that Python has at its
start: a notebook that turns warnings into errors, with threads at work, may leave that
behind in a process that goes on with the next one."""

import warnings

from nbdev import test as nbdev

USUAL = list(warnings.filters)
test_one = nbdev.test_nb


def test_nb(*arguments, **options):
    "Test one notebook with the usual warnings."
    warnings.resetwarnings()
    warnings.filters.extend(USUAL)
    return test_one(*arguments, **options)


if __name__ == "__main__":
    nbdev.test_nb = test_nb
    nbdev.nbdev_test()
