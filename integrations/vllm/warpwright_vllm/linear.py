"""Dense layers of FP8 and of 4 bits, as kernels that vLLM chooses from.

They run inside of what vLLM compiles, so they are operators of PyTorch's (warpwright.torch).
"""
import warpwright as wp
import warpwright.torch  # noqa: F401  the operators
from vllm.model_executor.kernels import linear as kernels
from vllm.platforms import PlatformEnum
from warpwright import serving

from . import engine


class _Ours:
    """What all of them have: they ask the library, and leave a layer to vLLM's next kernel."""

    kinds = ""  # vLLM's list of such kernels
    _instead = None

    def __init__(self, *args, **keywords):
        self._made_of = args, keywords
        super().__init__(*args, **keywords)

    @classmethod
    def is_supported(cls, compute_capability=None):  # pylint: disable=unused-argument
        return engine.supported()

    @classmethod
    def can_implement(cls, *configs):
        """(whether it is served, why not): asks before there are weights."""
        try:
            cls.check(*configs)
        except Exception as reason:  # pylint: disable=broad-exception-caught
            engine.lines.leaves(f"dense layers ({cls.what})", reason)
            return False, str(reason)
        return True, None

    @classmethod
    def check(cls, config):
        """Raises Refusal where no layer of this configuration is served."""

    def process_weights_after_loading(self, layer):
        try:
            line = self.take(layer)
        except Exception as reason:  # pylint: disable=broad-exception-caught
            engine.lines.leaves(f"dense layers ({self.what})", reason)
            self._instead = self._next()
            self._instead.process_weights_after_loading(layer)
            return
        engine.lines.serves(f"dense layers, {line}")

    def _next(self):
        args, keywords = self._made_of
        for kind in getattr(kernels, self.kinds)[PlatformEnum.CUDA]:
            if not issubclass(kind, _Ours) and _can(kind, args[0]):
                return kind(*args, **keywords)
        raise ValueError(f"vLLM has no other kernel for dense layers ({self.what})")

    def apply_weights(self, layer, x, bias=None, **rest):
        if self._instead is not None:
            return self._instead.apply_weights(layer, x, bias, **rest)
        rows = x.reshape(-1, x.shape[-1])
        made = self.multiply(layer, rows, bias)
        return made.reshape(*x.shape[:-1], made.shape[-1])


def _can(kind, config):
    if hasattr(kind, "is_supported") and not kind.is_supported()[0]:
        return False
    return kind.can_implement(config)[0]


def _plan(n, k, device, **how):
    wp.plan(wp.Spec((16, k), how.pop("tokens", "float8_e4m3fn")),
            how.pop("weights", wp.Spec((n, k), "float8_e4m3fn")), device=device, **how)


def _device():
    return "cuda:0" if "model" not in engine.parts() else "model"


def _refuse_static(config):
    if config.activation_quant_key.scale.static:
        raise serving.Refusal("the tokens' scale is fixed by the checkpoint; tokens are quantised "
                              "by their own values here")


