# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (the-data)=
# # The data
#
# Every figure of this book is drawn from rows about people. This chapter counts them: which data sets the first paper uses
# and which of them are at hand here, how people are put into groups, and how one sees that no feature gives the target away.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - load any data set of both papers, or rows of your own, cut into sensitive groups;
# - read Table 1 of {cite:t}`tanji2026` beside what was counted here, and say what is missing and why;
# - merge small groups, and say what a merged group is;
# - tell a leak of the target from a strong feature.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
test_size = 0.3
groups = None
seeds = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import the_data as study

parameters = study.Parameters(profile=profile, seed=seed, test_size=test_size, groups=groups, seeds=seeds)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, result.parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## Table 1, counted
#
# The paper reports the rows $n$ and the columns $d$ of eleven data sets after preprocessing. {glue:text}`at_hand` are at hand
# where this page was made. Their $n$ is the paper's on {glue:text}`equal_n`, their $d$ on: {glue:text}`equal_d`.
#
# A $d$ that differs is no mistake of either side. Here a text column has an indicator for each value but the first, the intercept
# is counted, and what names a row or gives its target away is left out. The datasheets at the beginning of the book say, set by set,
# how the paper's number comes about, where that can be told.

# %% tags=["hide-input"]
present(study.table_1(tables))

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
shown = tables["table"].set_index("data")
embedded = shown.loc[["adult", "compas", "german", "communities"]]
assert (embedded.n == embedded.paper_n).all(), "an embedded data set has other rows than Table 1"
for name, row in embedded.iterrows():
    print(name, int(row.n), int(row.d), f"features a thousand rows: {1000 * row.d / row.n:.2f}")

# %% [markdown]
# ## What is missing, and why
#
# {glue:text}`missing` of the sets in the table below are missing on the machine that made this page. Some may not be
# redistributed, some are too large: the person files of one year and all states are gigabytes. `fairfront data fetch NAME`
# downloads them, verifies them and keeps them in your cache; `FAIRFRONT_DATA` names a folder that holds them already; and
# `fairfront data verify` says which are there. With more files at hand this chapter counts more.

# %% tags=["hide-input"]
present(tables["states"])

# %% [markdown]
# ## A collection of data sets
#
# By state, by year and by region the three tasks on the American Community Survey {cite:p}`census2012,ding2021` become many:
# 51 states (50 and Puerto Rico) in five years, and four regions, for each task; with the other eight they are
# {glue:text}`total`. Each has a name that `load` takes, as `acs-income/2018/FL`. By gender, race and age they fall into 2 to 36 groups.

# %% tags=["hide-input"]
present(tables["collection"])

# %% [markdown]
# ## Groups
#
# A partition is computed once, on all rows, and training and test rows share it. The authors' own loaders merge the groups
# of the two apart, so that the first group of the training rows need not be the first group of the test rows.

