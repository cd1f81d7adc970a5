"""Why TLS did not come about, in words: OpenSSL's own are names of constants."""

import ssl

# The first byte of a TLS record and its version's first byte: what a side without TLS gets from one with it.
TLS_ALERT = b"\x15\x03"
TLS_HANDSHAKE = b"\x16\x03"
PLAIN_LISTENER = "it begins with TLS, and this listener has none (listener.security.protocol.map)"
SPEAKS_TLS = "it speaks TLS, and this side does not (is security.protocol to be SSL or SASL_SSL?)"

_HOST_MISMATCH = frozenset({62, 64})
_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})
_NO_TLS = "it does not speak TLS (does its listener have SSL or SASL_SSL?)"
_NO_VERSION = "the two sides have no version of TLS in common (ssl.enabled.protocols)"
_REFUSES = "it does not accept this side's certificate"
_REASONS = {
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "HTTP_REQUEST": "it speaks HTTP, not TLS",
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "BAD_RECORD_TYPE": _NO_TLS,
    "UNSUPPORTED_PROTOCOL": _NO_VERSION,
    "NO_PROTOCOLS_AVAILABLE": _NO_VERSION,
    "VERSION_TOO_LOW": _NO_VERSION,
    "TLSV1_ALERT_PROTOCOL_VERSION": _NO_VERSION,
    "NO_SHARED_CIPHER": "the two sides have no cipher in common",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, which ssl.client.auth=required asks for",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate of this side (ssl.keystore.location)",
    "TLSV1_ALERT_UNKNOWN_CA": f"{_REFUSES}: it does not know the authority (its ssl.truststore.location)",
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSES,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _REFUSES,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": f"{_REFUSES}: it has expired",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _REFUSES,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it refuses the handshake",
    "TLSV1_ALERT_DECRYPT_ERROR": _REFUSES,
    "TOO_MANY_TLS_RECORDS_WITHOUT_DATA": "it sent too many TLS records without data",
    "TOO_MANY_SHORT_TLS_RECORDS_IN_A_HANDSHAKE": "it sent its handshake in too many short TLS records",
}


def tls_reason(error: Exception) -> str:
    """About the peer, "it"."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_reason(error.verify_code, error.verify_message)
    if isinstance(error, ssl.SSLError):
        name = str(error.reason or "")
        return _REASONS.get(name) or f"TLS failed: {name.lower().replace('_', ' ') or error}"
    said = str(error) or type(error).__name__
    return f"the connection ended during the TLS handshake; the log there may say why ({said})"


def _certificate_reason(code: int, said: str) -> str:
    if code in _HOST_MISMATCH:
        return f"its certificate is not for this host: {said}"
    if code in _UNKNOWN_ISSUER:
        return (
            f"its certificate is of an authority that is not trusted here (ssl.truststore.location): {said}"
        )
    return f"its certificate cannot be used: {said}"
