# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (seven-metrics)=
# # The seven metrics
#
# The paper's method takes any unfairness metric that can be differentiated, and its Table 3 names seven. What they measure
# differs, and some of them do not measure what their name says. This chapter writes each of them out, checks the fast
# implementation against the slow definition, and shows what a reader should know before choosing one.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - write down the seven metrics, and say of each which scores it calls fair;
# - say why a smooth metric need not be zero at parity, and what its floor is;
# - spot a metric that changes when groups are given other numbers;
# - judge how far a smooth metric stands in for the hard one that one would report.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
partition = None
front = "acs2012-income:gender"
l2 = 0.01
points = None
rows = None
orders = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import seven_metrics as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    partition=partition,
    front=front,
    l2=l2,
    points=points,
    rows=rows,
    orders=orders,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## Definitions
#
# Scores $z_i$, labels $y_i$, groups $I_a$ of $n_a$ rows, $a = 1, \dots, S$; $\sigma$ the sigmoid and
# $\operatorname{LSE}(v) = \log \sum_a e^{v_a}$, a smooth maximum. The text at hand prints Table 3's names and references; the
# formulas below are those that the authors published as code (variant *paper*).
#
# ````{prf:definition} The published metrics
# :label: def-metrics
#
# - **Demographic parity** {cite:p}`calders2009`: $m_a$ the mean of $\sigma(z_i)$ over group $a$ (of $z_i$ in regression);
#   $M = \operatorname{LSE}_a \sqrt{(m_a - \bar m)^2 + 10^{-6}}$.
# - **Equal opportunity** {cite:p}`hardt2016`: $t_a$ the mean of $\sigma(z_i)$ over the rows of group $a$ with $y_i = 1$;
#   $M = \operatorname{LSE}(t) + \operatorname{LSE}(-t)$, a smooth largest minus a smooth least rate.
# - **Equalized odds** {cite:p}`hardt2016`: the mean of that for $y_i = 1$ and for $y_i = 0$.
# - **Disparate mistreatment** {cite:p}`zafar2017`: $M = c^2$, $c = \tfrac1n \sum_i (g_i - \bar g)(z_i - \bar z)$ with $g_i$ the *number* of
#   row $i$'s group.
# - **HSIC** {cite:p}`gretton2005`: the same with $1/(n-1)$.
# - **Group variance**: the population variance over groups of the groups' mean losses.
# - **Individual fairness** {cite:p}`berk2017`: $\sum_{a<b} \sum_{i \in I_a, j \in I_b} e^{-|y_i - y_j|} (z_i - z_j)^2 / \sum_{a \ne b} n_a n_b$.
# ````
#
# The variant *cited* is what the cited definitions mean: the first three less their floors, so that parity is 0; disparate
# mistreatment as the covariance between belonging to a group and being on the wrong side of the boundary, one group against the
# rest, under a smooth maximum; HSIC with an indicator kernel on groups, $\sum_a \bigl( \sum_{i \in I_a} (z_i - \bar z) \bigr)^2 / (n-1)^2$. The
# other two coincide with the published ones.
#
# ````{prf:proposition} Floors
# :label: prop-floors
#
# For all scores $M \ge \log S + 10^{-3}$ for demographic parity, $M \ge 2 \log S$ for equal opportunity and equalized odds, and $M \ge 0$ for
# the others. All floors are reached where every score is 0, and all but the group variance's where all scores are equal.
# ````
#
# ````{prf:proof}
# $\operatorname{LSE}$ increases in each argument, and each modulus is at least $10^{-3}$, with equality at equal means. By Jensen
# $\operatorname{LSE}(t) \ge \log S + \bar t$ and $\operatorname{LSE}(-t) \ge \log S - \bar t$. The rest are squares and sums of squares.
# ````
#
# So a published value of 0.70 for demographic parity of two groups is parity: the number to look at is the distance from
# $\log 2 + 0.001 \approx 0.694$.
#
# ## Checked against the definitions
#
# Each metric is evaluated by fast sums; here it is compared with its definition written out over groups and pairs, its derivative
# with central differences, and its floor with parity and with random scores: {glue:text}`cases` checks. Partitions on which a
# metric is not defined, because a group lacks rows of a label: {glue:text}`skipped` cases. Largest relative errors: of values
# {glue:text}`off_definition`, of derivatives {glue:text}`off_derivative`; largest miss of a floor {glue:text}`off_floor`.

