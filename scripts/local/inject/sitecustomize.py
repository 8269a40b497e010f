"""Points the real App Check client of a local function at the stand-in; the local stack puts this folder on PYTHONPATH.

Python imports a module of this name at every start, so it does nothing outside an emulated function, and changes
a module only when that is imported. It lives here so that nothing that is deployed can weaken App Check.
"""

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

_APP_CHECK = "firebase_admin.app_check"
_GOOGLE = "https://firebaseappcheck.googleapis.com"

type _Change = Callable[[ModuleType], None]


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the modules that it names as ever, then changes them."""

    def __init__(self, changes: Mapping[str, _Change]) -> None:
        self._changes = changes
        self._loaders: dict[str, importlib.abc.Loader] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._loaders[name], spec.loader = spec.loader, self
        return spec

    def exec_module(self, module: ModuleType) -> None:
        self._loaders[module.__name__].exec_module(module)
        self._changes[module.__name__](module)


def _to_standins(standins: str) -> _Change:
    def change(app_check: ModuleType) -> None:
        service = app_check._AppCheckService  # noqa: SLF001  no setting leads there
        for address in ("_JWKS_URL", "_VERIFY_URL_FORMAT"):
            setattr(service, address, getattr(service, address).replace(_GOOGLE, standins))

    return change


def _inject(standins: str) -> None:
    changes: dict[str, _Change] = {_APP_CHECK: _to_standins(standins)}
    if os.environ.get("FIREBREAK_METERED_ONLY") == "true":
        import raw_firestore  # type: ignore[import-not-found]  # this folder is on the path here, and nowhere else

        changes |= dict.fromkeys(raw_firestore.CLIENTS, raw_firestore.guard)
    sys.meta_path.insert(0, _Changed(changes))
    if key := os.environ.get("FIREBREAK_REAL_GEMINI_API_KEY"):
        os.environ["GEMINI_API_KEY"] = key


if os.environ.get("FUNCTIONS_EMULATOR") == "true" and "FIREBREAK_STANDINS" in os.environ:
    _inject(os.environ["FIREBREAK_STANDINS"])
