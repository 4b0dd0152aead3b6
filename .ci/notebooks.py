"""nbdev's test of notebooks, where each begins with the warnings that Python has at its
start: a notebook that turns warnings into errors, with threads at work, may leave that
behind in a process that goes on with the next one."""

import warnings

from nbdev import test as nbdev

USUAL = list(warnings.filters)
Shell = nbdev.CaptureShell


def usual_shell(*arguments, **options):
    "The shell of one notebook, with the usual warnings."
    warnings.resetwarnings()
    warnings.filters.extend(USUAL)
    return Shell(*arguments, **options)


if __name__ == "__main__":
    nbdev.CaptureShell = usual_shell  # the processes are forks of this one
    nbdev.nbdev_test()
