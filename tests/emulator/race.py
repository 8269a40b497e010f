"""One process of a race: 25 callers of one user; prints each outcome. Arguments: Firestore host, uid, number."""

import sys
from concurrent.futures import ThreadPoolExecutor

from firebreak.bucket.ledger import Ledger
from scripts.local.client import client_at
from tests.emulator.test_ledger_races import decide


def main(host: str, uid: str, number: str) -> None:
    ledger = Ledger(client_at(host))
    with ThreadPoolExecutor(max_workers=25) as pool:
        print(*pool.map(lambda n: decide(ledger, uid, f"p{number}-{n}", 20), range(25)))


if __name__ == "__main__":
    main(*sys.argv[1:])
