"""The loss in a Lightning module."""

from __future__ import annotations

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import nashlearn.torch as nt


class Digits(lightning.LightningModule):
    """A small network for 8 by 8 digits."""

    def __init__(self, loss: str = "zero_one"):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.loss = nt.NashLoss(loss)

    def training_step(self, batch, index):
        """The mean loss of a batch."""
        x, y = batch
        return self.loss(self.model(x), y)

    def test_step(self, batch, index):
        """Accuracy."""
        x, y = batch
        self.log("accuracy", self.loss.predict(self.model(x)).eq(y).float().mean())

    def configure_optimizers(self):
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


if __name__ == "__main__":
    lightning.seed_everything(0)
    X, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.as_tensor(X / 16, dtype=torch.float32), torch.as_tensor(y))
    train, test = random_split(data, [0.7, 0.3])
    trainer = lightning.Trainer(max_epochs=15, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Digits(), DataLoader(train, batch_size=64, shuffle=True))
    trainer.test(trainer.lightning_module, DataLoader(test, batch_size=256))
