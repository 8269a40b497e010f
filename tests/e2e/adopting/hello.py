"""The one function that the existing project had."""

from firebase_functions import https_fn
from flask import Request, Response


@https_fn.on_request(region="us-central1")
def hello(request: Request) -> Response:
    return Response("hello")
