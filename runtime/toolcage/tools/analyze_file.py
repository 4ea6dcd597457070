"""`analyze_file`: what a table in a file of a workspace holds: CSV, JSON Lines, Parquet or Excel.

The host sent a copy of the one file; parsers of foreign formats run here, in a cage, where a bomb ends at the call's
own memory and time. Only so many rows are read as the call asks for; the answer says whether there were more. Values
that are shown are shortened; numbers that JSON cannot hold are null. Formats are told by the name's ending and must fit
the content: nothing is guessed, and nothing in a file (formulas, macros, links) is ever run or followed.
"""

from __future__ import annotations

import datetime
import math
import os
import zipfile
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure

DEFAULT_ROWS: Final = 1000
MAX_ROWS: Final = 100_000
MAX_COLUMNS: Final = 200
MAX_SHOWN_CHARACTERS: Final = 200
MAX_UNPACKED_BYTES: Final = 128 * 1024 * 1024
HEAD_ROWS: Final = 5
TOP_VALUES: Final = 5
FORMATS: Final = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "json lines", ".ndjson": "json lines", ".parquet": "parquet",
    ".xlsx": "excel",
}  # fmt: skip

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "minLength": 1,
            "maxLength": 400,
            "description": "The file, relative to the workspace, ending in .csv, .tsv, .jsonl, .ndjson, .parquet or"
            " .xlsx.",
        },
        "analysis_type": {
            "type": "string",
            "enum": ["summary", "statistics", "schema", "quality"],
            "default": "summary",
            "description": "summary: size and first rows; statistics: figures per column; schema: names and types;"
            " quality: what is missing, doubled or odd.",
        },
        "max_rows": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_ROWS,
            "default": DEFAULT_ROWS,
            "description": "How many rows to look at, from the first.",
        },
        "workspace": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the workspace."},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}
_KINDS: Final = {"file_path": "path"}
_RESOURCES: Final = {"workspace": "workspace"}
_FILE_USES: Final = {"file_path": "read"}
_NUMBERS: Final = frozenset(
    ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "Decimal"]
)


class AnalyzeFile(Tool):
    """Describes a table in a file."""

    name = "analyze_file"
    description = (
        "Describes the table in a CSV, JSON Lines, Parquet or Excel file of a workspace. Use it to learn what a data "
        "file holds, to get figures per column, or to find missing, doubled and odd values. Do not use it to read "
        "text (use read_file), to find files (use list_files), or for calculations over several files (use "
        "execute_python). Input: `file_path` relative to the workspace, `analysis_type` (summary, statistics, schema "
        "or quality), and `max_rows`. Output: format, rows analysed, whether there are more, columns, and the "
        "analysis; of an Excel file the first sheet, and the names of all."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"reads_private"})
    resources = _RESOURCES
    file_uses = _FILE_USES
    image = "data"
    isolation = "namespace"
    wall_s = 30.0
    idempotent = True

    def execute(
        self,
        file_path: str,
        analysis_type: str = "summary",
        max_rows: int = DEFAULT_ROWS,
        workspace: str | None = None,
    ) -> dict[str, Any]:
        """The analysis. Raises ToolFailure with a `content.*` code."""
        name = self.context["workspace"]["file_path"]["path"]
        form = FORMATS.get(os.path.splitext(name)[1].lower())
        if form is None:
            raise ToolFailure(
                "content.format", "The file's ending is of no known table format.", f"Known: {', '.join(FORMATS)}."
            )
        frame, more = _frame(name, form, max_rows)
        found: dict[str, Any] = {
            "file_path": name,
            "format": form,
            "size": os.path.getsize(name),
            "rows_analyzed": frame.height,
            "more_rows": more,
            "column_count": frame.width,
        }
        if form == "excel":
            found["sheets"] = _sheets(name)
        columns = [_Column(series) for series in frame.get_columns()[:MAX_COLUMNS]]
        if analysis_type == "summary":
            found["columns"] = [column.name for column in columns]
            found["first_rows"] = [
                [_shown(value) for value in row[:MAX_COLUMNS]] for row in frame.head(HEAD_ROWS).rows()
            ]
        elif analysis_type == "schema":
            found["columns"] = [column.schema() for column in columns]
        elif analysis_type == "statistics":
            found["columns"] = [column.statistics() for column in columns]
        else:
            found["columns"] = [column.quality() for column in columns]
            found["duplicate_rows"] = _duplicates(frame)
        return found


