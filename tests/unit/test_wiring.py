"""What an instance builds, it builds once, however many threads come at first."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from firebreak.wiring import once


def test_threads_that_come_at_once_share_what_one_of_them_builds() -> None:
    built: list[object] = []
    start = threading.Barrier(8)

    @once
    def client() -> object:
        built.append(object())
        time.sleep(0.05)
        return built[-1]

    def get(_: int) -> object:
        start.wait()
        return client()

    with ThreadPoolExecutor(max_workers=8) as pool:
        found = set(map(id, pool.map(get, range(8))))

    assert len(built) == 1
    assert found == {id(built[0])}
