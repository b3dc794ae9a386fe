"""The ledgers are well formed, and no rule is on by default without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.dev.ledger import LedgerError, read, read_all, section
from torchlint.registry import rules
from torchlint.rule import Default

FOLDER = Path(__file__).parent / "ledger"
HEADER = "repository\tcommit\tpath\tline\tfinding|silent\tverdict\tsentence\n"
ROW = "a/b\t" + "0" * 40 + "\tx.py\t{line}\t{kind}\t{verdict}\twhy\n"
# On by default although the development repositories and their histories hold few findings, or in few repositories: all
# that there are must be right. The labelled code of tests/corpus/labels and blind programs had no false alarm of them.
FEW_FINDINGS = frozenset(("anomaly-detection-left-on",))
# Rules are developed on these repositories; all others stay unread, so that they can judge the rules.
DEVELOPMENT = frozenset(
    (
        "Lightning-AI/pytorch-lightning",
        "Project-MONAI/MONAI",
        "coqui-ai/TTS",
        "facebookresearch/detectron2",
        "facebookresearch/dinov2",
        "facebookresearch/fairseq",
        "huggingface/accelerate",
        "huggingface/diffusers",
        "huggingface/pytorch-image-models",
        "jik876/hifi-gan",
        "karpathy/minGPT",
        "karpathy/nanoGPT",
        "kornia/kornia",
        "lucidrains/denoising-diffusion-pytorch",
        "lucidrains/vit-pytorch",
        "mlfoundations/open_clip",
        "pyg-team/pytorch_geometric",
        "pytorch/examples",
        "pytorch/ignite",
        "speechbrain/speechbrain",
        "ultralytics/yolov5",
        "vwxyzjn/cleanrl",
        "xinntao/BasicSR",
    )
)


def test_ledgers_stay_with_the_development_repositories() -> None:
    foreign = {e.repository for ledger in read_all(FOLDER).values() for e in ledger.entries} - DEVELOPMENT
    assert not foreign, "judge the rules on the development repositories only"


def test_every_ledger_belongs_to_a_rule() -> None:
    assert set(read_all(FOLDER)) <= {rule.name for rule in rules()}


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.default is Default.ON], ids=lambda rule: rule.name)
def test_a_rule_is_on_only_with_its_ledger(rule) -> None:  # type: ignore[no-untyped-def]
    ledger = read_all(FOLDER).get(rule.name)
    assert ledger is not None, "without a ledger a rule is preview"
    if rule.name in FEW_FINDINGS:
        assert not ledger.suffices, "judge it as the others are, now that there is enough to judge"
        assert ledger.precision == 1.0
        assert ledger.count(is_finding=False, verdict="true") >= 10
    else:
        assert ledger.suffices


def test_no_place_is_judged_twice() -> None:
    for ledger in read_all(FOLDER).values():
        places = [(e.repository, e.path, e.line, e.is_finding) for e in ledger.entries]
        assert len(places) == len(set(places)), ledger.rule


def test_counts_and_precision(tmp_path: Path) -> None:
    path = tmp_path / "some-rule.tsv"
    rows = [("finding", "true")] * 8 + [("finding", "false")] * 2 + [("finding", "arguable")] + [("silent", "true")]
    path.write_text(HEADER + "".join(ROW.format(line=i, kind=k, verdict=v) for i, (k, v) in enumerate(rows)))
    ledger = read(path)
    assert (ledger.count(is_finding=True), ledger.count(is_finding=False), ledger.repositories) == (11, 1, 1)
    assert ledger.precision == 0.8
    assert not ledger.suffices
    assert "11 findings" in section(ledger, "x")
    assert "precision 0.80" in section(ledger, "x")


@pytest.mark.parametrize(
    "row",
    ["a\tb", ROW.format(line="x", kind="finding", verdict="true"), ROW.format(line=1, kind="hit", verdict="true")],
)
def test_malformed_lines_are_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "some-rule.tsv"
    path.write_text(HEADER + row)
    with pytest.raises(LedgerError, match=r"some-rule\.tsv:2"):
        read(path)
