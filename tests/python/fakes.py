"""Tensors that no library made: of any device, type and strides, only by DLPack's structs."""
import ctypes


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_kind", ctypes.c_int32),
                ("device_index", ctypes.c_int32), ("dimensions", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Fake:
    """Says that its memory lies where and how it is told; none of it is there."""

    def __init__(self, shape, strides=None, device=(2, 0), code=4, bits=16, address=1 << 20,
                 requires_grad=False):
        self.requires_grad = requires_grad
        self.device = device
        dims = len(shape)
        self._shape = (ctypes.c_int64 * max(1, dims))(*shape)
        self._strides = (ctypes.c_int64 * max(1, dims))(*strides) if strides else None
        self.deleted = 0
        self._deleter = Deleter(self._delete)
        self._managed = Managed(
            Tensor(address, device[0], device[1], dims, code, bits, 1, self._shape,
                   ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64)) if strides else None,
                   0), None, self._deleter)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        return _new(ctypes.addressof(self._managed), b"dltensor", None)
