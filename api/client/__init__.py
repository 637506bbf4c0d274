"""Client: `Client` and `AsyncClient`, the methods of `Recollect` for a server on another machine, over HTTP.

It may use the contract of `api`, the types of `memory` and of the layers below, and nothing of `http`.
"""
