# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (scalarisation)=
# # Scalarisation and minimax: three propositions and their conditions
#
# {ref}`pareto-inefficiency` certified the paper's Propositions 1 to 3 on real rows, with two groups and strictly convex risks. This
# chapter leaves that safe ground: many random problems with up to five groups and weights at the very boundary of the simplex; then
# risks that are convex but have flat directions; then risks that are not convex at all.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - prove efficiency of a weighted sum even at weights with zeros, by a bound that needs gradients only;
# - produce, for risks with flat directions, min-max models that are dominated;
# - recognise the part of a Pareto front that no weighted sum reaches, and say what does reach it.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
loss = ("logistic", "squared_hinge", "squared")
groups = (2, 3, 5)
sharpness = (1.0, 2.4, 4.0)
problems = None
weights = None
points = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import scalarisation as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    loss=loss,
    groups=groups,
    sharpness=sharpness,
    problems=problems,
    weights=weights,
    points=points,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## Strictly convex risks
#
# A random problem has 25 rows a group, four features, a truth of its own for each group, one of the paper's three losses and a
# random ridge penalty. {prf:ref}`prop-1` is checked at random weights inside the simplex, on its faces and at its vertices;
# {prf:ref}`prop-2` on models that the $\varepsilon$-constraint method finds without weights, for any number of groups; {prf:ref}`prop-3`
# on min-max models, and for two groups on robust ones.
#
# ````{prf:proposition} A certificate at the boundary
# :label: prop-boundary
#
# Let every $F_a$ be $\ell_2$-strongly convex. For any model $w$, weights $\lambda \in \Delta_S$ and $K \ge 0$, no model that harms nobody
# improves on $w$ in total by more than
#
# $$ \frac{\bigl\lVert \sum_a \nabla F_a(w) + K \sum_a \lambda_a \nabla F_a(w) \bigr\rVert^2}{2\, \ell_2\, (S + K)} . $$
#
# At $w = w^\star(\lambda)$ the second sum is zero, and the bound tends to zero as $K$ grows: every weighted sum is efficient, zeros in the
# weights or not.
# ````
#
# ````{prf:proof}
# If $F(u) \le F(w)$ then $\sum_a (F_a(w) - F_a(u)) \le \sum_a (1 + K\lambda_a)(F_a(w) - F_a(u))$, whose maximum over $u$ is at most the squared
# gradient over twice the modulus of convexity, $\ell_2 (S + K)$.
# ````
#
# Found: a largest certificate of {glue:text}`worst_1` on {glue:text}`cases_1` weighted sums, a largest difference of a risk of
# {glue:text}`worst_2` on {glue:text}`cases_2` efficient models, a largest certificate of {glue:text}`worst_3` on {glue:text}`cases_3`
# min-max and robust models.

