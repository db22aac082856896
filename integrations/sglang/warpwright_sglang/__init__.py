"""Warpwright under SGLang: `pip install warpwright-sglang`, and WARPWRIGHT_SGLANG=1.

docs/serving.md says more. SGLang calls `register` in each of its processes. What goes wrong here is
a line in its log, and its own kernels then run.
"""
import logging
import os

VARIABLE = "WARPWRIGHT_SGLANG"
log = logging.getLogger("sglang.warpwright")


def switch():
    """"1", "" (off), or "model": layers in host memory too, by the machine model, for tests."""
    said = os.environ.get(VARIABLE, "").strip()
    if said not in ("", "0", "1", "model"):
        log.warning("Warpwright is off: %s is %r; it is 1 or 0", VARIABLE, said)
    return said if said in ("1", "model") else ""


def register():
    """The entry point of sglang.srt.plugins."""
    if not switch():
        return
    try:
        from . import runner
        runner.register()
    except Exception as error:  # pylint: disable=broad-exception-caught
        log.warning("Warpwright is off: %s: %s", type(error).__name__, error)
