"""A made-up person file in the layout of the ACS: its columns and codes, none of its persons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

STATE = {"FL": 12, "DE": 10, "GA": 13, "MD": 24}
RELATIONS = {
    0: 20,
    1: 21,
    2: 25,
    3: 26,
    4: 27,
    5: 28,
    6: 29,
    7: 30,
    8: 31,
    9: 32,
    10: 33,
    12: 34,
    14: 35,
    15: 36,
    16: 37,
}


def persons(n: int, state: str = "FL", seed: int = 0) -> pd.DataFrame:
    """Return n rows with the columns of folktables' tasks, gaps and all, and two that hold words."""
    draw = np.random.default_rng(seed)

    def codes(low: int, high: int, gaps: float = 0.0) -> pd.Series:
        values = pd.Series(draw.integers(low, high + 1, n), dtype="Int64")
        return values.mask(pd.Series(draw.random(n) < gaps))

    age = codes(0, 95)
    adult = age > 15
    columns = {
        "RT": pd.Series(["P"] * n),
        "SERIALNO": pd.Series([f"2018HU{k:07d}" for k in range(n)]),
        "PUMA": codes(100, 9900),
        "ST": pd.Series([STATE[state]] * n),
        "PWGTP": codes(0, 300),
        "AGEP": age,
        "CIT": codes(1, 5),
        "COW": codes(1, 9, 0.3),
        "DEAR": codes(1, 2),
        "DEYE": codes(1, 2),
        "DREM": codes(1, 2, 0.1),
        "JWMNP": codes(1, 120, 0.4),
        "JWTR": codes(1, 12, 0.4),
        "MAR": codes(1, 5),
        "MIG": codes(1, 3, 0.02),
        "MIL": codes(1, 4, 0.2),
        "RELP": pd.Series(draw.choice(list(RELATIONS), n)),
        "SCHL": codes(1, 24, 0.03),
        "SEX": codes(1, 2),
        "WKHP": codes(1, 99, 0.4),
        "ANC": codes(1, 4),
        "DIS": codes(1, 2),
        "ESP": codes(1, 8, 0.8),
        "ESR": codes(1, 6).where(adult),
        "NATIVITY": codes(1, 2),
        "OCCP": codes(10, 9830, 0.3),
        "PINCP": codes(-5000, 150000).where(adult),
        "POBP": codes(1, 554),
        "POVPIP": codes(0, 501, 0.05),
        "POWPUMA": codes(1, 900, 0.4),
        "RAC1P": codes(1, 9),
        "NAICSP": pd.Series(["6111"] * n),
    }
    return pd.DataFrame(columns)


def write(folder: Path, frame: pd.DataFrame, state: str = "FL", year: int = 2018, *, padded: bool = False) -> Path:
    """Write a file where folktables would; padded with blanks, as some early files are."""
    name = f"psam_p{STATE[state]}.csv" if year >= 2017 else f"ss{year % 100}p{state.lower()}.csv"
    path = folder / str(year) / "1-Year" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = frame.to_csv(index=False)
    if padded:
        head, *rows = text.splitlines()
        text = "\n".join([head, *(",".join(f" {cell}".rjust(6) for cell in row.split(",")) for row in rows), ""])
    path.write_text(text, encoding="utf-8")
    return path
