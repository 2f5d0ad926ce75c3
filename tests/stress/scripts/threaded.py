# SPDX-License-Identifier: MIT
"""What the program threads calls from many threads at once."""

import threading

import torch

weight = torch.ones(32, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=1e-3)
training = threading.Lock()
_turns = 0
_stop = threading.Event()


def ftn_pytorch_forward(x):
    x = x[0] if isinstance(x, list) else x
    return 3 * x + 1


def ftn_pytorch_train(x, target):
    # one network for all threads: an optimizer step is not atomic
    with training:
        optimizer.zero_grad()
        loss = ((weight * x - target) ** 2).mean()
        loss.backward()
        optimizer.step()
    return False, loss.detach()


def fails(x):
    raise ValueError(f"thread {int(x[0])}")


def named(x):
    return {"twice": 2 * x, "text": "some text"}


def gradient(x):
    x = x.clone().requires_grad_()
    (x**3).sum().backward()
    return x.grad


def start_threads():
    def run():
        global _turns
        while not _stop.wait(0.0001):
            torch.ones(100).sum()
            _turns += 1

    for _ in range(2):
        threading.Thread(target=run, daemon=True).start()


def stop_threads():
    _stop.set()


def turns():
    return torch.tensor([float(_turns)], dtype=torch.float64)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor(float(i))


def load_data():
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="spawn")
    return torch.tensor([sum(float(batch.sum()) for batch in loader)], dtype=torch.float64)


@torch.compile
def compiled(x):
    return torch.sin(x) + 1