# --- reading ---------------------------------------------------------------------------------------------------------


def _frame(name: str, form: str, max_rows: int) -> tuple[Any, bool]:
    """The first rows as a table, and whether there are more. Raises ToolFailure."""
    if os.path.getsize(name) == 0:
        raise ToolFailure("content.empty", "The file is empty.", "Nothing can be analysed in it.")
    import polars

    try:
        if form == "excel":
            frame = polars.DataFrame(_excel(name, max_rows + 1), strict=False)
        elif form == "parquet":
            frame = polars.read_parquet(name, n_rows=max_rows + 1)
        elif form == "json lines":
            frame = _json_lines(name, max_rows + 1)
        else:
            separator = "\t" if form == "tsv" else ","
            frame = polars.read_csv(
                name, n_rows=max_rows + 1, separator=separator, infer_schema_length=None, truncate_ragged_lines=True,
                try_parse_dates=True,
            )  # fmt: skip
    except ToolFailure:
        raise
    except MemoryError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        text = f"The file cannot be read as {form} ({type(error).__name__})."  # a panic of the parser is no Exception
        raise ToolFailure("content.unreadable", text, "Check the file's format, and read it with read_file.") from None
    return frame.head(max_rows), frame.height > max_rows


def _json_lines(name: str, most: int) -> Any:
    import io

    import polars

    lines = []
    with open(name, "rb") as handle:
        for line in handle:
            if line.strip():
                lines.append(line)
            if len(lines) == most:
                break
    return polars.read_ndjson(io.BytesIO(b"".join(lines)), infer_schema_length=None)


def _excel(name: str, most: int) -> dict[str, list[Any]]:
    """The first sheet's rows, the first of them as names. A cell that holds a formula is its stored value."""
    import openpyxl

    _check_unpacked(name)
    book = openpyxl.load_workbook(name, read_only=True, data_only=True, keep_links=False)
    rows = book.worksheets[0].iter_rows(values_only=True)
    header = next(rows, ())
    names: list[str] = []
    for place, cell in enumerate(header, 1):
        text = str(cell) if cell is not None else f"column_{place}"
        names.append(text if text not in names else f"{text}_{place}")
    columns: list[list[Any]] = [[] for _ in names]
    for number, row in enumerate(rows):
        if number == most:
            break
        for place, column in enumerate(columns):
            column.append(row[place] if place < len(row) else None)
    return {name: _one_kind(column) for name, column in zip(names, columns, strict=True)}


def _one_kind(values: list[Any]) -> list[Any]:
    """The values, as text where they are of several kinds."""
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) < 2 or kinds == {int, float} else [None if v is None else str(v) for v in values]


def _sheets(name: str) -> list[str]:
    import openpyxl

    book = openpyxl.load_workbook(name, read_only=True, keep_links=False)
    return [title[:MAX_SHOWN_CHARACTERS] for title in book.sheetnames[:100]]


def _check_unpacked(name: str) -> None:
    """Before anything is unpacked: what the archive says that it holds. An archive that lies fails while it is read."""
    with zipfile.ZipFile(name) as archive:
        total = sum(item.file_size for item in archive.infolist())
    if total > MAX_UNPACKED_BYTES:
        raise ToolFailure(
            "content.too_large", f"The file unpacks to more than {MAX_UNPACKED_BYTES} bytes.", "Work on a smaller one."
        )


