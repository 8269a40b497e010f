"""The environment that the Firebase CLI, and so every function, is started with."""

import json
import os
from collections.abc import Mapping

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from scripts.local import binaries
from scripts.local.layout import HOST, PROJECT, ROOT, Layout
from scripts.local.processes import mark

# What a shell may hold and the stack must not see: keys, other emulators, the settings of a real deployment.
_SCRUBBED_PREFIXES = (
    "GEMINI_",
    "GOOGLE_",
    "GCLOUD_",
    "CLOUDSDK_",
    "FIREBASE_",
    "FIREBREAK_",
    "FUNCTION_",
    "K_",
)
_SCRUBBED = (
    "PORT",
    "WORKERS",
    "THREADS",
    "PYTHONHOME",
    "PYTHONPATH",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "VIRTUAL_ENV",
)
_SCRUBBED_SUFFIX = "_EMULATOR_HOST"
_LOCAL_HOSTS = f"{HOST},localhost"


def for_cli(
    layout: Layout, shell: Mapping[str, str], *, extra: Mapping[str, str], real_gemini_api_key: str | None
) -> dict[str, str]:
    """The whole environment of the CLI, from what the shell holds.

    Args:
        layout: the stack that is started.
        shell: the environment of this process.
        extra: variables on top, for the functions.
        real_gemini_api_key: sends model calls to Google with this key; None sends them to the stand-in.
    """
    env = scrubbed(shell) | binaries.environment(shell, root=layout.root, local=layout.local)
    if cache := shell.get("FIREBASE_EMULATORS_PATH"):
        env["FIREBASE_EMULATORS_PATH"] = cache
    env |= {
        "BILLING_EMULATOR_HOST": layout.address("stand-ins"),
        "FIREBREAK_METERED_ONLY": "true",
        "FIREBREAK_STANDINS": f"http://{layout.address('stand-ins')}",
        "FUNCTIONS_DISCOVERY_TIMEOUT": "60",
        "GOOGLE_APPLICATION_CREDENTIALS": str(layout.service_account),
        "NO_UPDATE_NOTIFIER": "1",
        "PYTHONPATH": str(ROOT / "scripts" / "local" / "inject"),
        "NODE_OPTIONS": f'--require "{ROOT / "scripts" / "local" / "inject" / "connections.cjs"}"',
        # The CLI leaves locator files of its hub here, and keeps its login and its settings there.
        "TMPDIR": str(layout.temporary),
        "XDG_CONFIG_HOME": str(layout.local / "config"),
    }
    env |= {name: _without_proxy(shell.get(name, "")) for name in ("NO_PROXY", "no_proxy")}
    if real_gemini_api_key is None:
        env["GEMINI_EMULATOR_HOST"] = layout.address("stand-ins")
    else:
        env["FIREBREAK_REAL_GEMINI_API_KEY"] = real_gemini_api_key
    return mark(env | dict(extra), layout.root)


def scrubbed(shell: Mapping[str, str]) -> dict[str, str]:
    """The shell's environment without what could reach, or pay for, anything outside this machine."""
    return {
        name: value
        for name, value in shell.items()
        if not name.startswith(_SCRUBBED_PREFIXES) and not name.endswith(_SCRUBBED_SUFFIX) and name not in _SCRUBBED
    }


def _without_proxy(given: str) -> str:
    return f"{given},{_LOCAL_HOSTS}" if given else _LOCAL_HOSTS


def write_credentials(layout: Layout) -> None:
    """Make the local service account and `functions/.secret.local`, each only if it is missing.

    Nobody but the stand-in knows the account, and gives it tokens: google-auth runs its real code, offline.
    """
    if not layout.service_account.exists():
        with os.fdopen(os.open(layout.service_account, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(_service_account(f"http://{layout.address('stand-ins')}/token"), file, indent=2)
    secrets = layout.root / "functions" / ".secret.local"
    if not secrets.exists():
        secrets.write_text("GEMINI_API_KEY=local-stand-in\n")


def _service_account(token_uri: str) -> dict[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    email = f"local@{PROJECT}.iam.gserviceaccount.com"
    return {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "local",
        "private_key": pem.decode(),
        "client_email": email,
        "client_id": "0",
        "token_uri": token_uri,
    }
