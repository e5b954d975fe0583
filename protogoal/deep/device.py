"""Where tensors live: the one boundary at which arrays become tensors of a device. Acting stays on the CPU, learning may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


def resolve(name: str) -> torch.device:
    """The device of a name; auto takes a GPU where there is one. A ValueError where there is none of the kind asked for."""
    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if found[kind])
    if not found.get(name, False):
        raise ValueError(f"there is no {name} device here; allowed are auto, {', '.join(kind for kind in found if found[kind])}")
    return torch.device(name)


def device_of(module: nn.Module) -> torch.device:
    """Where a network's weights are."""
    return next(module.parameters()).device


def place(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array as a tensor there; on the CPU it shares the array's memory."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def fetch(tensor: Tensor) -> NDArray[Any]:
    """A tensor as an array, wherever it is."""
    return tensor.detach().cpu().numpy()
