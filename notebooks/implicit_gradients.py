# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (implicit-gradients)=
# # Implicit gradients: one adjoint system
#
# To make a fairness metric smaller by moving the groups' weights, one must know how the metric changes when they move: how
# the *solution* of one optimisation problem changes with a parameter of it. This chapter derives that derivative, checks it
# by differences in every case that the paper allows, and shows what a small omission in it does.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - derive the hypergradient from the implicit function theorem, and say what it costs;
# - check a derivative by differences, and choose their step;
# - say what becomes wrong when a model has an intercept and the adjoint system leaves it out.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
loss = ("logistic", "squared_hinge", "squared")
l2 = 0.01
penalize_intercept = False
metric_sees_intercept = True
task = None
points = None
grid = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import implicit_gradients as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    loss=loss,
    l2=l2,
    penalize_intercept=penalize_intercept,
    metric_sees_intercept=metric_sees_intercept,
    task=task,
    points=points,
    grid=grid,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## The derivation
#
# The bilevel problem of the paper's Equation 8 is
#
# $$
# \min_{\lambda \in \Delta_S} \varphi(\lambda) = M\bigl(X w^\star(\lambda)\bigr), \qquad
# w^\star(\lambda) = \argmin_w \sum_a \lambda_a F_a(w) .
# $$ (eq-bilevel)
#
# ````{prf:theorem} The hypergradient
# :label: thm-hypergradient
#
# If the risks are twice continuously differentiable, $H = \sum_a \lambda_a \nabla^2 F_a(w^\star)$ is positive definite and $M$ is
# differentiable, then with the solution $v$ of **one** linear system
#
# $$
# H v = X^\top \nabla M(X w^\star), \qquad \frac{\partial \varphi}{\partial \lambda_a} = -\nabla F_a(w^\star)^\top v .
# $$ (eq-adjoint)
# ````
#
# ````{prf:proof}
# $g(w, \lambda) = \sum_a \lambda_a \nabla F_a(w)$ is zero at $w^\star(\lambda)$ for every $\lambda$. Differentiating along $\lambda_a$ gives
# $H\, \partial w^\star / \partial \lambda_a + \nabla F_a(w^\star) = 0$. By the chain rule
# $\partial \varphi / \partial \lambda_a = (X^\top \nabla M)^\top \partial w^\star / \partial \lambda_a = -(X^\top \nabla M)^\top H^{-1} \nabla F_a = -v^\top \nabla F_a$, since $H$ is symmetric.
# ````
#
# Solving for the $S$ columns of the Jacobian of $w^\star$ instead takes $S$ systems, and central differences $2 (S - 1)$ lower-level
# problems. Here one lower-level problem and {glue:text}`solves` adjoint system give value and gradient for any number of groups.
#
# ```{note}
# The squared hinge (the paper's smoothed SVM) is once continuously differentiable. Its generalised Hessian counts the rows whose
# margin is below 1; {eq}`eq-adjoint` holds wherever no row sits exactly at the kink, on each piece of $\varphi$.
# ```
#
# ## Checked by differences
#
# Every loss, every metric that is defined for its task, both variants, and several numbers of groups: {glue:text}`cases` cases
# at random weights, along random directions $e_a - e_b$. The error is measured against the larger of the derivative itself and a
# thousandth of the gradient's range.

