"""Points the real App Check client of a local function at the stand-in; the local stack puts this folder on PYTHONPATH.

Python imports a module of this name at every start, so it does nothing outside an emulated function, and patches only
when `firebase_admin.app_check` is imported. It lives here so that nothing that is deployed can weaken App Check.
"""

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType

_APP_CHECK = "firebase_admin.app_check"
_GOOGLE = "https://firebaseappcheck.googleapis.com"


class _Redirect(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads `firebase_admin.app_check` as ever, then exchanges Google's address for the stand-in's."""

    def __init__(self, standins: str) -> None:
        self._standins = standins
        self._loader: importlib.abc.Loader | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _APP_CHECK:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def exec_module(self, module: ModuleType) -> None:
        if self._loader is None:
            raise ImportError(_APP_CHECK)
        self._loader.exec_module(module)
        service = module._AppCheckService  # noqa: SLF001  no setting leads there
        for address in ("_JWKS_URL", "_VERIFY_URL_FORMAT"):
            setattr(service, address, getattr(service, address).replace(_GOOGLE, self._standins))


def _inject(standins: str) -> None:
    sys.meta_path.insert(0, _Redirect(standins))
    if key := os.environ.get("FIREBREAK_REAL_GEMINI_API_KEY"):
        os.environ["GEMINI_API_KEY"] = key


if os.environ.get("FUNCTIONS_EMULATOR") == "true" and "FIREBREAK_STANDINS" in os.environ:
    _inject(os.environ["FIREBREAK_STANDINS"])
