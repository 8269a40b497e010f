"""Headers of an attested, signed-in client: a real App Check token of the stand-in, an ID token as the emulator's."""

import base64
import json
import time

from scripts.local import wire
from scripts.local.layout import PROJECT

HOUR_S = 3600


def headers(standins: str, uid: str = "bench", project: str = PROJECT, *, tenant: str | None = None) -> dict[str, str]:
    """Good for an hour; `standins` is the stand-ins' URL, `tenant` one of Identity Platform."""
    app_check = wire.call("POST", f"{standins}/appcheck/mint", {"projectId": project}).json["token"]
    return {"X-Firebase-AppCheck": app_check, "Authorization": f"Bearer {_id_token(uid, project, tenant)}"}


def _id_token(uid: str, project: str, tenant: str | None) -> str:
    """Unsigned, as the Auth emulator's are; only a function that runs under emulation accepts it."""
    now = int(time.time())
    claims = {
        "iss": f"https://securetoken.google.com/{project}",
        "aud": project,
        "sub": uid,
        "iat": now,
        "exp": now + HOUR_S,
        "firebase": {"sign_in_provider": "password"} | ({} if tenant is None else {"tenant": tenant}),
    }
    return f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(claims)}."


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
