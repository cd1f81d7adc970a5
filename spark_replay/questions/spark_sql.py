"""SQL on the tables of an audit in Spark: queries, and nothing but queries.

Spark carries out commands as soon as they are given to it, so a text is parsed and looked through before. What reads
or runs something outside the tables (a script, a Java method, a file by its path) is no query in this sense, nor is
what names something only when it runs (IDENTIFIER).
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_folder import AuditTables
from kquorum.spark_replay.engine.on_spark import SparkFrame
from kquorum.spark_replay.questions.sql import NO_QUERY, BadSql, distinct_names, no_such_column, no_such_table
from kquorum.spark_replay.tables.building.registry import TABLES

_QUERY: Final = frozenset(
    {
        "Aggregate",
        "CurrentNamespace",
        "Distinct",
        "Except",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LimitAll",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "OneRowRelation",
        "PipeOperator",
        "Pivot",
        "Project",
        "Repartition",
        "RepartitionByExpression",
        "Sample",
        "Sort",
        "SubqueryAlias",
        "Union",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedNamespace",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTVFAliases",
        "UnresolvedTableOrView",
        "UnresolvedTableValuedFunction",
        "UnresolvedWith",
        "Unpivot",
        "WithWindowDefinition",
    }
)
# They tell of the tables, and change nothing.
_TELLING: Final = frozenset(
    {"DescribeRelation", "DescribeColumn", "ShowTables", "ShowColumns", "ShowViews", "ShowFunctions"}
)
_REACHING_OUT: Final = frozenset({"reflect", "java_method", "try_reflect"})
# What Spark has made of a query must not have these, by whatever name it called them.
_RUNNING_CODE: Final = frozenset(
    {
        "CallMethodViaReflection",
        "TryReflect",
        "ScalaUDF",
        "HiveSimpleUDF",
        "HiveGenericUDF",
        "PythonUDF",
        "PythonUDAF",
        "PythonUDTF",
        "PythonUDTFRelation",
        "ScriptTransformation",
    }
)
_NAME = re.compile(r"`([^`]*)`")


def make_views(tables: AuditTables, source: str | None = None) -> None:
    """Each table as a view of its name, of one log or of all."""
    for name in tables.manifest.rows:
        frame = tables.table(name)
        chosen = frame if source is None else frame.where(F.col("source") == F.lit(source))
        chosen.createOrReplaceTempView(name)
    tables.spark.conf.set("spark.sql.runSQLOnFiles", "false")


def query(spark: SparkSession, text: str) -> DataFrame:
    """What the query says, on the views of `make_views`. Raises BadSql."""
    statement = text.strip().rstrip(";").strip()
    if not statement:
        raise BadSql(NO_QUERY)
    try:
        _check(spark, statement)
        frame = spark.sql(statement)
        _check_analyzed(frame)
        return frame
    except PySparkException as error:
        raise BadSql(what_is_wrong(error)) from None


def as_frame(frame: DataFrame) -> SparkFrame:
    """With each name of a column once, as JSON has it."""
    return SparkFrame(frame.toDF(*distinct_names(frame.columns)))


def what_is_wrong(error: PySparkException) -> str:
    """One line: Spark's own, with the nearest names that there are."""
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD")):
        name = _bare(parameters.get("objectName") or parameters.get("fieldName") or "")
        near = [each for each in map(_bare, parameters.get("proposal", "").split(", ")) if each]
        return no_such_column(name, near) + _place(error)
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = _bare(parameters.get("relationName", ""))
        return no_such_table(name, TABLES) + _place(error)
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
    session: Any = spark._jsparkSession
    plan = session.sessionState().sqlParser().parsePlan(statement)
    is_telling = _name_of(plan) in _TELLING
    for node, is_plan in _nodes(plan):
        name = _name_of(node)
        if "UnresolvedIdentifier" in name:
            raise BadSql("only queries can be asked, and IDENTIFIER hides what this one names")
        if is_plan and name not in _QUERY and not (is_telling and name in _TELLING):
            raise BadSql(f"only queries can be asked, and {_words(name)} is none")
        if name == "UnresolvedFunction":
            called = str(node.nameParts().last()).lower()
            if called in _REACHING_OUT:
                raise BadSql(f"the function {called} reaches out of the tables")


def _check_analyzed(frame: DataFrame) -> None:
    """What is computed only when rows are asked for must be the tables' own."""
    for node, _ in _nodes(frame._jdf.queryExecution().analyzed()):
        name = _name_of(node)
        if name in _RUNNING_CODE:
            raise BadSql(f"only queries of the tables can be asked, and {_words(name)} reaches out of them")


def _nodes(plan: Any) -> Iterator[tuple[Any, bool]]:
    """Every plan (True) and expression in it, those of subqueries and of WITH included; what a view is made of is not
    the query's."""
    waiting = [(plan, True)]
    has_plan: dict[str, bool] = {}  # by class: asking one takes longer than all the rest
    while waiting:
        node, is_plan = waiting.pop()
        yield node, is_plan
        if is_plan and _name_of(node) == "View":
            continue
        waiting += [(each, is_plan) for each in _sequence(node.children())]
        if is_plan:
            waiting += [(each, True) for each in _sequence(node.innerChildren())]
            waiting += [(each, False) for each in _sequence(node.expressions())]
            continue
        name = node.getClass().getName()
        if name not in has_plan:
            has_plan[name] = _has_plan(node)
        if has_plan[name]:
            waiting.append((node.plan(), True))


def _sequence(found: Any) -> list[Any]:
    return [found.apply(index) for index in range(found.length())]


def _name_of(node: Any) -> str:
    return str(node.getClass().getSimpleName()).rstrip("$")


def _has_plan(expression: Any) -> bool:
    methods = expression.getClass().getMethods()
    return any(method.getName() == "plan" and method.getParameterCount() == 0 for method in methods)


def _words(name: str) -> str:
    """`InsertIntoStatement` as `insert into`."""
    words = re.findall(r"[A-Z][a-z]*", name.removesuffix("Statement").removesuffix("Command"))
    return " ".join(words).lower() or name
