"""Rows with two sensitive features, as a person would have them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    """Return 600 people: features age, hours, score; sensitive gender and race; labels hired and pay."""
    rng = np.random.default_rng(3)
    n = 600
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "hours": rng.normal(38, 6, n),
            "score": rng.normal(size=n),
            "gender": np.where(rng.random(n) < 0.4, "female", "male"),
            "race": rng.choice(["white", "black", "asian"], size=n, p=[0.6, 0.3, 0.1]),
        }
    )
    shift = 0.8 * (frame["gender"] == "male") - 0.5 * (frame["race"] == "black")
    frame["score"] += shift
    latent = 0.5 * (frame["age"] - 40) / 10 + (1.0 + 0.5 * (frame["gender"] == "male")) * frame["score"] + shift
    frame["hired"] = np.where(latent + rng.logistic(size=n) > 0.8, "yes", "no")
    frame["pay"] = 30 + 5 * latent + rng.normal(size=n)
    return frame


@pytest.fixture(scope="session")
def X(people: pd.DataFrame) -> pd.DataFrame:
    """Return the features, standardised."""
    features = people[["age", "hours", "score"]]
    return (features - features.mean()) / features.std(ddof=0)


@pytest.fixture(scope="session")
def hired(people: pd.DataFrame) -> pd.Series:
    """Return labels of two classes, in words."""
    return people["hired"]


@pytest.fixture(scope="session")
def gender(people: pd.DataFrame) -> pd.Series:
    """Return a sensitive feature of two values."""
    return people["gender"]
