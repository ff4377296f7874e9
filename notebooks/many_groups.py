# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (many-groups)=
# # Any number of groups: fairness on training and test rows
#
# With more than three groups nothing can be drawn over the simplex any more. What can be drawn is what comes out: the
# unfairness of each strategy over many data sets and partitions, on the rows it was fitted to and on rows it has not seen.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - read a distribution function of unfairness, and compare strategies over partitions of many sizes;
# - say why badr cannot lose on training rows, and why that says nothing of test rows;
# - tell which of the paper's remarks on the strategies hold over the partitions at hand;
# - name the price: the error of prediction.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
data = None
seeds = None
metric = (
    "demographic_parity",
    "equal_opportunity",
    "equalized_odds",
    "disparate_mistreatment",
    "hsic",
    "group_variance",
    "individual_fairness",
)
variant = "paper"
loss = "logistic"
l2 = 0.01
penalize_intercept = False
test_size = 0.3
least_rows = 20
most_attributes = None
merge = None
vertices = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import many_groups as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    data=data,
    seeds=seeds,
    metric=metric,
    variant=variant,
    loss=loss,
    l2=l2,
    penalize_intercept=penalize_intercept,
    test_size=test_size,
    least_rows=least_rows,
    most_attributes=most_attributes,
    merge=merge,
    vertices=vertices,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## Partitions, and what can be compared across them
#
# Every sensitive attribute of a data set makes a partition, and so does every intersection of two. Where a cell is too
# small, the smallest cells are merged until the rest are not. The paper takes the Employment task of the American Community
# Survey, state by state and year by year; those files do not come with this book, and the profile `full` fetches them.
# Here are the embedded data sets: {glue:text}`instances` instances of a data set, a partition and a split.
# {glue:text}`skipped` partitions cannot be used: a group has too few rows, or none of a label that a metric needs.
#
# The smooth metrics as published are not 0 at parity but have a floor that grows with the number of groups ($\log S$ for
# demographic parity, $2 \log S$ for the two gaps). Across partitions only the excess over the floor can be compared, and
# everything below is this excess.
#
# ````{prf:proposition} On training rows badr cannot lose
# :label: prop-badr-train
#
# Let $\hat\varphi$ be the implicit function of the training rows and let badr return weights with $\hat\varphi$ at most its value at
# the start, for every start. If the weights of a strategy are among the starts, badr is at least as fair as that strategy on
# the training rows.
# ````
#
# ````{prf:proof}
# The best of the searches is at most the one from that start, which is at most $\hat\varphi$ there.
# ````
#
# So what follows on training rows tests the solver, and only what follows on test rows tests the method. For a model chosen
# because its training value is the least of many, the test value is expected to be larger.

