"""A CNN is trained on compressed images that are decoded, cropped, resized and jittered one by one."""

import random
import zlib
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CASE = {
    "code": "TL101",
    "equal": "distribution",
    "why": "augmentation draws from the random generator of each worker instead of the main process's",
    "needs": "two-cores",
    "compared_steps": 13,
}

IMAGES, FILES, SIZE, INPUT, BATCH = 512, 8, 256, 64, 32


class CompressedImages(Dataset):
    """Images that lie compressed in files, and are decoded when they are asked for."""

    def __init__(self):
        shade = torch.linspace(0, 255, SIZE).view(1, SIZE, 1) * torch.rand(3, SIZE, SIZE)
        self.files = [zlib.compress(bytes(shade.add(i).to(torch.uint8).flatten().tolist()), 6) for i in range(FILES)]

    def __len__(self):
        return IMAGES

    def __getitem__(self, index):
        pixels = bytearray(zlib.decompress(self.files[index % FILES]))
        image = torch.frombuffer(pixels, dtype=torch.uint8).view(3, SIZE, SIZE).float() / 255
        side = random.randrange(SIZE // 2, SIZE)
        top, left = (random.randrange(SIZE - side) for _ in range(2))
        image = image[None, :, top : top + side, left : left + side]
        image = F.interpolate(image, (INPUT, INPUT), mode="bilinear", antialias=True)[0]
        if random.random() < 0.5:
            image = image.flip(-1)
        blurred = F.avg_pool2d(image, 5, stride=1, padding=2)
        sharpness, brightness, contrast = 1 + torch.randn(3) * 0.2
        image = (blurred + sharpness * (image - blurred)) * brightness
        image = (image - image.mean()) * contrast + image.mean()
        return image.clamp(0, 1), index % 10


def setup(device):
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=4, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(CompressedImages(), batch_size=BATCH, shuffle=True)
    return SimpleNamespace(model=model, optimizer=optimizer, loader=loader, device=device)


def step(state):
    """Train for one epoch of 16 batches; in much shorter ones the start of the workers is what counts."""
    means, deviations = [], []
    for images, labels in state.loader:
        means.append(images.mean(dim=(1, 2, 3)))
        deviations.append(images.std(dim=(1, 2, 3)))
        loss = F.cross_entropy(state.model(images.to(state.device)), labels.to(state.device))
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
    return {"mean": torch.cat(means), "deviation": torch.cat(deviations)}
