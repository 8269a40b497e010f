"""The settings files beside the functions, read as the Firebase CLI reads them, checked as the product does."""

from pathlib import Path

from firebreak.settings import faults


def dotenv(functions: Path, project: str | None = None) -> dict[str, str]:
    """What the CLI would take from `.env`, and for a project of that name from `.env.PROJECT` over it."""
    files = [functions / ".env"] + ([functions / f".env.{project}"] if project else [])
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def wrong(functions: Path, project: str) -> list[str]:
    """What the product would say is wrong with them; nothing for functions that are another's."""
    if not (functions / "firebreak").exists():
        return []
    return faults({"GCLOUD_PROJECT": project, **dotenv(functions, project), **dotenv(functions, "local")})
