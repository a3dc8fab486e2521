"""Models by name, for the command, the benchmarks and everybody who compares methods.

A model of one's own joins them by `register_model`, by an entry point of the group ``labelrace.models``, or for once as
``module:Class``. A method of the package has a line in `_MODELS` and, if its class is public, one in `PUBLIC_HOMES`
and one in ``labelrace/__init__.py``. A file names the class of its model; only classes that are known by one of these
ways are made, so a file imports no module that the user has not named.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from labelrace.linear.classifier import LabelRaceClassifier
    from labelrace.race.classifier import OfflineRACEClassifier, RACEClassifier
    from labelrace.related.chains import ClassifierChainsClassifier
    from labelrace.related.compression.plst import PLSTClassifier
    from labelrace.related.constant import ConstantClassifier
    from labelrace.related.relevance import BinaryRelevanceClassifier

ENTRY_POINTS = "labelrace.models"

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


_MODELS = {
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
_REGISTERED: dict[str, Entry] = {}
# Classes that were named as ``module:Class`` in this process.
_NAMED: dict[str, Any] = {}


def register_model(name: str, factory: Callable[..., Any], *, about: str = "", online: bool | None = None) -> None:
    """Give a model of one's own a name, by which `make_model`, evaluation and the command know it.

    Parameters
    ----------
    name : str
        The name. It must be free, but a class or function that is defined again may be registered again.
    factory : callable
        A class or function that makes the model; its keyword arguments are the model's parameters. A class that derives
        from `labelrace.base.estimator.OnlineClassifier` can be saved, and loaded where it is registered.
    about : str, default=""
        A line about the model, for lists of models. By default the first line of the factory's docstring.
    online : bool or None, default=None
        Whether the model learns batch by batch. None asks the factory's attribute ``is_online``, and takes a model that
        has ``partial_fit`` for one that does.

    Examples
    --------
    >>> import labelrace
    >>> labelrace.register_model("obr-ridge", lambda: labelrace.BinaryRelevanceClassifier(learner="ridge"))
    >>> labelrace.make_model("obr-ridge")
    BinaryRelevanceClassifier(learner='ridge')
    """
    from labelrace.base import plugins  # here, as most programs register nothing

    registered: dict[str, Any] = {one: entry.factory for one, entry in _REGISTERED.items()}
    plugins.check_new(name, factory, {*_MODELS, *PUBLIC_HOMES}, registered)
    _check_class(name, factory)
    _REGISTERED[name] = _entry(factory, about, online)


def _check_class(name: str, factory: Any) -> None:
    """Refuse a class whose objects are no classifiers; what a function makes is not known before it is called."""
    if not inspect.isclass(factory):
        return
    missing = sorted(getattr(factory, "__abstractmethods__", ()))
    missing += [method for method in ("predict",) if not hasattr(factory, method)]
    missing += [] if hasattr(factory, "partial_fit") or hasattr(factory, "fit") else ["partial_fit"]
    if missing:
        raise ValueError(
            f"The class of the model {name!r} must be a classifier, got {factory.__name__} without "
            f"{', '.join(missing)}: define it, or derive the class from labelrace.base.estimator.OnlineClassifier."
        )


def _entry(factory: Callable[..., Any], about: str = "", online: bool | None = None) -> Entry:
    if online is None:
        online = bool(getattr(factory, "is_online", not inspect.isclass(factory) or hasattr(factory, "partial_fit")))
    first_line = (inspect.getdoc(factory) or "").partition("\n")[0] if inspect.isclass(factory) else ""
    return Entry(factory, {}, about or first_line, online, group="other")


def model_names(*, online: bool | None = None) -> list[str]:
    """List the names that `make_model` knows.

    Parameters
    ----------
    online : bool or None, default=None
        Only the models that learn batch by batch, or only those that do not; None for all.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import labelrace
    >>> labelrace.model_names(online=False)
    ['race-offline']
    """
    known = {**_MODELS, **_REGISTERED}
    names = [name for name, entry in known.items() if online is None or entry.is_online == online]
    return names + [
        name for name in _entry_points() if name not in known and (online is None or is_online(name) == online)
    ]


def is_online(name: str) -> bool:
    """Return whether a model learns batch by batch."""
    return _find(name).is_online


def describe_model(name: str) -> str:
    """Return a line that says what a model is."""
    return _find(name).about


def model_group(name: str) -> str:
    """Return the group, one of `GROUPS`, that a model is listed in."""
    return _find(name).group


_Race = Literal["race-cls-fixed", "race-cls-adaptive", "race-reg-fixed", "race-reg-adaptive", "race-cls-adaptive-iter3"]


@overload
def make_model(name: Literal["race"], **parameters: Any) -> LabelRaceClassifier: ...
@overload
def make_model(name: _Race, **parameters: Any) -> RACEClassifier: ...
@overload
def make_model(name: Literal["obr"], **parameters: Any) -> BinaryRelevanceClassifier: ...
@overload
def make_model(name: Literal["occ", "oecc"], **parameters: Any) -> ClassifierChainsClassifier: ...
@overload
def make_model(name: Literal["majority", "negative"], **parameters: Any) -> ConstantClassifier: ...
@overload
def make_model(name: Literal["race-offline"], **parameters: Any) -> OfflineRACEClassifier: ...
@overload
def make_model(name: Literal["plst", "plst-meka"], **parameters: Any) -> PLSTClassifier: ...
@overload
def make_model(name: str, **parameters: Any) -> Any: ...
def make_model(name: str, **parameters: Any) -> Any:
    """Make a model by its name.

    Parameters
    ----------
    name : str
        One of `model_names`, or ``"module:Class"`` for a class of one's own.
    **parameters
        Parameters of the model's class. ``random_state`` is accepted for every model, so that models can be compared in
        a loop: those that draw no random numbers do without it.

    Returns
    -------
    classifier
        Unfitted.

    Raises
    ------
    ValueError
        If no model has the name, or the model no such parameter.

    Examples
    --------
    >>> import labelrace
    >>> labelrace.make_model("race-cls-fixed", random_state=0)
    RACEClassifier(learner=NaiveBayes(numeric='binned', smoothing=1.0),
                   random_state=0, start='first_batch', zero_score='present')
    >>> labelrace.make_model("sklearn.dummy:DummyClassifier")
    DummyClassifier()
    """
    entry = _find(name)
    factory = _imported(entry.factory) if isinstance(entry.factory, str) else entry.factory
    known = _parameters(factory)
    if known is not None:
        if "random_state" not in known:
            parameters.pop("random_state", None)
        parameters_left = [parameter for parameter in known if parameter not in entry.preset]
        unknown = [parameter for parameter in parameters if parameter not in parameters_left]
        if unknown:
            raise ValueError(f"{name} has no parameter {unknown[0]!r}. It has: {', '.join(parameters_left)}.")
    return factory(**entry.preset, **parameters)


def public_class(name: str) -> Any:
    """Import one of labelrace's public classes; None for any other name."""
    found = getattr(import_module(PUBLIC_HOMES[name]), name) if name in PUBLIC_HOMES else None
    return found if inspect.isclass(found) else None


