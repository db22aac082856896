"""What tests of the package share."""
import unittest

import ml_dtypes
import numpy as np

import warpwright as wp

bf16 = np.dtype(ml_dtypes.bfloat16)
e4m3 = np.dtype(ml_dtypes.float8_e4m3fn)


def f32(x):
    return np.asarray(x).astype(np.float32)


class Case(unittest.TestCase):
    def refused(self, code, says, function, *arguments, **keywords):
        """By one sentence with these words; returns the refusal."""
        with self.assertRaises(wp.Refusal) as caught:
            function(*arguments, **keywords)
        reason = str(caught.exception)
        self.assertEqual(caught.exception.code, code, reason)
        self.assertIn(says, reason)
        self.assertNotIn("\n", reason)
        return caught.exception

    def says(self, pattern, function, *arguments, **keywords):
        """The reason of a refusal, whatever its code."""
        with self.assertRaisesRegex(wp.Refusal, pattern):
            function(*arguments, **keywords)

    def close(self, d, want, tolerance=0.02):
        """Beside the largest element."""
        self.assertEqual(d.shape, want.shape)
        scale = max(1.0, float(np.abs(want).max()))
        self.assertLess(float(np.abs(f32(d) - want).max()), tolerance * scale)