# --- describing ------------------------------------------------------------------------------------------------------


class _Column:
    """One column and what can be said of it."""

    def __init__(self, series: Any) -> None:
        self._series = series
        self.name = series.name[:MAX_SHOWN_CHARACTERS]
        self.type = str(series.dtype)
        self.is_number = self.type.partition("(")[0] in _NUMBERS
        self.is_text = self.type in ("String", "Categorical")

    def schema(self) -> dict[str, Any]:
        present = self._series.drop_nulls()
        example = _shown(present[0]) if len(present) else None
        return {"name": self.name, "type": self.type, "nullable": len(present) < len(self._series), "example": example}

    def statistics(self) -> dict[str, Any]:
        present = self._series.drop_nulls()
        found: dict[str, Any] = {"name": self.name, "type": self.type, "count": len(present)}
        found["nulls"] = len(self._series) - len(present)
        if not len(present):
            return found
        if self.is_number:
            quarters = {f"p{round(q * 100)}": _shown(present.quantile(q, "linear")) for q in (0.25, 0.5, 0.75)}
            figures = {"mean": present.mean(), "std": present.std(), "min": present.min(), "max": present.max()}
            found |= {key: _shown(value) for key, value in figures.items()} | quarters
        elif self.is_text:
            found["distinct"] = present.n_unique()
            found["top"] = self._top(present)
            lengths = present.cast(str).str.len_chars() if hasattr(present, "str") else present
            found["shortest"], found["longest"] = lengths.min(), lengths.max()
        elif not self.type.startswith(("List", "Struct", "Array", "Object")):
            found |= {"min": _shown(present.min()), "max": _shown(present.max()), "distinct": present.n_unique()}
        return found

    def _top(self, present: Any) -> list[dict[str, Any]]:
        counted = present.value_counts(sort=True).head(TOP_VALUES).rows()
        return [{"value": _shown(value), "count": count} for value, count in counted]

    def quality(self) -> dict[str, Any]:
        series = self._series
        present = series.drop_nulls()
        nested = self.type.startswith(("List", "Struct", "Array", "Object"))
        distinct = None if nested else present.n_unique()
        found: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "nulls": len(series) - len(present),
            "null_share": round((len(series) - len(present)) / len(series), 4) if len(series) else 0.0,
            "distinct": distinct,
            "issues": [],
        }
        issues = found["issues"]
        if not len(present):
            issues.append("empty")
            return found
        if distinct == 1 and len(series) > 1:
            issues.append("constant")
        if self.is_text:
            blanks = int((present.str.strip_chars() == "").sum())
            padded = int((present != present.str.strip_chars()).sum()) - blanks
            issues += [f"{blanks} blank"] if blanks else []
            issues += [f"{padded} with spaces around"] if padded > 0 else []
            numbers = present.cast(float, strict=False).drop_nulls()
            if len(numbers) >= 0.9 * len(present):
                issues.append("numbers stored as text" if len(numbers) == len(present) else "mostly numbers")
        if self.is_number and len(present) >= 8:
            issues += self._outliers(present)
        return found

    @staticmethod
    def _outliers(present: Any) -> list[str]:
        low, high = present.quantile(0.25, "linear"), present.quantile(0.75, "linear")
        room = 1.5 * (float(high) - float(low))
        odd = int(((present < float(low) - room) | (present > float(high) + room)).sum())
        return [f"{odd} far outside the middle half"] if odd else []


def _duplicates(frame: Any) -> int | None:
    try:
        return int(frame.height - frame.n_unique())
    except Exception:  # noqa: BLE001 - some nested columns cannot be compared
        return None


def _shown(value: Any) -> Any:
    """A value as JSON holds it, shortened."""
    if value is None or isinstance(value, bool | int):
        return value if not isinstance(value, int) or abs(value) <= 2**53 else str(value)
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