# %% tags=["hide-input"]
present(study.table_checks(tables), digits=1)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
checks = tables["checks"]
assert checks.holds.all(), "a metric is not its definition"
assert checks[checks.check != "not defined"].metric.nunique() == 7
print("seven metrics agree with their definitions, derivatives and floors:", bool(checks.holds.all()))

# %% [markdown]
# ## Numbers that are only names
#
# Groups are given numbers because arrays need them. Two of the published formulas calculate with these numbers.
#
# ````{prf:proposition} Renumbering
# :label: prop-renumbering
#
# For two groups the published disparate mistreatment and HSIC do not depend on which group is called 1. For $S > 2$ they do: with
# $u_a = \tfrac1n \sum_{i \in I_a} (z_i - \bar z)$, $M = \bigl( \sum_a g_a u_a \bigr)^2$ for the numbers $g_a$, and some numbering makes it differ
# from another unless all $u_a$ vanish.
# ````
#
# ````{prf:proof}
# For $S = 2$, $u_2 = -u_1$ and $M = u_1^2 (g_1 - g_2)^2$. For $S > 2$ suppose that $\lvert \sum_a g_a u_a \rvert = C$ for every numbering.
# Swapping the numbers of groups $a$ and $b$ changes the sum by $(g_b - g_a)(u_a - u_b)$; where $u_a \ne u_b$ it must therefore turn
# $C$ into $-C$ or back, so $\lvert g_b - g_a \rvert \lvert u_a - u_b \rvert = 2C$, whatever the numbers. But their gap can be 1 or 2. So all $u_a$ are
# equal, and since they sum to 0 they vanish.
# ````
#
# Nor does any label enter the published disparate mistreatment: it is a covariance of scores and group numbers, and says nothing
# of errors.

