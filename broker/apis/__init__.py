"""The APIs of a broker's listener: `registry` names each once, and a file beside it holds each handler."""