def saved_name(cls: type) -> str | None:
    """Return the name by which a file tells the class of its model; None if it could not be found again."""
    if public_class(cls.__name__) is cls:
        return cls.__name__
    own = {**{name: entry.factory for name, entry in _REGISTERED.items()}, **_NAMED}
    for name, found in own.items():
        if found is cls:
            return name
    package = cls.__module__.partition(".")[0]
    offered = (point for point in _entry_points().values() if point.module.partition(".")[0] == package)
    return next((point.name for point in offered if point.load() is cls), None)


def saved_class(name: str) -> Any:
    """Return the class that a file names; None if it is none that the user, or an installed package, has named.

    A file that names another module does not get it imported.
    """
    found = public_class(name)
    if found is None and name in _REGISTERED:
        found = _REGISTERED[name].factory
    elif found is None and name in _entry_points():
        found = _entry_points()[name].load()
    elif found is None:
        found = _NAMED.get(name)
    return found if inspect.isclass(found) else None


def allow(name: str) -> None:
    """Import a class of one's own, ``module:Class``, so that files which hold its objects can be loaded."""
    if ":" not in name:
        raise ValueError(f"The class of a model must be given as module:Class, got {name!r}.")
    _find(name)


def learner_class(name: str) -> Any:
    """Import the class of a bank of learners by its name, or by the name of its class; None for any other name."""
    for short, path in LEARNERS.items():
        if name in (short, path.partition(":")[2]):
            return _imported(path)
    return None


def _parameters(factory: Callable[..., Any]) -> list[str] | None:
    """List the parameters of a model; None if it takes any."""
    # A class method such as `RACEClassifier.paper` passes on what its class takes.
    owner = getattr(factory, "__self__", None)
    signature = inspect.signature(owner if inspect.isclass(owner) else factory)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
        return None
    return list(signature.parameters)


def _find(name: str) -> Entry:
    if name in _MODELS or name in _REGISTERED:
        return _MODELS.get(name) or _REGISTERED[name]
    if name in _entry_points():
        return _entry(_entry_points()[name].load())
    if isinstance(name, str) and ":" in name:
        with _folder_on_path():
            _NAMED[name] = _imported(name)
        _check_class(name, _NAMED[name])
        return _entry(_NAMED[name])
    raise ValueError(f"There is no model {name!r}. Known models: {', '.join(model_names())}.")


@contextmanager
def _folder_on_path() -> Iterator[None]:
    """Find modules in the current folder, too, where the user has named one; it comes last, and hides none."""
    sys.path.append("")
    try:
        yield
    finally:
        # The last one: the module may have added others.
        del sys.path[len(sys.path) - 1 - sys.path[::-1].index("")]


def _imported(name: str) -> Callable[..., Any]:
    """Import a class of one's own, given as ``module:Class``."""
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"The model {name!r} cannot be imported ({error}): give it as module:Class.") from error
    if not callable(found):
        raise ValueError(f"The model {name!r} must be a class or a function, got {found!r}.")
    return found


def _entry_points() -> dict[str, EntryPoint]:
    """Find the models that other installed packages offer."""
    from labelrace.base import plugins  # as in `register_model`

    return plugins.entry_points(ENTRY_POINTS)