# %% tags=["remove-cell"]
glue("figure_renumbering", study.figure_renumbering(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_renumbering
# :name: fig-renumbering
# :alt: For each partition of three groups or more a bar from the least to the largest value under renumbering, over the value at the data's own numbers, on a logarithmic axis: long for the published variants, a point for the cited ones.
#
# What renumbering the groups does to one and the same model. Data: {glue:text}`setting`.
# ```
#
# On {glue:text}`renumber_where`, one model has the published values {glue:text}`renumber_least` and {glue:text}`renumber_largest`, a factor of
# {glue:text}`renumber_factor`, by the order of the groups alone. No cited metric moves by more than {glue:text}`renumber_cited` of its
# value. (The project's notes report 0.135 against 0.017 for disparate mistreatment on a data set of theirs.)

# %% tags=["hide-input"]
present(study.table_renumbering(tables), digits=3)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
numbers = tables["renumbering"]
spread = (numbers.largest - numbers.least) / numbers.largest.clip(lower=1e-12)
still = spread[(numbers.variant == "cited") | (numbers.groups == 2)]
moved = spread[
    (numbers.variant == "paper") & (numbers.groups > 2) & numbers.metric.isin(["disparate_mistreatment", "hsic"])
]
assert (still <= 1e-8).all() and (moved > 1e-2).all()
print("cited metrics, and all metrics of two groups, keep their value:", bool((still <= 1e-8).all()))
print("published disparate mistreatment and HSIC of more groups change:", bool((moved > 1e-2).all()))
for row in numbers[numbers.variant == "paper"].itertuples():
    print(row.partition, row.metric, f"{row.least:.4f} to {row.largest:.4f}")

# %% [markdown]
# ## Smooth against hard
#
# What is reported in the end are rates of decisions: a difference of selection rates, of true positive rates, of error rates. These
# are steps in the scores and cannot be followed downhill. How far do the smooth metrics stand in for them?

# %% tags=["remove-cell"]
glue("figure_hard", study.figure_hard(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_hard
# :name: fig-hard
# :alt: One panel a metric: along the Pareto front of two groups, the cited and published smooth values and the hard counterpart as shares of their ranges. The hard curves are jagged; most go with the smooth ones, some do not.
#
# Smooth and hard unfairness along a front of two groups, each as a share of its own range. HSIC and individual fairness know no
# threshold and have no hard counterpart. Data: {glue:text}`setting_front`.
# ```

# %% tags=["hide-input"]
present(study.table_hard(tables), digits=3)

# %% [markdown]
# The weakest rank correlation between smooth and hard values along this front is {glue:text}`weakest_rank`
# ({glue:text}`weakest`). At the published sharpness a sigmoid blurs the threshold, and a gap between two groups' rates enters as
# $2 \log\cosh\bigl( (t_1 - t_2)/2 \bigr)$, about a quarter of its square. The sharpness $\rho$, in $\sigma(\rho z)$ and
# $\operatorname{LSE}(\rho v)/\rho$, closes the gap to the hard value, at the price of curvature.

# %% tags=["remove-cell"]
glue("figure_sharpness", study.figure_sharpness(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_sharpness
# :name: fig-sharpness
# :alt: Three panels, smooth value against sharpness on a logarithmic axis, approaching the dashed line of the hard value on the right.
#
# The smooth values of the model at uniform weights as they sharpen, and what they approach (for demographic parity the largest
# distance from the mean rate, half of the difference of two groups). Data: {glue:text}`setting_front`.
# ```
#
# At the published sharpness they are off by up to {glue:text}`sharp_first`, at the largest tried by up to {glue:text}`sharp_left`.
#
# ## What holds

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} A floor that looks like unfairness
# :label: ex-floor
# ```
# A paper reports equal opportunity of 2.78 for one model with 4 groups and 1.39 for another with 2. Which is fairer?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-floor
# :class: dropdown
# ```
# The floors are $2 \log 4 \approx 2.773$ and $2 \log 2 \approx 1.386$: both are within 0.01 of parity, and nothing else can be said. The variant
# *cited* takes the floor away.

# %% tags=["solution"]
from fairfront import metrics

for count, value in ((4, 2.78), (2, 1.39)):
    floor = metrics.get("equal_opportunity", variant="paper").floor(count)
    print(count, "groups: floor", round(floor, 3), "above it", round(value - floor, 3))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Mistreatment without mistakes
# :label: ex-mistreatment
# ```
# Construct scores that classify everybody correctly and yet have a large published disparate mistreatment. What does the cited
# metric say?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-mistreatment
# :class: dropdown
# ```
# Let the base rates differ, and let every score have the sign of its label. Nobody is mistreated; the covariance with the group
# number is that of the labels.

# %% tags=["solution"]
import numpy as np

y = np.array([1, 1, 1, 0, 1, 0, 0, 0])
groups = np.array([0, 0, 0, 0, 1, 1, 1, 1])
scores = 3.0 * (2 * y - 1)
for variant in ("paper", "cited"):
    bound = metrics.get("disparate_mistreatment", variant=variant).bind(y, groups)
    print(variant, round(bound.value(scores), 4))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} A metric of your own
# :label: ex-own-metric
# ```
# Write the difference of the groups' mean squared scores as a metric, and find the fairest efficient model for it.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-own-metric
# :class: dropdown
# ```
# `metrics.custom` takes any function that JAX can trace, and differentiates it.

# %% tags=["solution"]
import jax.numpy as jnp

from fairfront.bilevel import exhaustive_search
from fairfront.datasets import load
from fairfront.risks import GroupRisks


def squares(z, y, g):
    first = g == 0
    means = [jnp.sum(jnp.where(side, z**2, 0.0)) / jnp.sum(side) for side in (first, ~first)]
    return (means[0] - means[1]) ** 2


risks = GroupRisks.from_data(load("acs2012-income", sensitive=["gender"], test_size=0.0))
own = metrics.custom(squares).bind(risks.y, risks.groups, 2)
found = exhaustive_search(risks, own, resolution=51)
print(
    "weights",
    found.model.weights.round(3),
    "below both ends:",
    bool(found.value <= min(own.value(risks.at(found.model.w).scores), 1.0)),
)

# %% [markdown]
# ```{solution-end}
# ```
