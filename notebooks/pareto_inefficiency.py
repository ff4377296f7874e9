# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (pareto-inefficiency)=
# # Pareto inefficiency of regularisation
#
# A common way to make a model fair is to add a fairness penalty to its loss. This chapter shows, on real people's rows,
# that the models found in this way could do better for one group without doing worse for another, proves it for each of
# them, and shows what is chosen instead, and at what price.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - say what a Pareto-efficient model of group losses is, and decide with a *certificate* whether a given model is one;
# - state Propositions 1 to 3 of {cite:t}`tanji2026` with the condition under which they hold, and refute them without it;
# - read a Pareto front, a regularisation path and an unfairness metric along the front from one figure;
# - say openly what efficiency costs in fairness.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
task = ("employment", "income", "travel-time")
sensitive = "gender"
metric = "individual_fairness"
variant = "paper"
l2 = 0.01
penalize_intercept = False
path_weights = "uniform"
penalty_min = 1e-6
penalty_max = 0.31622776601683794
penalties = None
front_points = None
levels = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import pareto_inefficiency as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    task=task,
    sensitive=sensitive,
    metric=metric,
    variant=variant,
    l2=l2,
    penalize_intercept=penalize_intercept,
    path_weights=path_weights,
    penalty_min=penalty_min,
    penalty_max=penalty_max,
    penalties=penalties,
    front_points=front_points,
    levels=levels,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## Group losses and efficiency
#
# People fall into groups $a = 1, \dots, S$ by a sensitive attribute. A linear model with coefficients $w$ has one
# regularised logistic risk per group,
#
# $$
# F_a(w) = \frac{1}{n_a} \sum_{i \in I_a} \log\bigl(1 + e^{x_i^\top w}\bigr) - y_i\, x_i^\top w
#          + \frac{\ell_2}{2} \lVert w \rVert^2 .
# $$
#
# ````{prf:definition} Pareto-efficient model
# :label: def-efficient
#
# A model $w$ is *dominated* when some model $u$ has $F_a(u) \le F_a(w)$ for every group and $F_a(u) < F_a(w)$ for one.
# It is *Pareto-efficient* when no model dominates it. The risks of all efficient models form the *Pareto front*.
# ````
#
# The rows are a sample of the American Community Survey of 2012 {cite:p}`census2012`: real persons of 2012, with three tasks
# built like those of folktables {cite:p}`ding2021`. They are **not** the 2018 state files on which the paper computed
# its Figure 1; what is reproduced below is the statement, not the digits.

# %% tags=["hide-input"]
present(tables["groups"])