class WarpwrightFp8BlockLinear(_Ours, kernels.Fp8BlockScaledMMLinearKernel):
    """e4m3 with scales of 128 x 128, 64 x 64 or 32 x 32; tokens by 1 x 128, 64 or 32."""

    what = "e4m3 in blocks"
    kinds = "_POSSIBLE_FP8_BLOCK_KERNELS"

    @classmethod
    def check(cls, config):
        _refuse_static(config)
        n, k = config.weight_shape
        block = cls.block_of(config)
        scales = (wp.Spec((16, -(-k // block)), "float32"),
                  wp.Spec((-(-n // block), -(-k // block)), "float32"))
        _plan(n, k, _device(), scale_a=scales[0], scale_b=scales[1], scaling="blockwise",
              dtype=serving.token_word(config.out_dtype))

    @staticmethod
    def block_of(config):
        return serving.block_of(config.weight_quant_key.scale.group_shape,
                                "the weights' blocks are")

    def take(self, layer):
        engine.device_of(layer.weight)
        n, k = layer.weight.shape
        return f"{self.what} ({n} x {k})"

    def multiply(self, layer, x, bias):
        import torch
        scale = getattr(layer, "weight_scale_inv", None)
        scale = layer.weight_scale if scale is None else scale
        codes, scales = torch.ops.warpwright.quantise(x, "blockwise",
                                                      block=self.block_of(self.config))
        return torch.ops.warpwright.scaled_gemm(codes, layer.weight, scales, scale, bias=bias,
                                                scaling="blockwise", dtype=self.config.out_dtype)

    def apply_block_scaled_mm(self, A, B, As, Bs):  # one of vLLM's abstract methods
        import torch
        return torch.ops.warpwright.scaled_gemm(A, B, As, Bs, scaling="blockwise",
                                                dtype=self.config.out_dtype)


class WarpwrightFp8Linear(_Ours, kernels.FP8ScaledMMLinearKernel):
    """e4m3 with a scale a row, or one; tokens by rows."""

    what = "e4m3 by rows"
    kinds = "_POSSIBLE_FP8_KERNELS"

    @classmethod
    def check(cls, config):
        _refuse_static(config)
        n, k = config.weight_shape
        _plan(n, k, _device(), scale_a=wp.Spec((16,), "float32"), scale_b=wp.Spec((n,), "float32"),
              scaling="row_column", dtype=serving.token_word(config.out_dtype))

    def take(self, layer):
        import torch
        engine.device_of(layer.weight)
        # vLLM 0.24 hands a view of K x N, whose rows of K lie together; 0.33 N x K.
        weight = layer.weight if layer.weight.stride(1) == 1 else layer.weight.t()
        n, k = weight.shape
        if (n, k) != tuple(self.config.weight_shape):
            raise serving.Refusal(f"the weight is {n} x {k}, and the layer was made for "
                                  f"{tuple(self.config.weight_shape)}", "bad_shape")
        scale = layer.weight_scale.reshape(-1)
        if scale.shape[0] not in (1, n):
            raise serving.Refusal(f"the weights' scales are {tuple(layer.weight_scale.shape)}; "
                                  f"they are 1, or one for each of {n} rows", "bad_shape")
        layer.weight = torch.nn.Parameter(weight.data, requires_grad=False)
        layer.weight_scale = torch.nn.Parameter(
            scale.float().expand(n).contiguous(), requires_grad=False)
        return f"{self.what} ({n} x {k})"

    def multiply(self, layer, x, bias):
        import torch
        codes, scales = torch.ops.warpwright.quantise(x, "row_column")
        return torch.ops.warpwright.scaled_gemm(
            codes, layer.weight, scales, layer.weight_scale, bias=bias, scaling="row_column",
            dtype=self.config.out_dtype)

    def apply_scaled_mm(self, *, A, B, out_dtype, As, Bs, bias, output_shape):
        import torch
        return torch.ops.warpwright.scaled_gemm(
            A, B.t(), As, Bs, bias=bias, scaling="row_column",
            dtype=out_dtype).reshape(output_shape)


class _Packed(_Ours):
    """Layers whose weights are packed when they have been loaded."""

    def take(self, layer):
        import torch
        engine.device_of(getattr(layer, self.codes))
        packed = self.pack(layer)
        n, k = packed.shape
        layer.warpwright_form = list(map(int, packed.form))
        layer.warpwright_packed = torch.nn.Parameter(packed.data, requires_grad=False)
        for name in self.parameters():
            if getattr(layer, name, None) is not None:
                delattr(layer, name)
        return f"{packed.encoding} ({n} x {k})"

    def multiply(self, layer, x, bias):
        import torch
        return torch.ops.warpwright.packed_gemm(x, layer.warpwright_packed, layer.warpwright_form,
                                                bias=bias)


class WarpwrightInt4Linear(_Packed, kernels.MPLinearKernel):
    """int4 of compressed-tensors and GPTQ, symmetric, for tokens of 16 bits."""

    what = "int4"
    kinds = "_POSSIBLE_KERNELS"

    @classmethod
    def get_min_capability(cls):
        return 0  # `check` asks the library

    @classmethod
    def check(cls, c):  # pylint: disable=arguments-renamed
        served, why_not = engine.supported()
        if not served:
            raise serving.Refusal(why_not)
        for said, what in ((c.weight_type.size_bits != 4, "weights of 4 bits"),
                           (c.zero_points, "symmetric weights, without zero points"),
                           (getattr(c, "has_g_idx", False), "weights in order (no g_idx)")):
            if said:
                raise serving.Refusal(f"{what} are served, and these are others")
        k, n = c.partition_weight_shape
        word = serving.token_word(c.act_type)
        _plan(n, k, _device(), tokens=word, weights=wp.PackedWeights.spec(
            n, k, group=k if c.group_size == -1 else c.group_size, encoding=f"ex-{word}",
            scales={"fp16": "f16"}.get(word, word)))

    @property
    def codes(self):
        return self.w_q_name

    def parameters(self):
        return [name for name in (self.w_q_name, self.w_s_name, self.w_zp_name,
                                  getattr(self, "w_gidx_name", None)) if name]

    def pack(self, layer):
        word = serving.token_word(self.config.act_type)
        codes, scales = (getattr(layer, name) for name in (self.w_q_name, self.w_s_name))
        # N first, as compressed-tensors has them; GPTQ's lie K first.
        codes, scales = (t.data if t.output_dim == 0 else t.data.t() for t in (codes, scales))
        return wp.pack_int4_checkpoint("compressed-tensors", codes.contiguous(),
                                       scales.contiguous(), encoding=f"ex-{word}")


class _Fp4Linear(_Packed):
    codes = "weight"

    def parameters(self):
        return ["weight", "weight_scale", "weight_global_scale", "input_global_scale",
                "input_global_scale_inv", "alpha"]

    def pack(self, layer):
        word = serving.token_word(getattr(layer, "params_dtype", "bfloat16"))
        factor = None
        if self.layout == "modelopt-nvfp4":  # a factor by now, whatever the checkpoint had
            factor = layer.weight_global_scale.data.reshape(1).float()
        n, half = layer.weight.shape
        encoding = f"{self.format}-{word}"
        _plan(n, 2 * half, _device(), tokens=word,
              weights=wp.PackedWeights.spec(n, 2 * half, encoding=encoding))
        return wp.pack_fp4_checkpoint(self.layout, layer.weight.data, layer.weight_scale.data,
                                      factor, encoding=encoding)


class WarpwrightNvFp4Linear(_Fp4Linear, kernels.NvFp4LinearKernel):
    """nvf4 weights, for tokens of 16 bits."""

    what, format, layout = "nvf4", "nvf4", "modelopt-nvfp4"
    kinds = "_POSSIBLE_NVFP4_KERNELS"


class WarpwrightMxFp4Linear(_Fp4Linear, kernels.MxFp4LinearKernel):
    """mxf4 weights, for tokens of 16 bits."""

    what, format, layout = "mxf4", "mxf4", "quark-mxfp4"
    kinds = "_POSSIBLE_MXFP4_KERNELS"


OURS = (("fp8_block", WarpwrightFp8BlockLinear), ("fp8", WarpwrightFp8Linear),
        ("mp", WarpwrightInt4Linear), ("nvfp4", WarpwrightNvFp4Linear),
        ("mxfp4", WarpwrightMxFp4Linear))


def register():
    """Ours before all others of their kind: vLLM takes the first that can."""
    engine.keep_caches_apart()
    for kind, ours in OURS:
        known = getattr(kernels, ours.kinds)
        if ours in known.get(PlatformEnum.CUDA, ()):
            continue
        try:
            kernels.register_linear_kernel(ours, PlatformEnum.CUDA, kind)
        except ValueError:  # 0.24 has no such kind, only the list
            known.setdefault(PlatformEnum.CUDA, []).append(ours)
        known[PlatformEnum.CUDA].insert(0, known[PlatformEnum.CUDA].pop())
