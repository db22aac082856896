"""vLLM's package without a server: what it imports and a layer of experts never calls is a stub."""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any

import torch

UNUSED = """openai xgrammar outlines_core outlines lark llguidance compressed_tensors depyf
watchfiles ijson setproctitle openai_harmony anthropic mcp opentelemetry flashinfer tilelang cudnn
fastsafetensors cutlass quack lmformatenforcer prometheus_fastapi_instrumentator fastapi starlette
uvicorn zmq diskcache blake3 pybase64 cbor2 partial_json_parser model_hosting_container_standards
pythonjsonlogger tokenspeed_mla cpuinfo prometheus_client aiohttp tiktoken sentencepiece cv2
jsonschema cloudpickle uvloop""".split()


class Stub(types.ModuleType):
    """A module whose every name is a class that does nothing."""
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def nothing(*arguments: Any, **_: Any) -> Any:  # a decorator gives back what it decorates
            return arguments[0] if arguments and callable(arguments[0]) else None
        made = type(name, (), {"__init__": lambda self, *a, **k: None,
                               "__call__": lambda self, *a, **k: a[0] if a else None,
                               "__getattr__": lambda self, _: nothing})
        setattr(self, name, made)
        return made


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: list[str]):
        self.names = {name for name in names if importlib.util.find_spec(name) is None}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.split(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return Stub(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


# transformers looks for some of the stubs' names: it is imported before they are there.
try:
    import transformers.models.auto.image_processing_auto  # noqa: F401
    import transformers.processing_utils  # noqa: F401
except ImportError:
    pass
if not any(isinstance(finder, Stubs) for finder in sys.meta_path):
    sys.meta_path.append(Stubs(UNUSED))

import vllm  # noqa: E402
from vllm.config import VllmConfig, set_current_vllm_config  # noqa: E402

# For all that follows: its kernels ask for it when they are called.
_config = set_current_vllm_config(VllmConfig())
_config.__enter__()

from vllm.model_executor.layers.fused_moe.activation import MoEActivation  # noqa: E402


def version() -> str:
    return f"vllm {vllm.__version__}, torch {torch.__version__}"


def activation_of(layer: Any) -> Any:
    return MoEActivation.SWIGLUOAI if layer.gpt_oss else MoEActivation.SILU


def as_float(bias: torch.Tensor | None) -> torch.Tensor | None:
    return None if bias is None else bias.float()
