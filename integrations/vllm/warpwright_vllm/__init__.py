"""Warpwright under vLLM: `pip install warpwright-vllm`, and WARPWRIGHT_VLLM=1 (docs/serving.md).

vLLM calls `register` in each of its processes. What goes wrong here is a line in vLLM's log, and
vLLM's own kernels then run: nothing is imported before WARPWRIGHT_VLLM says so.
"""
import logging
import os

VARIABLE = "WARPWRIGHT_VLLM"
# "model": layers in host memory too, by the machine model: for tests.
PARTS = ("experts", "linear", "model")
log = logging.getLogger("vllm.warpwright")


def parts():
    """What WARPWRIGHT_VLLM asks for: nothing, all ("1"), or some of PARTS, with commas between."""
    said = os.environ.get(VARIABLE, "").strip()
    if said in ("", "0"):
        return ()
    asked = tuple(word.strip() for word in said.split(","))
    if asked == ("1",):
        return ("experts", "linear")
    unknown = [word for word in asked if word not in PARTS]
    if unknown:
        log.warning("Warpwright is off: %s is %r; it is 1, 0, or some of %s", VARIABLE, said,
                    ", ".join(PARTS))
        return ()
    return asked


def register():
    """The entry point of vllm.general_plugins."""
    asked = parts()
    for part in asked:
        try:
            if part == "experts":
                from . import methods
                methods.register()
            elif part == "linear":
                from . import linear
                linear.register()
        except Exception as error:  # pylint: disable=broad-exception-caught
            log.warning("Warpwright is off for %s: %s: %s", part, type(error).__name__, error)
