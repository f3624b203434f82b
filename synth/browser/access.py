"""The guard at the door: who may ask, and what an answer may do in a browser.

Only this machine reaches the port; that is not enough, since every web page that its user visits
can make the user's browser send requests to it. So a request must name this server as its host
(against names that are made to lead here), must not come from another site, and must carry a token
that is drawn at each start. The token comes in the address that `synth browse` prints, becomes a
cookie at once, and so stands in no address that is copied, kept or sent on: addresses of rows are
the same after the next start. A cookie goes to every port of this machine, so programs of other
people on it that one visits with the same browser can see it, which a token in the path would
not show them; addresses that can be kept weigh more here. What changes anything is a POST that also
has this site as its origin and a second token from the page that it was sent from.
"""

import hashlib
import hmac
import secrets
from typing import cast
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_PATH = "/open"
"""Where the address with the token leads."""

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'none'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing from elsewhere, no script at all, no page around ours."""

_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # not no-referrer: then browsers hide the origin of our own forms
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class AccessKeys:
    """The tokens of one start."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(32)
        key = self._token.encode()
        self.form_token = hmac.new(key, b"form", hashlib.sha256).hexdigest()
        """What a form of ours sends back."""

    def address(self, port: int) -> str:
        """What is to be opened first."""
        return f"http://127.0.0.1:{port}{TOKEN_PATH}?token={self._token}"

    def opens(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    def is_ours(self, form_token: str) -> bool:
        return hmac.compare_digest(form_token.encode(), self.form_token.encode())

    def cookie(self, port: int) -> str:
        """Named by the port, since a browser keeps cookies of all ports together."""
        return f"{_cookie_name(port)}={self._token}; HttpOnly; SameSite=Strict; Path=/"


class BrowserGuard:
    """Lets through to the application what may come in, and seals what goes out."""

    def __init__(self, app: ASGIApp, keys: AccessKeys, port: int) -> None:
        self._app, self._keys, self._port = app, keys, port
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                added = [
                    (name.encode(), value.encode())
                    for name, value in _HEADERS.items()
                    if name.encode() not in names
                ]
                headers = [*message["headers"], *added]
                message = cast(Message, {**message, "headers": headers})
            await send(message)

        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = self._refusal(scope) or self._opening(scope)
        await (answer or self._app)(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, method = Headers(scope=scope), scope["method"]
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _no(421, "This server answers only to its own address.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _no(403, "Links from other sites do not work; paste the address instead.")
        if method not in ("GET", "HEAD", "POST"):
            return _no(405, "Only GET, HEAD and POST are known here.")
        origin = f"http://{headers['host']}"
        if method == "POST" and headers.getlist("origin") != [origin]:
            return _no(403, "This form was not sent by a page of this server.")
        if scope["path"] != TOKEN_PATH and not self._keys.opens(self._sent_token(scope)):
            return _no(403, "Open the address that `synth browse` printed; it holds the key.")
        return None

    def _opening(self, scope: Scope) -> Response | None:
        """The token of the address as a cookie, and on to the first page."""
        if scope["path"] != TOKEN_PATH:
            return None
        [token] = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1]
        if not self._keys.opens(token):
            return _no(403, "This address is of an earlier start; open the one printed last.")
        return RedirectResponse("/", 303, headers={"set-cookie": self._keys.cookie(self._port)})

    def _sent_token(self, scope: Scope) -> str:
        # read leniently: cookies of other servers on this machine stand beside it, of any form
        return HTTPConnection(scope).cookies.get(_cookie_name(self._port), "")


def _cookie_name(port: int) -> str:
    return f"synth-browse-{port}"


def _no(status: int, words: str) -> Response:
    return PlainTextResponse(f"{words}\n", status)