# %% tags=["remove-cell"]
glue("figure_agreement", study.figure_agreement(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_agreement
# :name: fig-agreement
# :alt: One panel a loss, one row a metric, one marker for each number of groups: relative errors on a logarithmic axis, all left of the dashed line of the tolerance, most by several orders of magnitude.
#
# Hypergradient against central differences of order four; dashed: the tolerance. Data and variants: {glue:text}`setting`.
# ```
#
# The largest error is {glue:text}`largest_error`, the median {glue:text}`median_error`.

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
agreement = tables["agreement"]
assert (agreement.error <= study.TOLERANCE).all(), "a hypergradient disagrees with differences"
assert (agreement.adjoint_solves == 1).all(), "a gradient took more than one adjoint system"
print("hypergradients agree with differences to 1e-6, one adjoint system each: True")

# %% tags=["hide-input"]
present(study.table_agreement(tables), digits=1)

# %% tags=["remove-cell"]
glue("figure_steps", study.figure_steps(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_steps
# :name: fig-difference-steps
# :alt: Left: error of a plain central difference against its step, a V on logarithmic axes for each loss. Right: error of the hypergradient against the tolerance of the lower solve, falling with it.
#
# What limits either side. Left: a plain central difference loses to truncation for long steps and to rounding for short ones; the
# best steps are {glue:text}`best_steps`. Right: the hypergradient's error follows the lower solve's tolerance, in steps, since the
# solver stops at whole iterations. Individual fairness, two groups. Data and variants: {glue:text}`setting`.
# ```
#
# ## An intercept that the adjoint forgets
#
# Let the model have an intercept $w_0$ beside the other coefficients $w_-$, and write
#
# $$
# H = \begin{pmatrix} h_{00} & h^\top \\ h & H_- \end{pmatrix} .
# $$
#
# Suppose that the lower level is solved with the intercept, but that the adjoint system and the group gradients leave it out:
# $\tilde v = H_-^{-1} (X_-^\top \nabla M)$ and $-\nabla_- F_a^\top \tilde v$. This is the derivative of another function: of the metric at the
# solution *with the intercept held fixed* while the weights move.
#
# ````{prf:proposition} What is lost
# :label: prop-intercept
#
# Let $g = X^\top \nabla M = (g_0, g_-)$. The exact adjoint is
#
# $$
# v_- = \bigl( H_- - h h^\top / h_{00} \bigr)^{-1} \bigl( g_- - h\, g_0 / h_{00} \bigr), \qquad v_0 = (g_0 - h^\top v_-) / h_{00} ,
# $$
#
# and the derivative lacks the term $-\partial_0 F_a\, v_0$ besides. The truncated derivative is right for every $g$ only if $h = 0$
# and either $\partial_0 F_a = 0$ or $g_0 = 0$. Neither holds in general: $h$ is a weighted mean of the features, with the weights
# $\lambda_a \sigma'(z_i)/n_a$, for which standardised columns are not centred; and $\partial_0 F_a$ is the mean error of group $a$, zero for the
# weighted sum of the groups but for no single one.
# ````
#
# ````{prf:proof}
# Eliminate $v_0$ from the first row of $Hv = g$.
# ````
#
# A free intercept makes the first derivative of the lower level vanish, $\sum_a \lambda_a \partial_0 F_a = 0$. For two groups
# $\partial_0 F_1$ and $\partial_0 F_2$ then have opposite signs and are the larger the more the groups' base rates differ, which is when fairness
# matters.
#
# Computed on real rows, with gender among the features and without it, at {glue:text}`judged` weights where the derivative is
# clearly not zero: the truncated derivative has the **wrong sign** at {glue:text}`wrong_with` of them with gender among the features,
# and at {glue:text}`wrong_without` without it. Most often on {glue:text}`most_wrong` weights. It is off by up to
# {glue:text}`truncated_off` times the largest derivative along the same $\varphi$; the whole adjoint by at most {glue:text}`whole_off`.
# Where gender is a feature, its coefficient takes over what the intercept would do, and the truncated derivative is nearly right but
# towards the ends of the interval; without gender it is off everywhere, by little on some tasks and by everything on others. (The published metrics see the score without its
# intercept; the parameter `metric_sees_intercept` does the same. Metrics that do not change when all scores shift see no difference.)

# %% tags=["remove-cell"]
glue("figure_intercept", study.figure_intercept(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_intercept
# :name: fig-intercept
# :alt: Two scatter plots, with gender among the features and without: derivative by an adjoint against derivative by differences. The whole adjoint lies on the diagonal; the truncated one is scattered, in part in the shaded quadrants where the sign is wrong.
#
# Derivatives of $\varphi$ along $e_1 - e_2$, by adjoint systems against differences, over the largest of each $\varphi$ (cut at 3); shaded:
# wrong sign. All metrics. Data and variant: {glue:text}`setting_intercept`.
# ```
#
# There, on {glue:text}`worst_where`, at $\lambda_1 =$ {glue:text}`worst_lambda`: {glue:text}`worst_numeric` by differences,
# {glue:text}`worst_whole` by the whole adjoint, {glue:text}`worst_truncated` without the intercept.

# %% tags=["remove-cell"]
glue("figure_slopes", study.figure_slopes(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_slopes
# :name: fig-slopes
# :alt: The implicit function against the first group's weight with short line segments on it: those of the whole adjoint are tangent to the curve, those of the truncated one point elsewhere.
#
# The same $\varphi$ with the slopes that both systems give. Data and variant: {glue:text}`setting_intercept`.
# ```

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
signs = study.table_signs(tables)
assert (signs.whole_off <= 1e-5).all(), "the whole adjoint is wrong"
print("whole adjoint right to 1e-5 of the largest derivative:", bool((signs.whole_off <= 1e-5).all()))
for row in signs.itertuples():
    print(row.task, row.metric, row.features, "truncated adjoint off by", f"{row.off:.2f}")

# %% tags=["hide-input"]
present(signs, digits=2)

# %% [markdown]
# ```{admonition} The published package
# :class: note
# The project's notes on the authors' published code record, from running it, a hypergradient of +0.0189 where finite differences
# give −0.0630 with its default, an intercept, and of −2.14 against −0.129 for ridge regression. Those four numbers are quoted from
# the notes; this chapter does not run that code. What it adds is that the omission analysed above alone suffices for a wrong sign.
# A direction with the wrong sign makes the metric worse, and a solver that checks its steps stops where it stands.
# ```
#
# ## What holds

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} Weights that do nothing
# :label: ex-homogeneous
# ```
# Show that $\sum_a \lambda_a\, \partial \varphi / \partial \lambda_a = 0$, and explain it without a calculation. Check it.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-homogeneous
# :class: dropdown
# ```
# $\sum_a \lambda_a \nabla F_a(w^\star) = 0$. Multiplying all weights by the same number does not change the minimiser, so $\varphi$ is constant
# along rays.

# %% tags=["solution"]
import numpy as np

from fairfront import metrics
from fairfront.bilevel import Objective
from fairfront.datasets import load
from fairfront.risks import GroupRisks

risks = GroupRisks.from_data(load("acs2012-income", sensitive=["gender", "race"], test_size=0.0, groups=3), l2=0.1)
bound = metrics.get("hsic").bind(risks.y, risks.groups, risks.n_groups)
weights = np.array([0.2, 0.5, 0.3])
objective = Objective(risks, bound)
found = objective.evaluate(weights)
print("sum of lambda times gradient is 0 to 1e-9:", bool(abs(weights @ found.gradient) < 1e-9))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} The price of the other way
# :label: ex-forward
# ```
# Compute the Jacobian of $w^\star$ column by column, and with it the gradient. How many linear systems does it take with 3 groups, and
# with 36?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-forward
# :class: dropdown
# ```
# One for each group (one fewer along the simplex): 3 and 36, against a single adjoint system. With a Cholesky factor at hand the
# difference is small for few features; with products only, as for rows on disk, each system is some passes over the rows.

# %% tags=["solution"]
point = found.model.point
jacobian = -np.linalg.solve(point.hessian(weights), point.gradients.T)
slope = point.score_gradient(bound.value_and_derivative(point.scores)[1])
print("both ways agree:", bool(np.allclose(jacobian.T @ slope, found.gradient, atol=1e-8)))
print("adjoint systems solved:", objective.adjoint_solves)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} One convention throughout
# :label: ex-convention
# ```
# A package minimises $\sum_i (y_i - z_i)^2 / n_a + \ell \lVert w \rVert^2$ and builds its Hessian from $\ell\, I$ instead of $2 \ell\, I$. Is the
# sign of the hypergradient safe? Try it on two groups of Communities and Crime.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-convention
# :class: dropdown
# ```
# Nothing protects it: $v$ and $\tilde v$ solve systems with different positive definite matrices, and only the signs of quadratic forms
# $g^\top H^{-1} g$ agree, not those of $\nabla F_a^\top H^{-1} g$. With a weak penalty the error is small, but it is an error in every digit that counts.

# %% tags=["solution"]
rows = load("communities", sensitive=["race"], test_size=0.0, groups=2)
ridge = GroupRisks.from_data(rows, loss="squared", l2=0.2)
parity = metrics.get("demographic_parity", task="regression").bind(ridge.y, ridge.groups, 2)
exact = Objective(ridge, parity).evaluate([0.5, 0.5])
point = exact.model.point
slope = point.score_gradient(parity.value_and_derivative(point.scores)[1])
mixed = point.hessian(np.array([0.5, 0.5])) - 0.1 * np.eye(ridge.n_features)
print(
    "right:", exact.gradient.round(4), "mixed conventions:", (-point.gradients @ np.linalg.solve(mixed, slope)).round(4)
)

# %% [markdown]
# ```{solution-end}
# ```
