"""JAX's arrays, of its CPU, on the model."""
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import warpwright as wp


class Jax(unittest.TestCase):
    def test_results_are_jax_arrays(self):
        for dtype, want in [(jnp.bfloat16, jnp.bfloat16), (jnp.float16, jnp.float16),
                            (jnp.float8_e4m3fn, jnp.bfloat16)]:
            x, w = jnp.ones((20, 64), dtype), jnp.ones((48, 64), dtype)
            d = wp.gemm(x, w)
            self.assertIsInstance(d, jax.Array)
            self.assertEqual((d.dtype, d.shape), (want, (20, 48)))
            self.assertTrue((d == 64).all())
        offsets = jnp.array([2, 10, 20], jnp.int32)
        d = wp.grouped_gemm(jnp.ones((24, 64), jnp.bfloat16), jnp.ones((2, 16, 64), jnp.bfloat16),
                            offsets)
        self.assertIsInstance(d, jax.Array)
        self.assertTrue((d[2:20] == 64).all() and (d[:2] == 0).all() and (d[20:] == 0).all())

    def test_an_array_never_changes(self):
        x, w = jnp.ones((20, 64), jnp.bfloat16), jnp.ones((48, 64), jnp.bfloat16)
        z = jnp.zeros((20, 48), jnp.bfloat16)
        alias = z
        with self.assertRaisesRegex(wp.Refusal, "D is read-only"):
            wp.gemm(x, w, out=z)
        self.assertTrue((alias == 0).all())

    def test_our_own_arrays(self):
        array = wp.empty((4, 8), "bf16", "model")
        view = np.asarray(array)
        view[...] = 3
        self.assertTrue((jax.dlpack.from_dlpack(array) == 3).all())


if __name__ == "__main__":
    unittest.main(verbosity=2)
