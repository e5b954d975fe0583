"""Frames into a GIF, with a caption below; for `protogoal watch` and the clips in the store."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]  # [height, width, 3]


def encode_gif(frames: Sequence[Frame], captions: Sequence[str] | None = None, seconds_per_frame: float = 0.12) -> bytes:
    """An endless GIF of the frames; the last one stays for a second and a half."""
    from PIL import Image, ImageDraw, ImageFont

    if not frames:
        raise ValueError("a GIF needs at least one frame")
    bar = 0 if captions is None else 22
    font = ImageFont.load_default(13)
    images = []
    for k, frame in enumerate(frames):
        image = Image.fromarray(frame)
        if captions is not None:
            canvas = Image.new("RGB", (image.width, image.height + bar), (24, 24, 28))
            canvas.paste(image, (0, 0))
            ImageDraw.Draw(canvas).text((6, image.height + 3), captions[k], font=font, fill=(235, 235, 235))
            image = canvas
        images.append(image.convert("P", palette=Image.Palette.ADAPTIVE, colors=128))
    durations = [int(1000 * seconds_per_frame)] * (len(images) - 1) + [1500]
    buffer = io.BytesIO()
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, disposal=1)
    return buffer.getvalue()