# %% tags=["remove-cell"]
glue("figure_data_groups", study.figure_groups(tables, result.parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_data_groups
# :name: fig-data-groups
# :alt: Left, one bar a data set, divided into the shares of its groups; most sets have one group that is larger than all others together. Right, one line a data set with a point for the mean label of each group; the points lie apart.
#
# The groups of each data set by its first sensitive attribute. Left: their shares of the rows. Right: the mean label of
# each group, in standard deviations of the label. Data: {glue:text}`setting`.
# ```
#
# Where cells are too small, the two smallest are merged, and again, until as many are left as were asked for. A merged group
# is a remainder, not a community: its name lists what was put together.

# %% tags=["remove-cell"]
glue("figure_data_merging", study.figure_merging(tables, result.parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_data_merging
# :name: fig-data-merging
# :alt: One column of points for each number of groups that remain, on a logarithmic axis of rows: the fewer groups remain, the larger is the smallest.
#
# Rows of the groups that remain when the smallest cells are merged. Data: {glue:text}`merge_setting`.
# ```

# %% tags=["hide-input"]
present(tables["merging"])

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
sums = tables["merging"].groupby("groups")["rows"].sum()
assert sums.nunique() == 1, "merging has lost a row"
print("rows in every partition:", int(sums.iloc[0]))

# %% [markdown]
# The groups' shares of a test set are off those of all rows by at most {glue:text}`split_gap`, over {glue:text}`seeds` splits.
#
# ## Leaks
#
# In three of the published loaders (Law School, Student Performance, German Credit) a column of the features *is* the target.
# A leak is seen by what it does: a feature whose correlation with the target is 1, or features that explain all of it by a
# linear model. Here the strongest feature of any data set at hand has a correlation of {glue:text}`strongest`, and a linear model
# explains at most {glue:text}`explained` of a target's variance beyond what as many columns of noise would.
# A correlation of 0.85, or a share of 0.80, would fail this chapter and the package's tests: what is stronger is looked at by hand.
# With `as_published=True`, `load` puts the three leaks back, for the audit of the published records.

# %% tags=["hide-input"]
present(tables["leaks"])

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
assert (tables["leaks"].correlation < 0.85).all() and (tables["leaks"].explained < 0.8).all(), (
    "a feature gives its target away"
)
print("no feature gives its target away:", True)

# %% [markdown]
# ## What holds
#
# The claims of the paper that this chapter examines, and what it measured.

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} Your own rows
# :label: ex-own-rows
# ```
# Make a small table with a target, two sensitive columns and a missing value. Load it by `from_frame` with each policy on missing
# values, and read what it says it has done.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-own-rows
# :class: dropdown
# ```
# One policy refuses and names the column, one drops the row, one fills the gap; the report says which rows or values it was.

# %% tags=["solution"]
import numpy as np
import pandas as pd

from fairfront.datasets import from_frame
from fairfront.errors import ArgumentError

draw = np.random.default_rng(0)
frame = pd.DataFrame(
    {
        "hired": draw.choice(["no", "yes"], 200),
        "gender": draw.choice(["woman", "man"], 200),
        "city": draw.choice(["north", "south"], 200),
        "test": draw.normal(size=200),
    }
)
frame.loc[0, "test"] = np.nan
for missing in ("refuse", "drop", "fill"):
    try:
        data = from_frame(frame, target="hired", sensitive=["gender", "city"], missing=missing)
        print(f"{missing}: {'; '.join(data.report)}")
    except ArgumentError as error:
        print(f"{missing}: {error}")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Put a leak back
# :label: ex-leak
# ```
# Load German Credit as published. Which column is the leak, and what does a linear model make of it?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-leak
# :class: dropdown
# ```
# `credit` is the label, coded as 1 and 2: its correlation with the target is $-1$, and least squares leaves nothing.

# %% tags=["solution"]
from fairfront.datasets import load

published = load("german", sensitive="gender", as_published=True)
leak = published.X[:, published.feature_names.index("credit")]
residual = published.y - published.X @ np.linalg.lstsq(published.X, published.y)[0]
print("correlation:", round(float(np.corrcoef(leak, published.y)[0, 1]), 6))
print("nothing is left:", bool(np.abs(residual).max() < 1e-8))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Merging cannot shrink
# :label: ex-merging
# ```
# Cells are merged smallest first until $k$ groups remain. Show that the smallest group never shrinks as $k$ falls, and see it
# on Adult by gender and race.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-merging
# :class: dropdown
# ```
# A step replaces the smallest cell by its union with another one. The union is at least as large as both, and every other cell
# was at least as large as the one that is gone.

# %% tags=["solution"]
smallest = [int(load("adult", sensitive=["gender", "race"], groups=k).group_sizes.min()) for k in (8, 6, 4, 2)]
print(smallest, bool((np.diff(smallest) >= 0).all()))

# %% [markdown]
# ```{solution-end}
# ```
