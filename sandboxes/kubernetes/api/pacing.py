"""How fast objects are made: a bucket of tokens that empties where the API server says so."""

import asyncio


class Bucket:
    """So many tokens in a second, in the long run, and `burst` at once. Who asks first is served
    first. Nothing is given out while the server wants to be left alone."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s, self._burst = per_s, float(burst)
        self._tokens, self._at = float(burst), 0.0
        self._closed_until = 0.0
        self._turn = asyncio.Lock()
        self.waited_s = 0.0
        """By all who asked, together."""

    async def take(self) -> None:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        async with self._turn:
            while (wait := self._missing(loop.time())) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait)
            self._tokens -= 1
        self.waited_s += loop.time() - asked

    def _missing(self, now: float) -> float:
        """Seconds until a token is there."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_s)
        self._at = now
        return max(self._closed_until - now, (1 - self._tokens) / self._per_s)

    def close_for(self, seconds: float) -> None:
        """The server answered 429: nobody asks before."""
        end = asyncio.get_running_loop().time() + seconds
        self._closed_until = max(self._closed_until, end)