# %% [markdown]
# ## Weighted sums, and when they are efficient
#
# Scalarisation turns the vector of risks into one number: for weights $\lambda$ in the simplex $\Delta_S$,
#
# $$ w^\star(\lambda) \in \argmin_w \sum_a \lambda_a F_a(w) . $$ (eq-scalarisation)
#
# ````{prf:proposition} Proposition 1 of the paper
# :label: prop-1
#
# For fixed $\lambda \in \Delta_S$ every solution of {eq}`eq-scalarisation` is Pareto-efficient. *Condition under which this
# holds on the whole simplex: the risks are strictly convex (here $\ell_2 > 0$). For risks that are merely convex it holds
# for $\lambda$ with all entries positive, and can fail on the boundary.*
# ````
#
# ````{prf:proof}
# If $u$ dominates $w = w^\star(\lambda)$, then $\sum_a \lambda_a F_a(u) \le \sum_a \lambda_a F_a(w)$, so $u$ is a minimiser
# too. With strictly convex risks the minimiser is unique, hence $u = w$: a contradiction. With all $\lambda_a > 0$ the
# inequality is strict, a contradiction without strict convexity.
# ````
#
# ````{prf:proposition} Proposition 2 of the paper
# :label: prop-2
#
# If the risks are convex and one of them is strictly convex, every Pareto-efficient model lies in the closure of
# $\{w^\star(\lambda) : \lambda \in \Delta_S\}$.
# ````
#
# ````{prf:proposition} Proposition 3 of the paper
# :label: prop-3
#
# If the risks are convex, every solution of the min-max problem $\min_w \max_a F_a(w)$ and of its robust extension
# $\min_w \max_{Q \in \mathcal{D}} \mathbb{E}_{a \sim Q} F_a(w)$ is Pareto-efficient. *Condition under which this holds: the
# risks are strictly convex. As printed it is false.*
# ````
#
# ````{prf:example} A counterexample to Proposition 3 as printed
# :label: ex-counterexample
#
# Take $F_1(w) = |w_1| + 1$ and $F_2(w) = |w_2|$, both convex. At $w = (0, \tfrac12)$ the risks are $(1, \tfrac12)$, and
# $\max_a F_a(w) = 1$ is the least possible, so $w$ solves the min-max problem; it also minimises the weighted sum at
# $\lambda = (1, 0)$. Yet $u = (0, 0)$ has the risks $(1, 0)$ and dominates it, by {glue:text}`counterexample` in total.
# ````
#
# Each statement is checked on the three tasks: {prf:ref}`prop-1` on every model of the front, {prf:ref}`prop-2` on efficient
# models that the $\varepsilon$-constraint method found without any weights, {prf:ref}`prop-3` on the min-max model and on a
# robust one whose ambiguity set gives each group a probability between 1/4 and 3/4.

# %% tags=["hide-input"]
present(tables["checks"], digits=2)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
checks = tables["checks"].set_index(["task", "statement"]).holds
assert checks.drop("counterexample", level="task").all(), "a proposition fails on strictly convex risks"
assert not checks["counterexample"].any(), "the counterexample no longer refutes the proposition as printed"
print("propositions hold on strictly convex risks: True")

# %% [markdown]
# ## Figure 1: the path leaves the front
#
# The regularisation path minimises
#
# $$ \tfrac12 F_1(w) + \tfrac12 F_2(w) + \nu\, M(Xw), $$ (eq-path)
#
# with the individual-fairness metric of {cite:t}`berk2017` as $M$ and, on the grid of the paper, a penalty $\nu$ between
# $10^{-6}$ and $10^{-1/2}$.
# Two remarks on the paper's text. Its Equation 4 prints $1/\nu$ in front of the metric; with that the grid would
# run from 3 to a million, so $\nu$ is taken as the weight itself, as the figure's text does. And its Equation 1 weighs groups
# by size, while the figure starts from uniform weights: {eq}`eq-path` does the latter; the parameter `path_weights` offers the
# former. As published the metric is
#
# $$
# M(z) = \frac{1}{\sum_{a \ne b} n_a n_b} \sum_{a < b} \sum_{i \in I_a} \sum_{j \in I_b} e^{-|y_i - y_j|} (z_i - z_j)^2 ,
# $$ (eq-individual)
#
# whose denominator counts every pair twice: it is half of the mean over pairs of people from different groups. For scores
# $z = Xw$ it is a quadratic form of $w$ and is computed, with its derivative, in $O(n)$ operations.

