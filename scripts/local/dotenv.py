"""The settings files beside the functions, read by the Firebase CLI's own code, checked as the product does.

`python -m scripts.local.dotenv PROJECT`, in the folder of a tree, prints the id of the project that is meant, and tells
what is wrong with its settings, by exit status 1.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from firebreak.settings.settings import KNOBS, faults
from scripts.local.layout import ROOT

_READER = ROOT / "scripts" / "dotenv.cjs"
# These files are committed and uploaded as they are.
_SECRETS = ("GEMINI_API_KEY", "BUDGET_WEBHOOK_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dotenv:
    """What the CLI takes from the files: the id of the project, its values, lines that are cut at a `#`, and faults."""

    project: str
    values: Mapping[str, str]
    cuts: tuple[str, ...]
    faults: tuple[str, ...]


def read(functions: Path, project: str) -> Dotenv:
    """Read `.env`, `.env.PROJECT` over it, and over both `.env.local` for a `demo-` project.

    `project` may be an alias of `.firebaserc`; then `.env.ALIAS` is read as well.
    """
    try:
        done = subprocess.run(
            ["node", str(_READER), str(functions), project], check=True, stdout=subprocess.PIPE, text=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        why = f"the settings cannot be read without Node and the Firebase CLI: run make setup ({error})"
        return Dotenv(project=project, values={}, cuts=(), faults=(why,))
    found = json.loads(done.stdout)
    cuts = (
        f"functions/{cut['file']}:{cut['line']}: the value of {cut['name']} ends at the #. "
        "To keep what follows, put the value in quotes."
        for cut in found["cuts"]
    )
    return Dotenv(project=found["project"], values=found["values"], cuts=tuple(cuts), faults=tuple(found["faults"]))


def dotenv(functions: Path, project: str) -> Mapping[str, str]:
    """The values alone."""
    return read(functions, project).values


def wrong(functions: Path, found: Dotenv) -> list[str]:
    """What the CLI and the product would say is wrong, names that are almost a knob's, and secrets."""
    if found.faults:
        return list(found.faults)
    if not (functions / "firebreak").exists():
        # Somebody else's functions, with settings of their own.
        return []
    names = [knob.name for knob in KNOBS]
    slips = {name: get_close_matches(name, names, 1, 0.85) for name in found.values if name not in (*names, *_SECRETS)}
    return [
        *faults({**found.values, "GCLOUD_PROJECT": found.project}),
        *(f"{name} is not a setting; did you mean {near[0]}?" for name, near in slips.items() if near),
        *(_misplaced(name) for name in _SECRETS if name in found.values),
    ]


def _misplaced(secret: str) -> str:
    return (
        f"{secret} is a secret and must not be in this file: "
        f"remove it and run npx firebase functions:secrets:set {secret}"
    )


def main() -> int:
    functions = Path("functions")
    found = read(functions, sys.argv[1])
    said = wrong(functions, found)
    for cut in found.cuts:
        print(cut, file=sys.stderr)
    for fault in said:
        print(f"functions/.env: {fault}", file=sys.stderr)
    print(found.project)
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
