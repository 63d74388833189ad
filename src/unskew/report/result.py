"""`Result`: the base of all results. A result says what it is; the base shows it everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from unskew.report.notebook_view import as_picture, view
from unskew.report.tables import Table, as_pandas
from unskew.report.text import finite, visible

if TYPE_CHECKING:
    import polars as pl


class Result:
    """What a function of ours gives: numbers in a table, and the lines that explain them.

    A subclass, a frozen dataclass, declares

    - `table()`: every number, for programs;
    - `display_table()` or `display_tables()`, where people should read something else;
    - `header()`: lines above the tables, where it has any;
    - `_explanation()`: the lines below the tables;
    - `notes`: what was counted, assumed or left out; they follow those lines;
    - `_conclusion()`: what follows from the numbers, the last lines;
    - `_summary()`: a few words, for the `repr`;
    - `_hint()`: the last line in a notebook, where there is more to see;
    - `_content()`: what `to_dict` holds.

    It inherits how it prints, in a terminal and in a notebook, and how it is handed on.
    """

    digits: ClassVar[int] = 4
    figure_is_open: ClassVar[bool] = False
    """Whether a notebook shows the figure, where there is one, unfolded: it says most."""
    footer_title: ClassVar[str] = ""
    """Under which title a notebook folds the lines below the tables; empty: they are shown."""
    every_row: ClassVar[str] = "print it to see all"
    """What to do to see the rows of a long table that a notebook does not show."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Otherwise `dataclass` would write a `repr` that lists every array.
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    # Declared by each result

    def table(self) -> pl.DataFrame:
        """Return the result as a table."""
        raise NotImplementedError

    def display_table(self) -> pl.DataFrame:
        """Return the table as people read it."""
        return self.table()

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return all tables as people read them, numbers with so many decimals."""
        return [Table("", self.display_table(), self.digits if digits is None else digits)]

    def header(self) -> list[str]:
        """Return the lines above the tables."""
        return []

    def _explanation(self) -> Sequence[str]:
        """Return the lines that say how the numbers came about."""
        return ()

    def _conclusion(self) -> Sequence[str]:
        """Return the lines that say what follows from the numbers."""
        return ()

    def _summary(self) -> str:
        """Return what it is in a few words."""
        return f"{self.table().height:,} rows"

    def _view_tables(self) -> list[Table]:
        """Return the tables that a notebook shows."""
        return self.display_tables()

    def _hint(self) -> str:
        """Return where a reader of the notebook finds the rest."""
        return ""

    def _content(self) -> Mapping[str, object]:
        """Return what `to_dict` holds: plain values, tables, and results that have a `to_dict`."""
        return {"rows": self.table(), "notes": self.footer()}

    # Inherited by each result

    def _fields(self, *left_out: str, **changed: object) -> dict[str, object]:
        """Return the fields by name in their order, for `to_dict`: without some, others changed.

        What is changed and no field comes last.
        """
        declared = fields(self)  # type: ignore[arg-type]  # every result is a dataclass
        values = {field.name: getattr(self, field.name) for field in declared}
        for name in left_out:
            del values[name]
        return values | changed

    def footer(self) -> list[str]:
        """Return the lines below the table: how the numbers came about, notes, what follows."""
        # No attribute of this class: dataclasses would take it for the default of the field.
        notes: Sequence[str] = getattr(self, "notes", ())
        return [*self._explanation(), *notes, *self._conclusion()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; what is not a number is None."""
        return {name: plain_values(value) for name, value in self._content().items()}

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars frame."""
        return self.table()

    def to_pandas(self) -> Any:
        """Return the table as a pandas frame (pandas must be installed)."""
        return as_pandas(self.to_polars())

    def to_latex(self, digits: int | None = None) -> str:
        """Return the tables that people read as LaTeX (booktabs)."""
        return "\n\n".join(table.to_latex() for table in self.display_tables(digits))

    def to_markdown(self, digits: int | None = None) -> str:
        """Return the tables that people read as Markdown."""
        return "\n\n".join(table.to_markdown() for table in self.display_tables(digits))

    def __str__(self) -> str:
        return self._text_above(self.footer())

    def _text_above(self, lines: Sequence[str]) -> str:
        """Return header and tables as text, with some lines below."""
        tables, header = self.display_tables(), self.header()
        parts = ["\n".join(map(visible, header))] if header else []
        parts += [table.to_text() for table in tables]
        # One table and its footer are one block; several need air.
        apart = [""] if len(parts) > 1 or any(table.title for table in tables) else []
        return "\n".join(["\n\n".join(parts), *apart, *map(visible, lines)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _repr_html_(self) -> str:
        return view(
            type(self).__name__,
            self._summary(),
            header=self.header(),
            tables=self._view_tables(),
            lines=self.footer(),
            fold=self.footer_title,
            picture=as_picture(self, is_open=self.figure_is_open),
            hint=self._hint(),
            every_row=self.every_row,
        )


def plain_values(value: Any) -> Any:
    """Return a nest of plain values for JSON: of tables their rows, of results their `to_dict`."""
    if hasattr(value, "to_dicts"):
        return finite(value.to_dicts())
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain_values(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(entry) for entry in value]
    return finite(value)
