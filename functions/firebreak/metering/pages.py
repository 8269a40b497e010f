"""Lists, fetched page by page: the SDK's own pagers would fetch the later pages by themselves, uncounted."""

from collections.abc import Callable, Iterator

from google.cloud.firestore_v1.types import (
    Document,
    ListCollectionIdsRequest,
    ListCollectionIdsResponse,
    ListDocumentsRequest,
    ListDocumentsResponse,
)

from firebreak.metering.counter import ReadMeter
from firebreak.metering.hold import Hold

# Documents of one page where the caller does not say.
PAGE = 300


def documents(
    meter: ReadMeter, request: ListDocumentsRequest, send: Callable[[ListDocumentsRequest], ListDocumentsResponse]
) -> Iterator[Document]:
    """The documents of all pages; no page is larger than what the meter allows."""
    size = request.page_size or PAGE
    while True:
        page = _page(meter, request, size, send)
        yield from page.documents
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def collection_ids(
    meter: ReadMeter,
    request: ListCollectionIdsRequest,
    send: Callable[[ListCollectionIdsRequest], ListCollectionIdsResponse],
) -> Iterator[str]:
    """The ids of all pages, each of which is billed as one read."""
    while True:
        meter.take()
        page = send(request)
        yield from page.collection_ids
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _page(
    meter: ReadMeter,
    request: ListDocumentsRequest,
    size: int,
    send: Callable[[ListDocumentsRequest], ListDocumentsResponse],
) -> ListDocumentsResponse:
    hold = Hold(meter)
    with hold.lock:
        request.page_size = hold.open(size) or size
        try:
            page = send(request)
        except BaseException as error:
            hold.fail(error)
            raise
        if page.documents:
            hold.spend(len(page.documents))
        hold.end()
    return page
