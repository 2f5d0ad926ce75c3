# SPDX-License-Identifier: MIT
"""Write ResNet-18 as a TorchScript model, and its scores of a few images as a text file.

python setup_model.py <model.pt> <scores.txt>

The model is the pre-trained one of torchvision if that package works and has its weights or can download them, else the
one of resnet18.py, with random weights.
"""

import sys
import warnings

import torch
from resnet18 import ResNet18

IMAGES = 4
SIZE = 224


def make_model():
    """A model ready for inference, and where it comes from."""
    try:
        from torchvision.models import resnet18

        return resnet18(weights="DEFAULT").eval(), "torchvision's, with pre-trained weights"
    except ModuleNotFoundError:
        reason = "torchvision is not installed"
    except (ImportError, OSError, RuntimeError) as failure:  # made for another PyTorch, or no network
        reason = f"torchvision cannot be used: {failure}"
    torch.manual_seed(0)
    return ResNet18().eval(), f"that of resnet18.py, with random weights ({reason})"


def make_images():
    """Patterns that the Fortran program computes too. Multiples of 1/64 below 1 are exact in single precision."""
    n, c, j, i = torch.meshgrid(*(torch.arange(1, size + 1) for size in (IMAGES, 3, SIZE, SIZE)), indexing="ij")
    return ((3 * n * i + 5 * j + 7 * c * c) % 64).float() / 64


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    # PyTorch advises against TorchScript for new code. It is what saved models of many existing programs are.
    warnings.simplefilter("ignore", DeprecationWarning)
    model, origin = make_model()
    torch.jit.script(model).save(sys.argv[1])
    with torch.inference_mode(), open(sys.argv[2], "w") as file:
        for scores in model(make_images()).tolist():
            print(*scores, file=file)
    print(f"ResNet-18 written to {sys.argv[1]}: {origin}")
    print(f"scores of {IMAGES} images written to {sys.argv[2]}")
