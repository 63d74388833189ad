"""`python -m unskew`, and what the command `unskew` starts."""

import sys

from unskew.cli import main


def start() -> None:
    """Run the command line in a process of its own.

    numba imports scipy.linalg, a fifth of a small command's time, wherever scipy is installed, to
    serve matrix products inside kernels. No kernel of ours has one, so here it finds none.
    """
    sys.modules.setdefault("scipy.linalg.cython_blas", None)  # type: ignore[arg-type]
    main()


if __name__ == "__main__":
    start()
