"""The trainer: sentence-transformers' own, fed by the mixture; whole checkpoints, errors that help."""

from __future__ import annotations

import math
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.util.distributed import distributed_evaluation
from torch import nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, TrainerCallback

from radgen.errors import RadgenError
from radgen.train import checkpoints
from radgen.train.collator import Collator, Steps
from radgen.train.losses import Given, MixtureLoss, Term
from radgen.train.merging import merged, weights
from radgen.train.mixture import Mixture
from radgen.train.settings import StageSettings
from radgen.train.validation import Validation

#: What torch says when the memory of a CPU runs out.
_MEMORY = ("can't allocate memory", "not enough memory")
#: Parameters of losses, beside a model.
LOSSES = "losses.pt"
Record = Callable[[Mapping[str, Any]], None]


def rank_and_ranks() -> tuple[int, int]:
    """Return this process's rank and the number of ranks."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def loss_of(model: Any, mixture: Mixture) -> MixtureLoss:
    """Return the loss of a mixture."""
    terms = {}
    for part in mixture.parts:
        options = dict(mixture.settings.losses.get(part.settings.loss, {}))
        if part.settings.margin is not None:
            options["margin"] = part.settings.margin
        given = Given(int(model.get_embedding_dimension()), part.rows, mixture.settings.seed)
        terms[part.name] = Term(part.kind.build(options, given), part.settings.weight)
    return MixtureLoss(model, terms)


def arguments(settings: StageSettings, steps: int, folder: Path, device: str) -> Any:
    """Return the training arguments of a stage."""
    args = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        learning_rate=settings.lr,
        lr_scheduler_type="cosine",
        warmup_steps=math.ceil(settings.warmup * steps),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        adam_beta2=settings.adam_beta2,
        seed=settings.seed,
        bf16=settings.compute.precision == "bf16",
        tf32=True if settings.compute.tf32 and device == "cuda" and _ampere() else None,
        ddp_find_unused_parameters=False,
        # Buffers sent in place between the forward passes of a step would spoil the backward pass.
        ddp_broadcast_buffers=False,
        use_cpu=device == "cpu",
        eval_strategy="no",  # _Cadence says when
        save_strategy="no",
        logging_strategy="steps",
        logging_steps=1,
        optim="adamw_torch_fused",  # on a CPU 4 times faster than the plain one
        logging_nan_inf_filter=False,
        dataloader_drop_last=True,  # the steps are items: nothing is dropped; DDP asks for it
        disable_tqdm=True,
        report_to="none",
    )
    args._n_gpu = min(1, args.n_gpu)  # several are for torchrun: DataParallel cannot split our batches
    return args


def _ampere() -> bool:
    return bool(torch.cuda.get_device_capability()[0] >= 8)


def sparse_embeddings(model: Any) -> None:
    """Let the gradients of token embeddings be sparse while chunk after chunk adds to them.

    A chunk touches a few hundred of some 30,000 rows; a dense gradient of all of them for each chunk was 7 %
    of a step on a CPU. :func:`dense_gradients` ends it, so that clipping and AdamW see what they always saw.
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.max_norm is None:
            module.sparse = True


def dense_gradients(model: Any) -> None:
    """Turn sparse gradients into dense ones, once a step."""
    for parameter in model.parameters():
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.to_dense()


