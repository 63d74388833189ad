"""`python -m unskew`, and what the command `unskew` starts."""

import signal
import sys


def start() -> None:
    """Run the command line in a process of its own."""
    try:
        from unskew.cli import main

        main()
    except KeyboardInterrupt:  # before there is a command that could say more
        print("Stopped.", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over: a second Ctrl-C changes nothing


if __name__ == "__main__":
    start()