# %% tags=["remove-cell"]
glue("figure_cdf", study.figure_cdf(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_cdf
# :name: fig-cdf
# :alt: Two panels a metric, training rows above and test rows below. Each shows for five strategies the share of instances whose unfairness is at most the value on the logarithmic axis. On training rows badr's curve is on the left of all others everywhere; on test rows it is still leftmost for most metrics, but the curves are closer together.
#
# The paper's Figure 8: distribution functions of unfairness, less its floor, over all instances. Farther left is fairer; what
# is below the axis's left end is drawn there. Data and variant: {glue:text}`setting`.
# ```

# %% tags=["hide-input"]
present(study.table_medians(tables, "train"), digits=3)

# %% tags=["hide-input"]
present(study.table_medians(tables, "test"), digits=3)

# %% [markdown]
# ## Who is the fairest
#
# On training rows badr is the fairest of the five in {glue:text}`fairest_train` of the instances, by metric, where equally fair
# strategies share an instance. On test rows that comes down to {glue:text}`fairest_test`; its median is still the least for
# {glue:text}`badr_first_test` metrics.

# %% tags=["remove-cell"]
glue("figure_fairest", study.figure_fairest(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_fairest
# :name: fig-fairest
# :alt: Two stacked bar charts, one bar a metric. On training rows most of each bar is badr's, the rest one-group fitting's and, for the group variance, minimax's. On test rows badr's part is smaller, and minimax and one-group fitting share most of the rest.
#
# Share of instances in which each strategy is the fairest. Data and variant: {glue:text}`setting`.
# ```
#
# The paper counts minimax with badr at the fair end and one-group fitting at the other. Here minimax is fairer than uniform
# weights in the median for {glue:text}`minimax_below_uniform` metrics, as the paper says, but fairer than one-group fitting only
# for {glue:text}`minimax_below_one`. One-group fitting *chooses* its group by the metric, which minimax never looks at; on
# test rows it is the fairest in {glue:text}`one_group_test` of the instances.
#
# Fairness has its price. The mean share of wrong labels on test rows is {glue:text}`error_badr` for badr,
# {glue:text}`error_one` for one-group fitting, {glue:text}`error_uniform` for uniform weights and {glue:text}`error_erm` for
# empirical risk minimisation.

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
values = tables["values"]
wide = values.pivot_table(index=["metric", "data", "partition", "seed"], columns="strategy", values="train")
never_beaten = bool((wide.sub(wide["badr"], axis=0) >= 0).all(axis=None))
assert never_beaten, "a strategy is fairer than badr on training rows"
print("no strategy is fairer than badr on training rows:", never_beaten)
for row in study.table_fairest(tables, "test").itertuples(index=False):
    print(row.metric, "badr fairest on test rows:", f"{row.badr:.2f}")

# %% [markdown]
# ## What holds

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} The floor
# :label: ex-many-floor
# ```
# Show that equalised odds as published is at least $2 \log S / \rho$, with equality exactly at equal rates. What would a distribution
# function of the metric itself show, over partitions with 2 to 8 groups?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-many-floor
# :class: dropdown
# ```
# $\frac1\rho \log \sum_a e^{\rho t_a} \ge \frac1\rho \log S + \frac1S \sum_a t_a$ by the concavity of the logarithm, with equality for equal $t_a$; the
# smooth minimum is at most $-\frac1\rho \log S + \frac1S \sum_a t_a$ in the same way, and the difference is at least $2 \log S / \rho$. The
# function would rise in steps at $2 \log 2, 2 \log 3, \dots$ and show the number of groups, not the strategies.

# %% tags=["solution"]
from fairfront import metrics

published = metrics.get("equalized_odds", variant="paper")
print({groups: round(published.floor(groups), 3) for groups in (2, 4, 8)})

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} More rows to choose by
# :label: ex-many-rows
# ```
# Does badr keep more of its lead on test rows when it chooses by more rows? Compare a test share of one tenth with one of two thirds.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-many-rows
# :class: dropdown
# ```
# Compare how far badr's mean unfairness rises from training to test rows. With more training rows one expects it to rise less; with few instances the
# answer is noisy, and the test value itself is an average over fewer rows.

# %% tags=["solution"]
for share in (0.1, 0.66):
    again = runs.compute(study, study.Parameters(profile="smoke", metric=("individual_fairness",), test_size=share))
    mean = again.tables["values"].query("strategy == 'badr'")[["train", "test"]].mean()
    print(f"test share {share}: train {mean.train:.3f}, test {mean.test:.3f}")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} The cited definitions
# :label: ex-many-cited
# ```
# Disparate mistreatment as published is a covariance of scores and group *numbers*. With `variant="cited"` it is what its
# reference defines. On how many instances of the smallest profile does badr choose differently?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-many-cited
# :class: dropdown
# ```
# The two metrics are different functions; compare the models by their error on test rows, which shows that they are not the same models.

# %% tags=["solution"]
chosen = {}
for form in ("paper", "cited"):
    again = runs.compute(study, study.Parameters(profile="smoke", metric=("disparate_mistreatment",), variant=form))
    chosen[form] = again.tables["values"].query("strategy == 'badr'").reset_index(drop=True)
differ = (chosen["paper"].train_error - chosen["cited"].train_error).abs() > 1e-9
print(int(differ.sum()), "of", len(differ), "models differ")

# %% [markdown]
# ```{solution-end}
# ```
