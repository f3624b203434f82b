"""Doubles of vendors' servers: real HTTP servers on loopback that behave as those are known to.

`DOUBLES` (catalogue.py) has one record of quirks for each; `serve` (server.py) runs one in front of
the offline model, so that its answers are valid for every role. `faults.py` and `quotas.py` are
what happens to any server: outages, lost connections, limits of a minute.
"""
