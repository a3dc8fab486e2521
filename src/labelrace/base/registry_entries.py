"""What `labelrace.base.registry` knows by name: public names, models, banks of learners, reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

PUBLIC_HOMES = {
    "AROWClassifier": "labelrace.related.linear.arow",
    "AdaGradClassifier": "labelrace.related.linear.adagrad",
    "AsyncClient": "labelrace.serve.client",
    "BMaDClassifier": "labelrace.related.compression.bmad",
    "BinaryRelevanceClassifier": "labelrace.related.relevance",
    "CPLSTClassifier": "labelrace.related.compression.cplst",
    "CSSPClassifier": "labelrace.related.compression.cssp",
    "ClassifierChainsClassifier": "labelrace.related.chains",
    "Client": "labelrace.serve.client",
    "CompressedLabelingClassifier": "labelrace.related.compression.cl",
    "CompressedSensingClassifier": "labelrace.related.compression.cs",
    "ConstantClassifier": "labelrace.related.constant",
    "DelayedLabels": "labelrace.delayed",
    "EaHTClassifier": "labelrace.related.trees.eaht",
    "FaIEClassifier": "labelrace.related.compression.faie",
    "HashedRACEClassifier": "labelrace.extreme.classifier",
    "ISOUPTreeClassifier": "labelrace.related.trees.isoup",
    "KCCAClassifier": "labelrace.related.compression.kcca",
    "LabelRaceClassifier": "labelrace.linear.classifier",
    "MANIACClassifier": "labelrace.related.compression.maniac",
    "MBRChunksClassifier": "labelrace.related.stacking.mbr_chunks",
    "MBRClassifier": "labelrace.related.stacking.mbr",
    "MLHTClassifier": "labelrace.related.trees.mlht",
    "MLkNNClassifier": "labelrace.related.neighbours.mlknn",
    "MOPLMSClassifier": "labelrace.related.compression.moplms",
    "MWCClassifier": "labelrace.related.neighbours.mwc",
    "OfflineRACEClassifier": "labelrace.race.classifier",
    "PLSTClassifier": "labelrace.related.compression.plst",
    "RACEClassifier": "labelrace.race.classifier",
    "RBMClassifier": "labelrace.related.rbm",
    "RidgeClassifier": "labelrace.related.compression.ridge",
    "Tagger": "labelrace.tables",
    "load": "labelrace.base.state_file",
    "load_dataset": "labelrace.streams",
    "make_model": "labelrace.base.registry",
    "model_names": "labelrace.base.registry",
    "register_model": "labelrace.base.registry",
}
"""The modules of the public names, which `labelrace` imports when they are first used."""

LEARNERS = {
    "naive_bayes": "labelrace.learners.naive_bayes.bank:NaiveBayes",
    "sgd": "labelrace.learners.sgd:SGD",
    "ridge": "labelrace.learners.ridge:Ridge",
    "rls": "labelrace.linear.rls:RLS",
}
"""The banks of learners that a parameter ``learner`` can name, and a model file can hold."""

GROUPS = {
    "paper": "The paper's own, and the default",
    "online": "Related work: online",
    "compression": "Related work: by compression",
    "constant": "Constants",
    "other": "Registered",
}
"""The groups that models are listed in, and their titles."""

REPORTS = {
    "run": "labelrace.report.run_report:run_document",
    "tagger": "labelrace.report.tagger_report:learned_document",
    "test": "labelrace.report.tagger_report:test_document",
}
"""What makes the reports of things that know nothing of reports."""


class Entry(NamedTuple):
    """A model: what makes it, the parameters that its name presets, a line about it, and its group.

    Of labelrace's own models what makes them is ``module:Class``: listing them imports none.
    """

    factory: Callable[..., Any] | str
    preset: Mapping[str, Any]
    about: str
    is_online: bool = True
    group: str = "paper"


def _own(path: str, about: str, group: str = "paper", *, online: bool = True, **preset: Any) -> Entry:
    """Make the entry of a class in this package."""
    return Entry(f"labelrace.{path}", preset, about, online, group)


def _paper(method: str, encoding: str, about: str, **others: Any) -> Entry:
    about = f"RACE as published: {about}"
    return _own("race.classifier:RACEClassifier.paper", about, method=method, encoding=encoding, **others)


def _online(path: str, about: str, **preset: Any) -> Entry:
    return _own(path, about, "online", **preset)


def _compression(path: str, about: str, **preset: Any) -> Entry:
    return _own(path, about, "compression", **preset)


MODELS = {
    "race": _own(
        "linear.classifier:LabelRaceClassifier", "the default: linear learners, adaptive thresholds, drift detection"
    ),
    "race-hashed": _own(
        "extreme.classifier:HashedRACEClassifier",
        "hashed codes and a residual table: labels by the million in little memory",
    ),
    "race-cls-fixed": _paper("classification", "fixed", "classifiers, the random encoder stays"),
    "race-cls-adaptive": _paper("classification", "adaptive", "classifiers, the encoder follows the decoder"),
    "race-reg-fixed": _paper("regression", "fixed", "regressors, the random encoder stays"),
    "race-reg-adaptive": _paper("regression", "adaptive", "regressors, the encoder follows the decoder"),
    "race-cls-adaptive-iter3": _paper(
        "classification", "adaptive", "as race-cls-adaptive, each batch learned three times", iterations=3
    ),
    "obr": _own("related.relevance:BinaryRelevanceClassifier.paper", "binary relevance: a naive Bayes for each label"),
    "occ": _own("related.chains:ClassifierChainsClassifier.paper", "a classifier chain in random order", n_chains=1),
    "oecc": _own(
        "related.chains:ClassifierChainsClassifier.paper", "five classifier chains in random orders, voting", n_chains=5
    ),
    "race-offline": _own(
        "race.classifier:OfflineRACEClassifier.paper",
        "RACE with all data in one batch (offline)",
        online=False,
        method="classification",
        encoding="fixed",
    ),
    "ridge": _compression(
        "related.compression.ridge:RidgeClassifier", "ridge regression of every label, no compression: the baseline"
    ),
    "plst": _compression(
        "related.compression.plst:PLSTClassifier",
        "principal label space transformation: the labels' principal directions",
    ),
    "plst-meka": _compression(
        "related.compression.plst:PLSTClassifier.meka_form",
        "PLST as in MEKA, which is wrong, and in the paper's Table 4",
        meka=True,
    ),
    "cplst": _compression(
        "related.compression.cplst:CPLSTClassifier", "conditional PLST: the directions that the features can predict"
    ),
    "faie": _compression(
        "related.compression.faie:FaIEClassifier",
        "implicit codes, recoverable from and predictable by the features at once",
    ),
    "cssp": _compression(
        "related.compression.cssp:CSSPClassifier",
        "column subset selection: a few labels learned, the others follow from them",
    ),
    "moplms": _compression(
        "related.compression.moplms:MOPLMSClassifier",
        "landmark labels chosen by group sparsity, the others follow from them",
    ),
    "cca": _compression(
        "related.compression.kcca:KCCAClassifier",
        "directions of the labels that correlate with the features",
        n_random_features=0,
    ),
    "kcca": _compression(
        "related.compression.kcca:KCCAClassifier", "the same with random features of the labels, instead of a kernel"
    ),
    "cs": _compression(
        "related.compression.cs:CompressedSensingClassifier",
        "compressed sensing: random codes, decoded by sparse recovery",
    ),
    "bmad": _compression(
        "related.compression.bmad:BMaDClassifier",
        "Boolean matrix decomposition: label sets as unions of a few basis sets",
    ),
    "cl": _compression(
        "related.compression.cl:CompressedLabelingClassifier",
        "compressed labeling: random bits, tests for distilled label sets",
    ),
    "maniac": _compression(
        "related.compression.maniac:MANIACClassifier", "autoencoder of the labels, trained on the first batch"
    ),
    "arow": _online(
        "related.linear.arow:AROWClassifier", "AROW: linear models with a confidence in each weight of each label"
    ),
    "adagrad-logistic": _online(
        "related.linear.adagrad:AdaGradClassifier",
        "logistic regression of every label with AdaGrad's step sizes",
        loss="logistic",
    ),
    "adagrad-squared": _online(
        "related.linear.adagrad:AdaGradClassifier",
        "least squares of every label with AdaGrad's step sizes",
        loss="squared",
    ),
    "mbr": _online(
        "related.stacking.mbr:MBRClassifier.paper",
        "stacked binary relevance: a second naive Bayes sees the first one's labels",
    ),
    "mbr-chunks": _online(
        "related.stacking.mbr_chunks:MBRChunksClassifier.paper",
        "stacked binary relevance as published: a stack for each batch, voting",
    ),
    "mlknn": _online(
        "related.neighbours.mlknn:MLkNNClassifier", "ML-kNN on a window of the newest rows", tables="window"
    ),
    "mlknn-prequential": _online(
        "related.neighbours.mlknn:MLkNNClassifier", "ML-kNN with tables over all rows, cheaper", tables="prequential"
    ),
    "mwc": _online("related.neighbours.mwc:MWCClassifier", "nearest neighbours in windows of each label's own"),
    "mlht": _online(
        "related.trees.mlht:MLHTClassifier",
        "a multi-label Hoeffding tree: row-count entropy, naive Bayes in the leaves",
    ),
    "mlht-moa": _online(
        "related.trees.mlht:MLHTClassifier.moa",
        "a multi-label Hoeffding tree as in MOA, the majority label set in the leaves",
    ),
    "eaht": _online(
        "related.trees.eaht:EaHTClassifier", "ten multi-label Hoeffding trees, bagged, restarted where errors grow"
    ),
    "isoup": _online(
        "related.trees.isoup:ISOUPTreeClassifier",
        "iSOUP-Tree: a Hoeffding tree by regression onto all labels",
        leaf="mean",
    ),
    "isoup-linear": _online(
        "related.trees.isoup:ISOUPTreeClassifier", "iSOUP-Tree with linear models in the leaves", leaf="linear"
    ),
    "rbm": _online("related.rbm:RBMClassifier", "binary relevance on deep RBM features, trained on the first batch"),
    "majority": _own(
        "related.constant:ConstantClassifier",
        "the most frequent labels, whatever the row",
        "constant",
        strategy="majority",
    ),
    "negative": _own(
        "related.constant:ConstantClassifier", "no labels, whatever the row", "constant", strategy="negative"
    ),
}