# %% tags=["remove-cell"]
glue("figure_fronts", study.figure_fronts(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_fronts
# :name: fig-fronts
# :alt: Top, one panel a task: the Pareto front of the two groups' risks as a convex curve, with the strategies on it, and the regularisation path bending away from it into the dominated region. Bottom: the unfairness metric along the front against the first group's weight, with the same strategies.
#
# The paper's Figure 1. Top: risks of the two groups along the Pareto front and along the regularisation path, coloured by
# unfairness. Bottom: unfairness along the front against $\lambda_1$. Markers: the strategies of the paper's section 5.1.3.
# Data and variant: {glue:text}`setting`.
# ```
#
# In every panel of the top row the path starts on the front, at the {glue:text}`path_start` weights, and bends away from it. In
# the bottom row badr's weights have the least unfairness of all efficient models. On {glue:text}`tied` another strategy has
# chosen the same weights, so badr ties there. Where the metric has several local minima along the front it is not convex
# there; those met are {glue:text}`minima`.

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
for row in study.table_reach(tables).itertuples(index=False):
    print(row[0], *(f"{value:.3f}" for value in row[1:4]))

# %% [markdown]
# ## Certificates
#
# A picture of a path near a front proves nothing. Let $w$ be any model. The largest total improvement that any other model
# offers,
#
# $$ \max_{u,\; s \ge 0} \sum_a s_a \quad \text{subject to} \quad F_a(u) + s_a \le F_a(w), $$ (eq-primal)
#
# is zero exactly when $w$ is efficient ({prf:ref}`def-efficient`). At an efficient model {eq}`eq-primal` has no strictly
# feasible point, and conic solvers fail there. Its dual needs nothing but weighted sums:
#
# $$ \min_{\lambda_a \ge 1} \; \sum_a \lambda_a F_a(w) - \min_u \sum_a \lambda_a F_a(u) . $$ (eq-dual)
#
# Whatever $\lambda$ an optimiser stops at, {eq}`eq-dual` is an upper bound on the improvement: a small value *proves*
# efficiency to that tolerance. And $u = w^\star(\lambda / \sum_a \lambda_a)$, once $F_a(u) \le F_a(w)$ has been checked for every
# group, proves domination.
#
# On the {glue:text}`front_count` models of the fronts and the strategies no certificate exceeds
# {glue:text}`front_certificate`. Along the paths ({glue:text}`path_count` models) the bound and the verified improvement are
# the same number to rounding ({numref}`fig-certificates`). Improved by more than $10^{-4}$ are, of all penalties:
# {glue:text}`share_dominated`.

# %% tags=["remove-cell"]
glue("figure_certificates", study.figure_certificates(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_certificates
# :name: fig-certificates
# :alt: Certificate against penalty on logarithmic axes, one panel a task: the bound on the path grows by many orders of magnitude from left to right and the verified improvements lie on it; the largest certificate of the front and the strategies is a horizontal line far below the tolerance.
#
# Certificates along the regularisation path. Data and variant: {glue:text}`setting`.
# ```
#
# The table shows some of the path's models beside the models that dominate them: {glue:text}`example`.

# %% tags=["hide-input"]
present(study.table_certificates(tables), digits=3)

# %% tags=["remove-cell"]
glue("figure_coefficients", study.figure_coefficients(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_coefficients
# :name: fig-coefficients
# :alt: Dumbbell plot, one panel a task: for each feature the coefficient of the most regularised model, near zero, and that of the model that dominates it, farther from zero.
#
# The most regularised model of each path and the model that dominates it, coefficient by coefficient: the penalty shrinks
# the scores, since equal scores are fair ones. Data and variant: {glue:text}`setting`.
# ```

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
points = tables["points"]
efficient = points[points.curve != "regularisation"]
strong = points[(points.curve == "regularisation") & (points.penalty >= 1e-3)]
assert (efficient.certificate <= study.EFFICIENT).all(), "a scalarised model has no certificate of efficiency"
print("front and strategies certified efficient:", bool((efficient.certificate <= study.EFFICIENT).all()))
for name, dominated in (strong.improvement > 1e-4).groupby(strong.task, sort=False):
    print(name, "share dominated by more than 1e-4:", f"{dominated.mean():.2f}")

# %% [markdown]
# ## What efficiency costs
#
# Staying on the front is not free, and the paper's figure does not say so aloud. On {glue:text}`beyond` the path reaches
# unfairness that **no efficient model of this family reaches**: on {glue:text}`task_first` it comes down to
# {glue:text}`path_least`, while the least on the front is {glue:text}`front_least`. Both groups pay for the path's fairest model on
# {glue:text}`dearer`: on {glue:text}`task_first` their risks move by {glue:text}`path_price_1` and {glue:text}`path_price_2` relative
# to the uniform model. Whoever must have the lowest unfairness, whatever it costs every
# group, wants the path; whoever will not harm one group without helping another wants the front, and then badr's point on it.

# %% tags=["hide-input"]
present(study.table_reach(tables), digits=3)

# %% tags=["remove-cell"]
glue("figure_cost", study.figure_cost(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_cost
# :name: fig-cost
# :alt: Certificate against unfairness along the path, one panel a task. The path begins inside the band of unfairness that the front covers, with a certificate near zero, and leaves the band to the left, where its certificate is largest.
#
# What the path's fairness costs: to the left of the band no efficient model exists, and every model of the path is
# dominated. Data and variant: {glue:text}`setting`.
# ```
#
# ## What holds
#
# The claims of the paper that this chapter examines, and what it measured.

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} A first-order certificate
# :label: ex-first-order
# ```
# Show that a differentiable, convex problem has an efficient $w$ only if some convex combination of the gradients
# $\nabla F_a(w)$ is zero. Then compute the least norm of such a combination at the model of the path for one penalty, and at
# the uniform model.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-first-order
# :class: dropdown
# ```
# If no convex combination of the gradients is zero, their convex hull and the origin can be separated: there is a direction
# $d$ with $\nabla F_a(w)^\top d < 0$ for every $a$. A small step along $d$ then improves every group, so $w$ is dominated.
# `first_order_multipliers` finds the combination of least norm.

# %% tags=["solution"]
from fairfront import metrics
from fairfront.datasets import load
from fairfront.pareto import first_order_multipliers, regularization_path, scalarized
from fairfront.risks import GroupRisks

data = load("acs2012-employment", sensitive=["gender"], test_size=0, seed=0)
risks = GroupRisks.from_data(data, penalize_intercept=False)
individual = metrics.get("individual_fairness", variant="paper").bind(risks.y, risks.groups, risks.n_groups)
on_path = regularization_path(risks, individual, [0.1], [0.5, 0.5])[0].point
on_front = scalarized(risks, "uniform", [0.5, 0.5]).model.point
for label, point in (("path", on_path), ("uniform", on_front)):
    print(label, f"{first_order_multipliers(point)[1]:.1e}")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Does the starting point matter?
# :label: ex-erm
# ```
# The paper's figure starts its path from uniform weights, its Equation 4 from those of empirical risk minimisation. Run the
# study again with `path_weights="erm"`, at the smallest profile, and decide whether the conclusion changes.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-erm
# :class: dropdown
# ```
# It does not: on all three tasks the end of the path is dominated, with either start.

# %% tags=["solution"]
for start in ("uniform", "erm"):
    again = runs.compute(study, study.Parameters(profile="smoke", path_weights=start))
    print(start, again.tables["dominating"].groupby("task", sort=False).improvement.max().round(4).to_dict())

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Repairing the counterexample
# :label: ex-repair
# ```
# Add $\tfrac{\mu}{2} \lVert w \rVert^2$, $\mu > 0$, to both risks of {prf:ref}`ex-counterexample`. Show that the min-max model is
# then unique and efficient, and find it.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-repair
# :class: dropdown
# ```
# $\max_a F_a$ is now strongly convex, so its minimiser is unique. At $w = 0$ the risks are $(1, 0)$; any other $w$ has
# $F_1(w) = 1 + |w_1| + \tfrac{\mu}{2}\lVert w\rVert^2 > 1$. So $w = 0$ is the min-max model, and since it alone minimises $F_1$,
# nothing dominates it.

# %% tags=["solution"]
import cvxpy as cp

w = cp.Variable(2)
mu = 0.1
F = [cp.abs(w[0]) + 1 + mu / 2 * cp.sum_squares(w), cp.abs(w[1]) + mu / 2 * cp.sum_squares(w)]
cp.Problem(cp.Minimize(cp.maximum(*F))).solve(solver=cp.CLARABEL)
print("min-max model is 0 to 1e-4:", bool(abs(w.value).max() < 1e-4))

# %% [markdown]
# ```{solution-end}
# ```
