from typing import Any, Sequence, final, overload

from typing_extensions import Self

from ._interop import Spec
from ._prepare import PackedWeights
from ._types import (Accumulation, Activation, Along, GatedActivation, GateUp, Operands, QuantiseD, Scaling,
                     Sums, T, Tensor)

version: str
built_with_cuda: bool
array_types: dict[str, str]
other_types: dict[str, str]
formats: dict[str, tuple[str, int, str, int]]

@final
class Plan:
    @property
    def name(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def line(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def workspace_bytes(self) -> int: ...
    def explain(self) -> str: ...
    def prepare(self, workspace: Workspace | None = None, stream: Any = None) -> None: ...

@final
class MoePlan:
    @property
    def name(self) -> str: ...
    @property
    def kernels(self) -> tuple[str, str]: ...
    @property
    def line(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def launches(self) -> int: ...
    @property
    def workspace_bytes(self) -> int: ...
    def explain(self) -> str: ...
    def prepare(self) -> None: ...

@final
class Workspace:
    def __new__(cls, nbytes: int, device: str = "cuda") -> Self: ...
    @property
    def nbytes(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

@final
class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def _address(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __dlpack__(self, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Any = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def gemm(a: T, b: Tensor | PackedWeights, *, out: Tensor | None = None, c: Tensor | None = None,
         alpha: float = 1.0, beta: float = 1.0, bias: Tensor | None = None,
         bias_along: Along = "columns", activation: Activation = "none", gated: bool = False,
         gate_up: GateUp = "halves",
         gate_limit: float | None = None, gate_alpha: float | None = None,
         gate_beta: float | None = None,
         scale_a: Tensor | float | None = None, scale_b: Tensor | float | None = None,
         scale_d: Tensor | None = None, scaling: Scaling | None = None,
         accumulation: Accumulation = "fast", operands: Operands | None = None,
         a_type: Operands | None = None, b_type: Operands | None = None,
         sums: Sums | None = None, dtype: Any = None, quantise_d: QuantiseD = "none",
         d_scales: Tensor | None = None, batch_invariant: bool = False,
         kernel: str | None = None, cluster: tuple[int, int] | None = None,
         measure: int = 0, dependent: bool = False, stream: Any = None,
         workspace: Workspace | None = None, plan: Plan | None = None) -> T: ...
def grouped_gemm(a: T, b: Tensor | PackedWeights, offsets: Tensor, *, out: Tensor | None = None,
                 c: Tensor | None = None, alpha: float = 1.0, beta: float = 1.0,
                 bias: Tensor | None = None, bias_along: Along = "columns",
                 activation: Activation = "none", gated: bool = False,
                 gate_up: GateUp = "halves",
                 gate_limit: float | None = None, gate_alpha: float | None = None,
                 gate_beta: float | None = None,
                 scale_a: Tensor | float | None = None, scale_b: Tensor | float | None = None,
                 scale_d: Tensor | None = None, scaling: Scaling | None = None,
                 accumulation: Accumulation = "fast", operands: Operands | None = None,
                 a_type: Operands | None = None, b_type: Operands | None = None,
                 sums: Sums | None = None, dtype: Any = None, quantise_d: QuantiseD = "none",
                 d_scales: Tensor | None = None, batch_invariant: bool = False,
                 kernel: str | None = None, cluster: tuple[int, int] | None = None,
                 expected_tokens: float | None = None, expected_lengths: str | None = "routed",
                 rows: Tensor | None = None, rows_divisor: int | None = None, measure: int = 0,
                 check_offsets: bool = False, dependent: bool = False, stream: Any = None,
                 workspace: Workspace | None = None, plan: Plan | None = None) -> T: ...
def plan(a: Tensor | Spec, b: Tensor | Spec | PackedWeights, offsets: Tensor | Spec | None = None,
         *,
         device: str | None = None, out: Tensor | Spec | None = None,
         c: Tensor | Spec | None = None, alpha: float = 1.0, beta: float = 1.0,
         bias: Tensor | Spec | None = None, bias_along: Along = "columns",
         activation: Activation = "none", gated: bool = False,
         gate_up: GateUp = "halves",
         gate_limit: float | None = None, gate_alpha: float | None = None,
         gate_beta: float | None = None,
         scale_a: Tensor | Spec | float | None = None,
         scale_b: Tensor | Spec | float | None = None, scale_d: Tensor | Spec | None = None,
         scaling: Scaling | None = None, accumulation: Accumulation = "fast",
         operands: Operands | None = None, a_type: Operands | None = None,
         b_type: Operands | None = None, sums: Sums | None = None, dtype: Any = None,
         quantise_d: QuantiseD = "none", d_scales: Tensor | Spec | None = None,
         batch_invariant: bool = False, kernel: str | None = None,
         cluster: tuple[int, int] | None = None, expected_tokens: float | None = None,
         expected_lengths: str | None = "routed", rows: Tensor | Spec | None = None,
         rows_divisor: int | None = None, measure: int = 0) -> Plan: ...
@overload
def fastest(*plans: Plan) -> tuple[Plan, int]: ...
@overload
def fastest(*plans: MoePlan) -> tuple[MoePlan, int]: ...
def moe(x: T, topk_ids: Tensor, topk_weights: Tensor, w13: Tensor | PackedWeights,
        w2: Tensor | PackedWeights, *, activation: GatedActivation = "silu",
        gate_up: GateUp = "halves", gate_limit: float | None = None,
        gate_alpha: float | None = None, gate_beta: float | None = None,
        scaling: Scaling | None = None, scale_w13: Tensor | None = None,
        scale_w2: Tensor | None = None, factor_w13: Tensor | None = None,
        factor_w2: Tensor | None = None, factor_x: Tensor | None = None,
        factor_inner: Tensor | None = None, format: str | None = None,
        bias13: Tensor | None = None,
        bias2: Tensor | None = None, first_expert: int = 0, experts_total: int | None = None,
        out: Tensor | None = None, dtype: Any = None, expected_lengths: str | None = "routed",
        batch_invariant: bool = False, first_kernel: str | None = None,
        second_kernel: str | None = None, by_index: bool | None = None,
        quantises_in_epilogue: bool | None = None,
        early_weights: bool | None = None, sort_with_gather: bool | None = None,
        sums: Sums | None = None, check_ids: bool = False, dependent: bool = False,
        stream: Any = None, workspace: Workspace | None = None,
        plan: MoePlan | None = None) -> T: ...
def plan_moe(x: Tensor | Spec, topk_ids: Tensor | Spec, topk_weights: Tensor | Spec,
             w13: Tensor | Spec | PackedWeights, w2: Tensor | Spec | PackedWeights, *,
             device: str | None = None,
             activation: GatedActivation = "silu", gate_up: GateUp = "halves",
             gate_limit: float | None = None, gate_alpha: float | None = None,
             gate_beta: float | None = None, scaling: Scaling | None = None,
             scale_w13: Tensor | Spec | None = None, scale_w2: Tensor | Spec | None = None,
             factor_w13: Tensor | Spec | None = None,
             factor_w2: Tensor | Spec | None = None, factor_x: Tensor | Spec | None = None,
             factor_inner: Tensor | Spec | None = None, format: str | None = None,
             bias13: Tensor | Spec | None = None,
             bias2: Tensor | Spec | None = None, first_expert: int = 0,
             experts_total: int | None = None, out: Tensor | Spec | None = None,
             dtype: Any = None, expected_lengths: str | None = "routed",
             batch_invariant: bool = False, first_kernel: str | None = None,
             second_kernel: str | None = None, by_index: bool | None = None,
             quantises_in_epilogue: bool | None = None,
             early_weights: bool | None = None, sort_with_gather: bool | None = None,
             sums: Sums | None = None) -> MoePlan: ...
def check(a: Tensor, b: Tensor | PackedWeights, offsets: Tensor | None = None,
          **product: Any) -> tuple[Plan, int, int, list[tuple[str, int, str]]]: ...
def trace(a: Tensor, b: Tensor | PackedWeights, offsets: Tensor | None = None,
          **product: Any) -> tuple[Plan, str, str, bytes, int]: ...
def empty(shape: tuple[int, ...], dtype: str, device: str) -> Array: ...
def devices() -> list[str]: ...
def command_line(arguments: Sequence[str], /) -> int: ...

# What _prepare.py is made of.
def quantise(x: Tensor, form: str, recipe: str | None, given: bool, codes: Tensor, scales: Tensor,
             scale: Tensor | None, linear: bool, offsets: Tensor | None, stream: Any, /) -> None: ...
def order_scales(rows: Tensor, tiles: Tensor, offsets: Tensor | None, stream: Any, rows_each: int,
                 blocks_each: int, is_spread: bool, /) -> None: ...
def sort_slots(ids: Tensor, experts: int, first_expert: int, experts_total: int, offsets: Tensor,
               slots: Tensor, rows: Tensor, stream: Any, /) -> None: ...
def packed_forms() -> list[tuple[int, str, str, str, list[str], list[int], int, int]]: ...
def quantise_weights(weights: Tensor, group: int, encoding: str | None, scales: str | None,
                     zero_points: bool, of_floats: bool, /) -> tuple[Array, tuple[float, ...]]: ...
def pack_checkpoint(layout: str, codes: Tensor, scales: Tensor, zeros: Tensor | None,
                    group_index: Tensor | None, tensor_scale: Tensor | None, encoding: str | None,
                    scale_type: str | None, of_floats: bool, /
                    ) -> tuple[Array, tuple[float, ...]]: ...
def load_packed(file: str, layout: str | None, group: int, encoding: str | None,
                scales: str | None, zero_points: bool, of_floats: bool, /
                ) -> tuple[Array, tuple[float, ...]]: ...
def packed_form(data: Tensor, /) -> tuple[int, int, int, int, int, int, int, int, str]: ...
def packed_bytes(experts: int, n: int, k: int, group: int, encoding: int, scales: int,
               zero_points: bool, /) -> int: ...
def packed_values(data: Tensor, /) -> Array: ...
