"""Broker configs of TLS."""

from metadata.configs.definition import Importance, Update
from metadata.configs.kinds import boolean, klass, names, password, string
from metadata.configs.validators import list_of, one_of

DEFINITIONS = (
    boolean(
        "ssl.allow.dn.changes",
        False,
        "Whether a new certificate may have another distinguished name.",
        importance=Importance.LOW,
    ),
    boolean(
        "ssl.allow.san.changes",
        False,
        "Whether a new certificate may have other alternative names.",
        importance=Importance.LOW,
    ),
    names(
        "ssl.cipher.suites",
        "",
        "The cipher suites that may be used; none means the platform's.",
        list_of(),
        update=Update.PER_BROKER,
    ),
    string(
        "ssl.client.auth",
        "none",
        "Whether clients must, may or need not show a certificate.",
        one_of("required", "requested", "none"),
        update=Update.PER_BROKER,
    ),
    names(
        "ssl.enabled.protocols",
        "TLSv1.2,TLSv1.3",
        "The versions of TLS that may be used.",
        list_of(),
        update=Update.PER_BROKER,
    ),
    string(
        "ssl.endpoint.identification.algorithm",
        "https",
        "How a server's name is checked against its certificate; empty does not check.",
        importance=Importance.LOW,
        update=Update.PER_BROKER,
    ),
    klass(
        "ssl.engine.factory.class",
        None,
        "A class that makes TLS engines.",
        importance=Importance.LOW,
        update=Update.PER_BROKER,
    ),
    password("ssl.key.password", None, "The password of the private key.", update=Update.PER_BROKER),
    string(
        "ssl.keymanager.algorithm", "SunX509", "The algorithm of the key manager.", update=Update.PER_BROKER
    ),
    password(
        "ssl.keystore.certificate.chain", None, "The certificate chain as PEM.", update=Update.PER_BROKER
    ),
    password("ssl.keystore.key", None, "The private key as PEM.", update=Update.PER_BROKER),
    string("ssl.keystore.location", None, "The file of the key store.", update=Update.PER_BROKER),
    password("ssl.keystore.password", None, "The password of the key store.", update=Update.PER_BROKER),
    string("ssl.keystore.type", "JKS", "The kind of the key store.", update=Update.PER_BROKER),
    string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How names in certificates become short names.",
        importance=Importance.LOW,
    ),
    string("ssl.protocol", "TLSv1.3", "The version of TLS to begin with.", update=Update.PER_BROKER),
    string("ssl.provider", None, "The security provider of TLS.", update=Update.PER_BROKER),
    string(
        "ssl.secure.random.implementation",
        None,
        "The source of random numbers.",
        importance=Importance.LOW,
        update=Update.PER_BROKER,
    ),
    string(
        "ssl.trustmanager.algorithm", "PKIX", "The algorithm of the trust manager.", update=Update.PER_BROKER
    ),
    password(
        "ssl.truststore.certificates", None, "The trusted certificates as PEM.", update=Update.PER_BROKER
    ),
    string("ssl.truststore.location", None, "The file of the trust store.", update=Update.PER_BROKER),
    password("ssl.truststore.password", None, "The password of the trust store.", update=Update.PER_BROKER),
    string("ssl.truststore.type", "JKS", "The kind of the trust store.", update=Update.PER_BROKER),
)
