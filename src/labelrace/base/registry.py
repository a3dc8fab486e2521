"""Models by name, for the command, the benchmarks and everybody who compares methods.

A model of one's own joins them by `register_model`, by an entry point of the group ``labelrace.models``, or for once as
``module:Class``. Those of the package are listed in `labelrace.base.registry_entries`. A file names the class of its
model; only classes that are known by one of these ways are made, so a file imports no module that the user has not
named.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from labelrace.base.registry_entries import LEARNERS, MODELS, PUBLIC_HOMES, REPORTS, Entry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from labelrace.linear.classifier import LabelRaceClassifier
    from labelrace.race.classifier import OfflineRACEClassifier, RACEClassifier
    from labelrace.related.chains import ClassifierChainsClassifier
    from labelrace.related.compression.plst import PLSTClassifier
    from labelrace.related.constant import ConstantClassifier
    from labelrace.related.relevance import BinaryRelevanceClassifier

ENTRY_POINTS = "labelrace.models"

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
    plugins.check_new(name, factory, {*MODELS, *PUBLIC_HOMES}, registered)
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
    known = {**MODELS, **_REGISTERED}
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


def make_report(what: str, *of: Any) -> Any:
    """Make a report, one of `REPORTS`, for things that lie below the reports: these are imported when one is wanted."""
    return _imported(REPORTS[what])(*of)


def _parameters(factory: Callable[..., Any]) -> list[str] | None:
    """List the parameters of a model; None if it takes any."""
    # A class method such as `RACEClassifier.paper` passes on what its class takes.
    owner = getattr(factory, "__self__", None)
    signature = inspect.signature(owner if inspect.isclass(owner) else factory)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
        return None
    return list(signature.parameters)


def _find(name: str) -> Entry:
    if name in MODELS or name in _REGISTERED:
        return MODELS.get(name) or _REGISTERED[name]
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
