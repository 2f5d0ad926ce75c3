# SPDX-License-Identifier: MIT
"""ResNet-18 as He et al. (2016, arXiv:1512.03385) describe it: 17 convolutions and one linear layer."""

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions, added to what came in."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.change = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        return torch.relu(self.change(x) + self.shortcut(x))


class ResNet18(nn.Sequential):
    """Scores of 1000 classes, (n, 1000), for images, (n, 3, 224, 224)."""

    def __init__(self):
        layers = [
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        ]
        channels_in = 64
        for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Block(channels_in, channels, stride), Block(channels, channels, 1)]
            channels_in = channels
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