class _Cadence(TrainerCallback):  # type: ignore[misc]  # transformers is not followed
    """Evaluations, each followed by a checkpoint, spread evenly over the stage; one at its end."""

    def __init__(self, evaluations: int) -> None:
        self.evaluations = evaluations

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask for an evaluation and a checkpoint where one is due."""
        due = {round(state.max_steps * n / self.evaluations) for n in range(1, self.evaluations + 1)}
        if state.global_step in due:
            control.should_evaluate = control.should_save = True


class StageTrainer(SentenceTransformerTrainer):  # type: ignore[misc]  # not followed
    """Trains one stage.

    Args:
        model: SentenceTransformer.
        mixture: what the steps take.
        validation: what is measured.
        folder: where checkpoints go.
        device: ``cpu``, ``cuda``, …
        record: takes each step's and each evaluation's figures.
        evaluations: those of a run that goes on.
    """

    def __init__(
        self,
        model: Any,
        mixture: Mixture,
        validation: Validation,
        folder: Path,
        device: str,
        record: Record,
        evaluations: list[dict[str, Any]],
    ) -> None:
        self.mixture = mixture
        self.settings = mixture.settings
        self.validation = validation
        self.folder = folder
        self.record = record
        self.evaluations = evaluations
        self.start = weights(model) if self.settings.merge else {}
        args = arguments(self.settings, len(mixture), folder, device)
        if self.settings.compute.gradient_checkpointing:
            # Re-entrant checkpointing breaks under DDP with several forward passes a step.
            model.gradient_checkpointing_enable({"use_reentrant": False})
        rank, ranks = rank_and_ranks()
        if device == "cpu" and ranks == 1:  # DDP reduces dense ones alone
            sparse_embeddings(model)
        collator = Collator(model, self.settings.compute.chunk_tokens, rank, ranks)
        super().__init__(
            model=model, args=args, loss=loss_of(model, mixture), data_collator=collator,
            callbacks=[_Cadence(self.settings.validation.evaluations)],
        )  # fmt: skip
        self.remove_callback(PrinterCallback)
        self._began = time.perf_counter()
        self._tokens = 0
        self._learned: dict[str, list[float]] = defaultdict(list)

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Leave the library's card out: radgen writes its own."""

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the steps, one item each; every rank sees the same ones and takes its share of the texts."""
        return DataLoader(Steps(self.mixture), batch_size=1, shuffle=False, collate_fn=self.data_collator)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Compute a batch's loss; one that is not finite ends the run before it spoils the weights."""
        self._tokens += inputs.pop("tokens")
        loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        for name, value in self.loss.last:
            if not math.isfinite(value):
                raise RadgenError(
                    f"step {self.state.global_step + 1}: the loss of {name} is {value}; a smaller --set lr= "
                    f"or --set max_grad_norm= may help; {checkpoints.last_good(self.folder)}"
                )
            self._learned[name].append(value)
        return loss

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Any:
        """Do one step; where memory runs out, say on what."""
        names = ", ".join(dict.fromkeys(one["dataset"] for one in inputs["label"]["segments"]))
        with self._memory(f"{inputs['tokens']:,} tokens of {names}"):
            loss = super().training_step(model, inputs, num_items_in_batch)
        dense_gradients(self.model)
        return loss

    @contextmanager
    def _memory(self, what: str) -> Iterator[None]:
        """Turn running out of memory into one line."""
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            known = isinstance(error, (MemoryError, torch.OutOfMemoryError))
            if not known and not any(sign in str(error) for sign in _MEMORY):
                raise
            raise RadgenError(
                f"step {self.state.global_step + 1}: out of memory on {what}; smaller "
                "--set compute.chunk_tokens= or --set batch=, or --set compute.gradient_checkpointing=true; "
                f"{checkpoints.last_good(self.folder)}"
            ) from None

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Record a step's figures; losses are means over what was really seen of each dataset."""
        if "loss" not in logs:
            return
        seconds = time.perf_counter() - self._began
        self.record(
            {
                "step": self.state.global_step,
                "total": logs["loss"],
                "loss": {name: sum(found) / len(found) for name, found in self._learned.items()},
                "lr": logs.get("learning_rate"),
                "grad_norm": logs.get("grad_norm"),
                "tokens": self._tokens,
                "seconds": round(seconds, 3),
            }
        )
        self._learned.clear()

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Measure what would be the stage's model: with the share of its start that it keeps (``merge``).

        Inference is shared over the ranks, all of which return the same figures.
        """
        began = time.perf_counter()
        found: list[Any] = [None]
        training = self.model.training
        self.model.eval()
        with (
            merged(self.model, self.start, self.settings.merge),
            self.accelerator.autocast(),
            distributed_evaluation(self.model) as here,
        ):
            if here:
                with self._memory("the validation rows"):
                    found = [self.validation(self.model, self.loss)]
        self.model.train(training)
        if rank_and_ranks()[1] > 1:
            dist.broadcast_object_list(found)
        metrics: dict[str, float] = found[0]
        one = {"step": self.state.global_step, "metrics": metrics}
        if not self.evaluations or self.evaluations[-1]["step"] != one["step"]:
            self.evaluations.append(one)
            self.record({**one, "seconds": round(time.perf_counter() - began, 3)})
        self._began += time.perf_counter() - began  # the speed of training is that of training
        return metrics

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write a checkpoint beside its place and rename it; keep the chosen one and the last."""
        step, main = self.state.global_step, self.is_world_process_zero()
        target = checkpoints.partial(self.folder, step)
        try:
            if main:
                shutil.rmtree(target, ignore_errors=True)
                target.mkdir(parents=True)
            _wait()
            self.save_model(str(target), _internal_call=True)
            self._save_optimizer_and_scheduler(str(target))
            self._save_rng_state(str(target))
            _wait()
            if main:
                self.state.save_to_json(str(target / "trainer_state.json"))
                self._save_losses(target)
                chosen, _ = checkpoints.choose(self.settings.checkpoint, self.evaluations)
                checkpoints.finish(self.folder, step, self.evaluations, {step, chosen})
        except RadgenError:
            raise
        except Exception as error:  # noqa: BLE001  # the disk's errors come in a dozen kinds
            raise checkpoints.write_failed(self.folder, step, error) from None
        _wait()

    def _save_losses(self, target: Path) -> None:
        """Save the parameters that losses have of their own, by dataset."""
        own = {name: term.loss.state_dict() for name, term in self.loss.terms.items()}
        if any(own.values()):
            torch.save({name: state for name, state in own.items() if state}, target / LOSSES)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        """Load the model, and the parameters of the losses."""
        super()._load_from_checkpoint(checkpoint_path)
        own = Path(checkpoint_path) / LOSSES
        if own.is_file():
            for name, state in torch.load(own, map_location="cpu", weights_only=True).items():
                self.loss.terms[name].loss.load_state_dict(state)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        assert output_dir is not None
        self.model.save_pretrained(output_dir, create_model_card=False)


def _wait() -> None:
    if rank_and_ranks()[1] > 1:
        dist.barrier()
