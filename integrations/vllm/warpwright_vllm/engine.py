"""What both parts need of vLLM: where layers may lie, its log, its caches of compiled code."""
import os

import warpwright as wp
from vllm import envs
from vllm.logger import init_logger
from vllm.platforms import current_platform
from warpwright import serving

from . import VARIABLE, parts

# vLLM shows what loggers under its own name say.
lines = serving.Lines(init_logger("vllm.warpwright"), "vLLM")


def keep_caches_apart():
    """vLLM keeps compiled code by its variables' values, and which kernels run is part of it."""
    envs.environment_variables[VARIABLE] = (
        lambda: f"{os.environ.get(VARIABLE, '')} {wp.__version__}")


def supported():
    """(whether anything is served on this machine, why not)"""
    if "model" in parts():
        return True, None
    if not current_platform.is_cuda():
        return False, "this vLLM runs on no CUDA device"
    if not wp.built_with_cuda:
        return False, "this Warpwright was built without its GPU side"
    return True, None


def device_of(tensor):
    """Where a layer lies, in the words of `plan`."""
    return serving.place_of(tensor, on_model="model" in parts())
