"""What is wrong with the settings of TLS or SASL, and with certificates that they do not fit."""


class SecurityConfigError(Exception):
    """`key` is Kafka's key at fault; the message says what is wrong and what to do, and holds no secret."""

    def __init__(self, key: str, message: str) -> None:
        self.key = key
        self.message = message
        super().__init__(f"{key}: {message}")


class UnnamedCertificate(Exception):
    """No rule maps the client's certificate to a principal; the message is for the log."""
