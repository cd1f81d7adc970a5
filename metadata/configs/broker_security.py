"""Broker configs of authentication, authorization and delegation tokens."""

from metadata.configs.definition import Importance, Update
from metadata.configs.kinds import double, integer, klass, long, names, password, short, string
from metadata.configs.validators import at_least, list_of, one_of

DEFINITIONS = (
    klass(
        "alter.config.policy.class.name",
        None,
        "A class that may refuse changes of configs.",
        importance=Importance.LOW,
    ),
    string("authorizer.class.name", "", "The class that decides who may do what.", importance=Importance.LOW),
    klass(
        "create.topic.policy.class.name",
        None,
        "A class that may refuse the creation of topics.",
        importance=Importance.LOW,
    ),
    long(
        "delegation.token.expiry.check.interval.ms",
        3_600_000,
        "How often expired delegation tokens are removed.",
        at_least(1),
        importance=Importance.LOW,
    ),
    long(
        "delegation.token.expiry.time.ms",
        86_400_000,
        "How long a delegation token lasts unless it is renewed.",
        at_least(1),
    ),
    long(
        "delegation.token.max.lifetime.ms",
        604_800_000,
        "How long a delegation token lasts at most.",
        at_least(1),
    ),
    password(
        "delegation.token.secret.key",
        None,
        "The secret that delegation tokens are made with, the same on all nodes; none turns them off.",
    ),
    klass(
        "principal.builder.class",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "The class that tells who is at the other end of a connection.",
        update=Update.PER_BROKER,
    ),
    klass("sasl.client.callback.handler.class", None, "The class of callbacks on the client's side of SASL."),
    names(
        "sasl.enabled.mechanisms",
        "GSSAPI",
        "The SASL mechanisms that are offered.",
        list_of(),
        update=Update.PER_BROKER,
    ),
    password("sasl.jaas.config", None, "The login of a listener in JAAS's form.", update=Update.PER_BROKER),
    string("sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "The path of kinit.", update=Update.PER_BROKER),
    long(
        "sasl.kerberos.min.time.before.relogin",
        60_000,
        "At least how long lies between two renewals of a Kerberos login.",
        update=Update.PER_BROKER,
    ),
    names(
        "sasl.kerberos.principal.to.local.rules",
        "DEFAULT",
        "How Kerberos principals become short names.",
        list_of(),
        update=Update.PER_BROKER,
    ),
    string("sasl.kerberos.service.name", None, "The Kerberos name of the service.", update=Update.PER_BROKER),
    double(
        "sasl.kerberos.ticket.renew.jitter",
        "0.05",
        "By how much at random the renewal of a ticket is moved.",
        update=Update.PER_BROKER,
    ),
    double(
        "sasl.kerberos.ticket.renew.window.factor",
        "0.8",
        "After which share of its life a ticket is renewed.",
        update=Update.PER_BROKER,
    ),
    klass("sasl.login.callback.handler.class", None, "The class of callbacks at login."),
    klass("sasl.login.class", None, "The class that logs in."),
    short(
        "sasl.login.refresh.buffer.seconds",
        300,
        "How long before its end a credential is refreshed at the latest.",
        update=Update.PER_BROKER,
    ),
    short(
        "sasl.login.refresh.min.period.seconds",
        60,
        "At least how long lies between two refreshes of a credential.",
        update=Update.PER_BROKER,
    ),
    double(
        "sasl.login.refresh.window.factor",
        "0.8",
        "After which share of its life a credential is refreshed.",
        update=Update.PER_BROKER,
    ),
    double(
        "sasl.login.refresh.window.jitter",
        "0.05",
        "By how much at random the refresh of a credential is moved.",
        update=Update.PER_BROKER,
    ),
    string(
        "sasl.mechanism.controller.protocol",
        "GSSAPI",
        "The SASL mechanism to controllers.",
        importance=Importance.HIGH,
    ),
    string(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "The SASL mechanism among brokers.",
        update=Update.PER_BROKER,
    ),
    password(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        None,
        "The passphrase of the key that signs OAuth assertions.",
    ),
    password("sasl.oauthbearer.client.credentials.client.secret", None, "The secret of an OAuth client."),
    klass("sasl.server.callback.handler.class", None, "The class of callbacks on the server's side of SASL."),
    integer("sasl.server.max.receive.size", 524_288, "The largest message of a SASL handshake."),
    string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "The security protocol among brokers.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    string(
        "security.providers", None, "Classes that provide security algorithms.", importance=Importance.LOW
    ),
)
