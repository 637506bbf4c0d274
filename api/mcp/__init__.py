"""MCP: the tools by which a language model reads and changes one namespace, over standard streams or HTTP.

It may use the rooms of `api` below `http`. The SDK `mcp` is an extra, which `mcp_server` and `stdio_server` import when
they are called.
"""
