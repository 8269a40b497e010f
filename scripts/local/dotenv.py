"""The settings files beside the functions, read as the Firebase CLI reads them, checked as the product does.

`python -m scripts.local.dotenv PROJECT`, in the folder of a tree, tells what is wrong for a project, by exit status 1.
"""

import sys
from difflib import get_close_matches
from pathlib import Path

from firebreak.settings import KNOBS, faults


def dotenv(functions: Path, project: str | None = None) -> dict[str, str]:
    """What the CLI would take from `.env`, and for a project of that name from `.env.PROJECT` over it."""
    files = [functions / ".env"] + ([functions / f".env.{project}"] if project else [])
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def wrong(functions: Path, project: str) -> list[str]:
    """What the product would say is wrong with them, and names that are almost a knob's."""
    if not (functions / "firebreak").exists():
        # Somebody else's functions, with settings of their own.
        return []
    found = dotenv(functions, project)
    names = [knob.name for knob in KNOBS]
    slips = {name: get_close_matches(name, names, 1, 0.85) for name in found if name not in names}
    return faults({**found, "GCLOUD_PROJECT": project}) + [
        f"{name} is no setting; {near[0]} is" for name, near in slips.items() if near
    ]


def main() -> int:
    found = wrong(Path("functions"), sys.argv[1])
    for fault in found:
        print(f"functions/.env: {fault}", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
