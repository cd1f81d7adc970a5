"""SQL on the tables of an audit: queries, and nothing but queries.

Spark carries out commands as soon as they are given to it, so a text is parsed and looked through before. What reads
or runs something outside the tables (a script, a Java method, a file by its path) is no query in this sense.
"""

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_replay.audit_folder import AuditTables
from spark_replay.schemas import TABLES

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_REFUSED: Final = (
    f"{_PLANS}.Command",
    f"{_PLANS}.ParsedStatement",
    f"{_PLANS}.UnaryParsedStatement",
    f"{_PLANS}.CompoundPlanStatement",
    f"{_PLANS}.ScriptTransformation",
)
# They tell of the tables, and change nothing.
_TELLING: Final = (
    "DescribeRelation",
    "DescribeColumn",
    "ShowTables",
    "ShowColumns",
    "ShowViews",
    "ShowFunctions",
)
_REACHING_OUT: Final = frozenset({"reflect", "java_method", "try_reflect"})
_NAME = re.compile(r"`([^`]*)`")


class BadSql(Exception):
    """The text is no query of the tables; the message, one line, says what is wrong with it."""


def make_views(tables: AuditTables, source: str | None = None) -> None:
    """Each table as a view of its name, of one log or of all."""
    for name in TABLES:
        frame = tables.table(name)
        chosen = frame if source is None else frame.where(F.col("source") == F.lit(source))
        chosen.createOrReplaceTempView(name)
    tables.spark.conf.set("spark.sql.runSQLOnFiles", "false")


def query(spark: SparkSession, text: str) -> DataFrame:
    """What the query says, on the views of `make_views`. Raises BadSql."""
    statement = text.strip().rstrip(";").strip()
    if not statement:
        raise BadSql("there is no query in it")
    try:
        _check(spark, statement)
        return spark.sql(statement)
    except PySparkException as error:
        raise BadSql(what_is_wrong(error)) from None


def what_is_wrong(error: PySparkException) -> str:
    """One line: Spark's own, with the nearest names that there are."""
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD")):
        name = _bare(parameters.get("objectName") or parameters.get("fieldName") or "")
        near = ", ".join(map(_bare, parameters.get("proposal", "").split(", "))).strip(", ")
        return f"there is no column {name}" + (f"; the nearest are {near}" if near else "") + _place(error)
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = _bare(parameters.get("relationName", ""))
        near_tables = difflib.get_close_matches(name, TABLES, n=3, cutoff=0.5) or list(TABLES)
        return f"there is no table {name}; there are {', '.join(near_tables)}" + _place(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = re.sub(r"^\[[A-Z0-9_.]+\] ", "", lines[0] if lines else type(error).__name__)
    return re.sub(r" SQLSTATE: \w+", "", first).strip() + (_place(error) if "line" not in first else "")


def _place(error: PySparkException) -> str:
    found = re.search(r"line (\d+),? pos(?:ition)? (\d+)", str(error))
    return f" (line {found[1]}, character {int(found[2]) + 1})" if found else ""


def _bare(name: str) -> str:
    """`a`.`b` without its backquotes; of a proposal with the view before it only the column."""
    parts = _NAME.findall(name)
    return ".".join(parts) if parts else name


def _check(spark: SparkSession, statement: str) -> None:
    """Raises BadSql for what is no query, and PySparkException for what cannot be parsed."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    plan = session.sessionState().sqlParser().parsePlan(statement)
    if plan.getClass().getSimpleName() in _TELLING:
        return
    for node in _nodes(plan):
        name = node.getClass().getSimpleName()
        if "ExecuteImmediate" in name or any(_is_a(jvm, node, refused) for refused in _REFUSED):
            raise BadSql(f"only queries can be asked, and {_words(name)} is none")
        if name == "UnresolvedFunction":
            called = str(node.nameParts().last()).lower()
            if called in _REACHING_OUT:
                raise BadSql(f"the function {called} reaches out of the tables")


def _nodes(plan: Any) -> Iterator[Any]:
    """Every plan and expression in it, those of subqueries and of WITH included."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("children", "innerChildren", "expressions"):
            found = getattr(node, part, None)
            if found is None or (part == "expressions" and not _is_plan(node)):
                continue
            sequence = found()
            waiting += [sequence.apply(index) for index in range(sequence.length())]
        if node.getClass().getName().startswith("org.apache.spark.sql.catalyst.expressions") and _has_plan(
            node
        ):
            waiting.append(node.plan())


def _is_plan(node: Any) -> bool:
    return bool(
        node.getClass().getName().startswith((_PLANS, "org.apache.spark.sql.catalyst.analysis"))
    ) and any(method.getName() == "expressions" for method in node.getClass().getMethods())


def _has_plan(node: Any) -> bool:
    return any(
        method.getName() == "plan" and method.getParameterCount() == 0
        for method in node.getClass().getMethods()
    )


def _is_a(jvm: Any, node: Any, class_name: str) -> bool:
    """Whether the node is of a class, which not every version of Spark has."""
    try:
        loaded = jvm.java.lang.Class.forName(class_name, False, node.getClass().getClassLoader())
    except Exception:  # noqa: BLE001 - ClassNotFoundException comes as a Py4JJavaError
        return False
    return bool(loaded.isInstance(node))


def _words(name: str) -> str:
    """`InsertIntoStatement` as `insert into`."""
    words = re.findall(r"[A-Z][a-z]*", name.removesuffix("Statement").removesuffix("Command"))
    return " ".join(words).lower() or name