# %% tags=["remove-cell"]
glue("figure_random", study.figure_random(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_random
# :name: fig-random
# :alt: Three panels, one a proposition: for each number of groups and each loss the measured quantity of every random problem on a logarithmic axis, all below the dashed tolerance.
#
# What was measured on every strictly convex problem; dashed: the tolerance. Data: {glue:text}`setting`.
# ```

# %% tags=["hide-input"]
present(study.table_checks(tables), digits=2)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
checks = tables["checks"]
assert checks.holds.all(), "a proposition fails on strictly convex risks"
print("all three propositions hold on strictly convex random problems:", bool(checks.holds.all()))

# %% [markdown]
# ## Flat directions
#
# Strict convexity is a condition and not a formality. Let $F_a(w) = \tfrac12 \lVert B_a w - c_a \rVert^2 + h_a$ with fewer rows in $B_a$ than
# coefficients: least squares with more features than rows, without a penalty. Each group's risk then has flat directions, along which
# it does not care and the other group does. Nothing selects the better of the minimisers, and a solver that starts at random returns
# a random one.
#
# - At positive weights all minimisers have the same risks, and are efficient: the bound
#   $(\lambda^\top F(w) - \min_u \lambda^\top F(u)) / \min_a \lambda_a$ is at most {glue:text}`flat_interior`.
# - At $\lambda = (1, 0)$, {glue:text}`flat_vertex` random minimisers are dominated, by up to {glue:text}`flat_largest`.
# - Of random min-max models, {glue:text}`flat_minimax` are dominated: each is as good as can be for the worse-off group, and needlessly
#   bad for the other. {prf:ref}`ex-counterexample` is the rule, not the exception.

# %% tags=["remove-cell"]
glue("figure_flat", study.figure_flat(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_flat
# :name: fig-flat
# :alt: Distribution functions of improvements on a logarithmic axis: solutions of weighted sums with positive weights at rounding level far left, solutions at the boundary weights and min-max solutions far right.
#
# How much another model improves on random solutions of merely convex problems (for positive weights: an upper bound). Data:
# {glue:text}`setting_flat`.
# ```

# %% tags=["hide-input"]
present(study.table_flat(tables), digits=2)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
flat = study.table_flat(tables).dominated
assert flat.iloc[0] == 0 and (flat.iloc[1:] > 0).all()
print("positive weights: none dominated:", bool(flat.iloc[0] == 0))
print("boundary weights and min-max: dominated ones exist:", bool((flat.iloc[1:] > 0).all()))

# %% [markdown]
# ## Fronts that are not convex
#
# {prf:ref}`prop-2` says that weighted sums miss nothing, if the risks are convex. Take
#
# $$ F_a(w) = 1 - e^{-s \lVert w - c_a \rVert^2}, \qquad \lVert c_1 - c_2 \rVert = 1, $$
#
# two smooth risks, each with a single minimum. Both grow with a distance, so that exactly the models on the segment from $c_1$ to $c_2$
# are efficient, whatever $s$. A weighted sum is a linear function of the risks: its minimum over the front lies on the *lower convex
# hull* of the front. Of the efficient models weighted sums reach {glue:text}`reached`.

# %% tags=["remove-cell"]
glue("figure_nonconvex", study.figure_nonconvex(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_nonconvex
# :name: fig-nonconvex
# :alt: Three panels of the plane of two risks with a cloud of models and its lower left edge, the Pareto front: convex on the left and reached everywhere; in the middle bulging outward in its middle part, which is missed; on the right reached near its ends only.
#
# Pareto fronts of risks that are not convex, and what weighted sums reach of them. Data: {glue:text}`setting_nonconvex`.
# ```
#
# The min-max model, in the middle of the front, is efficient whatever $s$, and for $s > 2$ no weights find it. So for models that
# are not convex in their parameters badr's lower level searches a part of the front only; an $\varepsilon$-constraint or a weighted maximum
# searches all of it. The paper's theory, and this book's experiments, keep to convex risks.

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
reached = tables["nonconvex"].groupby("sharpness").reached.mean()
print("share reached falls as the risks bend:", bool(reached.is_monotonic_decreasing), *(f"{s:.2f}" for s in reached))
assert reached.is_monotonic_decreasing

# %% [markdown]
# ## What holds
#
# In short; the claims' own verdicts are in {ref}`pareto-inefficiency`, where they are measured on real rows.

# %% tags=["hide-input"]
present(study.table_conditions(tables))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} When is the front convex?
# :label: ex-convex-front
# ```
# Along the segment of the last section the front is the curve $\bigl( f(t), f(1-t) \bigr)$ with $f(t) = 1 - e^{-s t^2}$. Show that it is convex
# near its middle exactly for $s \le 2$.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-convex-front
# :class: dropdown
# ```
# The curve is convex where $f''(t) f'(1-t) + f'(t) f''(1-t) \ge 0$. At $t = \tfrac12$ this is $2 f'f''$ with $f' > 0$, and
# $f''(t) = 2s (1 - 2 s t^2) e^{-s t^2}$ is non-negative at $\tfrac12$ exactly for $s \le 2$.

# %% tags=["solution"]
from fairfront.theory import scalarisation as theory

for s in (1.9, 2.0, 2.1):
    print(s, "all reached:", bool(theory.on_lower_hull(theory.bump_front(s, 2001)).all()))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Two questions at once
# :label: ex-lexicographic
# ```
# Repair the min-max model of a problem with flat directions without adding a penalty: among all min-max models take one that is best
# for the other group. Check that it is not dominated.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-lexicographic
# :class: dropdown
# ```
# Minimise $F_2$ over the minimisers of $F_1$, a least-squares problem along the flat directions. Whoever improves on it for group 2
# must lose for group 1, and group 1 cannot improve.

# %% tags=["solution"]
import numpy as np

generator = np.random.default_rng(1)
problem = theory.FlatProblem.random(generator)
rough, best = problem.minimax_solution(generator), problem.lexicographic()
print("same worst risk:", bool(np.isclose(problem.losses(rough).max(), problem.losses(best).max())))
print("random min-max model dominated:", bool(problem.improvement(rough) > 1e-6))
print("the repaired one dominated:", bool(problem.improvement(best) > 1e-6))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Reaching the rest
# :label: ex-chebyshev
# ```
# For the front with $s = 4$ minimise $\max(F_1/r_1, F_2/r_2)$ over the front for many ratios $r$. Which share of it do you reach?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-chebyshev
# :class: dropdown
# ```
# All of it: at the front's point $p$ take $r = p$. Then the maximum is 1 there and larger elsewhere on the front, since
# elsewhere one of the two risks is larger.

# %% tags=["solution"]
front = theory.bump_front(4.0, 201)
inner = front[1:-1]
found = {int((front / ratio).max(axis=1).argmin()) for ratio in inner}
print(
    "reached by weighted maxima:",
    f"{len(found) / len(inner):.0%}",
    "by weighted sums:",
    f"{theory.hull_share(front):.0%}",
)

# %% [markdown]
# ```{solution-end}
# ```
